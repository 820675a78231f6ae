use super::*;

pub(crate) const SAMPLE: &str = "\
pg_control version number:            1300
Database system identifier:           7300000000000000001
Database cluster state:               in archive recovery
pg_control last modified:             Sat Nov 21 14:00:00 2026
Latest checkpoint location:           0/2000060
Latest checkpoint's REDO location:    0/2000028
Latest checkpoint's REDO WAL file:    000000010000000000000002
Latest checkpoint's TimeLineID:       3
Minimum recovery ending location:     1/2000100
End-of-backup record required:        yes
max_connections setting:              100
max_worker_processes setting:         8
max_wal_senders setting:              10
max_prepared_xacts setting:           5
max_locks_per_xact setting:           64
Blocks per segment of large relation: 131072
Bytes per WAL segment:                16777216
Data page checksum version:           1
";

#[test]
fn the_tools_output_is_understood() {
    let control = parse(SAMPLE).unwrap();
    assert_eq!(control.system_identifier, 7_300_000_000_000_000_001);
    assert_eq!(control.state, ClusterState::InArchiveRecovery);
    assert_eq!(control.redo_lsn, Lsn(0x200_0028));
    assert_eq!(control.checkpoint_lsn, Lsn(0x200_0060));
    assert_eq!(control.min_recovery_lsn, Lsn(1 << 32 | 0x200_0100));
    assert_eq!(control.timeline, 3);
    assert!(control.backup_end_required && control.data_checksums);
    assert_eq!(control.wal_segment_bytes, 16 << 20);
    assert_eq!(control.segment_pages, 131_072);
    assert!(control.minimum_settings.contains(&("max_prepared_transactions", 5)));
}

#[test]
fn missing_or_broken_fields_are_errors_not_panics() {
    for (line, replacement) in [
        ("Data page checksum version:           1\n", ""),
        ("TimeLineID:       3", "TimeLineID:       99999999999"),
        ("location:     1/2000100", "location:     soup"),
        ("identifier:           73", "identifier:           x"),
    ] {
        let broken = SAMPLE.replace(line, replacement);
        assert_ne!(broken, SAMPLE);
        assert_eq!(parse(&broken).unwrap_err().code, ErrorKind::DataDamaged);
    }
    assert!(parse("").is_err());
}

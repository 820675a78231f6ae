use super::*;

#[test]
fn progress_lines_are_parsed() {
    let first = parse_progress("    12/30721 kB (0%), 0/1 tablespace (/x/backup_label           )");
    assert_eq!(first, Some(BackupProgress { done_bytes: 12 << 10, total_bytes: 30721 << 10 }));
    assert_eq!(
        parse_progress("30731/30731 kB (100%), 1/1 tablespace").unwrap().total_bytes,
        31468544
    );
    assert_eq!(parse_progress("pg_basebackup: base backup completed"), None);
    assert_eq!(parse_progress("pg_basebackup: checkpoint 0/2000028 kB"), None);
}

#[test]
fn positions_are_found() {
    let label = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\n\
                 CHECKPOINT LOCATION: 0/2000060\nSTART TIMELINE: 3\n";
    assert_eq!(parse_label(label), Some((Lsn(0x2000028), 3)));
    assert_eq!(parse_label("START TIMELINE: 3"), None);
    let tail = "}],\n\"WAL-Ranges\": [\n{ \"Timeline\": 1, \"Start-LSN\": \"0/2000028\", \
                \"End-LSN\": \"0/2000100\" }\n],\n\"Manifest-Checksum\": \"00\"}\n";
    assert_eq!(parse_end(tail), Some(Lsn(0x2000100)));
    assert_eq!(parse_end("{}"), None);
}

#[test]
fn mappings_are_escaped() {
    assert_eq!(escape_mapping("/a=b"), "/a\\=b");
}

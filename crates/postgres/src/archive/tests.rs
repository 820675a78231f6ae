use super::*;
use offshoot_connector::PlainDir;
use std::path::Path;

fn archive(dir: &Path) -> Archive {
    Archive::new(Arc::new(PlainDir::new(dir)), 16 << 20).unwrap()
}

fn fill(dir: &Path, names: &[&str]) {
    for name in names {
        std::fs::write(dir.join(name), "").unwrap();
    }
}

#[test]
fn names_and_positions_agree() {
    let archive = archive(Path::new("/x"));
    let file = WalFile { timeline: 1, number: 256 + 3, partial: true };
    assert_eq!(archive.name(&file), "000000010000000100000003");
    assert_eq!(archive.start(&file), Lsn(0x1_0300_0000));
    assert_eq!(archive.end(&file), Lsn(0x1_0400_0000));
    assert_eq!(archive.parse_name("000000010000000100000003.partial"), Some(file));
    assert_eq!(archive.file_name(&file), "000000010000000100000003.partial");
    for wrong in [
        "000000010000000100000100", // no such file of 16 MiB
        "00000001000000010000003",
        "000000000000000100000003",
        "00000001000000010000000g",
        "000000010000000100000003.gz",
        "00000002.history",
        "archive_status",
    ] {
        assert_eq!(archive.parse_name(wrong), None, "{wrong}");
    }
    for bytes in [3 << 20, 1 << 31] {
        assert!(Archive::new(Arc::new(PlainDir::new("/x")), bytes).is_err());
    }
}

#[test]
fn a_history_is_parsed_and_asked() {
    let text = "1\t0/3000000\tno recovery target specified\n\n2\t0/5000000\tx\n";
    let history = TimelineHistory::parse(4, text).unwrap();
    assert_eq!(history.newest(), Timeline { id: 4, begin: Lsn(0x5000000), end: None });
    assert_eq!(history.at(Lsn(0)).id, 1);
    assert_eq!(history.at(Lsn(0x2FF_FFFF)).id, 1);
    assert_eq!(history.at(Lsn(0x300_0000)).id, 2);
    assert_eq!(history.at(Lsn(u64::MAX)).id, 4);
    assert_eq!(history.find(2).unwrap().end, Some(Lsn(0x5000000)));
    assert_eq!(history.find(3), None);
    for wrong in ["1 0/3000000 x\n1 0/4000000 x", "4 0/1 x", "x 0/1 x", "1", "1 0/9 x\n2 0/8 x"] {
        let failure = TimelineHistory::parse(4, wrong).unwrap_err();
        assert_eq!(failure.code, ErrorKind::DataDamaged, "{wrong}");
    }
}

#[test]
fn the_files_of_a_range_are_named_or_the_missing_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive(dir.path());
    fill(
        dir.path(),
        &[
            "000000010000000000000002",
            "000000010000000000000003",
            "000000010000000000000004.partial",
            "000000010000000000000004",
            "000000010000000000000005.partial",
            "junk",
        ],
    );
    let numbers = |from: u64, to: Option<u64>| {
        let files = archive.files_for(Lsn(from << 24), to.map(|to| Lsn(to << 24)));
        files.map(|files| files.iter().map(|file| (file.number, file.partial)).collect::<Vec<_>>())
    };
    let all = vec![(2, false), (3, false), (4, false), (5, true)];
    assert_eq!(numbers(2, None).unwrap(), all);
    // The last record may continue in the file after.
    assert_eq!(numbers(3, Some(3)).unwrap(), [(3, false), (4, false)]);
    assert_eq!(numbers(5, Some(5)).unwrap(), [(5, true)]);
    let early = numbers(1, None).unwrap_err();
    assert_eq!(early.code, ErrorKind::MomentUnavailable);
    assert!(early.message.contains("000000010000000000000001"), "{early}");
    let late = numbers(2, Some(6)).unwrap_err();
    assert!(late.message.contains("000000010000000000000006"), "{late}");
    std::fs::remove_file(dir.path().join("000000010000000000000003")).unwrap();
    let hole = numbers(2, None).unwrap_err();
    assert!(hole.message.contains("000000010000000000000003"), "{hole}");
}

#[test]
fn a_range_over_a_switch_names_both_timelines_files() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive(dir.path());
    fill(
        dir.path(),
        &[
            "000000010000000000000002",
            "000000010000000000000003.partial",
            "000000010000000000000004", // left behind by the switch
            "000000020000000000000003",
            "000000020000000000000004.partial",
        ],
    );
    let failure = archive.history().unwrap_err();
    assert_eq!(failure.code, ErrorKind::DataDamaged, "two timelines without a history");
    std::fs::write(dir.path().join("00000002.history"), "1\t0/3000100\tx\n").unwrap();
    assert_eq!(archive.history_files().unwrap(), ["00000002.history"]);
    let files = archive.files_for(Lsn(2 << 24), None).unwrap();
    let named: Vec<(u32, u64)> = files.iter().map(|file| (file.timeline, file.number)).collect();
    assert_eq!(named, [(1, 2), (1, 3), (2, 3), (2, 4)]);
}

#[test]
fn old_files_are_removed_but_never_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive(dir.path());
    fill(
        dir.path(),
        &[
            "000000010000000000000002",
            "000000010000000000000003",
            "000000010000000000000004.partial",
        ],
    );
    assert_eq!(archive.remove_before(Lsn((3 << 24) + 5)).unwrap(), 1);
    assert_eq!(archive.files().unwrap().len(), 2);
    assert_eq!(archive.remove_before(Lsn(9 << 24)).unwrap(), 1);
    assert_eq!(archive.files().unwrap()[0].number, 4);
}

#[test]
fn damage_in_a_whole_file_is_told_from_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::new(Arc::new(PlainDir::new(dir.path())), 1 << 20).unwrap();
    let path = |file: &WalFile| dir.path().join(archive.file_name(file));
    let file = WalFile { timeline: 1, number: 3, partial: true };
    // One page that says it is one, then nothing.
    let mut bytes = vec![0; 1 << 20];
    bytes[..4].copy_from_slice(&[0x10, 0xD1, 0x02, 0]);
    bytes[4] = 1;
    bytes[8..16].copy_from_slice(&archive.start(&file).0.to_le_bytes());
    std::fs::write(path(&file), &bytes).unwrap();
    let end = archive.valid_end(archive.start(&file)).unwrap();
    assert_eq!(end, Lsn(archive.start(&file).0 + 40));
    let whole = WalFile { partial: false, ..file };
    std::fs::rename(path(&file), path(&whole)).unwrap();
    let failure = archive.valid_end(archive.start(&file)).unwrap_err();
    assert_eq!(failure.code, ErrorKind::DataDamaged);
    assert!(failure.message.contains("0/300028"), "{failure}");
    // Random bytes never panic.
    let mut seed = 7_u32;
    for round in 0..200 {
        for byte in &mut bytes[40..4096] {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (seed >> 24) as u8;
        }
        bytes[40..44].copy_from_slice(&(24_u32 + round).to_le_bytes());
        let _ = record::meaning(&bytes[40..40 + 24 + round as usize], 0xD110);
        bytes[56] = (round as u8) & 0xF0;
        bytes[57] = 1;
        let _ = record::meaning(&bytes[40..40 + 24 + round as usize], 0xD118);
        std::fs::write(path(&whole), &bytes).unwrap();
        assert!(archive.valid_end(archive.start(&file)).is_err());
    }
}

#[test]
fn a_file_that_became_whole_since_it_was_looked_up_is_opened() {
    let scratch = tempfile::tempdir().unwrap();
    let archive = archive(scratch.path());
    let name = "000000010000000000000003";
    let partial = format!("{name}.partial");
    std::fs::write(scratch.path().join(&partial), "log").unwrap();
    let [file] = archive.files().unwrap()[..] else { panic!("one file") };
    std::fs::rename(scratch.path().join(&partial), scratch.path().join(name)).unwrap();
    assert_eq!(archive.open_now(&file).unwrap().unwrap().size().unwrap(), 3);
    std::fs::remove_file(scratch.path().join(name)).unwrap();
    assert!(archive.open_now(&file).unwrap().is_none());
}

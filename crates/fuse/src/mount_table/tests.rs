use super::*;

#[test]
fn reads_a_line_with_escapes_and_optional_fields() {
    let line = b"36 35 0:52 / /mnt/a\\040b rw,nosuid shared:1 master:2 - fuse off\\134shoot rw";
    let entry = parse(line).unwrap();
    assert_eq!(entry.path, Path::new("/mnt/a b"));
    assert_eq!((entry.major, entry.minor), (0, 52));
    assert_eq!((entry.kind.as_str(), entry.source.as_str()), ("fuse", "off\\shoot"));
    assert!(!entry.is_ours());
}

#[test]
fn tells_as_whose_files_are_shown() {
    let shown = Ids { uid: 70_000, gid: 7 };
    let entry = |source: &str| parse(format!("1 2 0:1 / /m rw - fuse {source} rw").as_bytes());
    for (source, expected) in [(source(Some(shown)), Some(shown)), (source(None), None)] {
        let entry = entry(&source).unwrap();
        assert!(entry.is_ours(), "{source}");
        assert_eq!(entry.shown(), expected, "{source}");
    }
    assert!(!entry("offshoots:1:1").unwrap().is_ours());
    assert_eq!(entry("offshoot:1:x").unwrap().shown(), None);
}

#[test]
fn leaves_out_lines_of_an_unknown_form() {
    for line in ["", "36", "36 35 x / /mnt rw - fuse offshoot rw", "1 2 0:1 / /mnt rw fuse"] {
        assert_eq!(parse(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn reads_the_table_of_this_host() {
    assert!(read().unwrap().iter().any(|entry| entry.path == Path::new("/proc")));
}

#[test]
fn a_missing_directory_has_nothing_to_clean() {
    let dir = tempfile::tempdir().unwrap();
    assert!(clean_stale_mounts(dir.path().join("missing/deeper"), &[]).unwrap().is_empty());
}

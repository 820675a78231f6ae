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

#![allow(clippy::single_range_in_vec_init)] // one range of pages is meant

use super::*;
use offshoot_connector::PlainDir;

#[test]
fn names_of_relations_are_told_from_others() {
    for (name, segment) in [
        ("16384", Some(0)),
        ("16384.1", Some(1)),
        ("16384.12", Some(12)),
        ("16384_fsm", Some(0)),
        ("16384_vm.3", Some(3)),
        ("16384_init", Some(0)),
        ("t3_16384", None),
        ("pg_filenode.map", None),
        ("PG_VERSION", None),
        ("pg_internal.init", None),
        ("16384.tmp", None),
        ("16384.", None),
        ("16384_copy", None),
        ("16384.99999999999999999999", None),
        ("", None),
        ("_fsm", None),
        (".1", None),
    ] {
        assert_eq!(segment_of(name), segment, "{name}");
    }
}

#[test]
fn a_relation_has_the_pages_of_all_its_files() {
    let root = tempfile::tempdir().unwrap();
    let page = |count: usize| vec![0; count * PAGE_LEN];
    for directory in ["global", "base/5", "pg_tblspc/77/PG_1/5"] {
        std::fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", root.path().join("pg_tblspc/78")).unwrap();
    for (path, pages) in [
        ("global/1260", 1),
        ("base/5/16384", 4),
        ("base/5/16384.1", 4),
        ("base/5/16384.2", 2),
        ("base/5/16384_fsm", 3),
        ("base/5/PG_VERSION", 1),
        ("base/stray", 1),
        ("pg_tblspc/77/PG_1/5/900", 2),
    ] {
        std::fs::write(root.path().join(path), page(pages)).unwrap();
    }
    let mut control = crate::control::parse(crate::control::tests::SAMPLE).unwrap();
    control.segment_pages = 4;
    let data = PlainDir::new(root.path());
    let all = Scope::of(&control, &data, |_| Ok(None)).unwrap();
    assert_eq!(all.bytes(), 16 * PAGE_LEN as u64);
    assert_eq!(all.of_relation("base/5/16384"), Some(vec![0..4, 4..8, 8..10]));
    assert_eq!(all.of_relation("pg_tblspc/77/PG_1/5/900"), Some(vec![0..2]));
    assert_eq!(all.of_relation("base/5/4"), None);
    let some =
        |path: &str| Ok((path != "base/5/16384.1").then(Vec::new).or(Some(vec![1..2, 3..4])));
    let some = Scope::of(&control, &data, some).unwrap();
    assert_eq!(some.of_relation("base/5/16384"), Some(vec![5..6, 7..8]));
    assert_eq!(bytes_in(some.of_relation("base/5/16384").iter().flatten()), 2 * PAGE_LEN as u64);
    assert_eq!(some.of_relation("global/1260"), Some(vec![]));
}

use super::*;
use offshoot_dataset::{Store, StoreOptions};
use offshoot_os::disk::{Disk, LinuxDisk};
use std::fs::{create_dir_all, write};
use std::sync::Arc;
use tempfile::TempDir;

/// A directory with these files, and with those directories whose names end with a slash.
fn dir_with(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        let path = dir.path().join(name);
        create_dir_all(if name.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
        if !name.ends_with('/') {
            write(path, if *name == "lock" { "" } else { "x" }).unwrap();
        }
    }
    dir
}

#[test]
fn a_directory_with_files_of_others_is_no_place_for_a_pool() {
    for names in [
        &["notes.txt"][..],
        &["label"],
        &["run/other"],
        // Creating a pool would empty these.
        &["log/access.log"],
        &["lock", "log/access.log"],
        &["lock", "segments/film.mov"],
        &["table/00000001.log"],
        &["lock", "table/prices.log"],
        &["lock", "catalog.db"],
        &["PG_VERSION", "base/1/1259", "postgresql.conf", "pg_wal/"],
    ] {
        let dir = dir_with(names);
        let refused = check(dir.path()).unwrap_err();
        assert_eq!(refused.code, ErrorKind::InvalidInput, "{names:?}: {refused}");
        let first = names[0].split('/').next().unwrap();
        assert!(refused.message.contains(&format!("{first:?}")), "{refused}");
    }
    let file = dir_with(&["file"]);
    assert_eq!(check(&file.path().join("file")).unwrap_err().code, ErrorKind::InvalidInput);
}

#[test]
fn what_is_empty_or_missing_or_was_left_by_a_cut_off_creation_is() {
    for names in [
        &[][..],
        &["lost+found/"],
        &["run/mnt/", "run/log/", "run/pg/"],
        &["run/mnt/", "lock", "segments/", "table/00000001.log", "root.0", "label.new"],
    ] {
        check(dir_with(names).path()).unwrap();
    }
    check(&dir_with(&[]).path().join("missing/too")).unwrap();
}

#[test]
fn a_pool_is_known_by_its_label_and_a_root_whatever_lies_beside_them() {
    let dir = dir_with(&["token", "notes.txt"]);
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(dir.path()).unwrap());
    Store::create(&disk, &StoreOptions::default()).unwrap();
    check(dir.path()).unwrap();
    // Without its label it must not be taken for an empty one: a new pool would overwrite it.
    std::fs::remove_file(dir.path().join("label")).unwrap();
    assert_eq!(check(dir.path()).unwrap_err().code, ErrorKind::InvalidInput);
}

mod needs_root {
    use super::*;

    #[test]
    #[ignore = "needs root: gives a directory to another user"]
    fn root_does_not_take_a_directory_of_another_user() {
        let dir = dir_with(&[]);
        std::os::unix::fs::chown(dir.path(), Some(65_534), None).unwrap();
        let refused = check(dir.path()).unwrap_err();
        assert_eq!(refused.code, ErrorKind::HostUnprepared, "{refused}");
    }
}

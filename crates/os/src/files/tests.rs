use super::*;
use crate::process::{Spec, run};
use std::os::unix::fs::symlink;
use std::time::Duration;

#[test]
fn a_file_that_somebody_else_made_is_read_only_if_it_is_plain_and_small() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("small"), "12345").unwrap();
    std::fs::create_dir(at("dir")).unwrap();
    std::fs::write(at("dir/inner"), "1").unwrap();
    symlink("small", at("link")).unwrap();
    symlink("dir", at("way")).unwrap();
    File::create(at("sparse")).unwrap().set_len(500 << 30).unwrap();
    let made = run(&Spec::new("mkfifo").arg(at("pipe")), Duration::from_secs(10)).unwrap();
    assert!(made.success());

    let read = |name: &str| read_beneath(dir.path(), name, 5);
    assert_eq!(read("small").unwrap(), b"12345");
    assert_eq!(read("dir/inner").unwrap(), b"1");
    assert_eq!(
        read_beneath(dir.path(), "small", 4).unwrap_err().kind(),
        io::ErrorKind::FileTooLarge
    );
    let error = read("sparse").unwrap_err();
    assert!(error.to_string().contains("'sparse' has more than 5 bytes"), "{error}");
    for name in ["link", "way/inner", "../x", "/etc/passwd"] {
        assert!(read(name).is_err(), "{name} is followed");
    }
    for name in ["pipe", "dir"] {
        assert_eq!(read(name).unwrap_err().kind(), io::ErrorKind::InvalidData, "{name}");
    }
    assert_eq!(read("missing").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_link_is_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    symlink(dir.path(), &link).unwrap();
    open_directory(dir.path()).unwrap();
    assert!(open_directory(&link).is_err());
    // Its owner may have put the directory itself anywhere.
    std::fs::write(dir.path().join("file"), "x").unwrap();
    assert_eq!(read_beneath(&link, "file", 1).unwrap(), b"x");
}

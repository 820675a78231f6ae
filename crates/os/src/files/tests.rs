use super::*;
use crate::process::{Spec, run};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Swaps what stands at two names until told to end.
fn swap_until(end: &AtomicBool, one: &Path, other: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    while !end.load(Ordering::Relaxed) {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }
}

/// The owner of a directory puts a link in the place of what was looked at a moment before.
#[test]
fn a_link_that_is_swapped_in_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (place, content) in [("own", "harmless"), ("others", "a secret")] {
        std::fs::create_dir(at(place)).unwrap();
        std::fs::write(at(place).join("file"), content).unwrap();
    }
    std::fs::create_dir(at("hostile")).unwrap();
    std::fs::rename(at("own"), at("hostile/way")).unwrap();
    symlink(at("others"), at("hostile/link")).unwrap();
    let (end, hostile) = (AtomicBool::new(false), at("hostile"));
    let looks_then_reads = || {
        let is_link = std::fs::symlink_metadata(at("hostile/way")).unwrap().is_symlink();
        (!is_link).then(|| std::fs::read(at("hostile/way/file")).unwrap())
    };
    std::thread::scope(|scope| {
        scope.spawn(|| swap_until(&end, &at("hostile/way"), &at("hostile/link")));
        let mut read = 0;
        for _ in 0..100_000 {
            if let Ok(bytes) = read_beneath(&hostile, "way/file", 100) {
                assert_eq!(bytes, b"harmless");
                read += 1;
            }
        }
        // Who looks first and opens then is caught, so the attack is one.
        let caught = (0..1_000_000).any(|_| looks_then_reads().is_some_and(|it| it == b"a secret"));
        end.store(true, Ordering::Relaxed);
        assert!(read > 0 && caught, "{read} were read; caught: {caught}");
    });
}

//! What programs see of one mounted dataset.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use offshoot_filesystem_tests::{Server, read_during_writes, synchronous_writer};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

fn server(options: &[&str]) -> Server {
    Server::start(env!("CARGO_BIN_EXE_serve_mount"), options)
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ (at % 251) as u8 ^ seed).collect()
}

fn names(dir: &Path) -> HashSet<String> {
    fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn files_and_directories_survive_a_remount() {
    let mut server = server(&[]);
    let mount = server.mount();
    fs::create_dir_all(mount.join("a/b")).unwrap();
    let content = pattern(300_000, 1);
    fs::write(mount.join("a/b/file"), &content).unwrap();
    fs::write(mount.join("small"), b"x").unwrap();
    fs::rename(mount.join("small"), mount.join("a/renamed")).unwrap();
    assert_eq!(fs::read(mount.join("a/b/file")).unwrap(), content);
    assert_eq!(fs::remove_dir(mount.join("a")).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    assert_eq!(fs::read(mount.join("missing")).unwrap_err().kind(), ErrorKind::NotFound);
    server.stop();
    assert!(names(&mount).is_empty(), "unmounted");
    server.start_again();
    assert_eq!(fs::read(mount.join("a/b/file")).unwrap(), content);
    assert_eq!(fs::read(mount.join("a/renamed")).unwrap(), b"x");
    assert_eq!(names(&mount), HashSet::from(["a".to_owned()]));
    fs::remove_dir_all(mount.join("a")).unwrap();
    assert!(names(&mount).is_empty());
}

#[test]
fn what_was_synced_survives_a_kill() {
    let mut server = server(&[]);
    let mount = server.mount();
    for round in 0..3_u8 {
        let content = pattern(100_000, round);
        let path = mount.join(format!("round-{round}"));
        let mut file = File::create(&path).unwrap();
        file.write_all(&content).unwrap();
        file.sync_data().unwrap();
        fs::write(mount.join("new"), [round]).unwrap();
        File::open(mount.join("new")).unwrap().sync_all().unwrap();
        fs::rename(mount.join("new"), mount.join("state")).unwrap();
        File::open(&mount).unwrap().sync_all().unwrap();
        drop(file);
        server.kill();
        assert_eq!(fs::read(&path).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
        let cleaned = offshoot_filesystem_tests::clean_stale(&server.path(""));
        assert_eq!(cleaned, std::slice::from_ref(&mount));
        assert!(!offshoot_filesystem_tests::is_mounted(&mount));
        server.start_again();
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(fs::read(mount.join("state")).unwrap(), [round]);
    }
}

#[test]
fn a_write_with_dsync_is_durable_on_return() {
    for options in [&[][..], &["--direct-io"][..]] {
        let mut server = server(options);
        let mount = server.mount();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(libc::O_DSYNC)
            .open(mount.join("log"))
            .unwrap();
        file.write_all_at(&pattern(8192, 3), 8192).unwrap();
        server.kill();
        drop(file);
        offshoot_filesystem_tests::clean_stale(&server.path(""));
        server.start_again();
        let content = fs::read(mount.join("log")).unwrap();
        assert_eq!(content[8192..], pattern(8192, 3), "{options:?}");
        assert!(content[..8192].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn no_reader_sees_less_than_a_synchronous_write_left() {
    let server = server(&[]);
    let path = server.mount().join("log");
    read_during_writes(&synchronous_writer(&path), &path);
}

#[test]
fn a_directory_holds_a_hundred_thousand_files() {
    let server = server(&[]);
    let dir = server.mount().join("many");
    fs::create_dir(&dir).unwrap();
    for number in 0..100_000_u32 {
        let name =
            std::ffi::CString::new(dir.join(format!("file-{number:06}")).as_os_str().as_bytes())
                .unwrap();
        // One request each, where creating and closing takes two.
        // SAFETY: a valid C string.
        assert_eq!(unsafe { libc::mknod(name.as_ptr(), libc::S_IFREG | 0o600, 0) }, 0);
    }
    let all = names(&dir);
    assert_eq!(all.len(), 100_000);
    assert!(all.contains("file-099999"));
    // Removing while reading: the names that stay are still seen exactly once.
    let mut seen = HashSet::new();
    for (count, entry) in fs::read_dir(&dir).unwrap().enumerate() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if count < 2000 && count % 2 == 0 {
            fs::remove_file(dir.join(&name)).unwrap();
        }
        assert!(seen.insert(name));
    }
    assert_eq!(seen.len(), 100_000);
    assert_eq!(names(&dir).len(), 99_000);
}

#[test]
fn names_may_have_255_bytes_of_any_kind() {
    let server = server(&[]);
    let mount = server.mount();
    let longest = "n".repeat(255);
    fs::write(mount.join(&longest), b"1").unwrap();
    let error = fs::write(mount.join("n".repeat(256)), b"1").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENAMETOOLONG));
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"\xff\x01 \n\\'\"*"));
    fs::write(mount.join(odd), b"2").unwrap();
    let found: HashSet<_> =
        fs::read_dir(&mount).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(found, HashSet::from([longest.into(), odd.as_os_str().to_owned()]));
}

#[test]
fn sparse_files_are_large_and_take_no_room() {
    let server = server(&[]);
    let mount = server.mount();
    let mut file =
        File::options().read(true).write(true).create_new(true).open(mount.join("sparse")).unwrap();
    let far = 10 << 40;
    file.set_len(far).unwrap();
    file.write_all_at(b"data", 5 << 40).unwrap();
    file.write_all_at(b"end", far).unwrap();
    let meta = file.metadata().unwrap();
    assert_eq!(meta.len(), far + 3);
    assert!(meta.blocks() * 512 <= 64 << 10, "takes {} sectors", meta.blocks());
    assert_eq!(file.seek(SeekFrom::End(0)).unwrap(), far + 3);
    let seek = |offset: i64, whence| {
        // SAFETY: a plain system call.
        let at = unsafe { libc::lseek(file.as_raw_fd(), offset, whence) };
        if at < 0 { Err(std::io::Error::last_os_error().raw_os_error()) } else { Ok(at) }
    };
    assert_eq!(seek(0, libc::SEEK_DATA).unwrap(), 5 << 40);
    let hole = seek(5 << 40, libc::SEEK_HOLE).unwrap();
    assert!(hole > 5 << 40 && hole <= (5 << 40) + (64 << 10));
    assert_eq!(seek(100, libc::SEEK_HOLE).unwrap(), 100);
    assert_eq!(seek(far as i64 + 3, libc::SEEK_DATA), Err(Some(libc::ENXIO)));
    let mut buffer = [1; 100];
    file.read_exact_at(&mut buffer, 7 << 40).unwrap();
    assert_eq!(buffer, [0; 100]);
    let error = file.set_len(1 << 60).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
}

#[test]
fn rename_replaces_and_keeps_open_files_alive() {
    let server = server(&[]);
    let mount = server.mount();
    fs::write(mount.join("old"), b"old").unwrap();
    let mut open = File::open(mount.join("old")).unwrap();
    fs::write(mount.join("new"), b"new").unwrap();
    fs::rename(mount.join("new"), mount.join("old")).unwrap();
    assert_eq!(fs::read(mount.join("old")).unwrap(), b"new");
    assert!(!mount.join("new").exists());
    let mut content = String::new();
    open.read_to_string(&mut content).unwrap();
    assert_eq!(content, "old");
    assert_eq!(open.metadata().unwrap().nlink(), 0);
}

#[test]
fn an_unlinked_file_lives_until_it_is_closed() {
    let server = server(&[]);
    let path = server.mount().join("file");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all(&pattern(50_000, 1)).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!path.exists());
    file.write_all(b"more").unwrap();
    file.sync_all().unwrap();
    let mut tail = [0; 4];
    file.read_exact_at(&mut tail, 50_000).unwrap();
    assert_eq!(&tail, b"more");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    fs::write(&path, b"another").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 50_004);
}

#[test]
fn fallocate_reserves_punches_and_zeroes() {
    let server = server(&[]);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(server.mount().join("file"))
        .unwrap();
    let allocate = |mode, offset, len| {
        // SAFETY: a plain system call.
        let result = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) };
        if result < 0 { Err(std::io::Error::last_os_error().raw_os_error()) } else { Ok(()) }
    };
    allocate(0, 0, 100_000).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 100_000);
    allocate(libc::FALLOC_FL_KEEP_SIZE, 100_000, 50_000).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 100_000);
    file.write_all_at(&vec![7; 100_000], 0).unwrap();
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    allocate(punch, 10_000, 50_000).unwrap();
    allocate(libc::FALLOC_FL_ZERO_RANGE, 90_000, 30_000).unwrap();
    let mut content = vec![1; 200_000];
    let len = file.read_at(&mut content, 0).unwrap();
    assert_eq!(len, 120_000);
    let expected = |at| u8::from(!((10_000..60_000).contains(&at) || at >= 90_000)) * 7;
    let wrong = (0..len).find(|at| content[*at] != expected(*at));
    assert_eq!(wrong, None);
    assert_eq!(allocate(libc::FALLOC_FL_COLLAPSE_RANGE, 0, 8192), Err(Some(libc::EOPNOTSUPP)));
}

#[test]
fn memory_maps_and_descriptors_agree() {
    // The second goes past the kernel's cache.
    for flags in [0, libc::O_DSYNC] {
        map_and_write(flags);
    }
}

fn map_and_write(flags: i32) {
    let mut server = server(&[]);
    let path = server.mount().join("mapped");
    let len = 64 << 10;
    fs::write(&path, vec![1_u8; len]).unwrap();
    let mut options = File::options();
    let file = options.read(true).write(true).custom_flags(flags).open(&path).unwrap();
    // SAFETY: a shared mapping of a file of that length, unmapped below; nobody cuts the file.
    unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(map, libc::MAP_FAILED);
        let bytes = std::slice::from_raw_parts_mut(map.cast::<u8>(), len);
        assert_eq!(bytes[40_000], 1);
        bytes[40_000] = 2;
        let mut byte = [0];
        file.read_exact_at(&mut byte, 40_000).unwrap();
        assert_eq!(byte, [2]);
        file.write_all_at(&[3], 50_000).unwrap();
        assert_eq!(bytes[50_000], 3);
        assert_eq!(libc::msync(map, len, libc::MS_SYNC), 0);
        libc::munmap(map, len);
    }
    file.sync_all().unwrap();
    drop(file);
    server.kill();
    offshoot_filesystem_tests::clean_stale(&server.path(""));
    server.start_again();
    let content = fs::read(&path).unwrap();
    assert_eq!((content[40_000], content[50_000], content[0]), (2, 3, 1));
}

#[test]
fn links_xattrs_modes_and_times() {
    let server = server(&[]);
    let mount = server.mount();
    fs::write(mount.join("file"), b"content").unwrap();
    fs::hard_link(mount.join("file"), mount.join("link")).unwrap();
    assert_eq!(fs::metadata(mount.join("file")).unwrap().nlink(), 2);
    fs::remove_file(mount.join("file")).unwrap();
    assert_eq!(fs::read(mount.join("link")).unwrap(), b"content");
    assert_eq!(fs::metadata(mount.join("link")).unwrap().nlink(), 1);

    symlink("link", mount.join("soft")).unwrap();
    assert_eq!(fs::read(mount.join("soft")).unwrap(), b"content");
    assert_eq!(fs::read_link(mount.join("soft")).unwrap(), Path::new("link"));
    let long = "t/".repeat(2000);
    symlink(&long, mount.join("long")).unwrap();
    assert_eq!(fs::read_link(mount.join("long")).unwrap(), Path::new(&long));

    let path = mount.join("link");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o6755);
    let before = fs::metadata(&path).unwrap();
    assert_no_privileges_after_chown(&path, before.uid(), before.gid());

    let before = fs::metadata(&path).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"!").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert!((after.mtime(), after.mtime_nsec()) > (before.mtime(), before.mtime_nsec()));
    assert!((after.ctime(), after.ctime_nsec()) > (before.ctime(), before.ctime_nsec()));

    rustix::fs::setxattr(&path, "user.color", b"blue", rustix::fs::XattrFlags::CREATE).unwrap();
    let mut value = [0; 16];
    assert_eq!(rustix::fs::getxattr(&path, "user.color", &mut value).unwrap(), 4);
    assert_eq!(&value[..4], b"blue");
    let mut list = [0; 64];
    assert_eq!(rustix::fs::listxattr(&path, &mut list).unwrap(), b"user.color\0".len());
    rustix::fs::removexattr(&path, "user.color").unwrap();
    assert!(rustix::fs::getxattr(&path, "user.color", &mut value).is_err());
}

#[test]
fn a_mount_without_extended_attributes_says_so_and_works() {
    let server = server(&["--no-xattrs"]);
    let path = server.mount().join("file");
    fs::write(&path, b"content").unwrap();
    // The second time the kernel knows and does not ask.
    for _ in 0..2 {
        let flags = rustix::fs::XattrFlags::CREATE;
        let set = rustix::fs::setxattr(&path, "user.color", b"blue", flags);
        assert_eq!(set, Err(rustix::io::Errno::OPNOTSUPP));
        let got = rustix::fs::getxattr(&path, "user.color", &mut [0u8; 16]);
        assert_eq!(got, Err(rustix::io::Errno::OPNOTSUPP));
        let listed = rustix::fs::listxattr(&path, &mut [0u8; 16]);
        assert_eq!(listed, Err(rustix::io::Errno::OPNOTSUPP));
        fs::write(&path, b"content").unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"content");
}

/// A new owner never inherits privileges, nor does the old one keep them.
fn assert_no_privileges_after_chown(path: &Path, uid: u32, gid: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o6755)).unwrap();
    std::os::unix::fs::chown(path, Some(uid), Some(gid)).unwrap();
    let meta = fs::metadata(path).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (uid, gid, 0o755));
}

mod needs_root {
    use super::*;

    #[test]
    #[ignore = "needs root"]
    fn another_owner_does_not_inherit_privileges() {
        let server = server(&[]);
        let path = server.mount().join("file");
        fs::write(&path, b"content").unwrap();
        assert_no_privileges_after_chown(&path, 12, 34);
    }

    #[test]
    #[ignore = "needs root"]
    fn new_files_in_a_set_gid_directory_get_its_group() {
        let server = server(&[]);
        let dir = server.mount().join("shared");
        fs::create_dir(&dir).unwrap();
        std::os::unix::fs::chown(&dir, None, Some(34)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o2775)).unwrap();
        fs::write(dir.join("file"), b"").unwrap();
        fs::create_dir(dir.join("sub")).unwrap();
        assert_eq!(fs::metadata(dir.join("file")).unwrap().gid(), 34);
        let sub = fs::metadata(dir.join("sub")).unwrap();
        assert_eq!((sub.gid(), sub.mode() & 0o2000), (34, 0o2000));
    }
}

#[test]
fn copy_file_range_shares_and_is_independent() {
    let server = server(&[]);
    let mount = server.mount();
    let content = pattern(1 << 20, 9);
    fs::write(mount.join("source"), &content).unwrap();
    // std::fs::copy uses copy_file_range.
    fs::copy(mount.join("source"), mount.join("copy")).unwrap();
    let file = OpenOptions::new().write(true).open(mount.join("copy")).unwrap();
    file.write_all_at(b"changed", 500_000).unwrap();
    assert_eq!(fs::read(mount.join("source")).unwrap(), content);
    let mut expected = content;
    expected[500_000..500_007].copy_from_slice(b"changed");
    assert_eq!(fs::read(mount.join("copy")).unwrap(), expected);
}

#[test]
fn statfs_shows_the_pool() {
    let server = server(&[]);
    let space = rustix::fs::statvfs(server.mount()).unwrap();
    assert_eq!(space.f_namemax, 255);
    assert!(space.f_blocks > 0 && space.f_bavail > 0 && space.f_bavail <= space.f_blocks);
    assert!(space.f_files > space.f_ffree);
}

#[test]
fn a_read_only_mount_refuses_changes() {
    let mut server = server(&["--read-only"]);
    server.command(&format!("write {} file text", server.mount().display()));
    assert_eq!(fs::read(server.mount().join("file")).unwrap(), b"text");
    let error = fs::write(server.mount().join("file"), b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn many_threads_read_and_write_with_direct_io_too() {
    for options in [&["--snapshots"][..], &["--direct-io", "--snapshots"][..]] {
        let server = server(options);
        let path = server.mount().join("file");
        let page = |number: usize, version: u8| {
            let mut page = vec![version; 8192];
            page[..8].copy_from_slice(&number.to_le_bytes());
            page
        };
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..150_usize {
                        let number = thread * 64 + (round * 37) % 64;
                        let bytes = page(number, round as u8);
                        file.write_all_at(&bytes, number as u64 * 8192).unwrap();
                        if round % 25 == 0 {
                            file.sync_data().unwrap();
                        }
                        let mut read = vec![0; 8192];
                        file.read_exact_at(&mut read, number as u64 * 8192).unwrap();
                        assert_eq!(read, bytes, "{options:?}");
                    }
                });
            }
        });
    }
}

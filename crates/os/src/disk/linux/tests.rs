use super::*;
use crate::disk::read_exact_at;

fn disk() -> (tempfile::TempDir, LinuxDisk) {
    let dir = tempfile::tempdir().unwrap();
    let disk = LinuxDisk::new(dir.path().join("pool")).unwrap();
    (dir, disk)
}

#[test]
fn uncached_reads_see_what_was_written_at_any_offset() {
    let (_dir, disk) = disk();
    let file = disk.create("a").unwrap();
    let content: Vec<u8> = (0..20_001u32).map(|i| (i * 7 % 251) as u8).collect();
    file.write_at(0, &content).unwrap();
    file.sync_data().unwrap();
    let uncached = disk.open_uncached("a").unwrap();
    for (offset, len) in [(0, 1), (1, 4096), (4095, 2), (8192, 8192), (19_999, 2), (3, 19_998)] {
        let mut buffer = vec![0; len];
        read_exact_at(&*uncached, offset as u64, &mut buffer).unwrap();
        assert_eq!(buffer, content[offset..offset + len], "{len} bytes at {offset}");
    }
    let mut buffer = [0; 16];
    assert_eq!(uncached.read_at(19_999, &mut buffer).unwrap(), 2);
    assert_eq!(uncached.read_at(30_000, &mut buffer).unwrap(), 0);
    assert_eq!(uncached.write_at(0, b"x").unwrap_err().kind(), io::ErrorKind::Unsupported);
}

#[test]
fn parts_are_written_one_after_another() {
    let (_dir, disk) = disk();
    let file = disk.create("a").unwrap();
    let parts: Vec<Vec<u8>> = (0..1500usize).map(|i| vec![i as u8; i % 5]).collect();
    let slices: Vec<IoSlice> = parts.iter().map(|part| IoSlice::new(part)).collect();
    file.write_vectored_at(3, &slices).unwrap();
    let mut read = vec![0; parts.concat().len()];
    read_exact_at(&*file, 3, &mut read).unwrap();
    assert_eq!(read, parts.concat());
}

#[test]
fn names_locks_and_room() {
    let (_dir, disk) = disk();
    disk.create_dir("d").unwrap();
    disk.create_dir("d").unwrap();
    disk.create("d/b").unwrap();
    disk.create("d/a").unwrap();
    assert_eq!(disk.create("d/a").err().unwrap().kind(), io::ErrorKind::AlreadyExists);
    disk.rename("d/b", "d/c").unwrap();
    disk.sync_dir("d").unwrap();
    assert_eq!(disk.list("d").unwrap(), ["a", "c"]);
    disk.remove("d/a").unwrap();
    assert_eq!(disk.open("d/a").err().unwrap().kind(), io::ErrorKind::NotFound);
    let lock = disk.lock("lock").unwrap();
    assert_eq!(disk.lock("lock").err().unwrap().kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    disk.lock("lock").unwrap();
    assert!(disk.space().unwrap().total > disk.space().unwrap().free);
}

#[test]
fn punched_room_is_given_back() {
    let (_dir, disk) = disk();
    let file = disk.create("a").unwrap();
    file.write_at(0, &vec![7; 1 << 20]).unwrap();
    file.sync_data().unwrap();
    let before = file.allocated().unwrap();
    file.punch_hole(4096, 512 << 10).unwrap();
    assert!(file.allocated().unwrap() <= before - (500 << 10));
    let mut byte = [1];
    read_exact_at(&*file, 8192, &mut byte).unwrap();
    assert_eq!(byte, [0]);
    assert_eq!(file.len().unwrap(), 1 << 20);
}

use super::*;
use crate::disk::read_exact_at;

fn byte_at(disk: &SimDisk, path: &str, offset: usize) -> u8 {
    disk.content(path).unwrap()[offset]
}

#[test]
fn synced_data_survives_and_unsynced_may_be_lost() {
    let (mut lost, mut kept, mut torn) = (0, 0, 0);
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let file = disk.create("a").unwrap();
        disk.sync_dir("").unwrap();
        file.write_at(0, &[1; 8192]).unwrap();
        file.sync_data().unwrap();
        file.write_at(0, &[2; 4096]).unwrap();
        disk.crash();
        assert!(file.read_at(0, &mut [0]).is_err(), "an old handle is dead");
        let content = disk.content("a").unwrap();
        assert!(content[4096..].iter().all(|&byte| byte == 1), "synced data survives");
        let twos = content.iter().filter(|&&byte| byte == 2).count();
        assert_eq!(twos % SECTOR, 0, "a sector is never torn");
        match twos {
            0 => lost += 1,
            4096 => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(lost > 20 && kept > 20 && torn > 20, "lost {lost}, kept {kept}, torn {torn}");
}

#[test]
fn names_need_the_directory_synced() {
    let mut missing = 0;
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        disk.create_dir("d").unwrap();
        let file = disk.create("d/new").unwrap();
        file.write_at(0, b"x").unwrap();
        file.sync_data().unwrap();
        disk.crash();
        missing += u32::from(disk.open("d/new").is_err());
    }
    assert!(missing > 5, "a new name is lost without a sync of its directory");
    let disk = SimDisk::new(1);
    disk.create("a").unwrap();
    disk.create("b").unwrap();
    disk.sync_dir("").unwrap();
    disk.rename("a", "b").unwrap();
    disk.sync_dir("").unwrap();
    disk.crash();
    assert_eq!(disk.list("").unwrap(), ["b"]);
}

#[test]
fn dies_at_the_chosen_operation_and_comes_back() {
    let disk = SimDisk::new(7);
    let file = disk.create("a").unwrap();
    disk.sync_dir("").unwrap();
    disk.crash_after(2);
    file.write_at(0, b"1").unwrap();
    assert!(file.sync_data().is_err());
    assert!(file.read_at(0, &mut [0]).is_err());
    assert!(disk.create("b").is_err());
    disk.crash();
    let file = disk.open("a").unwrap();
    file.write_at(0, b"2").unwrap();
    assert_eq!(byte_at(&disk, "a", 0), b'2');
}

#[test]
fn room_is_limited_and_given_back() {
    let disk = SimDisk::new(7);
    disk.set_capacity(Some(4 * PAGE));
    let file = disk.create("a").unwrap();
    file.write_at(0, &[1; 3 * PAGE as usize]).unwrap();
    let error = file.write_at(3 * PAGE, &[1; 2 * PAGE as usize]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    file.punch_hole(0, 2 * PAGE).unwrap();
    assert_eq!(disk.space().unwrap().free, 3 * PAGE);
    file.write_at(3 * PAGE, &[1; 2 * PAGE as usize]).unwrap();
    let mut byte = [9];
    read_exact_at(&*file, 0, &mut byte).unwrap();
    assert_eq!(byte, [0], "a hole reads as zeros");
    disk.remove("a").unwrap();
    assert_eq!(disk.used(), 3 * PAGE, "an open file keeps its room");
    drop(file);
    assert_eq!(disk.used(), 0);
}

#[test]
fn faults_are_injected() {
    let disk = SimDisk::new(7);
    let file = disk.create("a").unwrap();
    disk.sync_dir("").unwrap();
    file.write_at(0, &[0b100]).unwrap();
    disk.flip_bit("a", 0, 2);
    assert_eq!(byte_at(&disk, "a", 0), 0);
    disk.fail_reads(Some("a"));
    assert!(file.read_at(0, &mut [0]).is_err());
    disk.fail_reads(None);
    disk.fail_syncs(Some("a"));
    assert!(file.sync_data().is_err());
    disk.fail_syncs(None);
    let mut lost = false;
    for _ in 0..50 {
        let file = disk.open("a").unwrap();
        file.write_at(0, &[0]).unwrap();
        file.sync_data().unwrap();
        disk.ignore_syncs("a");
        file.write_at(0, &[5]).unwrap();
        file.sync_data().unwrap();
        disk.crash();
        lost |= byte_at(&disk, "a", 0) != 5;
    }
    assert!(lost, "an ignored sync keeps nothing");
    let lock = disk.lock("lock").unwrap();
    assert_eq!(disk.lock("lock").err().unwrap().kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    disk.lock("lock").unwrap();
}

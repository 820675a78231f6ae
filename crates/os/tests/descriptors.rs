//! The store's disk while this process has no descriptors left. Alone in its process: the limit is everybody's.
#![allow(clippy::unwrap_used)]

use offshoot_os::disk::{Disk, LinuxDisk};
use offshoot_os::{Clock, SystemClock, limits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::time::Duration;

/// Takes every descriptor that is left.
fn take_all() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[test]
fn a_file_of_the_store_opens_from_a_reserve_and_then_waits() {
    let dir = tempfile::tempdir().unwrap();
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum }).unwrap();
    let disk = LinuxDisk::new(dir.path()).unwrap();
    disk.create("file").unwrap().write_at(0, b"content").unwrap();

    let mut taken = take_all();
    assert!(limits::is_shortage(&File::open("/dev/null").unwrap_err()));
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(disk.open("file").unwrap());
        disk.sync_dir("").unwrap();
    }
    assert_eq!(disk.list("").unwrap(), ["file"]);
    let mut bytes = [0; 7];
    held[0].read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"content");

    // The reserve is used up: the rest waits until somebody closes something.
    taken.extend(take_all());
    let begun = SystemClock.elapsed();
    let opened = std::thread::scope(|scope| {
        let waits = scope.spawn(|| (0..12).map(|_| disk.open("file").unwrap()).collect::<Vec<_>>());
        SystemClock.sleep(Duration::from_millis(300));
        taken.truncate(taken.len() - 20);
        waits.join().unwrap()
    });
    assert_eq!(opened.len(), 12);
    assert!(SystemClock.elapsed() - begun >= Duration::from_millis(300), "it had to wait");
    drop((taken, held, opened));
    assert_eq!(limits::raise_descriptors().unwrap(), maximum.unwrap_or(u64::MAX));
}

use super::SharedMemory;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

const PAGE: usize = 4096;

#[test]
fn another_mapping_sees_what_was_written_also_across_the_end_of_the_ring() {
    let memory = SharedMemory::create(PAGE, 4 * PAGE).unwrap();
    let bytes: Vec<u8> = (0..3 * PAGE).map(|index| (index % 251) as u8).collect();
    let position = (11 * PAGE + 100) as u64;
    memory.write(position, &bytes);
    memory.counter(8).store(7, Ordering::Release);
    let fd = memory.as_fd().try_clone_to_owned().unwrap();
    drop(memory);
    let again = SharedMemory::open(fd, PAGE, 4 * PAGE).unwrap();
    assert_eq!(again.counter(8).load(Ordering::Acquire), 7);
    assert_eq!(again.read(position, bytes.len()), bytes);
}

#[test]
fn what_is_released_takes_no_memory_and_nothing_else_is_lost() {
    let memory = SharedMemory::create(PAGE, 8 * PAGE).unwrap();
    memory.write(0, &[1; 8 * PAGE]);
    let pages = || rustix::fs::fstat(memory.as_fd()).unwrap().st_blocks * 512 / PAGE as i64;
    let before = pages();
    // Wraps round: the pages 6 and 7, then 0 and 1; page 2 only begins in it.
    memory.release(6 * PAGE as u64, (10 * PAGE + 5) as u64).unwrap();
    assert_eq!(before - pages(), 4);
    assert_eq!(memory.read(2 * PAGE as u64, 4 * PAGE), [1; 4 * PAGE]);
    assert_eq!(memory.read(6 * PAGE as u64, 4 * PAGE), [0; 4 * PAGE]);
}

#[test]
fn memory_of_another_size_is_refused() {
    let memory = SharedMemory::create(PAGE, PAGE).unwrap();
    let fd = memory.as_fd().try_clone_to_owned().unwrap();
    assert!(SharedMemory::open(fd, PAGE, 2 * PAGE).is_err());
}

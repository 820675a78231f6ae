//! Pages that do not compress: stored without a frame, each given back to the device on its own.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_format::segment::{Layout, PAGE_LEN};
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::Error;
use testpool::*;

/// Where a page is: the segment's path, and the byte it begins at.
fn places(disk: &SimDisk, number: u64) -> Vec<(String, u64)> {
    let wanted = page(number);
    let mut found = Vec::new();
    for (path, bytes) in page_segments(disk) {
        let pages = bytes[Layout::Pages.begin() as usize..].chunks_exact(PAGE_LEN as usize);
        let at = (u64::from(Layout::Pages.begin())..).step_by(PAGE_LEN as usize);
        let of = pages.zip(at).filter(|(page, _)| *page == wanted);
        found.extend(of.map(|(_, at)| (path.clone(), at)));
    }
    found
}

#[test]
fn the_room_of_each_page_is_given_back_without_moving_others() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_pages(&pool, 1, 0..400).unwrap();
    reclaim(&pool);
    let before = pool.stats();
    // Every second goes, all over the segments.
    let root = commit_pages(&pool, 2, (0..400).step_by(2)).unwrap();
    reclaim(&pool);
    let after = pool.stats();
    let (given_back, pages) = (before.used - after.used, 200 * u64::from(PAGE_LEN));
    // The last segment is not sealed yet.
    assert!(given_back > pages - (256 << 10), "{given_back} of {pages}");
    let moved = after.compacted - before.compacted;
    assert!(moved < 400 * 2048, "{moved} bytes moved: pages among them");
    assert_reads(&pool, &root, (0..400).step_by(2));
    assert_sound(&pool, "half of the pages gone");
    // Nothing else is in a device page with what is dead.
    for (path, bytes) in page_segments(&disk) {
        assert_eq!((bytes.len() as u32 - Layout::Pages.begin()) % PAGE_LEN, 0, "{path}");
    }
}

#[test]
fn pages_are_read_and_appended_to_after_an_opening() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_pages(&pool, 1, 0..90).unwrap();
    drop(pool);
    disk.crash();
    let pool = open(&disk).unwrap();
    let root = commit_pages(&pool, 2, 40..130).unwrap();
    reclaim(&pool);
    drop(pool);
    disk.crash();
    let pool = open(&disk).unwrap();
    assert_reads(&pool, &root, 40..130);
    assert_eq!(scrub(&pool).damaged, 0);
    assert_sound(&pool, "opened twice");
    drop(pool);
    assert_check_finds_nothing(&disk);
}

#[test]
fn compaction_moves_pages_when_few_are_left() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_pages(&pool, 1, 0..400).unwrap();
    let root = commit_pages(&pool, 2, (0..400).step_by(20)).unwrap();
    reclaim(&pool);
    let of_pages = page_segments(&disk).len();
    assert!(of_pages <= 3, "{of_pages} segments for 20 pages");
    assert_reads(&pool, &root, (0..400).step_by(20));
    assert_sound(&pool, "compacted");
}

#[test]
fn a_table_made_anew_finds_the_pages() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_pages(&pool, 1, 0..100).unwrap();
    let root = commit_pages(&pool, 2, 20..120).unwrap();
    reclaim(&pool);
    let before = pool.stats();
    drop(pool);
    for path in disk.list("table").unwrap().iter().map(|name| format!("table/{name}")) {
        if !disk.content(&path).unwrap().is_empty() {
            disk.flip_bit(&path, 5, 1);
        }
    }
    let pool = open(&disk).unwrap();
    assert_eq!((pool.stats().live, pool.stats().blocks), (before.live, before.blocks));
    assert_reads(&pool, &root, 20..120);
    assert_sound(&pool, "rebuilt");
}

#[test]
fn a_damaged_page_is_an_error_until_a_sound_copy_is_found() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_pages(&pool, 1, 0..10).unwrap();
    let hash = pool.begin().write_data(&page(7)).unwrap();
    let first = places(&disk, 7)[0].clone();
    disk.flip_bit(&first.0, first.1 + 100, 1);
    pool.clear_cache();
    assert!(matches!(pool.read(&hash, 0), Err(Error::Damaged { .. })));
    assert_eq!(scrub(&pool).damaged, 1);
    // It comes again, which heals it; later only the dead one is sound.
    pool.begin().write_data(&page(7)).unwrap();
    assert_eq!(pool.faults(), []);
    disk.flip_bit(&first.0, first.1 + 100, 1);
    let second = places(&disk, 7).into_iter().find(|place| *place != first).unwrap();
    disk.flip_bit(&second.0, second.1 + 100, 1);
    pool.clear_cache();
    assert_eq!(scrub(&pool).healed, 1);
    pool.clear_cache();
    assert!(*pool.read(&hash, 0).unwrap() == *page(7));
}

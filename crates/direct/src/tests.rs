#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod interleavings;
mod model;

use crate::layout::BLOCK;
use crate::{Budget, File, Group, Reader, Table};
use offshoot_types::BlockHash;
use std::os::fd::AsFd;
use std::sync::Arc;

/// 256 frames.
const SMALL: u64 = 2 << 20;

fn content(seed: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&seed.to_le_bytes()));
    block
}

fn name(seed: u64) -> BlockHash {
    let mut hash = [1; 32];
    hash[..8].copy_from_slice(&seed.to_le_bytes());
    BlockHash(hash)
}

fn table() -> (Arc<Group>, Arc<Table>, Reader) {
    let group = Group::create(&Budget::new(SMALL)).unwrap();
    let table = Table::create(&group).unwrap();
    let reader = Reader::of(&table).unwrap();
    (group, table, reader)
}

fn seen(reader: &Reader, ino: u64, block: u64) -> Option<u64> {
    let mut target = [0; BLOCK];
    if !reader.read(ino, block * BLOCK as u64, &mut target) {
        return None;
    }
    let seed = u64::from_le_bytes(*target.first_chunk().unwrap());
    assert_eq!(target, content(seed), "a torn block");
    Some(seed)
}

fn put(file: &File, block: u64, seed: u64) {
    file.publish(block, Some(name(seed)), &content(seed));
}

#[test]
fn a_block_is_read_until_it_changes_and_again_once_it_is_published() {
    let (_, table, reader) = table();
    assert_eq!(seen(&reader, 7, 0), None);
    let file = table.file(7, 3 * BLOCK as u64).unwrap();
    assert_eq!((reader.size(7), seen(&reader, 7, 0)), (Some(3 * BLOCK as u64), None));
    put(&file, 0, 10);
    put(&file, 2, 12);
    assert_eq!([0, 1, 2].map(|block| seen(&reader, 7, block)), [Some(10), None, Some(12)]);
    file.withdraw(0, 1);
    assert_eq!([0, 2].map(|block| seen(&reader, 7, block)), [None, Some(12)]);
    file.publish(0, None, &content(11));
    assert_eq!(seen(&reader, 7, 0), Some(11));
    // What is filled is not filled again: it is what the file has.
    put(&file, 0, 99);
    assert_eq!(seen(&reader, 7, 0), Some(11));
    drop(file);
    assert_eq!((reader.size(7), seen(&reader, 7, 2)), (None, None));
}

#[test]
fn parts_of_blocks_and_several_blocks_are_read_and_nothing_past_the_end() {
    let (_, table, reader) = table();
    let file = table.file(1, 2 * BLOCK as u64 + 100).unwrap();
    (0..3).for_each(|block| put(&file, block, block));
    let mut target = vec![0; BLOCK + 16];
    assert!(reader.read(1, BLOCK as u64 - 8, &mut target));
    assert_eq!(target[..8], [0; 8]);
    assert_eq!(target[8..BLOCK + 8], content(1));
    assert_eq!(target[BLOCK + 8..], content(2)[..8]);
    assert!(!reader.read(1, 2 * BLOCK as u64, &mut [0; 101]));
    assert!(!reader.read(1, u64::MAX - 4, &mut [0; 8]));
    file.withdraw(1, u64::MAX);
    file.set_size(BLOCK as u64);
    assert!(!reader.read(1, 0, &mut target));
}

#[test]
fn a_file_grows_and_keeps_what_can_be_read() {
    let (_, table, reader) = table();
    let file = table.file(5, 1 << 30).unwrap();
    put(&file, 3, 103);
    for block in [64, 1_000, 131_071] {
        put(&file, block, block);
        assert_eq!([3, block].map(|block| seen(&reader, 5, block)), [Some(103), Some(block)]);
    }
    // PostgreSQL's files have no more.
    put(&file, 131_072, 1);
    assert_eq!(seen(&reader, 5, 131_072), None);
    table.group().lock().check();
    // What it leaves is all empty for the next.
    drop(file);
    let next = table.file(6, 1 << 30).unwrap();
    put(&next, 131_000, 1);
    assert_eq!([3, 64, 131_071].map(|block| seen(&reader, 6, block)), [None; 3]);
}

#[test]
fn clones_share_frames_and_part_where_one_changes() {
    let (group, one, reader) = table();
    let other = Table::create(&group).unwrap();
    let others = Reader::of(&other).unwrap();
    let files = [one.file(9, 1 << 20).unwrap(), other.file(9, 1 << 20).unwrap()];
    for block in 0..100 {
        files.iter().for_each(|file| put(file, block, block));
    }
    assert_eq!(group.stats().used, 100 * BLOCK as u64);
    let mut target = [0; BLOCK];
    assert!(group.copy(&name(50), &mut target) && target == content(50));
    files[0].withdraw(50, 51);
    assert_eq!([seen(&reader, 9, 50), seen(&others, 9, 50)], [None, Some(50)]);
    drop(files);
    // Blocks with names stay for who reads them next.
    assert_eq!(group.stats().used, 100 * BLOCK as u64);
    group.lock().check();
}

#[test]
fn what_frames_have_is_led_to_by_its_names_alone() {
    let (group, one, reader) = table();
    let other = Table::create(&group).unwrap();
    let others = Reader::of(&other).unwrap();
    let files = [one.file(9, 1 << 20).unwrap(), other.file(9, 1 << 20).unwrap()];
    [2, 3, 5].iter().for_each(|block| put(&files[0], *block, *block));
    files[1].publish(5, None, &content(55));
    let mut names = [0, 2, 3, 4, 5].map(name);
    names[0] = BlockHash::ZERO;
    let mut missing = names;
    group.leave_missing(&mut missing);
    let zero = BlockHash::ZERO;
    assert_eq!(missing, [zero, zero, zero, name(4), zero]);
    // The first name is that of block 1; block 5 is another one here, and stays so.
    files[1].publish_known(1, &mut names);
    assert_eq!(names, [zero, zero, zero, name(4), zero]);
    let of = |reader| [1, 2, 3, 4, 5].map(|block| seen(reader, 9, block));
    assert_eq!(of(&others), [None, Some(2), Some(3), None, Some(55)]);
    assert_eq!(of(&reader), [None, Some(2), Some(3), None, Some(5)]);
    let has = |from: usize, blocks: usize| others.has(9, from * BLOCK, blocks * BLOCK);
    assert!(has(2, 2) && has(5, 1) && has(2, 0) && !has(1, 2) && !has(3, 2) && !has(5, 1_000_000));
    files[1].withdraw(0, 3);
    assert!(!has(2, 1));
    assert_eq!(of(&others), [None, None, Some(3), None, Some(55)]);
    assert!(group.has_room());
    (10..250).for_each(|block| put(&files[0], block, block));
    assert!(!group.has_room());
    group.lock().check();
}

#[test]
fn a_full_group_takes_frames_that_nobody_read_lately() {
    let (group, table, reader) = table();
    let file = table.file(2, 1 << 30).unwrap();
    (0..256).for_each(|block| put(&file, block, block));
    assert!((0..128).all(|block| seen(&reader, 2, block) == Some(block)));
    (1_000..1_128).for_each(|block| put(&file, block, block));
    let stay =
        |blocks: std::ops::Range<u64>| blocks.filter(|b| seen(&reader, 2, *b).is_some()).count();
    assert_eq!((stay(0..128), stay(128..256), stay(1_000..1_128)), (128, 0, 128));
    assert_eq!(group.stats().evicted, 128);
    group.lock().check();
}

#[test]
fn groups_share_memory_and_those_that_read_get_it_of_those_that_do_not() {
    const PAGE: u64 = 256;
    let budget = Budget::new(4 * SMALL);
    let sides = [(); 2].map(|()| {
        let group = Group::create(&budget).unwrap();
        let table = Table::create(&group).unwrap();
        let reader = Reader::of(&table).unwrap();
        let file = table.file(1, 1 << 30).unwrap();
        (group, file, reader)
    });
    let [(idle, first, readers), (busy, second, others)] = &sides;
    let pages = || [idle, busy].map(|group| group.stats().used / SMALL);
    (0..4 * PAGE).for_each(|block| put(first, block, block));
    assert!((0..4 * PAGE).all(|block| seen(readers, 1, block) == Some(block)));
    assert_eq!(pages(), [4, 0]);
    // It has none: it gets one at once, and another as long as the first has more than twice as many.
    let content_of = |block| 10_000 + block;
    let read = |count: u64| {
        for block in 0..count {
            put(second, block, content_of(block));
            assert_eq!(seen(others, 1, block), Some(content_of(block)));
            assert!(seen(readers, 1, block).is_none_or(|seed| seed == block));
        }
    };
    read(1);
    assert_eq!(idle.stats().used, 3 * SMALL);
    (0..40).for_each(|_| read(4 * PAGE));
    assert_eq!(pages(), [0, 4], "what nobody reads any more");
    [idle, busy].iter().for_each(|group| group.lock().check());
    // Whoever reads now gets it back, and what goes gives all back.
    put(first, 0, 0);
    assert_eq!((seen(readers, 1, 0), idle.stats().used), (Some(0), BLOCK as u64));
    assert_eq!(budget.left(), 0);
    for burst in 0..60_u64 {
        let (file, reader) = if burst % 3 == 0 { (first, readers) } else { (second, others) };
        for step in 0..700 {
            let block = (step * 7_919 + burst * 131) % (3 * PAGE);
            put(file, block, block + 10_000 * (burst % 3));
            assert!(seen(reader, 1, block).is_some());
            file.withdraw(block + 1, block + 2);
        }
        let both = [idle, busy];
        both.iter().for_each(|group| group.lock().check());
        assert!(both.iter().map(|group| group.lock().pages()).sum::<usize>() <= 4);
    }
    drop(sides);
    assert_eq!(budget.left(), 4);
}

#[test]
fn a_table_holds_so_many_files_and_goes_on_without_the_rest() {
    let (_, table, reader) = table();
    let files: Vec<_> = (1..20_000).filter_map(|ino| table.file(ino, 1)).collect();
    assert!(files.len() > 9_000, "{} files", files.len());
    assert_eq!((1..20_000).filter(|ino| reader.size(*ino).is_some()).count(), files.len());
    drop(files);
    assert!((1..20_000).all(|ino| reader.size(ino).is_none()));
    assert!(table.file(1, 1).is_some());
}

#[test]
fn whoever_adopts_a_table_has_emptied_it() {
    let (group, table, reader) = table();
    let file = table.file(3, 1 << 20).unwrap();
    (0..64).for_each(|block| put(&file, block, block));
    let (found, epoch) = (reader.find(3).unwrap(), reader.epoch());
    // As a killed engine leaves it.
    let fds = [group.as_fd(), table.as_fd()].map(|fd| fd.try_clone_to_owned().unwrap());
    std::mem::forget(file);
    let [frames, memory] = fds;
    assert!(group.is(frames.as_fd()).unwrap());
    let adopted = Group::adopt(frames, &Budget::new(SMALL)).unwrap();
    let table = Table::adopt(&adopted, memory).unwrap();
    assert_ne!(reader.epoch(), epoch);
    assert!(!reader.read_of(found, 0, &mut [0; BLOCK]));
    assert_eq!((reader.size(3), seen(&reader, 3, 0)), (None, None));
    let file = table.file(3, 1 << 20).unwrap();
    assert!(!reader.read_of(found, 0, &mut [0; BLOCK]), "it was found in another life");
    put(&file, 0, 77);
    assert_eq!(seen(&reader, 3, 0), Some(77));
    assert!(
        Table::adopt(
            &Group::create(&Budget::new(20 * SMALL)).unwrap(),
            table.as_fd().try_clone_to_owned().unwrap()
        )
        .is_err()
    );
}

#[test]
fn a_client_that_writes_all_that_it_can_map_disturbs_itself_alone() {
    let (group, hostile, reader) = table();
    let honest = Table::create(&group).unwrap();
    let others = Reader::of(&honest).unwrap();
    let files = [hostile.file(4, 1 << 20).unwrap(), honest.file(4, 1 << 20).unwrap()];
    for block in 0..128 {
        files.iter().for_each(|file| put(file, block, block));
    }
    let memory = hostile.as_fd().try_clone_to_owned().unwrap();
    for (round, byte) in [0xFF_u8, 0x5A, 0x01, 0x00].into_iter().enumerate() {
        for at in [0, 4096, crate::layout::ENTRIES_AT as u64, crate::layout::MARKS_AT as u64] {
            // Not past the end: its length is sealed.
            rustix::io::pwrite(&memory, &[byte; 4096], at).unwrap();
        }
        // Whatever it reads, it is not outside of its group's frames.
        let _ = reader.read(4, 0, &mut [0; 64 * BLOCK]);
        for block in 0..128 {
            files[0].withdraw(block, block + 1);
            put(&files[0], block, 1_000 * (round as u64 + 1) + block);
            assert_eq!(seen(&others, 4, block).unwrap_or(block), block);
        }
        group.lock().check_own();
    }
    let frames = group.read_only().unwrap();
    assert!(rustix::io::pwrite(&frames, b"x", 0).is_err(), "frames can be read only");
    assert!(rustix::fs::ftruncate(&memory, 0).is_err(), "memory that is mapped stays");
}

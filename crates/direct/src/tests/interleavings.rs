//! Clients read while the engine writes, clones, evicts and takes over, on several threads. The group is far too small,
//! so that each frame is given to another block again and again: content that is freed is as good as poisoned.

use super::{content, name};
use crate::layout::BLOCK;
use crate::{Budget, File, Group, Reader, Table};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCKS: u64 = 400;
const TABLES: usize = 3;
const LONG: Duration = Duration::from_millis(1_500);

/// A small generator (Marsaglia, Xorshift RNGs, 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The engine's side of one table: a file whose block `b` of version `v` is filled with a number made of both.
struct Engine {
    table: Arc<Table>,
    file: Option<File>,
    versions: Vec<u64>,
}

fn seed(table: u64, block: u64, version: u64) -> u64 {
    // Version 0 is what all tables have in common.
    (version << 32) | if version == 0 { block } else { block << 8 | (table + 1) }
}

/// What clients may see of each block at least: versions that were acknowledged before they began.
type Acknowledged = Vec<AtomicU64>;

fn act(engine: &RwLock<Engine>, number: u64, acknowledged: &Acknowledged, random: &mut Random) {
    let block = random.below(BLOCKS);
    match random.below(100) {
        // A miss.
        0..70 => {
            let engine = engine.read();
            let version = engine.versions[block as usize];
            let seed = seed(number, block, version);
            let known = version.is_multiple_of(2).then(|| name(seed));
            if let Some(file) = &engine.file {
                file.publish(block, known, &content(seed));
            }
        }
        // A write, acknowledged once it is there.
        70..98 => {
            let mut engine = engine.write();
            if let Some(file) = &engine.file {
                file.withdraw(block, block + 1);
            }
            engine.versions[block as usize] += 1;
            let version = engine.versions[block as usize];
            acknowledged[block as usize].store(version, Ordering::Release);
        }
        // The inode leaves the memory, or comes back.
        98 => {
            let mut engine = engine.write();
            let table = engine.table.clone();
            engine.file = match engine.file.take() {
                Some(_) => None,
                None => table.file(1, BLOCKS * BLOCK as u64),
            };
        }
        // A kill: the next engine adopts the memory of this table.
        _ => {
            let mut engine = engine.write();
            let memory = engine.table.as_fd().try_clone_to_owned().unwrap();
            let group = engine.table.group().clone();
            drop(engine.file.take());
            engine.table = Table::adopt(&group, memory).unwrap();
            engine.file = engine.table.file(1, BLOCKS * BLOCK as u64);
        }
    }
}

fn look(reader: &Reader, number: u64, acknowledged: &Acknowledged, random: &mut Random) -> bool {
    let block = random.below(BLOCKS);
    let least = acknowledged[block as usize].load(Ordering::Acquire);
    let mut target = [0; BLOCK];
    if !reader.read(1, block * BLOCK as u64, &mut target) {
        return false;
    }
    let found = u64::from_le_bytes(*target.first_chunk().unwrap());
    assert_eq!(target, content(found), "a torn block");
    let version = found >> 32;
    assert_eq!(found, seed(number, block, version), "the content of another block");
    assert!(version >= least, "version {version} after {least} was acknowledged");
    true
}

#[test]
fn readers_see_whole_blocks_that_are_current() {
    let group = Group::create(&Budget::new(super::SMALL)).unwrap();
    let engines: Vec<_> = (0..TABLES)
        .map(|_| {
            let table = Table::create(&group).unwrap();
            let file = table.file(1, BLOCKS * BLOCK as u64);
            RwLock::new(Engine { table, file, versions: vec![0; BLOCKS as usize] })
        })
        .collect();
    let acknowledged: Vec<Acknowledged> =
        (0..TABLES).map(|_| (0..BLOCKS).map(|_| AtomicU64::new(0)).collect()).collect();
    let (stop, hits, acts) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..TABLES {
            let (engine, acknowledged) = (&engines[number], &acknowledged[number]);
            let (stop, hits, acts) = (&stop, &hits, &acts);
            let reader = Reader::of(&engine.read().table).unwrap();
            scope.spawn(move || {
                let mut random = Random(0x9E37 + number as u64);
                while !stop.load(Ordering::Relaxed) {
                    act(engine, number as u64, acknowledged, &mut random);
                    acts.fetch_add(1, Ordering::Relaxed);
                }
            });
            scope.spawn(move || {
                let mut random = Random(0x79B9 + number as u64);
                while !stop.load(Ordering::Relaxed) {
                    let hit = look(&reader, number as u64, acknowledged, &mut random);
                    hits.fetch_add(u64::from(hit), Ordering::Relaxed);
                }
            });
        }
        let begun = Instant::now();
        while begun.elapsed() < LONG || acts.load(Ordering::Relaxed) < 10_000 {
            std::thread::sleep(Duration::from_millis(20));
            group.lock().check_own();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(hits.load(Ordering::Relaxed) > 1_000, "{hits:?} reads of {acts:?}");
    assert!(group.stats().evicted > 100);
    group.lock().check();
}

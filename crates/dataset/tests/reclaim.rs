//! What giving space back costs. Figures: `cargo test --release -p offshoot-dataset --test reclaim -- --ignored
//! --nocapture --test-threads=1`.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // it measures time

mod support;

use offshoot_dataset::{DatasetId, Ino, Store, StoreOptions};
use std::time::{Duration, Instant};
use support::{Dice, TestStore, make_file};

const BLOCK: usize = 8192;
const PART: usize = 1 << 20;

/// Writes new datasets of this many MiB in turns, so that they share segments; content never written
/// before.
fn fill(test: &TestStore, next: &mut u64, mib: &[u64]) -> Vec<DatasetId> {
    let ids: Vec<DatasetId> = mib.iter().map(|_| test.store.create_dataset().unwrap()).collect();
    for part in 0..mib.iter().copied().max().unwrap_or_default() {
        for (id, _) in ids.iter().zip(mib).filter(|(_, mib)| part < **mib) {
            let dataset = test.store.dataset(*id).unwrap();
            let ino = match dataset.lookup(Ino::ROOT, b"file") {
                Ok(found) => found.ino,
                Err(_) => make_file(&dataset, b"file"),
            };
            *next += 1;
            let mut content = Dice::new(*next).bytes(BLOCK).repeat(PART / BLOCK);
            for (number, block) in content.chunks_exact_mut(BLOCK).enumerate() {
                block[..8].copy_from_slice(&(*next << 8 | number as u64).to_le_bytes());
            }
            dataset.write(ino, part * PART as u64, &content).unwrap();
        }
    }
    test.store.commit_all().unwrap();
    ids
}

/// Gives everything back; the processor time of it.
fn reclaim(store: &Store) -> Duration {
    let cpu = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
    };
    let begun = cpu();
    while store.pool().reclaim_step().unwrap() {}
    cpu() - begun
}

#[test]
#[ignore = "prints figures, checks nothing"]
fn the_same_deletion_from_pools_of_one_four_and_sixteen_units() {
    for times in [1, 4, 16] {
        let mut options = StoreOptions { background: false, ..StoreOptions::default() };
        options.pool.background = false;
        let test = TestStore::new(options);
        let empty = test.store.stats().used;
        let (mut next, mut costs, mut kept) = (0, Vec::new(), Vec::new());
        for round in 0..5 {
            let ids = fill(&test, &mut next, &[if round == 0 { 64 * times } else { 4 }, 64]);
            reclaim(&test.store);
            kept.push(ids[0]);
            test.store.delete_dataset(ids[1]).unwrap();
            costs.push(reclaim(&test.store));
        }
        costs.sort_unstable();
        let used = test.store.stats().used;
        println!("{times:>2} units, {} MB: 64 MiB given back in {:?}", used / 1_000_000, costs[2]);
        kept.into_iter().for_each(|id| test.store.delete_dataset(id).unwrap());
        reclaim(&test.store);
        println!("   emptied: {empty} bytes before, {} after", test.store.stats().used);
    }
}

#[test]
#[ignore = "prints figures, checks nothing"]
fn cached_reads_while_space_is_given_back() {
    let test = TestStore::new(StoreOptions::default());
    let (mut next, mut dice) = (0, Dice::new(5));
    let hot = fill(&test, &mut next, &[32])[0];
    let dataset = test.store.dataset(hot).unwrap();
    let ino = dataset.lookup(Ino::ROOT, b"file").unwrap().ino;
    let mut buffer = vec![0; BLOCK];
    let mut read = |until: &mut dyn FnMut(usize) -> bool| {
        let mut samples = Vec::new();
        while !until(samples.len()) {
            let begun = Instant::now();
            dataset.read_into(ino, dice.roll(32 * 128) * BLOCK as u64, &mut buffer).unwrap();
            samples.push(begun.elapsed());
        }
        samples
    };
    let busy = || {
        let stats = test.store.stats();
        stats.reclaim_queue > 0 || stats.used > stats.live + stats.live / 4 + (8 << 20)
    };
    let p99 = |mut samples: Vec<Duration>| {
        samples.sort_unstable();
        samples[samples.len() * 99 / 100]
    };
    for _ in 0..5 {
        let victim = fill(&test, &mut next, &[512])[0];
        read(&mut |done| done > 50_000);
        test.store.delete_dataset(victim).unwrap();
        let during = read(&mut |done| done > 0 && done.is_multiple_of(4096) && !busy());
        std::thread::sleep(Duration::from_secs(1));
        let count = during.len();
        let without = read(&mut |done| done >= count);
        println!("{count} reads: p99 {:?} during, {:?} without", p99(during), p99(without));
    }
}

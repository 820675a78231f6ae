//! Figures, not checks: `cargo test --release -p offshoot-pool --test figures -- --ignored --nocapture`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // it measures time

mod testpool;

use offshoot_os::SystemClock;
use offshoot_os::disk::LinuxDisk;
use offshoot_pool::{Pool, PoolOptions};
use offshoot_types::BlockHash;
use std::sync::Arc;
use std::time::Instant;
use testpool::*;

const FAN_OUT: usize = 128;
const LEAVES: usize = 400;

/// A page as a database has them: half of it does not compress.
fn page(number: u64) -> Vec<u8> {
    let mut bytes = Random(number).bytes(4096);
    bytes.resize(8192, number as u8 | 1);
    bytes
}

#[test]
#[ignore = "measures"]
#[expect(clippy::too_many_lines, reason = "one course of events")]
fn a_file_of_400_mib() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(LinuxDisk::new(dir.path()).unwrap());
    let options = PoolOptions { cache_size: 1 << 30, ..PoolOptions::default() };
    Pool::create(&*disk, &options).unwrap();
    let pool = Pool::open(disk, &options, Arc::new(Nodes), Arc::new(SystemClock)).unwrap();

    let begun = Instant::now();
    let transaction = pool.begin();
    let leaves = parking_lot::Mutex::new(vec![Vec::new(); LEAVES]);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (transaction, leaves) = (&transaction, &leaves);
            scope.spawn(move || {
                for leaf in (half..LEAVES).step_by(2) {
                    let hashes: Vec<BlockHash> = (0..FAN_OUT)
                        .map(|i| {
                            transaction.write_data(&page((leaf * FAN_OUT + i) as u64)).unwrap()
                        })
                        .collect();
                    leaves.lock()[leaf] = hashes;
                }
            });
        }
    });
    let mut leaves = leaves.into_inner();
    let commit = |leaves: &[Vec<BlockHash>],
                  transaction: offshoot_pool::Transaction,
                  changed: &[bool],
                  names: &mut Vec<BlockHash>| {
        for (leaf, hashes) in leaves.iter().enumerate() {
            if changed[leaf] {
                names[leaf] = transaction.write_node(&node(leaf as u32, hashes)).unwrap();
            }
        }
        let root = transaction.write_node(&node(9, names)).unwrap();
        pool.commit(transaction, root, b"").unwrap();
    };
    let mut names = vec![BlockHash::ZERO; LEAVES];
    commit(&leaves, transaction, &[true; LEAVES], &mut names);
    let mib = (LEAVES * FAN_OUT * 8192) as f64 / 1048576.0;
    println!("write {mib} MiB on two threads: {:.0} MiB/s", mib / begun.elapsed().as_secs_f64());

    let mut random = Random(77);
    let all: Vec<BlockHash> = leaves.concat();
    let begun = Instant::now();
    for _ in 0..400_000 {
        pool.read(&all[random.below(all.len() as u64) as usize], 1).unwrap();
    }
    println!("read hit: {:.0} ns", begun.elapsed().as_nanos() as f64 / 4e5);
    pool.clear_cache();
    let begun = Instant::now();
    for _ in 0..20_000 {
        pool.read(&all[random.below(all.len() as u64) as usize], 1).unwrap();
    }
    println!("random read, mostly missed: {:.1} us", begun.elapsed().as_micros() as f64 / 2e4);
    pool.clear_cache();
    let begun = Instant::now();
    all.chunks(128).take(200).for_each(|run| pool.prefetch(run));
    println!("prefetch: {:.0} MiB/s", 200.0 / begun.elapsed().as_secs_f64());

    for round in 0..5 {
        let begun = Instant::now();
        let transaction = pool.begin();
        let mut changed = [false; LEAVES];
        for i in 0..2000 {
            let at = random.below(all.len() as u64) as usize;
            leaves[at / FAN_OUT][at % FAN_OUT] =
                transaction.write_data(&page(1 << 40 | round << 20 | i)).unwrap();
            changed[at / FAN_OUT] = true;
        }
        let written = begun.elapsed();
        commit(&leaves, transaction, &changed, &mut names);
        println!("2000 random overwrites: written {written:?}, committed {:?}", begun.elapsed());
    }
    let begun = Instant::now();
    let transaction = pool.begin();
    let root = transaction.write_node(&node(10, &names)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    println!("a new root alone: {:?}", begun.elapsed());
    let stats = pool.stats();
    println!("table: {:.0} bytes a block", stats.table_memory as f64 / stats.blocks as f64);
    println!("stored: {} of {} bytes raw, used {}", stats.live, stats.raw, stats.used);
    let begun = Instant::now();
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    println!("delete all: {:?}", begun.elapsed());
    while pool.stats().segments > 0 && begun.elapsed().as_secs() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    println!("space back after {:?}: {} segments", begun.elapsed(), pool.stats().segments);
}

/// Memory and opening time of a pool of OFFSHOOT_BLOCKS blocks, 10⁷ where that is not set: as written, and after a
/// sixteenth of it was deleted, which leaves a gap in every segment. OFFSHOOT_POOL names a directory in which the pool
/// stays; if it already exists it is only opened.
#[test]
#[ignore = "measures"]
fn a_pool_of_many_blocks() {
    let count = std::env::var("OFFSHOOT_BLOCKS").ok().and_then(|text| text.parse().ok());
    let count: u64 = count.unwrap_or(10_000_000);
    let scratch = tempfile::tempdir().unwrap();
    let dir = std::env::var_os("OFFSHOOT_POOL").map_or(scratch.path().to_owned(), Into::into);
    let disk = Arc::new(LinuxDisk::new(&dir).unwrap());
    let options = PoolOptions { cache_size: 16 << 20, ..PoolOptions::default() };
    let open =
        || Pool::open(disk.clone(), &options, Arc::new(Nodes), Arc::new(SystemClock)).unwrap();
    let time_opening = || {
        for _ in 0..3 {
            let begun = Instant::now();
            let pool = open();
            let (took, memory) = (begun.elapsed(), resident_bytes() / 1_000_000);
            println!("opened in {took:.2?}; memory of the process {memory} MB");
            drop(pool);
        }
    };
    if Pool::create(&*disk, &options).is_ok() {
        let pool = open();
        let begun = Instant::now();
        let mut tops = Vec::new();
        for first in (0..count).step_by(1 << 18) {
            let transaction = pool.begin();
            let all: Vec<u64> = (first..count.min(first + (1 << 18))).collect();
            for numbers in all.chunks(FAN_OUT) {
                // Small blocks: what counts is how many there are.
                let write =
                    |number: &u64| transaction.write_data(&(number + 1).to_le_bytes()).unwrap();
                let children: Vec<BlockHash> = numbers.iter().map(write).collect();
                tops.push(transaction.write_node(&node(numbers[0] as u32, &children)).unwrap());
            }
            commit_tops(&pool, transaction, &tops);
        }
        println!("{count} blocks written in {:.1?}", begun.elapsed());
        settle(&pool);
        drop(pool);
        time_opening();
        let pool = open();
        let kept: Vec<BlockHash> =
            tops.chunks(16).flat_map(|tops| &tops[..tops.len().min(15)]).copied().collect();
        commit_tops(&pool, pool.begin_freeing(), &kept);
        settle(&pool);
    }
    time_opening();
    settle(&open());
}

/// A root over nodes over these nodes.
fn commit_tops(pool: &Arc<Pool>, transaction: offshoot_pool::Transaction, tops: &[BlockHash]) {
    let middles: Vec<BlockHash> = tops
        .chunks(2000)
        .map(|tops| transaction.write_node(&node(u32::MAX, tops)).unwrap())
        .collect();
    let root = transaction.write_node(&node(u32::MAX - 1, &middles)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
}

/// Waits for the background and says what memory the pool takes.
fn settle(pool: &Pool) {
    while pool.reclaim_step().unwrap() {}
    let stats = pool.stats();
    println!(
        "{} blocks in {} segments: table {} MB, {:.1} bytes a block; memory of the process {} MB",
        stats.blocks,
        stats.segments,
        stats.table_memory / 1_000_000,
        stats.table_memory as f64 / stats.blocks as f64,
        resident_bytes() / 1_000_000
    );
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

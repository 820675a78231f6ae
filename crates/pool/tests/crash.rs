//! Power is lost at every disk operation of a random workload; then the pool is opened again.
//!
//! A model remembers which trees each commit held. After each crash: the last acknowledged commit (or
//! the one in progress) is there, all of it can be read, and the table says exactly what a walk from
//! the root finds: nothing of what was not committed is left. Work then continues.
//!
//! The same runs, on a disk that ignores some flushes, prove that each ordering rule is needed and
//! that its absence is noticed.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{Error, Pool, PoolOptions};
use offshoot_types::BlockHash;
use std::collections::BTreeMap;
use std::sync::Arc;
use testpool::*;

/// What a commit held: the numbers of each tree's blocks.
type Trees = BTreeMap<u64, Vec<u64>>;

#[derive(Debug)]
#[allow(dead_code)] // the texts are for the panic's message
enum Broken {
    /// The pool does not open.
    Closed(String),
    /// An acknowledged commit is not there.
    Lost(String),
    /// A commit is there but not all of it.
    Unreadable(String),
    /// Something is there that should not be, or counts do not add up.
    Unsound(String),
}

/// Runs with seeds from here on are on encrypted pools.
const ENCRYPTED: u64 = 1 << 32;

struct Run {
    disk: Arc<SimDisk>,
    random: Random,
    /// What each commit held, by its number.
    history: BTreeMap<u64, Trees>,
    acknowledged: u64,
    attempted: u64,
    /// Bytes compacted and written over, and checkpoints written by the workload, so that the test can show
    /// that crashes hit those too.
    compacted: u64,
    written_over: u64,
    checkpoints: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let disk = SimDisk::new(seed);
        let data_key = (seed >= ENCRYPTED).then(key);
        Pool::create(&*disk, &PoolOptions { data_key, ..options() }).unwrap();
        Run {
            disk,
            random: Random(seed ^ 0xABCD),
            history: BTreeMap::from([(0, Trees::new())]),
            acknowledged: 0,
            attempted: 0,
            compacted: 0,
            written_over: 0,
            checkpoints: 0,
        }
    }

    fn numbers(&mut self) -> Vec<u64> {
        let (first, count) = (self.random.below(60), 1 + self.random.below(40));
        (0..count).map(|i| first + i * (1 + first % 2)).collect()
    }

    /// Commits trees; an error is the crash, the model then knows what was attempted.
    fn commit(&mut self, pool: &Arc<Pool>) -> Result<(), Error> {
        let mut trees = self.history[&self.acknowledged].clone();
        for _ in 0..1 + self.random.below(3) {
            let slot = self.random.below(8);
            if self.random.below(3) == 0 {
                trees.remove(&slot);
            } else {
                let numbers = self.numbers();
                trees.insert(slot, numbers);
            }
        }
        let number = self.acknowledged + 1;
        self.attempted = number;
        self.history.insert(number, trees.clone());
        let transaction = pool.begin();
        // One that stays behind shares blocks with the one that commits.
        let stray = pool.begin();
        let stray_numbers = self.numbers();
        write_tree(&stray, 99, &stray_numbers)?;
        let mut roots = Vec::new();
        for (slot, numbers) in &trees {
            roots.push(write_tree(&transaction, *slot as u32, numbers)?);
        }
        let root = match trees.is_empty() {
            true => BlockHash::ZERO,
            false => transaction.write_node(&node(1000, &roots))?,
        };
        pool.commit(transaction, root, &number.to_le_bytes())?;
        self.acknowledged = number;
        Ok(())
    }

    /// Works until the steps are done or the power is lost.
    fn work(&mut self, steps: u64) -> Result<(), Error> {
        let mut pool = open(&self.disk)?;
        for _ in 0..steps {
            match self.random.below(8) {
                0 => {
                    let transaction = pool.begin();
                    let numbers = self.numbers();
                    write_tree(&transaction, 50, &numbers)?;
                }
                1..=2 => {
                    let before = pool.stats();
                    pool.reclaim_step()?;
                    self.compacted += pool.stats().compacted - before.compacted;
                    self.checkpoints += pool.stats().checkpoints - before.checkpoints;
                }
                3 => {
                    drop(pool);
                    pool = open(&self.disk)?;
                }
                _ => {
                    let before = pool.stats().written_over;
                    self.commit(&pool)?;
                    self.written_over += pool.stats().written_over - before;
                }
            }
        }
        Ok(())
    }

    /// Opens the pool after a crash and compares it with the model. `lenient`: an older commit is
    /// accepted if it is whole.
    fn verify(&mut self, lenient: bool) -> Result<(), Broken> {
        let pool = open(&self.disk).map_err(|error| Broken::Closed(error.to_string()))?;
        let extra = pool.root().extra;
        let number = extra.try_into().map_or(0, u64::from_le_bytes);
        if number != self.acknowledged && number != self.attempted && !lenient {
            let wanted = (self.acknowledged, self.attempted);
            return Err(Broken::Lost(format!("commit {number} instead of {wanted:?}")));
        }
        let trees = &self.history[&number];
        let unreadable = |error: Error| Broken::Unreadable(error.to_string());
        let contents = match pool.root().hash.is_zero() {
            true => Vec::new(),
            false => read_tree(&pool, &pool.root().hash).map_err(unreadable)?,
        };
        let expected: Vec<Vec<u8>> =
            trees.values().flatten().map(|number| content(*number)).collect();
        if contents != expected {
            return Err(Broken::Unreadable("the content is another".into()));
        }
        let sound = |context: &str| match pool.check() {
            Ok(problems) if problems.is_empty() => Ok(()),
            Ok(problems) => Err(Broken::Unsound(format!("{context}: {problems:?}"))),
            Err(error) => Err(Broken::Unreadable(error.to_string())),
        };
        sound("opened")?;
        if !pool.faults().is_empty() {
            return Err(Broken::Unsound(format!("faults: {:?}", pool.faults())));
        }
        for _ in 0..200 {
            if !pool.reclaim_step().map_err(unreadable)? {
                break;
            }
        }
        sound("reclaimed")?;
        let stats = pool.stats();
        let mut distinct: Vec<u64> = trees.values().flatten().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        // Trees with the same slot and numbers differ by their salt, so nodes are never shared.
        let nodes = if trees.is_empty() { 0 } else { trees.len() + 1 };
        if stats.blocks != (distinct.len() + nodes) as u64 || stats.reclaim_queue != 0 {
            return Err(Broken::Unsound(format!("{} and {nodes}: {stats:?}", distinct.len())));
        }
        let files = self.disk.used();
        if files > 2 * stats.live + (1 << 20) {
            return Err(Broken::Unsound(format!("{files} bytes for {} live", stats.live)));
        }
        self.acknowledged = number;
        self.attempted = number;
        Ok(())
    }
}

/// Loses power at the `at`-th operation of a workload, twice, and compares each time.
fn run_until(seed: u64, at: u64, prepare: &dyn Fn(&SimDisk), lenient: bool) -> Result<(), Broken> {
    let mut run = Run::new(seed);
    prepare(&run.disk);
    run.disk.crash_after(at);
    let _ = run.work(14);
    run.disk.crash();
    if at.is_multiple_of(3) {
        // Recovery itself is cut off, too.
        run.disk.crash_after(1 + at % 7);
        let _ = open(&run.disk).map(|pool| pool.reclaim_step());
        run.disk.crash();
    }
    run.verify(lenient)?;
    run.disk.crash_after(5 + at % 40);
    let _ = run.work(6);
    run.disk.crash();
    run.verify(lenient)
}

/// The workload if nothing goes wrong, and how many operations it takes.
fn undisturbed(seed: u64) -> (Run, u64) {
    let mut run = Run::new(seed);
    let before = run.disk.operations();
    run.work(14).unwrap();
    let operations = run.disk.operations() - before;
    (run, operations)
}

#[test]
fn every_operation_may_be_the_last() {
    let encrypted = (ENCRYPTED..).take(seeds(4).count());
    let (mut runs, mut compacted, mut written_over, mut checkpoints) = (0, 0, 0, 0);
    for seed in seeds(8).chain(encrypted) {
        let (run, operations) = undisturbed(seed);
        compacted += run.compacted;
        written_over += run.written_over;
        checkpoints += run.checkpoints;
        for at in 1..=operations + 1 {
            if let Err(broken) = run_until(seed, at, &|_| {}, false) {
                panic!("seed {seed}, power lost at operation {at}: {broken:?}");
            }
            runs += 1;
        }
    }
    println!(
        "{runs} crashes, {compacted} bytes compacted, {written_over} over, {checkpoints} checkpoints"
    );
    assert!(
        (runs > 300 && compacted > 0 && written_over > 0 && checkpoints > 0) || seeds(8).end < 8
    );
}

/// What breaks, over many crashes, on a disk with a defect.
fn breakage(prepare: &dyn Fn(&SimDisk), lenient: bool) -> Vec<Broken> {
    let mut broken = Vec::new();
    for seed in 0..12 {
        for at in (1..=undisturbed(seed).1).step_by(5) {
            // A pool that cannot trust its disk may panic in the test's own reading, too.
            broken.extend(run_until(seed, at, prepare, lenient).err());
        }
    }
    broken
}

fn count(broken: &[Broken], of: fn(&Broken) -> bool) -> usize {
    let count = broken.iter().filter(|broken| of(broken)).count();
    println!("{count} of {}: {:?}", broken.len(), broken.iter().find(|broken| of(broken)));
    count
}

/// The pool could be saved by rebuilding the table, but it should not have come to that.
fn table_was_damaged(broken: &Broken) -> bool {
    matches!(broken, Broken::Unsound(why) if why.contains("rebuilt"))
}

#[test]
fn order_1_without_the_flush_of_segments_blocks_are_missing() {
    let broken = breakage(&|disk| disk.ignore_syncs("segments/"), false);
    assert!(count(&broken, |broken| matches!(broken, Broken::Unreadable(_))) > 0);
}

#[test]
fn order_1_without_the_flush_of_new_names_segments_are_missing() {
    let broken = breakage(&|disk| disk.ignore_dir_syncs("segments"), false);
    assert!(count(&broken, |broken| matches!(broken, Broken::Unreadable(_))) > 0);
}

#[test]
fn order_2_without_the_flush_of_the_log_the_table_is_damaged() {
    let broken = breakage(&|disk| disk.ignore_syncs("table/"), false);
    assert!(count(&broken, table_was_damaged) > 0);
}

#[test]
fn order_2_without_the_flush_of_new_names_the_table_is_missing() {
    let broken = breakage(&|disk| disk.ignore_dir_syncs("table"), false);
    assert!(count(&broken, table_was_damaged) > 0);
}

#[test]
fn order_3_without_the_flush_of_the_root_acknowledged_commits_are_lost() {
    let broken = breakage(&|disk| disk.ignore_syncs("root."), false);
    assert!(count(&broken, |broken| matches!(broken, Broken::Lost(_))) > 0);
}

#[test]
fn order_4_space_given_back_before_the_root_is_durable_breaks_the_root_before() {
    // An older commit would be accepted here, but what it needs was deleted when the newer one was
    // thought durable.
    let broken = breakage(&|disk| disk.ignore_syncs("root."), true);
    assert!(
        count(&broken, |broken| matches!(broken, Broken::Unreadable(_) | Broken::Unsound(_))) > 0
    );
}

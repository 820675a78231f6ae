//! Dead pages that new ones overwrite: nothing durable is ever among them.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_format::segment::PAGE_LEN;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{Error, Pool, PoolOptions, Result};
use offshoot_types::BlockHash;
use std::sync::Arc;
use testpool::*;

/// Every dead page waits for a new one. The table is not rewritten, which would hide a record that is missing.
fn open_keeping(disk: &Arc<SimDisk>) -> Result<Arc<Pool>> {
    let (spare, checkpoint_log_min) = (Some(64 << 20), 64 << 20);
    open_with(disk, &PoolOptions { spare, checkpoint_log_min, ..options() })
}

fn create_keeping(disk: &Arc<SimDisk>) -> Arc<Pool> {
    Pool::create(&**disk, &options()).unwrap();
    open_keeping(disk).unwrap()
}

#[test]
fn new_pages_take_the_places_of_dead_ones() {
    let disk = SimDisk::new(1);
    let pool = create_keeping(&disk);
    commit_pages(&pool, 1, 0..400).unwrap();
    commit_pages(&pool, 2, (0..400).step_by(2)).unwrap();
    reclaim(&pool);
    let files = page_segments(&disk).len();
    let numbers = || (0..400).step_by(2).chain(1000..1190);
    let root = commit_pages(&pool, 3, numbers()).unwrap();
    // All but those of the segment that is not sealed yet.
    let over = pool.stats().written_over / u64::from(PAGE_LEN);
    assert!(over > 180, "{over} of 190");
    assert!(page_segments(&disk).len() <= files + 1, "more files than before");
    assert_reads(&pool, &root, numbers());
    assert_sound(&pool, "written over");
    drop(pool);
    disk.crash();
    let pool = open_keeping(&disk).unwrap();
    assert_reads(&pool, &root, numbers());
    assert_eq!(scrub(&pool).damaged, 0);
    assert_sound(&pool, "opened again");
    drop(pool);
    assert_check_finds_nothing(&disk);
}

#[test]
fn segments_of_nothing_else_go_and_what_is_left_is_given_back_when_it_is_to_be() {
    let disk = SimDisk::new(1);
    let pool = create_keeping(&disk);
    commit_pages(&pool, 1, 0..400).unwrap();
    commit_pages(&pool, 2, (0..400).step_by(2)).unwrap();
    reclaim(&pool);
    let kept = pool.stats().used;
    drop(pool);
    // Another time none is kept.
    let pool = open_with(&disk, &PoolOptions { spare: Some(0), ..options() }).unwrap();
    reclaim(&pool);
    let given_back = kept - pool.stats().used;
    assert!(given_back > 180 * u64::from(PAGE_LEN), "{given_back}");
    drop(pool);
    let pool = open_keeping(&disk).unwrap();
    commit_pages(&pool, 3, 0..400).unwrap();
    pool.commit(pool.begin(), BlockHash::ZERO, b"").unwrap();
    reclaim(&pool);
    assert_eq!(page_segments(&disk).len(), 0, "deleted, spare pages or not");
    let root = commit_pages(&pool, 4, 0..100).unwrap();
    assert_reads(&pool, &root, 0..100);
    assert_sound(&pool, "begun anew");
}

/// A run that replaces pages with new ones, commit after commit.
struct Run {
    disk: Arc<SimDisk>,
    random: Random,
    /// The pages of each commit, by its number.
    history: Vec<Vec<u64>>,
    /// The last commit that was acknowledged.
    acknowledged: usize,
    next: u64,
    written_over: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let disk = SimDisk::new(seed);
        Pool::create(&*disk, &options()).unwrap();
        let (random, history) = (Random(seed ^ 0x5AFE), vec![vec![]]);
        Run { disk, random, history, acknowledged: 0, next: 1, written_over: 0 }
    }

    /// Commits the pages of the commit before with about a third of them replaced.
    fn commit(&mut self, pool: &Arc<Pool>) -> Result<()> {
        let mut pages = self.history[self.acknowledged].clone();
        pages.resize(70, 0);
        for page in &mut pages {
            if *page == 0 || self.random.below(3) == 0 {
                *page = self.next;
                self.next += 1;
            }
        }
        self.history.truncate(self.acknowledged + 1);
        self.history.push(pages.clone());
        let before = pool.stats().written_over;
        let committed = commit_pages(pool, self.acknowledged as u32, pages.into_iter());
        self.written_over += pool.stats().written_over - before;
        committed.map(|_| self.acknowledged += 1)
    }

    /// Opens the pool and commits so often. What was dead before is no longer overwritten.
    fn work(&mut self, steps: usize) -> Result<Arc<Pool>> {
        let pool = open_keeping(&self.disk)?;
        for step in 0..steps {
            self.commit(&pool)?;
            if step % 2 == 1 {
                while pool.reclaim_step()? {}
            }
        }
        Ok(pool)
    }

    /// What the pool holds is the last commit, or the one on its way.
    fn verify(&mut self, context: &str) {
        let pool = open_keeping(&self.disk).unwrap();
        let root = pool.root().hash;
        let of_root = |number: usize| {
            let pages = self.history.get(number)?;
            let expected = pages.iter().flat_map(|number| [page(*number), content(*number)]);
            let found = if root.is_zero() { vec![] } else { read_tree(&pool, &root).ok()? };
            (found == expected.collect::<Vec<_>>()).then_some(number)
        };
        let found = of_root(self.acknowledged).or_else(|| of_root(self.acknowledged + 1));
        self.acknowledged = found.unwrap_or_else(|| panic!("{context}: neither commit is there"));
        assert_sound(&pool, context);
        assert_eq!(scrub(&pool).damaged, 0, "{context}");
    }
}

#[test]
fn power_lost_at_any_operation_finds_every_page() {
    let mut written_over = 0;
    for seed in seeds(2) {
        let mut undisturbed = Run::new(seed);
        let before = undisturbed.disk.operations();
        undisturbed.work(7).unwrap();
        written_over += undisturbed.written_over;
        for at in 1..=undisturbed.disk.operations() - before {
            let mut run = Run::new(seed);
            run.disk.crash_after(at);
            let _ = run.work(7);
            run.disk.crash();
            run.verify(&format!("seed {seed}, power lost at operation {at}"));
            drop(run.work(3).unwrap());
            run.disk.crash();
            run.verify(&format!("seed {seed}, after operation {at}"));
        }
    }
    assert!(written_over > 0);
}

/// ORDER 1: an overwritten page is synced before the root that needs it.
#[test]
fn order_1_without_the_flush_pages_are_missing() {
    let missing = (0..20).filter(|seed| {
        let mut run = Run::new(*seed);
        let pool = run.work(6).unwrap();
        run.disk.ignore_syncs("segments/");
        run.commit(&pool).unwrap();
        drop(pool);
        run.disk.crash();
        let verified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.verify("")));
        verified.is_err()
    });
    assert!(missing.count() > 0);
}

/// ORDER 4: while nobody knows which root the device has, what either needs is left alone.
#[test]
fn a_root_in_doubt_keeps_its_pages() {
    for seed in 0..60 {
        let mut run = Run::new(seed);
        let pool = run.work(7).unwrap();
        run.disk.refuse_syncs(Some("root."));
        for _ in 0..3 {
            assert!(matches!(run.commit(&pool), Err(Error::Full { .. })));
        }
        assert!(run.written_over > 0);
        drop(pool);
        run.disk.refuse_syncs(None);
        run.disk.crash();
        let pool = open_keeping(&run.disk).unwrap();
        let held = read_tree(&pool, &pool.root().hash);
        assert!(held.is_ok_and(|held| held.len() == 140), "seed {seed}");
        assert_sound(&pool, "after the crash");
    }
}

/// A device that promised more than it has loses what was written over dead pages, and nothing beside it.
#[test]
fn after_a_flush_without_room_the_pages_beside_are_relied_upon() {
    for seed in 0..30 {
        let mut run = Run::new(seed);
        let pool = run.work(8).unwrap();
        run.disk.refuse_syncs(Some("segments/"));
        for _ in 0..3 {
            assert!(matches!(run.commit(&pool), Err(Error::Full { .. })));
        }
        run.disk.refuse_syncs(None);
        let before = pool.stats();
        // Those that were committed are found stored, and none of them is stored again.
        for _ in 0..3 {
            run.commit(&pool).unwrap();
            reclaim(&pool);
        }
        assert!(pool.stats().dedup_saved > before.dedup_saved);
        drop(pool);
        run.disk.crash();
        run.verify(&format!("seed {seed}"));
        drop(run.work(4).unwrap());
        run.verify(&format!("seed {seed}, later"));
    }
}

//! Random runs: steps on a store whose outcome is known, and what a crash may leave of them.

use super::model::{Dump, Model, Op, apply_real, check, dump};
use super::{Dice, small_options};
use offshoot_dataset::{
    AllocateMode, DatasetId, Error, NewKind, RenameMode, SnapshotId, Store, StoreOptions,
};
use offshoot_os::Clock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock that moves by a little whenever it is looked at.
#[derive(Default)]
pub struct TickClock(AtomicU64);

impl Clock for TickClock {
    fn now(&self) -> SystemTime {
        let ticks = self.0.fetch_add(1, Ordering::Relaxed);
        UNIX_EPOCH + Duration::from_micros(1_000_000_000_000 + ticks * 1_000_001)
    }
    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
    fn sleep(&self, _: Duration) {}
}

/// One step of a run.
#[derive(Debug, Clone)]
pub enum Step {
    Op(DatasetId, Op),
    Sync(DatasetId),
    Commit(DatasetId),
    CreateDataset,
    Snapshot(DatasetId),
    Clone(SnapshotId),
    DeleteDataset(DatasetId),
    DeleteSnapshot(SnapshotId),
    Label(DatasetId),
    Reclaim,
}

/// A state of a dataset.
#[derive(Clone)]
pub struct Moment {
    /// The step after which it was so.
    pub step: usize,
    pub dump: Arc<Dump>,
    pub model: Model,
}

/// The history of a dataset, by the steps of the run.
#[derive(Clone)]
pub struct History {
    pub created: usize,
    pub deleted: Option<usize>,
    pub moments: Vec<Moment>,
    /// Steps at whose end everything before was durable.
    pub durable: Vec<usize>,
}

/// A snapshot and the step that took it.
#[derive(Clone)]
pub struct Taken {
    pub created: usize,
    pub deleted: Option<usize>,
    pub dump: Arc<Dump>,
    pub model: Model,
}

/// A run without crashes: the steps and what was seen.
pub struct Run {
    pub steps: Vec<Step>,
    pub datasets: BTreeMap<DatasetId, History>,
    pub snapshots: BTreeMap<SnapshotId, Taken>,
    pub options: StoreOptions,
    dice: Dice,
}

pub fn open(disk: &Arc<SimDisk>, options: &StoreOptions) -> Result<Arc<Store>, Error> {
    let disk: Arc<dyn Disk> = disk.clone();
    Store::open(disk, options, Arc::new(TickClock::default()))
}

pub fn create(disk: &Arc<SimDisk>, options: &StoreOptions) -> Result<(), Error> {
    let disk: Arc<dyn Disk> = disk.clone();
    Store::create(&disk, options)
}

/// Takes one step for real.
pub fn take_step(store: &Store, step: &Step) -> Result<Option<u64>, Error> {
    match step {
        Step::Op(id, op) => return apply_real(&*store.dataset(*id)?, op),
        Step::Sync(id) => store.dataset(*id)?.sync()?,
        Step::Commit(id) => store.dataset(*id)?.commit()?,
        Step::CreateDataset => return Ok(Some(store.create_dataset()?.0)),
        Step::Snapshot(id) => return Ok(Some(store.snapshot(*id)?.0)),
        Step::Clone(id) => return Ok(Some(store.clone_snapshot(*id)?.0)),
        Step::DeleteDataset(id) => store.delete_dataset(*id)?,
        Step::DeleteSnapshot(id) => store.delete_snapshot(*id)?,
        Step::Label(id) => store.set_dataset_label(*id, b"a label")?,
        Step::Reclaim => {
            store.pool().reclaim_step()?;
        }
    }
    Ok(None)
}

/// Errors by which an operation is refused, as opposed to a disk that fails.
fn is_refusal(error: &Error) -> bool {
    error.errno() != 5
}

impl Run {
    pub fn new(seed: u64) -> Run {
        let mut options = small_options();
        let mut dice = Dice::new(seed);
        // Sometimes so little log that commits take its place.
        options.log_file_size = [64 << 10, 128 << 10, 512 << 10][dice.roll(3) as usize];
        Run {
            steps: Vec::new(),
            datasets: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            options,
            dice,
        }
    }

    /// Takes `count` random steps; every state is checked against the model.
    pub fn go(&mut self, store: &Store, count: usize) {
        for _ in 0..count {
            let step = self.choose();
            let outcome = take_step(store, &step);
            if let Err(error) = &outcome {
                assert!(is_refusal(error), "{step:?}: {error}");
            }
            self.steps.push(step);
            self.note(store, outcome);
        }
    }

    fn alive(&self) -> Vec<DatasetId> {
        let alive = self.datasets.iter().filter(|(_, history)| history.deleted.is_none());
        alive.map(|(id, _)| *id).collect()
    }

    fn choose(&mut self) -> Step {
        let alive = self.alive();
        let snapshots: Vec<SnapshotId> = (self.snapshots.iter())
            .filter(|(_, taken)| taken.deleted.is_none())
            .map(|(id, _)| *id)
            .collect();
        if alive.is_empty() {
            return Step::CreateDataset;
        }
        let id = alive[self.dice.roll(alive.len() as u64) as usize];
        let snapshot = |dice: &mut Dice| snapshots[dice.roll(snapshots.len() as u64) as usize];
        match self.dice.roll(60) {
            0 if alive.len() < 4 => Step::CreateDataset,
            1 | 2 if snapshots.len() < 6 => Step::Snapshot(id),
            3 | 4 if !snapshots.is_empty() && alive.len() < 5 => {
                Step::Clone(snapshot(&mut self.dice))
            }
            5 if alive.len() > 1 => Step::DeleteDataset(id),
            6 if !snapshots.is_empty() => Step::DeleteSnapshot(snapshot(&mut self.dice)),
            7..=9 => Step::Commit(id),
            10..=15 => Step::Sync(id),
            16 => Step::Label(id),
            17..=18 => Step::Reclaim,
            _ => {
                let moments = &self.datasets[&id].moments;
                let model = moments[moments.len() - 1].model.clone();
                Step::Op(id, choose_op(&mut self.dice, &model))
            }
        }
    }

    /// Notes what the last step did.
    fn note(&mut self, store: &Store, outcome: Result<Option<u64>, Error>) {
        let index = self.steps.len() - 1;
        let step = self.steps[index].clone();
        let context = format!("step {index} {step:?}");
        let see = |id: DatasetId| Arc::new(dump(&store.dataset(id).unwrap()).unwrap());
        match (&step, outcome) {
            (Step::Op(id, op), outcome) => {
                let history = self.datasets.get_mut(id).unwrap();
                let mut model = history.moments[history.moments.len() - 1].model.clone();
                let new = outcome.as_ref().ok().copied().flatten();
                let expected = model.apply(op, new);
                assert_eq!(outcome.is_ok(), expected.is_ok(), "{context}: {outcome:?}");
                let dump = see(*id);
                if expected.is_ok() {
                    check(&dump, &model, &context);
                    history.moments.push(Moment { step: index, dump, model });
                }
            }
            (Step::CreateDataset, Ok(Some(id))) => {
                let id = DatasetId(id);
                let moment = Moment { step: index, dump: see(id), model: Model::new() };
                self.add_dataset(id, index, moment);
            }
            (Step::Clone(snapshot), Ok(Some(id))) => {
                let id = DatasetId(id);
                let taken = &self.snapshots[snapshot];
                let (dump, model) = (see(id), taken.model.clone().reopened());
                assert_eq!(*dump, *taken.dump, "{context}");
                self.add_dataset(id, index, Moment { step: index, dump, model });
            }
            (Step::Snapshot(id), Ok(Some(snapshot))) => {
                let history = self.datasets.get_mut(id).unwrap();
                history.durable.push(index);
                let moment = &history.moments[history.moments.len() - 1];
                let (dump, model) = (moment.dump.clone(), moment.model.clone());
                let taken = Taken { created: index, deleted: None, dump, model };
                self.snapshots.insert(SnapshotId(snapshot), taken);
            }
            (Step::Sync(id) | Step::Commit(id), Ok(_)) => {
                let history = self.datasets.get_mut(id).unwrap();
                history.durable.push(index);
                let moment = &history.moments[history.moments.len() - 1];
                assert_eq!(*see(*id), *moment.dump, "{context}");
            }
            (Step::DeleteDataset(id), Ok(_)) => {
                self.datasets.get_mut(id).unwrap().deleted = Some(index);
                assert!(store.dataset(*id).is_err());
            }
            (Step::DeleteSnapshot(id), Ok(_)) => {
                self.snapshots.get_mut(id).unwrap().deleted = Some(index);
            }
            (Step::Label(_) | Step::Reclaim, Ok(_)) => {}
            (_, outcome) => panic!("{context}: {outcome:?}"),
        }
    }

    fn add_dataset(&mut self, id: DatasetId, index: usize, moment: Moment) {
        let history =
            History { created: index, deleted: None, moments: vec![moment], durable: vec![index] };
        assert!(self.datasets.insert(id, history).is_none(), "a number was given twice");
    }

    /// After the store was opened anew without a loss of power: every dataset is at some state
    /// since it was last durable, at the last one if `closed`; goes on from there.
    pub fn reopened(&mut self, store: &Store, closed: bool) {
        let end = self.steps.len();
        for id in self.alive() {
            let history = self.datasets.get_mut(&id).unwrap();
            let seen = dump(&store.dataset(id).unwrap()).unwrap();
            let first = if closed { history.moments.len() - 1 } else { history.first_kept(end) };
            let found = history.moments[first..].iter().rposition(|moment| *moment.dump == seen);
            let Some(found) = found else {
                let moments = &history.moments;
                panic!("{id} is no state since {first}: {}", differences(moments, &seen));
            };
            let found = first + found;
            history.moments.truncate(found + 1);
            let last = &mut history.moments[found];
            last.model = last.model.clone().reopened();
            last.step = end.saturating_sub(1);
            history.durable.push(end.saturating_sub(1));
        }
    }

    /// Checks a store that was recovered from a crash in step `crashed` (`steps.len()`: behind the
    /// last one).
    pub fn check_recovered(&self, store: &Store, crashed: usize, context: &str) {
        let ids: Vec<DatasetId> = store.datasets().iter().map(|info| info.id).collect();
        let snapshots: Vec<SnapshotId> = store.snapshots().iter().map(|info| info.id).collect();
        for (id, history) in &self.datasets {
            let there = ids.contains(id);
            match expected(history.created, history.deleted, crashed) {
                Some(expected) => assert_eq!(there, expected, "{context}: {id}"),
                None if there => {}
                None => continue,
            }
            if there {
                history.check(store, *id, crashed, context);
            }
        }
        for (id, taken) in &self.snapshots {
            let there = snapshots.contains(id);
            match expected(taken.created, taken.deleted, crashed) {
                Some(expected) => assert_eq!(there, expected, "{context}: {id}"),
                None if there => {}
                None => continue,
            }
            if there {
                let clone = store.clone_snapshot(*id).unwrap();
                let seen = dump(&store.dataset(clone).unwrap()).unwrap();
                assert_eq!(seen, *taken.dump, "{context}: {id}");
                store.delete_dataset(clone).unwrap();
            }
        }
        assert!(ids.iter().all(|id| self.datasets.contains_key(id)), "{context}: {ids:?}");
        assert!(snapshots.iter().all(|id| self.snapshots.contains_key(id)), "{context}");
    }
}

/// Whether something made and deleted in these steps must (not) be there after a crash in a step;
/// `None`: it may.
fn expected(created: usize, deleted: Option<usize>, crashed: usize) -> Option<bool> {
    match deleted {
        _ if created > crashed => Some(false),
        _ if created == crashed => None,
        Some(deleted) if deleted < crashed => Some(false),
        Some(deleted) if deleted == crashed => None,
        _ => Some(true),
    }
}

impl History {
    /// Index of the last moment that was durable before a crash in step `crashed`.
    fn first_kept(&self, crashed: usize) -> usize {
        let durable = self.durable.iter().rev().find(|step| **step < crashed);
        let durable = durable.copied().unwrap_or(0);
        let kept = self.moments.iter().rposition(|moment| moment.step <= durable);
        kept.unwrap_or(0)
    }

    fn check(&self, store: &Store, id: DatasetId, crashed: usize, context: &str) {
        let dataset = store.dataset(id).unwrap_or_else(|error| panic!("{context}: {id}: {error}"));
        let seen = dump(&dataset).unwrap_or_else(|error| panic!("{context}: {id}: {error}"));
        let first = self.first_kept(crashed);
        let allowed = self.moments[first..].iter().take_while(|moment| moment.step <= crashed);
        let allowed: Vec<&Moment> = allowed.collect();
        if allowed.iter().any(|moment| *moment.dump == seen) {
            return;
        }
        let other = self.moments.iter().find(|moment| *moment.dump == seen);
        panic!(
            "{context}: {id} is not a prefix: durable up to step {}, crashed in {crashed}, it is {}",
            self.moments[first].step,
            other.map_or("no state of its history".into(), |other| format!("at {}", other.step)),
        );
    }
}

/// How a state differs from the most alike of a history.
fn differences(moments: &[Moment], seen: &Dump) -> String {
    let paths = |dump: &Dump| -> Vec<String> {
        let all = dump.keys().chain(seen.keys());
        let mut differ: Vec<String> = all
            .filter(|path| dump.get(*path) != seen.get(*path))
            .map(|path| {
                let name = String::from_utf8_lossy(path);
                format!("{name}: {:?} not {:?}", seen.get(path), dump.get(path))
            })
            .collect();
        differ.dedup();
        differ
    };
    let all =
        moments.iter().enumerate().map(|(index, moment)| (paths(&moment.dump), index, moment));
    let (paths, index, moment) = all.min_by_key(|(paths, _, _)| paths.len()).unwrap();
    format!("nearest is {index} of {} (step {}): {paths:#?}", moments.len(), moment.step)
}

fn choose_op(dice: &mut Dice, model: &Model) -> Op {
    let pick = |dice: &mut Dice, wanted: &dyn Fn(u64) -> bool| {
        let all: Vec<u64> = model.nodes.keys().copied().filter(|ino| wanted(*ino)).collect();
        // Now and then one that is not there.
        let sides = all.len() as u64 + u64::from(dice.chance(20));
        let index = dice.roll(sides) as usize;
        all.get(index).copied().unwrap_or(999_999)
    };
    let dir = |dice: &mut Dice| pick(dice, &|ino| model.is_dir(ino));
    let file = |dice: &mut Dice| pick(dice, &|ino| model.is_file(ino));
    let any = |dice: &mut Dice| pick(dice, &|_| true);
    let name = |dice: &mut Dice| format!("n{}", dice.roll(12)).into_bytes();
    let offset = |dice: &mut Dice| match dice.roll(3) {
        0 => dice.roll(12) * 8192,
        1 => dice.roll(100_000),
        _ => dice.roll(2) * 8192 * 150 + dice.roll(3) * 4096,
    };
    let len = |dice: &mut Dice| match dice.roll(4) {
        0 => 1 + dice.roll(100),
        1 => 8192,
        2 => 8192 * (1 + dice.roll(4)),
        _ => 1 + dice.roll(30_000),
    };
    match dice.roll(40) {
        0..=6 => {
            let kind = match dice.roll(8) {
                0..=1 => NewKind::Directory,
                2 => NewKind::Symlink(b"there".to_vec()),
                3 => NewKind::Fifo,
                _ => NewKind::File,
            };
            Op::Create { parent: dir(dice), name: name(dice), kind }
        }
        7..=17 => {
            let (len, offset) = (len(dice), offset(dice));
            let data =
                if dice.chance(8) { vec![0; len as usize] } else { dice.bytes(len as usize) };
            Op::Write { ino: file(dice), offset, data }
        }
        18 => {
            let len = len(dice) as usize;
            Op::Append { ino: file(dice), data: dice.bytes(len) }
        }
        19..=20 => Op::Resize { ino: file(dice), size: offset(dice) },
        21..=22 => {
            use AllocateMode::*;
            let modes = [Extend, KeepSize, PunchHole, ZeroRange, ZeroRangeKeepSize];
            let mode = modes[dice.roll(5) as usize];
            Op::Allocate { ino: file(dice), offset: offset(dice), len: len(dice), mode }
        }
        23..=24 => Op::Link { ino: any(dice), parent: dir(dice), name: name(dice) },
        25..=27 => Op::Unlink { parent: dir(dice), name: name(dice) },
        28 => Op::Rmdir { parent: dir(dice), name: name(dice) },
        29..=32 => {
            let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
            let mode = modes[dice.roll(4).saturating_sub(1) as usize];
            let (parent, new_parent) = (dir(dice), dir(dice));
            Op::Rename { parent, name: name(dice), new_parent, new_name: name(dice), mode }
        }
        33 => Op::SetMode {
            ino: any(dice),
            mode: dice.roll(0o10000) as u32,
            mtime_s: dice.roll(1 << 33),
        },
        34 => {
            let len = [10, 600, 9000][dice.roll(3) as usize];
            let name = format!("user.{}", dice.roll(3)).into_bytes();
            Op::SetXattr { ino: any(dice), name, value: dice.bytes(len) }
        }
        35 => {
            let name = format!("user.{}", dice.roll(3)).into_bytes();
            Op::RemoveXattr { ino: any(dice), name }
        }
        36..=37 => {
            let (from, to) = (file(dice), file(dice));
            let (offset, mut to_offset) = (dice.roll(6) * 8192, dice.roll(6) * 8192);
            let mut len = len(dice) * 2;
            let left = model.size(from).saturating_sub(offset);
            if dice.chance(2) && left >= 8192 {
                // Whole blocks are shared in one operation; with a rest it would be two.
                len = len.min(left).next_multiple_of(8192).min(left / 8192 * 8192);
            } else {
                to_offset += 1 + dice.roll(8000);
            }
            Op::Copy { from, offset, to, to_offset, len }
        }
        38 => Op::Open { ino: any(dice) },
        _ => {
            let open: Vec<u64> = model.open.keys().copied().collect();
            match open.get(dice.roll(open.len() as u64) as usize) {
                Some(ino) => Op::Close { ino: *ino },
                None => Op::Open { ino: any(dice) },
            }
        }
    }
}

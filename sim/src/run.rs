//! Random runs: steps on a store whose outcome is known, and what a crash may leave of them.

use crate::Dice;
use crate::choice::choose_op;
use crate::model::{Dump, Model, Partial, check, dump};
use crate::small_options;
use crate::world::data_key;
use crate::world::{Step, World};
use offshoot_dataset::{Dataset, DatasetId, Error, SnapshotId, Store, StoreOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A state of a dataset.
#[derive(Clone)]
pub struct Moment {
    /// The step after which it was so.
    pub step: usize,
    pub dump: Arc<Dump>,
    pub model: Model,
    /// The step that reopened the store and found an earlier moment.
    pub lost: Option<usize>,
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
    weather: Weather,
    dice: Dice,
}

/// Files whose flushes may fail.
const FLUSHED: &[&str] = &["segments/", "table/", "root.", "log/"];

/// What the disk does at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    Fine,
    Full,
    FailingFlushes,
    RefusedFlushes,
}

impl Run {
    /// A run not begun.
    pub fn new(seed: u64) -> Run {
        let mut options = small_options();
        let mut dice = Dice::new(seed);
        // Sometimes so little log that commits take its place.
        options.log_file_size = dice.pick(&[64 << 10, 128 << 10, 512 << 10]);
        options.log_files_max = dice.pick(&[3, 5]);
        options.pool.checkpoint_log_min = dice.pick(&[2 << 10, 16 << 10]);
        options.pool.segment_size = dice.pick(&[256 << 10, 1 << 20]);
        options.pool.data_key = data_key(seed);
        options.pool.spare = dice.pick(&[Some(0), Some(64 << 10), Some(1 << 20)]);
        Run {
            steps: Vec::new(),
            datasets: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            options,
            weather: Weather::Fine,
            dice,
        }
    }

    /// Takes `count` random steps; every state is checked against the model.
    pub fn go(&mut self, world: &mut World, count: usize) {
        for _ in 0..count {
            let step = self.choose();
            let outcome = world.take(&step);
            match step {
                Step::Fill(_) => self.weather = Weather::Full,
                Step::FailFlushes(_) => self.weather = Weather::FailingFlushes,
                Step::RefuseFlushes(_) => self.weather = Weather::RefusedFlushes,
                Step::Room => self.weather = Weather::Fine,
                Step::Reopen { .. }
                    if matches!(
                        self.weather,
                        Weather::FailingFlushes | Weather::RefusedFlushes
                    ) =>
                {
                    self.weather = Weather::Fine;
                }
                _ => {}
            }
            let unread = match &step {
                Step::OpUnread(id, op) => Some((*id, op.clone(), outcome.is_ok())),
                _ => None,
            };
            self.steps.push(step);
            self.note(world.store(), outcome);
            if let Some((id, op, done)) = unread {
                // Whether it needs a read depends on what was looked at before: not so in a repetition.
                let last = self.steps.last_mut().expect("a step was taken");
                *last = if done { Step::Op(id, op) } else { Step::ClearCache };
            }
        }
    }

    fn alive(&self) -> Vec<DatasetId> {
        let alive = self.datasets.iter().filter(|(_, history)| history.deleted.is_none());
        alive.map(|(id, _)| *id).collect()
    }

    fn choose(&mut self) -> Step {
        let alive = self.alive();
        if alive.is_empty() {
            return Step::CreateDataset;
        }
        let id = self.dice.pick(&alive);
        let odd = match self.weather {
            Weather::Fine => self.choose_weather(),
            Weather::Full if self.dice.chance(12) => Some(Step::Room),
            Weather::FailingFlushes if self.dice.chance(8) => Some(Step::Reopen { close: false }),
            Weather::RefusedFlushes if self.dice.chance(8) => Some(match self.dice.roll(4) {
                0 => Step::Reopen { close: false },
                _ => Step::Room,
            }),
            // The fate of a snapshot or dataset is unknown if its commit fails: none then.
            Weather::FailingFlushes | Weather::RefusedFlushes => Some(match self.dice.roll(8) {
                0 => Step::Commit(id),
                1 | 2 => Step::Sync(id),
                _ => self.choose_op(id),
            }),
            Weather::Full => None,
        };
        odd.unwrap_or_else(|| self.choose_step(id, alive.len()))
    }

    /// Sometimes something about the disk or the engine changes.
    fn choose_weather(&mut self) -> Option<Step> {
        match self.dice.roll(120) {
            0 => Some(Step::Fill(self.dice.pick(&[0, 16 << 10, 512 << 10]))),
            1 => Some(Step::FailFlushes(self.dice.pick(FLUSHED))),
            7 => Some(Step::RefuseFlushes(self.dice.pick(FLUSHED))),
            2 | 3 => Some(Step::Reopen { close: self.dice.chance(2) }),
            4 => Some(Step::Scrub),
            5 | 6 => Some(Step::ClearCache),
            _ => None,
        }
    }

    fn choose_step(&mut self, id: DatasetId, alive: usize) -> Step {
        let there = self.snapshots.iter().filter(|(_, taken)| taken.deleted.is_none());
        let snapshots: Vec<SnapshotId> = there.map(|(id, _)| *id).collect();
        match self.dice.roll(60) {
            0 if alive < 4 => Step::CreateDataset,
            1 | 2 if snapshots.len() < 6 => Step::Snapshot(id),
            3 | 4 if !snapshots.is_empty() && alive < 5 => Step::Clone(self.dice.pick(&snapshots)),
            5 if alive > 1 => Step::DeleteDataset(id),
            6 if !snapshots.is_empty() => Step::DeleteSnapshot(self.dice.pick(&snapshots)),
            7..=9 => Step::Commit(id),
            10..=15 => Step::Sync(id),
            16 => Step::Label(id),
            17..=19 => Step::Reclaim,
            _ => self.choose_op(id),
        }
    }

    fn choose_op(&mut self, id: DatasetId) -> Step {
        let op = choose_op(&mut self.dice, &self.datasets[&id].last().model);
        if self.weather == Weather::Fine && self.dice.chance(40) {
            return Step::OpUnread(id, op);
        }
        Step::Op(id, op)
    }

    /// Whether a step may be refused by the disk as it is.
    fn may_refuse(&self, step: &Step, error: &Error) -> bool {
        match error.errno() {
            28 => matches!(self.weather, Weather::Full | Weather::RefusedFlushes),
            5 => self.weather == Weather::FailingFlushes || matches!(step, Step::OpUnread(..)),
            _ => false,
        }
    }

    /// Notes what the last step did.
    fn note(&mut self, store: &Store, outcome: Result<Option<u64>, Error>) {
        let index = self.steps.len() - 1;
        let step = self.steps[index].clone();
        let context = format!("step {index} {step:?}");
        let see = |id: DatasetId| Arc::new(dump(&store.dataset(id).unwrap()).unwrap());
        match (&step, outcome) {
            // Refused by the disk: nothing may have changed.
            (_, Err(error)) if self.may_refuse(&step, &error) => {
                for id in self.alive() {
                    let seen = see(id);
                    let last = self.datasets[&id].last();
                    assert!(
                        *seen == *last.dump,
                        "{context}: {error} changed {id}: {}",
                        differences(std::slice::from_ref(last), &seen)
                    );
                }
            }
            (Step::Op(id, op) | Step::OpUnread(id, op), outcome) => {
                let history = self.datasets.get_mut(id).unwrap();
                let mut model = history.last().model.clone();
                let new = outcome.as_ref().ok().copied().flatten();
                let expected = model.apply(op, new);
                assert_eq!(outcome.is_ok(), expected.is_ok(), "{context}: {outcome:?}");
                let dump = see(*id);
                if expected.is_ok() {
                    check(&dump, &model, &context);
                    history.push(index, dump, model);
                }
            }
            (Step::CreateDataset, Ok(Some(id))) => {
                let id = DatasetId(id);
                self.add_dataset(id, index, see(id), Model::new());
            }
            (Step::Clone(snapshot), Ok(Some(id))) => {
                let id = DatasetId(id);
                let taken = &self.snapshots[snapshot];
                let (dump, model) = (see(id), taken.model.clone().reopened());
                assert_eq!(*dump, *taken.dump, "{context}");
                self.add_dataset(id, index, dump, model);
            }
            (Step::Snapshot(id), Ok(Some(snapshot))) => {
                let history = self.datasets.get_mut(id).unwrap();
                history.durable.push(index);
                let moment = history.last();
                let (dump, model) = (moment.dump.clone(), moment.model.clone());
                let taken = Taken { created: index, deleted: None, dump, model };
                self.snapshots.insert(SnapshotId(snapshot), taken);
            }
            (Step::Sync(id) | Step::Commit(id), Ok(_)) => {
                let history = self.datasets.get_mut(id).unwrap();
                history.durable.push(index);
                assert_eq!(*see(*id), *history.last().dump, "{context}");
            }
            (Step::DeleteDataset(id), Ok(_)) => {
                self.datasets.get_mut(id).unwrap().deleted = Some(index);
                assert!(store.dataset(*id).is_err());
            }
            (Step::DeleteSnapshot(id), Ok(_)) => {
                self.snapshots.get_mut(id).unwrap().deleted = Some(index);
            }
            (Step::Reopen { .. }, Ok(clean)) => self.reopened(store, clean == Some(1), &context),
            (Step::Label(_) | Step::Reclaim | Step::Scrub | Step::ClearCache, Ok(_)) => {}
            (Step::Fill(_) | Step::Room | Step::FailFlushes(_) | Step::RefuseFlushes(_), Ok(_)) => {
            }
            (_, outcome) => panic!("{context}: {outcome:?}"),
        }
    }

    fn add_dataset(&mut self, id: DatasetId, index: usize, dump: Arc<Dump>, model: Model) {
        let mut history =
            History { created: index, deleted: None, moments: Vec::new(), durable: vec![index] };
        history.push(index, dump, model);
        assert!(self.datasets.insert(id, history).is_none(), "a number was given twice");
    }

    /// After the store was opened again without a power loss: every dataset is at some state since
    /// it was last durable, at the last one if `closed`; continues from there.
    fn reopened(&mut self, store: &Store, closed: bool, context: &str) {
        let index = self.steps.len() - 1;
        for id in self.alive() {
            let history = self.datasets.get_mut(&id).unwrap();
            let seen = dump(&store.dataset(id).unwrap()).unwrap();
            let first = if closed { history.moments.len() - 1 } else { history.first_kept(index) };
            let found = history.moments[first..].iter().rposition(|moment| *moment.dump == seen);
            let Some(found) = found else {
                let moments = &history.moments;
                panic!(
                    "{context}: {id} is no state since {first}: {}",
                    differences(moments, &seen)
                );
            };
            let found = first + found;
            for moment in &mut history.moments[found + 1..] {
                moment.lost.get_or_insert(index);
            }
            let model = history.moments[found].model.clone().reopened();
            history.push(index, Arc::new(seen), model);
            history.durable.push(index);
        }
    }

    /// Checks a store that was recovered from a crash in step `crashed` (`steps.len()`: after the
    /// last one).
    pub fn check_recovered(&self, store: &Store, crashed: usize, context: &str) {
        let ids: Vec<DatasetId> = store.datasets().iter().map(|info| info.id).collect();
        let snapshots: Vec<SnapshotId> = store.snapshots().iter().map(|info| info.id).collect();
        for (id, history) in &self.datasets {
            let there = ids.contains(id);
            check_presence(
                there,
                (history.created, history.deleted),
                crashed,
                &format!("{context}: {id}"),
            );
            if there {
                history.check(store, *id, crashed, context);
            }
        }
        for (id, taken) in &self.snapshots {
            let there = snapshots.contains(id);
            check_presence(
                there,
                (taken.created, taken.deleted),
                crashed,
                &format!("{context}: {id}"),
            );
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

/// Something made and deleted in these steps exists after a crash in a step, or does not, as it must.
pub fn check_presence(
    there: bool,
    (created, deleted): (usize, Option<usize>),
    crashed: usize,
    what: &str,
) {
    let expected = match deleted {
        _ if created > crashed => Some(false),
        // The crash was in the middle of it.
        _ if created == crashed => None,
        Some(deleted) if deleted < crashed => Some(false),
        Some(deleted) if deleted == crashed => None,
        _ => Some(true),
    };
    assert_eq!(there, expected.unwrap_or(there), "{what}");
}

impl History {
    fn last(&self) -> &Moment {
        self.moments.last().expect("a history begins with the dataset's creation")
    }

    fn push(&mut self, step: usize, dump: Arc<Dump>, model: Model) {
        self.moments.push(Moment { step, dump, model, lost: None });
    }

    /// Index of the last moment that was durable before a crash in step `crashed`.
    fn first_kept(&self, crashed: usize) -> usize {
        let durable = self.durable.iter().rev().find(|step| **step < crashed);
        let durable = durable.copied().unwrap_or(0);
        let kept = self.moments.iter().rposition(|moment| moment.step <= durable);
        kept.unwrap_or(0)
    }

    /// States from one on that may be found after a crash in step `crashed`.
    fn moments_from(&self, first: usize, crashed: usize) -> impl Iterator<Item = &Moment> {
        self.moments[first..].iter().filter(move |moment| {
            moment.step <= crashed && moment.lost.is_none_or(|lost| lost >= crashed)
        })
    }

    /// Everything that can be read of a damaged store is right. Where the store says that
    /// acknowledged operations are lost, it is some earlier state.
    pub fn check_damaged(
        &self,
        dataset: &Dataset,
        lost: bool,
        crashed: usize,
        context: &str,
    ) -> bool {
        let seen = Partial::of(dataset, context);
        let first = if lost { 0 } else { self.first_kept(crashed) };
        if self.moments_from(first, crashed).any(|moment| seen.fits(&moment.dump)) {
            return seen.unreadable.is_empty();
        }
        let old = self.moments.iter().find(|moment| seen.fits(&moment.dump));
        panic!(
            "{context}: {} is wrong (lost: {lost}; cannot be read: {}): durable up to step {}, crashed in \
             {crashed}, it is {}",
            dataset.id(),
            seen.unreadable.len(),
            self.moments[first].step,
            old.map_or_else(
                || format!("no state of its history: {}", differences(&self.moments, &seen.seen)),
                |old| format!("at {}", old.step),
            ),
        );
    }

    fn check(&self, store: &Store, id: DatasetId, crashed: usize, context: &str) {
        let dataset = store.dataset(id).unwrap_or_else(|error| panic!("{context}: {id}: {error}"));
        let seen = dump(&dataset).unwrap_or_else(|error| panic!("{context}: {id}: {error}"));
        let first = self.first_kept(crashed);
        if self.moments_from(first, crashed).any(|moment| *moment.dump == seen) {
            return;
        }
        let other = self.moments.iter().find(|moment| *moment.dump == seen);
        panic!(
            "{context}: {id} is not a prefix: durable up to step {}, crashed in {crashed}, it is {}",
            self.moments[first].step,
            other.map_or_else(
                || format!("no state of its history: {}", differences(&self.moments, &seen)),
                |other| format!("at {}", other.step),
            ),
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

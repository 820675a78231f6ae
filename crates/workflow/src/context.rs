//! A step's view of its job.

use crate::key::Key;
use crate::live::{Begun, Live, cancelled};
use crate::lock::Lock;
use crate::table::{Ground, Table};
use offshoot_os::Clock;
use offshoot_types::{Failure, JobId};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;

/// Between two looks at whether others still share an object.
const SHARED_PAUSE: Duration = Duration::from_millis(200);

/// A step's view of its job and of the application.
pub struct StepContext<C> {
    pub(crate) ground: Arc<Ground>,
    pub(crate) app: Arc<C>,
    pub(crate) live: Arc<Live>,
    pub(crate) undoing: bool,
    pub(crate) part: Option<Part>,
}

/// One of several objects that a job does the same to.
pub(crate) struct Part {
    /// Before the keys of what its steps store.
    prefix: String,
    input: Value,
}

impl<C> StepContext<C> {
    /// The application.
    pub fn app(&self) -> &Arc<C> {
        &self.app
    }

    /// The clock of the runner.
    pub fn clock(&self) -> &dyn Clock {
        &*self.ground.clock
    }

    /// The job.
    pub fn job_id(&self) -> JobId {
        self.live.id
    }

    /// What the job was asked to do.
    ///
    /// # Errors
    /// [`Internal`](offshoot_types::ErrorKind::Internal) if the stored input does not have this shape.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let input = match &self.part {
            Some(part) => part.input.clone(),
            None => self.live.job.lock().input.clone(),
        };
        self.decode("its input", input)
    }

    /// The view of one of several objects that the job does the same to: with an input of its own, and apart from what
    /// steps store for the others. So the steps of a workflow for one object do in a workflow for several: where a step
    /// does the same to each, it is idempotent if they are.
    ///
    /// # Errors
    /// [`Internal`](offshoot_types::ErrorKind::Internal) for an input that is not to be stored.
    pub fn part(&self, name: &str, input: &impl Serialize) -> Result<StepContext<C>, Failure> {
        let input = serde_json::to_value(input)
            .map_err(|error| Failure::internal(format!("{}: {error}", self.job_id())))?;
        Ok(StepContext {
            ground: self.ground.clone(),
            app: self.app.clone(),
            live: self.live.clone(),
            undoing: self.undoing,
            part: Some(Part { prefix: self.place(&format!("{name}/")), input }),
        })
    }

    /// Where the job stores what has this key.
    fn place(&self, key: &str) -> String {
        let prefix = self.part.as_ref().map_or("", |part| &part.prefix);
        format!("{prefix}{key}")
    }

    /// What a step stored under `key`, if anything.
    ///
    /// # Errors
    /// [`Internal`](offshoot_types::ErrorKind::Internal) if the stored value does not have this shape.
    pub fn get<T: DeserializeOwned>(&self, key: Key<T>) -> Result<Option<T>, Failure> {
        let value = self.live.job.lock().bag.get(&self.place(key.name())).cloned();
        value.map(|value| self.decode(key.name(), value)).transpose()
    }

    /// What an earlier step must have stored under `key`.
    ///
    /// # Errors
    /// [`Internal`](offshoot_types::ErrorKind::Internal) if there is nothing of this shape.
    pub fn need<T: DeserializeOwned>(&self, key: Key<T>) -> Result<T, Failure> {
        self.get(key)?.ok_or_else(|| {
            Failure::internal(format!("{}: no step has noted '{key}'", self.job_id()))
        })
    }

    /// Stores a value; it is durable when this returns. No passwords: they belong in the catalog's
    /// secrets.
    ///
    /// # Errors
    /// The catalog's. The value is still kept in memory, so that an undo finds it.
    pub fn set<T: Serialize>(&self, key: Key<T>, value: &T) -> Result<(), Failure> {
        let value = serde_json::to_value(value)
            .map_err(|error| Failure::internal(format!("{}: '{key}': {error}", self.job_id())))?;
        let mut job = self.live.job.lock();
        job.bag.insert(self.place(key.name()), value);
        Ok(self.ground.catalog.save_job(&job)?)
    }

    /// Reports the job's progress (`total` 0: unknown). In memory only, so call it as often as you
    /// like; it is stored with the next step.
    pub fn progress(&self, done: u64, total: u64, unit: &str) {
        let mut job = self.live.job.lock();
        (job.progress.done, job.progress.total) = (done, total);
        if job.progress.unit != unit {
            job.progress.unit = unit.to_owned();
        }
    }

    /// Tells who asked for the job what they should know although nothing failed; durable when this
    /// returns. A step that is repeated says it once.
    ///
    /// # Errors
    /// The catalog's.
    pub fn note(&self, text: impl Into<String>) -> Result<(), Failure> {
        let (text, mut job) = (text.into(), self.live.job.lock());
        if !job.notes.contains(&text) {
            job.notes.push(text);
        }
        Ok(self.ground.catalog.save_job(&job)?)
    }

    /// Whether the engine began the job on its own: nobody waits for it.
    pub fn is_of_engine(&self) -> bool {
        self.live.job.lock().of_engine
    }

    /// Whether the job should stop. Never while it is being undone, nor past the point of no return.
    pub fn is_cancelled(&self) -> bool {
        !self.undoing && self.live.cancel.load(Ordering::Relaxed)
    }

    /// An error if the job should stop; long steps check often.
    ///
    /// # Errors
    /// [`Cancelled`](offshoot_types::ErrorKind::Cancelled).
    pub fn check_cancelled(&self) -> Result<(), Failure> {
        if self.is_cancelled() { Err(cancelled(self.job_id())) } else { Ok(()) }
    }

    /// Waits until nobody else shares an object that the job shares, and has it alone from there on. Others begin to
    /// use it meanwhile; after `polite` they no longer do, so that the wait ends. Only one job at a time may ask for
    /// this of an object: another exclusive claim of its kind sees to it.
    ///
    /// # Errors
    /// [`Cancelled`](offshoot_types::ErrorKind::Cancelled).
    pub fn have_alone(&self, key: impl fmt::Display, polite: Duration) -> Result<(), Failure> {
        let alone = [Lock::exclusive(key)];
        let clock = &self.ground.clock;
        let (until, mut insists) = (clock.elapsed() + polite, false);
        let mut table = self.ground.table.lock();
        loop {
            let shared = table.locks.conflict(&alone, |job| !self.waits_for(&table, job)).is_some();
            if !insists && (!shared || clock.elapsed() >= until) {
                table.locks.hold(self.live.id, &alone);
                insists = true;
            }
            if !shared {
                return Ok(());
            }
            self.check_cancelled()?;
            self.ground.left.wait_for(&mut table, SHARED_PAUSE);
        }
    }

    /// Whether another job can end while this one waits: of those that an earlier process left, one runs after the other.
    fn waits_for(&self, table: &Table, other: JobId) -> bool {
        let in_turn = |live: &Live| live.begun == Begun::BeforeInTurn;
        let behind = in_turn(&self.live) && table.live.get(&other).is_some_and(|it| in_turn(it));
        other != self.live.id && !behind
    }

    fn decode<T: DeserializeOwned>(&self, what: &str, value: Value) -> Result<T, Failure> {
        serde_json::from_value(value).map_err(|error| {
            Failure::internal(format!("{}: {what} is not understood: {error}", self.job_id()))
        })
    }
}

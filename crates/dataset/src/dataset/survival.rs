//! Outliving the engine's process: what is acknowledged is in a [`VolatileLog`] too, and inodes that
//! programs have open stay although the engine that opened them is gone.
//!
//! Without it, acknowledged writes that nobody synced live in this process's memory alone. That is
//! enough as long as the mounts die with the process: then nobody is left who relies on them.

use super::Dataset;
use crate::{Error, Result};
use offshoot_intent_log::VolatileLog;
use offshoot_intent_log::volatile::CAPACITY;
use offshoot_types::Ino;
use std::sync::Arc;
use std::time::Duration;

/// A dataset is committed when its log holds this much.
const DUE: u64 = CAPACITY / 2;
/// What operations already let in may still append, in bytes: each has at most 1 MiB.
const HEADROOM: u64 = 64 << 20;

impl Dataset {
    /// From now on every operation is in the volatile log before it is acknowledged. It is complete
    /// from the next commit on.
    pub fn survive(&self, volatile: Arc<VolatileLog>) {
        *self.volatile.write() = Some(Arc::clone(&volatile));
        self.queue.lock().attach(volatile);
    }

    /// Nobody will take over any more: ends what [`Dataset::survive`] began.
    pub fn survive_no_longer(&self) {
        self.queue.lock().detach();
        *self.volatile.write() = None;
        self.let_go();
    }

    /// The volatile log, where there is one.
    pub fn volatile(&self) -> Option<Arc<VolatileLog>> {
        self.volatile.read().clone()
    }

    pub(super) fn trim_volatile(&self, applied: u64) {
        if let Some(volatile) = self.volatile() {
            volatile.trim(applied);
        }
    }

    /// Whether a commit should make room in the volatile log.
    pub(crate) fn survival_is_due(&self) -> bool {
        self.volatile().is_some_and(|volatile| volatile.used() > DUE)
    }

    /// Back-pressure: an operation that does not fit would not survive.
    pub(super) fn hold_back_for_survival(&self) {
        let Some(volatile) = self.volatile() else { return };
        let mut waits = 0;
        while volatile.used() > CAPACITY - HEADROOM && waits < 100 {
            // A failure shows at the next sync; until then no takeover is possible.
            if self.commit().is_err() {
                self.ground.progress.wait(Duration::from_millis(10));
            }
            waits += 1;
        }
    }

    /// Applies what an earlier engine's volatile log holds beyond what is applied already.
    ///
    /// # Errors
    /// `Corrupt` when something is missing or damaged: then programs rely on what is lost, and must
    /// not continue.
    pub(crate) fn replay_volatile(&self, volatile: &VolatileLog) -> Result<()> {
        volatile.replay(|number, operation| {
            let last = self.last_operation();
            match number {
                number if number <= last => Ok(()),
                number if number == last + 1 => self.replay(operation),
                _ => Err(Error::Corrupt(format!(
                    "operations {} to {} are missing",
                    last + 1,
                    number - 1
                ))),
            }
        })?;
        let (last, wanted) = (self.last_operation(), volatile.last_number());
        if last < wanted {
            return Err(Error::Corrupt(format!("operations {} to {wanted} are missing", last + 1)));
        }
        let open = volatile.open_files();
        let open = open.ok_or_else(|| Error::Corrupt("open files were not all counted".into()))?;
        for file in open {
            self.hold(Ino(file.ino))?;
        }
        Ok(())
    }

    /// Keeps an inode until [`Dataset::let_go`].
    fn hold(&self, ino: Ino) -> Result<()> {
        match self.open(ino) {
            // The request that opens it may be unanswered, and the inode gone since.
            Err(Error::NotFound | Error::Stale) => Ok(()),
            Ok(()) => {
                self.held.lock().push(ino);
                Ok(())
            }
            other => other,
        }
    }

    /// From here on the new counts keep inodes of an earlier engine's users, or nothing does.
    pub fn let_go(&self) {
        for ino in std::mem::take(&mut *self.held.lock()) {
            self.close(ino);
        }
    }

    /// Whether a durable root holds every operation.
    pub(crate) fn is_committed(&self) -> bool {
        let queue = self.queue.lock();
        queue.applied >= queue.last
    }
}

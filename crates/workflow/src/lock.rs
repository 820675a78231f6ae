//! Which job holds which object.

use offshoot_types::JobId;
use std::{collections::HashMap, fmt};

/// A claim on an object. The text form (`vdb-3`, `shared:dsource-1`) is stored with the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The object's id, or a name that is about to be taken.
    pub key: String,
    /// Nobody else may have it; otherwise others may share it.
    pub exclusive: bool,
}

const SHARED: &str = "shared:";

impl Lock {
    /// For a job that changes the object.
    pub fn exclusive(key: impl fmt::Display) -> Self {
        Lock { key: key.to_string(), exclusive: true }
    }

    /// For a job that needs the object to stay, as a provision needs its parent.
    pub fn shared(key: impl fmt::Display) -> Self {
        Lock { key: key.to_string(), exclusive: false }
    }

    /// Reads the text form.
    pub fn from_text(text: &str) -> Self {
        match text.strip_prefix(SHARED) {
            Some(key) => Lock::shared(key),
            None => Lock::exclusive(text),
        }
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.exclusive { "" } else { SHARED };
        write!(f, "{prefix}{}", self.key)
    }
}

/// The locks held.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    held: HashMap<String, Vec<(JobId, bool)>>,
}

impl LockTable {
    /// The first job in the way of `locks`, not counting those that `ignore` names.
    pub fn conflict(&self, locks: &[Lock], ignore: impl Fn(JobId) -> bool) -> Option<JobId> {
        locks.iter().find_map(|lock| {
            let holders = self.held.get(&lock.key)?;
            let in_the_way =
                |(job, exclusive): &&(JobId, bool)| (lock.exclusive || *exclusive) && !ignore(*job);
            holders.iter().find(in_the_way).map(|(job, _)| *job)
        })
    }

    /// Gives `locks` to a job, even if others hold them.
    pub fn hold(&mut self, job: JobId, locks: &[Lock]) {
        for lock in locks {
            self.held.entry(lock.key.clone()).or_default().push((job, lock.exclusive));
        }
    }

    /// Takes all locks from a job.
    pub fn release(&mut self, job: JobId) {
        self.held.retain(|_, holders| {
            holders.retain(|(holder, _)| *holder != job);
            !holders.is_empty()
        });
    }
}

#[cfg(test)]
mod tests;

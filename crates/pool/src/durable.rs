//! The last durable commit, and whether there may be another.

use crate::journal::Journal;
use crate::{Error, Result};
use offshoot_types::{BlockHash, Txg};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest a root's extra bytes may be.
pub const EXTRA_LEN_MAX: usize = offshoot_format::root::EXTRA_LEN_MAX;

/// What the last durable commit said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Counts commits, including those of background work; 0 in a new pool.
    pub txg: Txg,
    /// The root node; [`BlockHash::ZERO`] in a new pool.
    pub hash: BlockHash,
    /// Bytes given to [`Pool::commit`]; opaque to the pool.
    pub extra: Vec<u8>,
}

/// What is durable.
pub(crate) struct Durable {
    /// The commit lock: one commit at a time.
    journal: Mutex<Journal>,
    /// What readers see of it, without that lock.
    root: RwLock<Root>,
    /// Why the pool refuses writes.
    failed: RwLock<Option<String>>,
    /// Checkpoints written since the pool was opened.
    checkpoints: AtomicU64,
}

impl Durable {
    pub(crate) fn new(journal: Journal) -> Durable {
        let of = &journal.root;
        let root = Root { txg: of.txg, hash: of.hash, extra: of.extra.clone() };
        Durable {
            root: RwLock::new(root),
            journal: Mutex::new(journal),
            failed: RwLock::new(None),
            checkpoints: AtomicU64::new(0),
        }
    }

    pub(crate) fn root(&self) -> Root {
        self.root.read().clone()
    }

    pub(crate) fn txg(&self) -> Txg {
        self.root.read().txg
    }

    /// Shows readers a root that is durable now.
    pub(crate) fn publish(&self, root: Root) {
        *self.root.write() = root;
    }

    /// The same for a root that differs only in its number.
    pub(crate) fn publish_txg(&self, txg: Txg) {
        self.root.write().txg = txg;
    }

    /// Takes the commit lock, to look.
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock()
    }

    /// Takes the commit lock, to write.
    ///
    /// # Errors
    /// `Failed` where writes are refused.
    pub(crate) fn begin(&self) -> Result<MutexGuard<'_, Journal>> {
        let journal = self.journal.lock();
        self.check_usable()?;
        Ok(journal)
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        match &*self.failed.read() {
            Some(why) => Err(Error::Failed(why.clone())),
            None => Ok(()),
        }
    }

    /// Refuses all writes from now on; passes the reason on.
    pub(crate) fn fail(&self, error: Error) -> Error {
        tracing::error!(%error, "the pool refuses writes from now on");
        self.refuse(&error);
        error
    }

    /// Refuses all writes from now on, unless there is a reason already.
    pub(crate) fn refuse(&self, why: &dyn std::fmt::Display) {
        self.failed.write().get_or_insert_with(|| why.to_string());
    }

    pub(crate) fn count_checkpoint(&self) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn checkpoints(&self) -> u64 {
        self.checkpoints.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durable").field("root", &*self.root.read()).finish_non_exhaustive()
    }
}

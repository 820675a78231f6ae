//! Admitting changes: how much may be unwritten, and whether the pool has room.
//!
//! Room is asked for before a change is made, never afterwards: what is admitted will be committed. As
//! the pool fills up, changes are refused in the order of what their users can bear: a file that
//! cannot grow is an error to one statement of a database, content that cannot be replaced is one to
//! its checkpoint, which is tried again; a server without room for its log stops.
//!
//! A database extends a file with zeros, which take no room, and overwrites them with content later.
//! So growth without content is remembered as *promised* until as much has been replaced, and
//! further growth leaves that much room. It is an estimate, bounded by [`PROMISE_MAX`]: rewriting
//! other content redeems it, too.

use super::Dataset;
use crate::inode::Inode;
use crate::quota::Quota;
use crate::share::may_take_more;
use crate::{Error, FileKind, Purpose, Result};
use offshoot_types::{DatasetId, Ino};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The most that is promised to one dataset, in bytes; about what a server keeps in memory.
const PROMISE_MAX: u64 = 128 << 20;
/// What the nodes of one change take beside its own share of leaves, in bytes: the paths to both ends.
const OWN_NODES_MAX: u64 = 64 << 10;
/// Reclaim steps that a writer does before it is refused, as long as they have something to do.
const RECLAIM_STEPS: u32 = 256;

/// How far a dataset may go into the reserve. Not stored: after each opening the caller, who knows
/// what the files are for, sets it again.
#[derive(Default)]
pub(super) struct Importance {
    /// All of it is what a source sends.
    stream: AtomicBool,
    /// Some of its directories are favoured.
    favours: AtomicBool,
}

impl Dataset {
    /// Says that this dataset holds what a source sends: its changes are the last to be refused
    /// ([`Purpose::Stream`]).
    pub fn mark_stream(&self) {
        self.importance.stream.store(true, Ordering::Relaxed);
    }

    /// Whether it was marked so.
    pub fn is_stream(&self) -> bool {
        self.importance.stream.load(Ordering::Relaxed)
    }

    /// Says that a server cannot continue when the files of this directory (not of those below it)
    /// cannot be made or written: room for them may be taken as [`Purpose::Log`].
    pub fn favour_directory(&self, directory: Ino) -> Result<()> {
        let inode = self.inode(directory)?;
        inode.expect_directory()?;
        inode.favoured.store(true, Ordering::Relaxed);
        self.importance.favours.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Favours a file that was found in a favoured directory, or made there.
    pub(super) fn pass_favour(&self, directory: &Inode, ino: Ino) -> Result<()> {
        if self.importance.favours.load(Ordering::Relaxed)
            && directory.favoured.load(Ordering::Relaxed)
        {
            let inode = self.inode(ino)?;
            if inode.kind == FileKind::File {
                inode.favoured.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The purpose of room for a change of this inode; `replaces` says that the file does not grow.
    pub(super) fn purpose_of(&self, inode: &Inode, replaces: bool) -> Purpose {
        if self.is_stream() {
            Purpose::Stream
        } else if inode.favoured.load(Ordering::Relaxed) {
            Purpose::Log
        } else if replaces {
            Purpose::Rewrite
        } else {
            Purpose::Growth
        }
    }

    /// Admits a change of about this many bytes, waiting while too much is unwritten.
    ///
    /// # Errors
    /// `NoSpace` if the pool has no room for it and for what is already unwritten.
    pub(super) fn admit(&self, bytes: u64, purpose: Purpose) -> Result<()> {
        if self.is_replaying() {
            return Ok(());
        }
        self.hold_back();
        self.hold_back_for_survival();
        self.admit_to_quotas(bytes, purpose)?;
        if self.has_room(bytes, purpose) {
            self.request_commit_when_due();
            return Ok(());
        }
        // What is unwritten is counted as if nothing were compressed or stored already: write it,
        // then let the pool give back what is dead, before refusing.
        if self.dirty_bytes() > 0 {
            self.commit()?;
        }
        let pool = &self.ground.pool;
        if !self.has_room(bytes, purpose) && with_own_nodes(bytes) <= pool.available_now(purpose) {
            // Only what others have not written yet is in the way.
            self.ground.write_all();
        }
        for _ in 0..RECLAIM_STEPS {
            if self.has_room(bytes, purpose) {
                return Ok(());
            }
            match pool.reclaim_step() {
                // What gives room back may need some itself: the next step gives more.
                Ok(true) | Err(offshoot_pool::Error::Full { .. }) => {}
                Ok(false) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if self.has_room(bytes, purpose) { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Counts growth towards its quotas. Replaced content and a server's log are never refused by them:
    /// no server could continue.
    fn admit_to_quotas(&self, bytes: u64, purpose: Purpose) -> Result<()> {
        if !matches!(purpose, Purpose::Growth | Purpose::Stream) {
            return Ok(());
        }
        for quota in [&self.quota, &self.common_quota] {
            let quota = quota.read().clone();
            let Some(quota) = quota.filter(|quota| !quota.take(bytes)) else { continue };
            if self.dirty_bytes() > 0 {
                self.commit()?;
            }
            quota.measure(&self.ground)?;
            if !quota.take(bytes) {
                return Err(Error::QuotaUsedUp);
            }
        }
        Ok(())
    }

    pub(crate) fn set_quota(&self, members: &[DatasetId], limit: Option<u64>) {
        let mut quota = self.quota.write();
        match (&*quota, limit) {
            (Some(present), Some(limit)) if present.is(limit, members) => {}
            (_, limit) => *quota = limit.map(|limit| Arc::new(Quota::new(limit, members))),
        }
    }

    pub(crate) fn quota_used_up(&self) -> bool {
        self.quota.read().as_ref().is_some_and(|quota| quota.is_used_up(&self.ground))
    }

    /// What it has together with others is limited by this quota.
    pub(crate) fn set_common_quota(&self, quota: Option<Arc<Quota>>) {
        *self.common_quota.write() = quota;
    }

    pub(crate) fn common_quota(&self) -> Option<Arc<Quota>> {
        self.common_quota.read().clone()
    }

    fn has_room(&self, bytes: u64, purpose: Purpose) -> bool {
        let mut let_in = self.ground.weight.load(Ordering::Relaxed);
        if purpose == Purpose::Growth {
            let_in += self.ground.promised.load(Ordering::Relaxed);
        }
        self.ground.pool.available(purpose) >= with_nodes(let_in) + with_own_nodes(bytes)
    }

    /// Counts what an admitted write promises or redeems.
    pub(super) fn count_promise(&self, purpose: Purpose, data: &[u8]) {
        match purpose {
            Purpose::Growth if data.iter().all(|byte| *byte == 0) => {
                self.promise(data.len() as u64);
            }
            Purpose::Rewrite => self.redeem_promise(data.len() as u64),
            _ => {}
        }
    }

    pub(super) fn promise(&self, bytes: u64) {
        let change = |before: u64| Some((before + bytes).min(PROMISE_MAX.max(before)));
        self.change_promise(change);
    }

    pub(super) fn redeem_promise(&self, bytes: u64) {
        if self.promised.load(Ordering::Relaxed) > 0 {
            self.change_promise(|before| Some(before.saturating_sub(bytes)));
        }
    }

    fn change_promise(&self, change: impl Fn(u64) -> Option<u64>) {
        let before = self.promised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, &change);
        let before = before.unwrap_or_else(|unchanged| unchanged);
        // Wrapping addition of the difference: the sum never goes below zero.
        let difference = change(before).unwrap_or(before).wrapping_sub(before);
        self.ground.promised.fetch_add(difference, Ordering::Relaxed);
    }

    /// Back-pressure: memory for unwritten data is bounded, for each dataset and for all.
    fn hold_back(&self) {
        let bound = self.ground.options.dirty_bound;
        let fits = || {
            let unwritten = self.ground.weight.load(Ordering::Relaxed);
            unwritten <= bound && may_take_more(self.dirty_bytes(), unwritten, bound)
        };
        let mut waits = 0;
        while !fits() && waits < 1000 {
            if self.dirty_bytes() > bound / 8 {
                // Failure shows at the next sync or as a lack of room.
                if self.commit().is_err() {
                    return;
                }
            } else {
                self.ground.request_commit();
                self.ground.progress.wait(Duration::from_millis(10));
            }
            waits += 1;
        }
    }

    fn request_commit_when_due(&self) {
        if self.dirty_bytes() > self.ground.options.dirty_limit || self.survival_is_due() {
            self.ground.request_commit();
        }
    }
}

/// Bytes of data plus half as much for tree nodes, as changes may be scattered.
fn with_nodes(bytes: u64) -> u64 {
    bytes + bytes / 2
}

/// Bytes of one change: they are contiguous and share their nodes.
fn with_own_nodes(bytes: u64) -> u64 {
    bytes + (bytes / 2).min(OWN_NODES_MAX + bytes / 64)
}

//! Received log as the engine sees it.

use super::wal_target::WalTarget;
use crate::archive::Archive;
use crate::commit_index::{Commit as Indexed, CommitIndex};
use crate::lsn::Lsn;
use jiff::Timestamp;
use offshoot_connector::{Commit, DataDir, LogFeed, LogTarget, ReceivedLog};
use offshoot_types::{ErrorKind, Failure, LogPosition};
use std::collections::HashMap;
use std::sync::Arc;

/// The archive of a source with its index of commits.
pub(super) struct WalLog {
    archive: Archive,
    index: CommitIndex,
}

impl WalLog {
    pub(super) fn open(archive: Archive, index: Arc<dyn DataDir>) -> Result<WalLog, Failure> {
        Ok(WalLog { index: CommitIndex::open(archive.clone(), index)?, archive })
    }

    pub(super) fn archive(&self) -> &Archive {
        &self.archive
    }
}

fn told(commit: Option<Indexed>) -> Option<Commit> {
    commit.map(|commit| Commit { end: commit.end.into(), time: commit.time })
}

impl ReceivedLog for WalLog {
    fn update_until(&self, enough: LogPosition) -> Result<LogPosition, Failure> {
        self.index.update_until(enough.into()).map(Into::into)
    }

    fn end(&self) -> LogPosition {
        self.index.end().into()
    }

    fn begin(&self) -> Result<Option<LogPosition>, Failure> {
        let files = self.archive.files()?;
        let first = files.iter().min_by_key(|file| file.number);
        Ok(first.map(|file| self.archive.start(file).into()))
    }

    fn last_not_after(&self, time: Timestamp) -> Result<Option<Commit>, Failure> {
        self.index.last_not_after(time).map(told)
    }

    fn last_at(&self, position: LogPosition) -> Result<Option<Commit>, Failure> {
        self.index.last_at_lsn(position.into()).map(told)
    }

    fn next_after(&self, position: LogPosition) -> Result<Option<Commit>, Failure> {
        self.index.first_from(position.into()).map(told)
    }

    fn last(&self) -> Result<Option<Commit>, Failure> {
        self.index.last().map(told)
    }

    fn count_by_time(
        &self,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure> {
        self.index.count_by_time(from, to, parts)
    }

    fn by_transaction(&self, label: &str) -> Result<Option<Commit>, Failure> {
        let xid = label.parse().map_err(|_| {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("'{label}' is not a transaction id"),
                "give a number from 3 to 4294967295, as pg_current_xact_id() says it",
            )
        })?;
        self.index.by_xid(xid).map(told)
    }

    fn kept_from(&self, position: LogPosition) -> LogPosition {
        let bytes = self.archive.segment_bytes();
        LogPosition(self.archive.number_at(position.into()) * bytes)
    }

    fn holds_before(&self, position: LogPosition) -> Result<bool, Failure> {
        Ok(!self.archive.removable(position.into())?.is_empty())
    }

    fn forget_before(&self, position: LogPosition) -> Result<usize, Failure> {
        let removed = self.archive.remove_before(position.into())?;
        if removed > 0 {
            self.index.remove_before(position.into())?;
        }
        Ok(removed)
    }

    fn feed(&self, staging: Arc<dyn LogTarget>, from: LogPosition) -> Box<dyn LogFeed> {
        let archive = self.archive.clone();
        Box::new(WalFeed { archive, staging, fed: from.into(), growing: HashMap::new() })
    }

    fn place(
        &self,
        target: &dyn LogTarget,
        from: LogPosition,
        to: LogPosition,
    ) -> Result<(), Failure> {
        WalTarget { archive: &self.archive, target }.place(from.into(), to.into())
    }
}

/// Feeds one staging standby.
struct WalFeed {
    archive: Archive,
    staging: Arc<dyn LogTarget>,
    /// Where the next feeding starts.
    fed: Lsn,
    /// Up to where each file that is not whole yet was copied.
    growing: HashMap<String, Lsn>,
}

impl LogFeed for WalFeed {
    fn fed(&self) -> LogPosition {
        self.fed.into()
    }

    fn advance(&mut self, to: LogPosition) -> Result<(), Failure> {
        let to = Lsn::from(to);
        if to <= self.fed {
            return Ok(());
        }
        let target = WalTarget { archive: &self.archive, target: &*self.staging };
        let files = target.files_between(self.fed, to)?;
        if files.iter().any(|file| file.timeline > 1) {
            target.copy_histories()?;
        }
        for file in files {
            let name = self.archive.name(&file);
            let (start, end) = (self.archive.start(&file), self.archive.end(&file));
            let begun = self.growing.get(&name).copied();
            if begun.is_none() && end <= to && !file.partial {
                target.share(&file)?;
                continue;
            }
            target.copy(&file, begun.unwrap_or(start), end.min(to))?;
            if end <= to {
                self.growing.remove(&name);
            } else {
                self.growing.insert(name, end.min(to));
            }
        }
        self.fed = to;
        Ok(())
    }
}

//! Received log as the engine sees it.

use super::wal_target::WalTarget;
use crate::archive::{Archive, WalFile};
use crate::commit_index::{Commit as Indexed, CommitIndex};
use crate::lsn::Lsn;
use jiff::Timestamp;
use offshoot_connector::{Commit, DataDir, LogFeed, LogTarget, ReceivedLog};
use offshoot_domain::FoundCommit;
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

    /// Feeds staging whose log up to a position was [placed](ReceivedLog::place) and then changed: that is left as it is.
    pub(super) fn feed_after(
        &self,
        staging: Arc<dyn LogTarget>,
        placed: Lsn,
    ) -> Result<Box<dyn LogFeed>, Failure> {
        let archive = self.archive.clone();
        let cut = |file: &WalFile| archive.start(file) < placed && placed < archive.end(file);
        let target = WalTarget { archive: &archive, target: &*staging };
        let mut growing = HashMap::new();
        for file in archive.files()?.iter().filter(|file| cut(file)) {
            if target.has(file)? {
                growing.insert(archive.name(file), placed);
            }
        }
        Ok(Box::new(WalFeed { archive, staging, fed: placed, growing }))
    }

    /// Where the log that is kept begins, and the commit whose record ends at a position.
    pub(super) fn commit_before(&self, end: LogPosition) -> Result<(Lsn, Indexed), Failure> {
        let begin = self.begin()?.unwrap_or_default();
        let found = self.index.last_at_lsn(Lsn(end.0.saturating_sub(1)))?;
        let gone = || {
            let hint = "choose a later moment to begin with";
            Failure::new(ErrorKind::MomentUnavailable, "the log of the commit is gone", hint)
        };
        Ok((begin.into(), found.ok_or_else(gone)?))
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

    fn count_between(&self, from: LogPosition, to: LogPosition) -> Result<u64, Failure> {
        self.index.count_between(from.into(), to.into())
    }

    fn skip_after(&self, from: LogPosition, others: u64) -> Result<Option<FoundCommit>, Failure> {
        let found = self.index.skip_from(from.into(), others)?;
        Ok(found.map(|commit| FoundCommit {
            end: commit.end.into(),
            time: commit.time,
            label: commit.xid.to_string(),
        }))
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

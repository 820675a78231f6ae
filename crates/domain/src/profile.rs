//! What is sent to another engine, and when.

use crate::{Crontab, ObjectName, Owner, Position};
use jiff::{SignedDuration, Timestamp};
use offshoot_types::{Failure, JobId, PeerId, ProfileId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Runs that are remembered.
const RUNS_MAX: usize = 50;
/// How long after one that failed a continuous run is tried again.
const TRIED_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// What is sent to another engine, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The id.
    pub id: ProfileId,
    /// Unique among profiles.
    pub name: ObjectName,
    /// Where it goes.
    pub peer: PeerId,
    /// What is sent.
    pub include: Included,
    /// Whether copies of others' are sent on besides, also those that come later, but not to where they have been.
    #[serde(default)]
    pub replicas: bool,
    /// Whether only what is masked may be sent.
    pub masked_only: bool,
    /// Whether the passwords go with it: of a dSource for its source, of a VDB its own.
    #[serde(default)]
    pub with_secrets: bool,
    /// How many objects are sent at the same time, each by a connection of its own.
    #[serde(default = "connections")]
    pub connections: u8,
    /// How often it runs by itself, in milliseconds; none: when it is told to.
    pub every_ms: Option<u64>,
    /// At which times it runs by itself; instead of that.
    #[serde(default)]
    pub crontab: Option<Crontab>,
    /// Whether it always runs, and sends what is new as it comes.
    #[serde(default)]
    pub continuous: bool,
    /// How far behind the peer may be, in milliseconds, before that is a fault.
    #[serde(default)]
    pub rpo_ms: Option<u64>,
    /// Bytes a second that it may take.
    pub bytes_per_second_max: Option<u64>,
    /// Whether it does not run by itself for now.
    pub paused: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// The run that is at work, or was when the engine ended.
    pub running: Option<JobId>,
    /// As of when the peer has all of it.
    pub sent_as_of: Option<Timestamp>,
    /// What the peer has of each object.
    pub sent: BTreeMap<Owner, SentMark>,
    /// Runs that have ended, oldest first; not all of them.
    pub runs: Vec<ProfileRun>,
}

/// Of a profile that says nothing of it.
pub const CONNECTIONS: u8 = 2;

fn connections() -> u8 {
    CONNECTIONS
}

/// Which objects are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Included {
    /// All dSources and VDBs, also those that are made later; no replicas.
    All,
    /// These.
    Objects(Vec<Owner>),
}

/// What a peer has of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentMark {
    /// Up to where its log opens there.
    pub synced_to: Option<Position>,
    /// As of when.
    pub as_of: Timestamp,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRun {
    /// The job.
    pub job: JobId,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Objects that were sent, or were there already.
    pub objects: u64,
    /// Bytes that went to the peer, all of it.
    pub sent_bytes: u64,
    /// Bytes of blocks that the peer lacked, as they are stored.
    pub unique_bytes: u64,
    /// Bytes of content that the peer had already, counted once for each state that was offered.
    pub saved_bytes: u64,
    /// Whether it went on with one that was cut.
    pub resumed: bool,
    /// Why it failed.
    pub error: Option<Failure>,
}

impl Profile {
    /// When it runs next by itself; none: it does not.
    pub fn next_run_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.paused {
            return None;
        }
        let last = self.runs.last();
        if let Some(crontab) = &self.crontab {
            // What was missed while the engine was away is made up for once.
            return crontab.next_after(last.map_or(self.created_at, |run| run.started_at));
        }
        let (from, pause) = match (self.continuous, self.every_ms) {
            (true, _) => (last.map(|run| run.ended_at), TRIED_AGAIN),
            (false, every) => {
                let every = SignedDuration::try_from(Duration::from_millis(every?));
                (last.map(|run| run.started_at), every.unwrap_or(SignedDuration::MAX))
            }
        };
        Some(from.map_or(now, |from| from.checked_add(pause).unwrap_or(Timestamp::MAX)))
    }

    /// Whether it should run by itself now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next_run_at(now).is_some_and(|next| next <= now)
    }

    /// The last run that did all of it.
    pub fn last_success(&self) -> Option<&ProfileRun> {
        self.runs.iter().rev().find(|run| run.error.is_none())
    }

    /// How far the peer is behind, in milliseconds: how long ago the state is that it has all of. Before it has one,
    /// how long ago the profile was made.
    pub fn behind_ms(&self, now: Timestamp) -> u64 {
        let as_of = self.sent_as_of.unwrap_or(self.created_at);
        let behind = now.as_millisecond().saturating_sub(as_of.as_millisecond());
        u64::try_from(behind).unwrap_or_default()
    }

    /// Whether the peer is further behind than it may be.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.rpo_ms.is_some_and(|most| self.behind_ms(now) > most)
    }

    /// Remembers a run that has ended.
    pub fn ended(&mut self, run: ProfileRun) {
        self.running = None;
        self.went_on(run);
    }

    /// Remembers what a run has done: of a continuous one, which goes on, one round after another.
    pub fn went_on(&mut self, run: ProfileRun) {
        if let Some(last) = self.runs.last_mut().filter(|last| last.job == run.job) {
            last.add(run);
            return;
        }
        self.runs.push(run);
        let surplus = self.runs.len().saturating_sub(RUNS_MAX);
        // The last success is shown, however long ago it was.
        let success = self.runs.iter().rposition(|run| run.error.is_none());
        let mut index = 0;
        let mut left = surplus;
        self.runs.retain(|_| {
            let goes = left > 0 && Some(index) != success;
            index += 1;
            left -= usize::from(goes);
            !goes
        });
    }
}

impl ProfileRun {
    fn add(&mut self, round: ProfileRun) {
        self.ended_at = round.ended_at;
        self.objects = self.objects.max(round.objects);
        self.sent_bytes += round.sent_bytes;
        self.unique_bytes += round.unique_bytes;
        self.saved_bytes += round.saved_bytes;
        self.resumed |= round.resumed;
        self.error = round.error;
    }
}

#[cfg(test)]
mod tests;

//! What is wrong and what happened.

use crate::job_state::JobState;
use crate::{Catalog, Error, Subject, Transaction};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, JobId};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

/// How many events are kept.
const EVENTS_KEPT: i64 = 10_000;

/// Something that is wrong now. One per subject and topic: raising it again keeps the first time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What it is about.
    pub subject: Subject,
    /// What about it, e.g. `logsync`; clearing the fault names it.
    pub topic: String,
    /// Since when.
    pub time: Timestamp,
    /// What is wrong and why.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

/// What an event was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// Something is wrong that was not.
    FaultRaised {
        /// The fault's topic.
        topic: String,
        /// How to fix it.
        hint: String,
    },
    /// It is well again, or nobody's any more.
    FaultCleared {
        /// The fault's topic.
        topic: String,
        /// Since when it was wrong.
        since: Timestamp,
    },
    /// A job has come to an end.
    JobEnded {
        /// The job.
        job: JobId,
        /// Its workflow.
        kind: String,
        /// What became of it.
        state: JobState,
        /// When it began.
        started_at: Timestamp,
        /// The kind of its error. What the error says may hold what was in a row; `job show` has it.
        code: Option<ErrorKind>,
    },
}

impl Happening {
    /// The type that those know the event by who are told of it.
    pub fn kind(&self) -> String {
        match self {
            Happening::FaultRaised { .. } => "fault.raised".to_owned(),
            Happening::FaultCleared { .. } => "fault.cleared".to_owned(),
            Happening::JobEnded { kind, state, .. } => format!("job.{kind}.{}", state.as_str()),
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counts events: the next one has the next number.
    pub id: u64,
    /// When.
    pub time: Timestamp,
    /// The id or name of the object.
    pub object: String,
    /// What, for people.
    pub message: String,
    /// What, for programs.
    pub what: Happening,
}

impl Catalog {
    /// Records a fault; returns whether it is new (its first raise is also an event).
    pub fn raise_fault(&self, fault: &Fault) -> Result<bool, Error> {
        let subject = fault.subject.stored();
        self.transaction(|tx| {
            let since: Option<String> = tx
                .sql()
                .query_row(
                    "SELECT time FROM fault \
                     WHERE object = label('fault', ?1) AND topic = label('fault', ?2)",
                    params![subject, fault.topic],
                    |row| row.get(0),
                )
                .optional()?;
            let time = since.clone().unwrap_or_else(|| fault.time.to_string());
            tx.sql().execute(
                "INSERT OR REPLACE INTO fault VALUES \
                 (label('fault', ?1), label('fault', ?2), ?3, seal('fault', ?4), seal('fault', ?5))",
                params![subject, fault.topic, time, fault.message, fault.hint],
            )?;
            if since.is_none() {
                tx.add_raised(fault)?;
            }
            Ok(since.is_none())
        })
    }

    /// Clears a fault, which is an event; returns whether there was one.
    pub fn clear_fault(
        &self,
        subject: &Subject,
        topic: &str,
        now: Timestamp,
    ) -> Result<bool, Error> {
        // Often called for faults that do not exist: looking first saves a write to disk.
        self.transaction(|tx| {
            let found = tx.faults_of("topic = label('fault', ?2)", subject, topic)?;
            for fault in &found {
                let delete = "DELETE FROM fault \
                    WHERE object = label('fault', ?1) AND topic = label('fault', ?2)";
                tx.sql().execute(delete, params![subject.stored(), topic])?;
                tx.add_cleared(fault, now)?;
            }
            Ok(!found.is_empty())
        })
    }

    /// Forgets all faults of a subject.
    pub fn clear_faults(&self, subject: &Subject, now: Timestamp) -> Result<(), Error> {
        self.transaction(|tx| {
            for fault in tx.faults_of("?2 = ''", subject, "")? {
                tx.add_cleared(&fault, now)?;
            }
            tx.sql().execute(
                "DELETE FROM fault WHERE object = label('fault', ?1)",
                [subject.stored()],
            )?;
            Ok(())
        })
    }

    /// What is wrong now, oldest first.
    pub fn faults(&self) -> Result<Vec<Fault>, Error> {
        self.transaction(|tx| {
            let mut query =
                tx.sql().prepare(&format!("SELECT {FAULT_COLUMNS} FROM fault ORDER BY time"))?;
            let mut rows = query.query([])?;
            let mut faults = Vec::new();
            while let Some(row) = rows.next()? {
                faults.push(fault(row)?);
            }
            Ok(faults)
        })
    }

    /// Records that a fault is there that the catalog does not keep.
    pub fn add_raised(&self, fault: &Fault) -> Result<(), Error> {
        self.transaction(|tx| tx.add_raised(fault))
    }

    /// Records that such a fault is not there any more.
    pub fn add_cleared(&self, fault: &Fault, now: Timestamp) -> Result<(), Error> {
        self.transaction(|tx| tx.add_cleared(fault, now))
    }

    /// The last `limit` events, newest first.
    pub fn events(&self, limit: u32) -> Result<Vec<Event>, Error> {
        self.select_events("?1 = 0 ORDER BY id DESC", 0, limit)
    }

    /// The first `limit` events of higher numbers that are kept, oldest first.
    pub fn events_after(&self, id: u64, limit: u32) -> Result<Vec<Event>, Error> {
        self.select_events("id > ?1 ORDER BY id", id, limit)
    }

    fn select_events(&self, which: &str, id: u64, limit: u32) -> Result<Vec<Event>, Error> {
        let sql = format!(
            "SELECT id, time, unseal('event', object), unseal('event', message), \
             unseal('event', what) FROM event WHERE {which} LIMIT ?2"
        );
        self.transaction(|tx| {
            let mut query = tx.sql().prepare_cached(&sql)?;
            let mut rows = query.query(params![id, limit])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, time): (u64, String) = (row.get(0)?, row.get(1)?);
                events.push(Event {
                    id,
                    time: parse_stored(&time)?,
                    object: row.get(2)?,
                    message: row.get(3)?,
                    what: what(id, row.get(4)?)?,
                });
            }
            Ok(events)
        })
    }
}

impl Transaction<'_> {
    /// The number of the last event; 0 where there was none.
    pub fn last_event(&self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(max(id), 0) FROM event";
        Ok(self.sql().query_row(sql, [], |row| row.get(0))?)
    }

    /// Records that something happened.
    pub fn add_event(
        &self,
        time: Timestamp,
        object: &str,
        message: &str,
        what: &Happening,
    ) -> Result<(), Error> {
        let what = serde_json::to_string(what).map_err(|e| Error::Unusable(e.to_string()))?;
        self.sql().execute(
            "INSERT INTO event (time, object, message, what) \
             VALUES (?1, seal('event', ?2), seal('event', ?3), seal('event', ?4))",
            params![time.to_string(), object, message, what],
        )?;
        self.sql().execute(
            "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?1",
            [EVENTS_KEPT],
        )?;
        Ok(())
    }

    fn add_raised(&self, fault: &Fault) -> Result<(), Error> {
        let what = Happening::FaultRaised { topic: fault.topic.clone(), hint: fault.hint.clone() };
        self.add_event(fault.time, &fault.subject.to_string(), &fault.message, &what)
    }

    fn add_cleared(&self, fault: &Fault, now: Timestamp) -> Result<(), Error> {
        let what = Happening::FaultCleared { topic: fault.topic.clone(), since: fault.time };
        self.add_event(now, &fault.subject.to_string(), &fault.message, &what)
    }

    fn faults_of(&self, which: &str, subject: &Subject, of: &str) -> Result<Vec<Fault>, Error> {
        let sql = format!(
            "SELECT {FAULT_COLUMNS} FROM fault WHERE object = label('fault', ?1) AND {which}"
        );
        let mut query = self.sql().prepare_cached(&sql)?;
        let mut rows = query.query(params![subject.stored(), of])?;
        let mut faults = Vec::new();
        while let Some(row) = rows.next()? {
            faults.push(fault(row)?);
        }
        Ok(faults)
    }
}

/// What [`fault`] reads.
const FAULT_COLUMNS: &str = "unseal('fault', object), unseal('fault', topic), time, \
    unseal('fault', message), unseal('fault', hint)";

fn fault(row: &rusqlite::Row<'_>) -> Result<Fault, Error> {
    let time: String = row.get(2)?;
    Ok(Fault {
        subject: Subject::from(row.get::<_, String>(0)?),
        topic: row.get(1)?,
        time: parse_stored(&time)?,
        message: row.get(3)?,
        hint: row.get(4)?,
    })
}

/// Earlier formats had none, and only faults that were raised.
fn what(id: u64, stored: Option<String>) -> Result<Happening, Error> {
    let Some(stored) = stored else {
        return Ok(Happening::FaultRaised { topic: String::new(), hint: String::new() });
    };
    serde_json::from_str(&stored).map_err(|error| Error::Damaged(format!("event {id}: {error}")))
}

fn parse_stored(time: &str) -> Result<Timestamp, Error> {
    time.parse().map_err(|_| Error::Damaged(format!("'{time}' is not a time")))
}

#[cfg(test)]
mod tests;

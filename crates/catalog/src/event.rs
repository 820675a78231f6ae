//! What is wrong and what happened.

use crate::{Catalog, Error, Subject, Transaction};
use jiff::Timestamp;
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

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counts events.
    pub id: u64,
    /// When.
    pub time: Timestamp,
    /// The id or name of the object.
    pub object: String,
    /// What.
    pub message: String,
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
                tx.add_event(fault.time, &fault.subject.to_string(), &fault.message)?;
            }
            Ok(since.is_none())
        })
    }

    /// Clears a fault; returns whether there was one.
    pub fn clear_fault(&self, subject: &Subject, topic: &str) -> Result<bool, Error> {
        let subject = subject.stored();
        // Often called for faults that do not exist: looking first saves a write to disk.
        self.transaction(|tx| {
            let known = "SELECT 1 FROM fault \
                WHERE object = label('fault', ?1) AND topic = label('fault', ?2)";
            let there = tx.sql().prepare(known)?.exists(params![subject, topic])?;
            if there {
                let delete = "DELETE FROM fault \
                    WHERE object = label('fault', ?1) AND topic = label('fault', ?2)";
                tx.sql().execute(delete, params![subject, topic])?;
            }
            Ok(there)
        })
    }

    /// Forgets all faults of a subject.
    pub fn clear_faults(&self, subject: &Subject) -> Result<(), Error> {
        self.transaction(|tx| {
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
            let sql = "SELECT unseal('fault', object), unseal('fault', topic), time, \
                unseal('fault', message), unseal('fault', hint) FROM fault ORDER BY time";
            let mut query = tx.sql().prepare(sql)?;
            let mut rows = query.query([])?;
            let mut faults = Vec::new();
            while let Some(row) = rows.next()? {
                let time: String = row.get(2)?;
                faults.push(Fault {
                    subject: Subject::from(row.get::<_, String>(0)?),
                    topic: row.get(1)?,
                    time: parse_stored(&time)?,
                    message: row.get(3)?,
                    hint: row.get(4)?,
                });
            }
            Ok(faults)
        })
    }

    /// Records that something happened.
    pub fn add_event(&self, time: Timestamp, object: &str, message: &str) -> Result<(), Error> {
        self.transaction(|tx| tx.add_event(time, object, message))
    }

    /// The last `limit` events, newest first.
    pub fn events(&self, limit: u32) -> Result<Vec<Event>, Error> {
        self.transaction(|tx| {
            let sql = "SELECT id, time, unseal('event', object), unseal('event', message) \
                FROM event ORDER BY id DESC LIMIT ?1";
            let mut query = tx.sql().prepare(sql)?;
            let mut rows = query.query([limit])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let time: String = row.get(1)?;
                events.push(Event {
                    id: row.get(0)?,
                    time: parse_stored(&time)?,
                    object: row.get(2)?,
                    message: row.get(3)?,
                });
            }
            Ok(events)
        })
    }
}

impl Transaction<'_> {
    /// Records that something happened.
    pub fn add_event(&self, time: Timestamp, object: &str, message: &str) -> Result<(), Error> {
        self.sql().execute(
            "INSERT INTO event (time, object, message) \
             VALUES (?1, seal('event', ?2), seal('event', ?3))",
            params![time.to_string(), object, message],
        )?;
        self.sql().execute(
            "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?1",
            [EVENTS_KEPT],
        )?;
        Ok(())
    }
}

fn parse_stored(time: &str) -> Result<Timestamp, Error> {
    time.parse().map_err(|_| Error::Damaged(format!("'{time}' is not a time")))
}

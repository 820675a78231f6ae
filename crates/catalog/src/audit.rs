//! Who asked for what, from where, and what became of it.

use crate::{Catalog, Error, Transaction};
use jiff::Timestamp;
use offshoot_types::{JobId, UserId};
use rusqlite::params;

/// Entries that are kept: of requests that were done or failed, and of those that were refused. They are counted apart,
/// so that nobody pushes out what was done by asking for what he may not.
pub const AUDIT_KEPT: [i64; 2] = [100_000, 10_000];
/// Entries after which the oldest are looked for.
const PRUNED_EVERY: i64 = 1000;

/// A request that changed something, showed a password, or was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Counts entries; given when it is added.
    pub id: u64,
    /// When it was answered.
    pub time: Timestamp,
    /// Who asked.
    pub user: String,
    /// From where.
    pub origin: String,
    /// What was asked for.
    pub action: String,
    /// Of which object; may be empty.
    pub object: String,
    /// `done`, or the kind of the error.
    pub outcome: String,
    /// The job that does it.
    pub job: Option<JobId>,
    /// Whether the caller was not known, or had no right to it.
    pub refused: bool,
}

/// Which entries.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Not older.
    pub since: Option<Timestamp>,
    /// Of this user.
    pub user: Option<String>,
    /// The newest so many.
    pub limit: u32,
}

impl Catalog {
    /// Adds an entry; its id is given here. Removes the oldest beyond [`AUDIT_KEPT`].
    ///
    /// # Errors
    /// The file's; also where the pool is full and no room can be made.
    pub fn add_audit(&self, entry: &AuditEntry) -> Result<(), Error> {
        self.insistent_transaction(|tx| tx.add_audit(entry))
    }

    /// Entries, newest first.
    ///
    /// # Errors
    /// The file's.
    pub fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Error> {
        let since = filter.since.map_or(i64::MIN, Timestamp::as_microsecond);
        self.transaction(|tx| {
            let sql = "SELECT id, time_us, unseal('audit', user), unseal('audit', origin), \
                unseal('audit', action), unseal('audit', object), unseal('audit', outcome), \
                job, refused FROM audit \
                WHERE time_us >= ?1 AND (?2 IS NULL OR unseal('audit', user) = ?2) \
                ORDER BY id DESC LIMIT ?3";
            let mut query = tx.sql().prepare(sql)?;
            let mut rows = query.query(params![since, filter.user, filter.limit])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                let time_us: i64 = row.get(1)?;
                entries.push(AuditEntry {
                    id: row.get(0)?,
                    time: Timestamp::from_microsecond(time_us)
                        .map_err(|_| Error::Damaged(format!("'{time_us}' is not a time")))?,
                    user: row.get(2)?,
                    origin: row.get(3)?,
                    action: row.get(4)?,
                    object: row.get(5)?,
                    outcome: row.get(6)?,
                    job: row.get::<_, Option<u64>>(7)?.map(JobId),
                    refused: row.get(8)?,
                });
            }
            Ok(entries)
        })
    }

    /// Records which user began a job. It goes with the job.
    ///
    /// # Errors
    /// The file's.
    pub fn set_job_user(&self, job: JobId, user: UserId) -> Result<(), Error> {
        self.insistent_transaction(|tx| {
            let sql = "INSERT OR REPLACE INTO job_user VALUES (?1, ?2)";
            tx.sql().execute(sql, params![job.0, user.0])?;
            Ok(())
        })
    }

    /// The jobs that a user began.
    ///
    /// # Errors
    /// The file's.
    pub fn jobs_of(&self, user: UserId) -> Result<Vec<JobId>, Error> {
        self.transaction(|tx| {
            let mut query = tx.sql().prepare("SELECT job FROM job_user WHERE user = ?1")?;
            let jobs = query.query_map([user.0], |row| row.get(0).map(JobId))?;
            Ok(jobs.collect::<Result<_, _>>()?)
        })
    }
}

impl Transaction<'_> {
    fn add_audit(&self, entry: &AuditEntry) -> Result<(), Error> {
        let AuditEntry { id: _, time, user, origin, action, object, outcome, job, refused } = entry;
        let time_us = time.as_microsecond();
        let job = job.map(|job| job.0);
        self.sql().execute(
            "INSERT INTO audit (time_us, user, origin, action, object, outcome, job, refused) \
             VALUES (?1, seal('audit', ?2), seal('audit', ?3), seal('audit', ?4), \
             seal('audit', ?5), seal('audit', ?6), ?7, ?8)",
            params![time_us, user, origin, action, object, outcome, job, refused],
        )?;
        if self.sql().last_insert_rowid() % PRUNED_EVERY == 0 {
            for (refused, kept) in [false, true].into_iter().zip(AUDIT_KEPT) {
                let sql = "DELETE FROM audit WHERE refused = ?1 AND id <= \
                    (SELECT id FROM audit WHERE refused = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
                self.sql().execute(sql, params![refused, kept])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

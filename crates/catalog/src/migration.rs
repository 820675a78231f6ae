//! The schema and its history.

use crate::{Error, Keyring, sealed};
use rusqlite::Connection;

/// Marks the file as ours (`OFFS`).
const APPLICATION_ID: i64 = 0x4F46_4653;

/// One script per format, in order. A released script is never changed.
const MIGRATIONS: [&str; 6] = ["
    CREATE TABLE object (
        kind      TEXT NOT NULL,
        id        INTEGER NOT NULL,
        namespace TEXT,
        name      TEXT,
        owner     TEXT,
        body      TEXT NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX object_name ON object (namespace, name) WHERE name IS NOT NULL;
    CREATE INDEX object_owner ON object (kind, owner) WHERE owner IS NOT NULL;

    -- The last id given out, by kind.
    CREATE TABLE sequence (kind TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;

    CREATE TABLE job (id INTEGER PRIMARY KEY, settled INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE INDEX job_unsettled ON job (id) WHERE NOT settled;

    CREATE TABLE fault (
        object  TEXT NOT NULL,
        topic   TEXT NOT NULL,
        time    TEXT NOT NULL,
        message TEXT NOT NULL,
        hint    TEXT NOT NULL,
        PRIMARY KEY (object, topic)
    ) WITHOUT ROWID;

    CREATE TABLE event (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        time    TEXT NOT NULL,
        object  TEXT NOT NULL,
        message TEXT NOT NULL
    );

    CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE secret (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
", "
    -- No table changes. From here on records hold positions of a log as numbers and what is known of a source as
    -- the state of its connector; engines of format 1 cannot read them. Older records are read as they are.
", "
    -- Who asked for what. Rows are added; only the oldest are ever removed.
    CREATE TABLE audit (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        time_us INTEGER NOT NULL,
        user    TEXT NOT NULL,
        origin  TEXT NOT NULL,
        action  TEXT NOT NULL,
        object  TEXT NOT NULL,
        outcome TEXT NOT NULL,
        job     INTEGER,
        refused INTEGER NOT NULL
    );
    CREATE INDEX audit_refused ON audit (refused, id);
    CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
    CREATE TRIGGER audit_kept BEFORE DELETE ON audit WHEN OLD.id > (SELECT max(id) FROM audit) - 10000
        BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

    -- Which user began a job; of the others an administrator did, or the engine.
    CREATE TABLE job_user (job INTEGER PRIMARY KEY, user INTEGER NOT NULL);
    CREATE TRIGGER job_forgotten AFTER DELETE ON job
        BEGIN DELETE FROM job_user WHERE job = OLD.id; END;
", "
    -- From here on secrets are sealed; those of the table before this one are moved by what runs this script.
    CREATE TABLE sealed (
        name  TEXT PRIMARY KEY,
        key   TEXT NOT NULL,
        value BLOB NOT NULL
    ) WITHOUT ROWID;
", "
    -- What an event was, as JSON; of those of before it, a fault that was raised.
    ALTER TABLE event ADD COLUMN what TEXT;
", "
    -- No table changes. From here on VDBs may have hooks of events that engines of format 5 do not know.
"];

/// The first format whose secrets are sealed.
const SEALED: u32 = 4;

/// Whether this is a catalog whose secrets are sealed.
pub fn is_sealed(db: &Connection) -> Result<bool, Error> {
    let known = MIGRATIONS.len() as u32;
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    match application == APPLICATION_ID {
        true if found > known => Err(Error::Newer { found, known }),
        ours => Ok(ours && found >= SEALED),
    }
}

/// Refuses a file that is not of the newest format.
pub fn check_newest(db: &Connection) -> Result<(), Error> {
    let known = MIGRATIONS.len() as u32;
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found.cmp(&known) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Error::Newer { found, known }),
        std::cmp::Ordering::Less => Err(Error::Unusable(format!("it has the old format {found}"))),
    }
}

/// Brings a file to the newest format, each step in its own transaction.
pub fn migrate(db: &mut Connection, keys: &Keyring) -> Result<(), Error> {
    let known = MIGRATIONS.len() as u32;
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: u64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || found != 0 || tables != 0) {
        return Err(Error::Damaged("the file is another program's database".to_owned()));
    }
    if found > known {
        return Err(Error::Newer { found, known });
    }
    for (script, version) in MIGRATIONS.iter().zip(1_u32..).skip(found as usize) {
        let step = db.transaction()?;
        step.execute_batch(script)?;
        if version == SEALED {
            sealed::seal_plain(&step, keys)?;
        }
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
        step.pragma_update(None, "user_version", version)?;
        step.commit()?;
    }
    Ok(())
}

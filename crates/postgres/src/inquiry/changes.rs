//! What one transaction did.

use super::suspects::precedes;
use crate::archive::Archive;
use crate::archive::reader::{LogReader, Step};
use crate::archive::written::{File, Rows, written};
use crate::commit_index::Commit;
use crate::lsn::Lsn;
use crate::server::Server;
use crate::session::Session;
use offshoot_domain::{RelationChange, TransactionChanges};
use offshoot_types::Failure;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// How much log before the commit is read first; four times as much each time until the beginning is found.
const LOOK_BACK_BYTES: u64 = 16 << 20;
/// How much is read at most.
const LOOK_BACK_BYTES_MAX: u64 = 1 << 30;
/// Records between two looks at whether to go on.
const TICK_RECORDS: u64 = 4096;
const TIMEOUT: Duration = Duration::from_secs(30);

/// What was done, by file.
type Done = BTreeMap<File, RelationChange>;

/// Names by file; none: the file is not to be told of (an index, what a table has out of line).
type Names = BTreeMap<File, Option<(String, String)>>;

/// As [`offshoot_connector::Inquirer::changes`].
///
/// # Errors
/// As there.
pub(crate) fn changes(
    archive: &Archive,
    begin: Lsn,
    commit: &Commit,
    servers: &[&Server],
    tick: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<TransactionChanges, Failure> {
    let xids = members(archive, commit)?;
    let mut back = LOOK_BACK_BYTES;
    let (done, whole) = loop {
        // A file begins with a page of log. Elsewhere there may be none: a file that was left early ends with zeros.
        let number = archive.number_at(Lsn(commit.lsn.0.saturating_sub(back)));
        let from = begin.max(Lsn(number.saturating_mul(archive.segment_bytes())));
        let (done, whole) = read(archive, (from, commit.lsn), &xids, tick)?;
        if whole || from == begin || back >= LOOK_BACK_BYTES_MAX {
            break (done, whole);
        }
        back *= 4;
    };
    let mut names = Names::new();
    for server in servers {
        name(server, done.keys().copied(), &mut names)?;
    }
    Ok(TransactionChanges { relations: named(done, &names), whole })
}

/// The transaction and its subtransactions.
fn members(archive: &Archive, commit: &Commit) -> Result<HashSet<u32>, Failure> {
    let mut reader = LogReader::new(archive, archive.history()?);
    let mut xids = HashSet::from([commit.xid]);
    if let Step::Record(_) = reader.next_record(commit.lsn)? {
        let written = written(reader.record(), reader.magic());
        xids.extend(written.map(|written| written.subtransactions).unwrap_or_default());
    }
    Ok(xids)
}

/// What transactions wrote in a range of the log, and whether they began in it: a list of running transactions before
/// all that they wrote names a next number that none of them is before.
fn read(
    archive: &Archive,
    (from, to): (Lsn, Lsn),
    xids: &HashSet<u32>,
    tick: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(Done, bool), Failure> {
    let mut reader = LogReader::new(archive, archive.history()?);
    let (mut done, mut whole, mut records) = (Done::new(), false, 0_u64);
    let mut position = reader.first_record(from)?.0;
    while position < to {
        let Step::Record(found) = reader.next_record(position)? else { break };
        position = found.end;
        records += 1;
        if records.is_multiple_of(TICK_RECORDS) {
            tick()?;
        }
        let Some(written) = written(reader.record(), reader.magic()) else { continue };
        if let Some(next) = written.next_xid {
            whole |= done.is_empty() && xids.iter().all(|xid| !precedes(*xid, next));
        }
        if !xids.contains(&written.xid) {
            continue;
        }
        if let Some(file) = written.made {
            done.entry(file).or_default().rewritten = true;
        }
        if let (Some(rows), Some(file)) = (written.rows, written.files.first()) {
            let change = done.entry(*file).or_default();
            match rows {
                Rows::Inserted(count) => change.inserted += count,
                Rows::Updated => change.updated += 1,
                Rows::Deleted => change.deleted += 1,
            }
        }
    }
    Ok((done, whole))
}

/// Finds names of files that have none yet.
fn name(
    server: &Server,
    files: impl Iterator<Item = File>,
    names: &mut Names,
) -> Result<(), Failure> {
    let mut wanted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (database, file) in files.filter(|file| !names.contains_key(file)) {
        wanted.entry(database).or_default().push(file);
    }
    let mut session = server.connect()?;
    for (database, files) in wanted {
        let sql = format!("SELECT datname FROM pg_catalog.pg_database WHERE oid = {database}");
        let found = session.query_column(&sql, TIMEOUT)?;
        match (database, found.first()) {
            (0, _) => name_in(&mut session, "", 0, &files, names)?,
            (_, Some(known)) => {
                name_in(&mut server.connect_to(known)?, known, database, &files, names)?;
            }
            // It was made later, or is gone.
            (_, None) => {}
        }
    }
    Ok(())
}

fn name_in(
    session: &mut Session,
    database: &str,
    number: u32,
    files: &[u32],
    names: &mut Names,
) -> Result<(), Failure> {
    let files: Vec<String> = files.iter().map(u32::to_string).collect();
    let sql = format!(
        "SELECT pg_catalog.pg_relation_filenode(c.oid), relkind IN ('r', 'm'), \
           pg_catalog.format('%I.%I', nspname, relname) \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace \
         WHERE relisshared = {} AND pg_catalog.pg_relation_filenode(c.oid) IN ({})",
        number == 0,
        files.join(", ")
    );
    for row in session.query(&sql, TIMEOUT)? {
        let [Some(file), Some(told), Some(name)] = row.as_slice() else { continue };
        let Ok(file) = file.parse() else { continue };
        let name = (told == "t").then(|| (database.to_owned(), name.clone()));
        names.insert((number, file), name);
    }
    Ok(())
}

/// By name; several files of one relation are one.
fn named(done: Done, names: &Names) -> Vec<RelationChange> {
    let mut by_name: BTreeMap<(String, String), RelationChange> = BTreeMap::new();
    for (file, change) in done {
        let name = match names.get(&file) {
            Some(None) => continue,
            Some(Some(name)) => name.clone(),
            // Made and removed again by this transaction, or in a database that is gone.
            None => (String::new(), format!("file {} of database {}", file.1, file.0)),
        };
        let all = by_name.entry(name).or_default();
        all.inserted += change.inserted;
        all.updated += change.updated;
        all.deleted += change.deleted;
        all.rewritten |= change.rewritten;
    }
    let with_name =
        |((database, relation), change)| RelationChange { database, relation, ..change };
    by_name.into_iter().map(with_name).collect()
}

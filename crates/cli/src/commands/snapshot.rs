//! `offshoot snapshot …`

use super::{Session, several};
use crate::args::{ListArgs, ListSnapshotsArgs, SnapshotCommand};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, or_dash, seconds, word};
use offshoot_api::{Job, Snapshot};
use offshoot_types::{Failure, SnapshotId};

/// Runs one command.
pub fn run(session: &Session, command: SnapshotCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        SnapshotCommand::Take(args) => {
            let job = client.take_snapshot(&args.object)?;
            session.follow(job, args.job, |job| show_taken(session, &job))
        }
        SnapshotCommand::List(args) => list(session, &args),
        SnapshotCommand::Show { id } => show(session, id),
        SnapshotCommand::Delete(args) => {
            let remove = |id: SnapshotId| client.delete_snapshot(id);
            several::each_done(session, &args.ids, args.job, "deleted", remove)
        }
    }
}

/// Shows the snapshot that a job made.
fn show_taken(session: &Session, job: &Job) -> Result<(), Failure> {
    match job.result.as_deref().map(str::parse::<SnapshotId>) {
        Some(Ok(id)) => show(session, id),
        _ => {
            session.done(job, format!("a snapshot of {} is taken", job.object));
            Ok(())
        }
    }
}

fn show(session: &Session, id: SnapshotId) -> Result<(), Failure> {
    session.output.print(&session.client.show_snapshot(id)?, show_text);
    Ok(())
}

fn show_text(snapshot: &Snapshot) -> String {
    Fields::default()
        .add("id", snapshot.id)
        .add(&word(&snapshot.object_kind), &snapshot.object)
        .add("taken", word(&snapshot.kind))
        .add("time", snapshot.time)
        .add_some("lsn", snapshot.lsn.as_deref())
        .add("state", word(&snapshot.state))
        .add_some("bookmarks", bookmarks(snapshot))
        .add_some("error", snapshot.error.as_ref())
        .add_some("not checked", Some(snapshot.unchecked.join("; ")).filter(|all| !all.is_empty()))
        .text()
}

const COLUMNS: &[Column<Snapshot>] = &[
    usual("snapshot", |one| one.id.to_string(), |one| Key::Number(one.id.0)),
    usual("of", |one| one.object.clone(), |one| Key::text(&one.object)),
    usual("time", |one| seconds(one.time), |one| Key::Time(one.time)),
    usual("lsn", |one| or_dash(one.lsn.clone()), |one| Key::Time(one.time)),
    usual("state", |one| word(&one.state), |one| Key::text(word(&one.state))),
    usual("kind", |one| word(&one.kind), |one| Key::text(word(&one.kind))),
    more("bookmarks", |one| or_dash(bookmarks(one)), |one| Key::Number(one.bookmarks.len() as u64)),
    more(
        "error",
        |one| or_dash(one.error.clone()),
        |one| one.error.clone().map_or(Key::Nothing, Key::Text),
    ),
];

fn bookmarks(snapshot: &Snapshot) -> Option<String> {
    Some(snapshot.bookmarks.join(", ")).filter(|all| !all.is_empty())
}

fn list(session: &Session, args: &ListSnapshotsArgs) -> Result<(), Failure> {
    listing::print(
        session.output,
        session.client.list_snapshots(args.object.as_deref())?,
        |list| &mut list.snapshots,
        (&args.list, COLUMNS),
        |all| {
            listing::retain_in(all, &args.state, |one| word(&one.state));
            listing::retain_in(all, &args.kind, |one| word(&one.kind));
        },
        "there is no snapshot; take one with: offshoot snapshot take",
    )
}

/// Snapshots as a table.
pub fn list_text(snapshots: &[Snapshot]) -> String {
    listing::text(snapshots, snapshots.len(), &ListArgs::default(), COLUMNS, "")
}

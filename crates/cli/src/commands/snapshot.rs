//! `offshoot snapshot …`

use super::Session;
use crate::args::SnapshotCommand;
use crate::output::{Fields, or_dash, seconds, table, word};
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
        SnapshotCommand::List { object } => {
            let list = client.list_snapshots(object.as_deref())?;
            session.output.print(&list, |list| list_text(&list.snapshots));
            Ok(())
        }
        SnapshotCommand::Show { id } => show(session, id),
        SnapshotCommand::Delete(args) => {
            let job = client.delete_snapshot(args.id)?;
            session.follow(job, args.job, |job| {
                session.done(&job, format!("{} is deleted", args.id));
                Ok(())
            })
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
        .add_some("bookmarks", Some(snapshot.bookmarks.join(", ")).filter(|all| !all.is_empty()))
        .add_some("error", snapshot.error.as_ref())
        .add_some("not checked", Some(snapshot.unchecked.join("; ")).filter(|all| !all.is_empty()))
        .text()
}

/// Snapshots as a table.
pub fn list_text(snapshots: &[Snapshot]) -> String {
    if snapshots.is_empty() {
        return "there is no snapshot; take one with: offshoot snapshot take".to_owned();
    }
    let row = |snapshot: &Snapshot| {
        vec![
            snapshot.id.to_string(),
            snapshot.object.clone(),
            seconds(snapshot.time),
            or_dash(snapshot.lsn.clone()),
            word(&snapshot.state),
            word(&snapshot.kind),
        ]
    };
    let heads = ["snapshot", "of", "time", "lsn", "state", "kind"];
    table(&heads, snapshots.iter().map(row).collect())
}

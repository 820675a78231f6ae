//! `offshoot timeflow …`

use super::Session;
use crate::args::TimeflowCommand;
use crate::output::{seconds, table, word};
use jiff::Timestamp;
use offshoot_api::{Snapshot, TimeRange, Timeflow, TimeflowList};
use offshoot_types::Failure;

/// Runs the command.
pub fn run(session: &Session, command: TimeflowCommand) -> Result<(), Failure> {
    let TimeflowCommand::Show { name } = command;
    session.output.print(&session.client.show_timeflows(&name)?, show_text);
    Ok(())
}

/// A line of the table, at the time it begins.
type Line = (Timestamp, Vec<String>);

fn show_text(history: &TimeflowList) -> String {
    let rows = history.timeflows.iter().flat_map(lines);
    let heads = ["timeflow", "what", "from", "lsn", "to", "lsn", "notes"];
    table(&heads, rows.collect())
}

/// How a timeflow began, then what it has, in order of time.
fn lines(timeflow: &Timeflow) -> Vec<Vec<String>> {
    let mut lines: Vec<Line> = Vec::new();
    lines.extend(timeflow.ranges.iter().map(|range| stretch(timeflow, "any moment", range)));
    lines.extend(timeflow.gaps.iter().map(|gap| stretch(timeflow, "gap", gap)));
    lines.extend(timeflow.snapshots.iter().map(|one| of_snapshot(timeflow, one)));
    lines.extend(timeflow.recovery_points.iter().map(|one| of_snapshot(timeflow, one)));
    lines.sort_by_key(|(from, _)| *from);
    let first = beginning(timeflow);
    std::iter::once(first).chain(lines.into_iter().map(|(_, line)| line)).collect()
}

fn beginning(timeflow: &Timeflow) -> Vec<String> {
    let origin = timeflow.origin.as_ref();
    let from = origin.and_then(|origin| origin.snapshot).map(|id| format!("from {id}"));
    let end = match timeflow.ended_at {
        None => None,
        Some(_) if timeflow.kept => Some("ended; vdb rewind --undo goes back to it".to_owned()),
        Some(_) => Some("ended".to_owned()),
    };
    let current = timeflow.current.then(|| "current".to_owned());
    let notes: Vec<String> = [current, from, end].into_iter().flatten().collect();
    vec![
        timeflow.id.to_string(),
        "begins".to_owned(),
        seconds(timeflow.started_at),
        origin.and_then(|origin| origin.lsn.clone()).unwrap_or_default(),
        timeflow.ended_at.map(seconds).unwrap_or_default(),
        String::new(),
        notes.join(", "),
    ]
}

fn stretch(timeflow: &Timeflow, what: &str, range: &TimeRange) -> Line {
    let line = vec![
        timeflow.id.to_string(),
        what.to_owned(),
        seconds(range.from.time),
        range.from.lsn.clone(),
        seconds(range.to.time),
        range.to.lsn.clone(),
        String::new(),
    ];
    (range.from.time, line)
}

fn of_snapshot(timeflow: &Timeflow, one: &Snapshot) -> Line {
    let mut notes = vec![word(&one.kind).replace('_', " "), word(&one.state)];
    notes.extend(one.bookmarks.iter().map(|name| format!("bookmark {name}")));
    let line = vec![
        timeflow.id.to_string(),
        one.id.to_string(),
        seconds(one.time),
        one.lsn.clone().unwrap_or_default(),
        String::new(),
        String::new(),
        notes.join(", "),
    ];
    (one.time, line)
}

//! `offshoot timeflow …`

use super::Session;
use crate::args::TimeflowCommand;
use crate::output::{duration, seconds, table, word};
use jiff::Timestamp;
use offshoot_api::{OpenRange, Snapshot, TimePoint, TimeRange, Timeflow, TimeflowList};
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
    lines.extend(timeflow.ranges.iter().map(|range| openable(timeflow, range)));
    let gap = |gap: &TimeRange| stretch(timeflow, "gap", (&gap.from, &gap.to), String::new());
    lines.extend(timeflow.gaps.iter().map(gap));
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

fn openable(timeflow: &Timeflow, range: &OpenRange) -> Line {
    let notes = range.typical_open_ms.zip(range.longest_open_ms).map(|(typical, longest)| {
        format!("opens in about {}, at most {}", duration(typical), duration(longest))
    });
    stretch(timeflow, "any moment", (&range.from, &range.to), notes.unwrap_or_default())
}

fn stretch(
    timeflow: &Timeflow,
    what: &str,
    (from, to): (&TimePoint, &TimePoint),
    notes: String,
) -> Line {
    let line = vec![
        timeflow.id.to_string(),
        what.to_owned(),
        seconds(from.time),
        from.lsn.clone(),
        seconds(to.time),
        to.lsn.clone(),
        notes,
    ];
    (from.time, line)
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

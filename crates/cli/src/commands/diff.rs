//! `offshoot diff …`

use super::Session;
use crate::args::DiffArgs;
use crate::output::{duration, table, word};
use offshoot_api::{CreateDiff, Diff, DiffObject, DiffRead, DiffRow, DiffTable, DiffedState};
use offshoot_types::Failure;

/// The most that is shown of one value or definition in a list, in characters.
const SHOWN_MAX: usize = 120;

/// Compares two states.
pub fn run(session: &Session, args: DiffArgs) -> Result<(), Failure> {
    let request = CreateDiff {
        left: args.left,
        right: args.right,
        tables: args.tables,
        rows: args.rows.then_some(args.limit),
        sql: args.sql,
    };
    let job = session.client.create_diff(&request)?;
    session.follow(job, args.job, |job| {
        let found = session.client.show_diff(job.id)?;
        session.output.print(&found, |found| match (args.sql, &found.sql) {
            (true, Some(sql)) => statements(found, sql),
            _ => text(found),
        });
        Ok(())
    })
}

/// Statements, with what they do not do as comments.
fn statements(found: &Diff, sql: &str) -> String {
    let mut lines = vec![format!("-- from {} to {}", state(&found.left), state(&found.right))];
    if !found.schema.is_empty() {
        let count = found.schema.len();
        lines.push(format!(
            "-- {count} differences of the schema are not in here; see them without --sql"
        ));
    }
    let skipped = found.tables.iter().filter(|one| one.read == DiffRead::Skipped);
    lines.extend(skipped.map(|one| format!("-- not compared: {}", one.table)));
    if sql.is_empty() {
        lines.push("-- no row differs".to_owned());
    }
    format!("{}\n{sql}", lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n"))
}

fn state(state: &DiffedState) -> String {
    let time = state.moment.time.map(|time| format!(" at {time:.6}")).unwrap_or_default();
    let lsn = state.moment.lsn.as_ref().map(|lsn| format!(" ({lsn})")).unwrap_or_default();
    format!("{}{time}{lsn}", state.object)
}

fn text(found: &Diff) -> String {
    let mut text = format!("from  {}\nto    {}\n\n", state(&found.left), state(&found.right));
    let several = found
        .tables
        .iter()
        .any(|one| Some(&one.database) != found.tables.first().map(|one| &one.database));
    match found.schema.len() {
        0 => text.push_str("the schema does not differ\n"),
        _ => found.schema.iter().for_each(|one| text.push_str(&object(one))),
    }
    text.push('\n');
    let differing: Vec<&DiffTable> = found
        .tables
        .iter()
        .filter(|one| one.added + one.changed + one.removed > 0 || one.read == DiffRead::Skipped)
        .collect();
    if differing.is_empty() {
        text.push_str("no row differs\n");
    } else {
        let heads = ["table", "added", "changed", "removed", "key", "read", "pages", "of"];
        let rows = differing.iter().map(|one| row(one, several)).collect();
        text.push_str(&table(&heads, rows));
    }
    let same = found.tables.len() - differing.len();
    let read: u64 = found.tables.iter().map(|one| one.pages_read).sum();
    let all: u64 = found.tables.iter().map(|one| one.pages).sum();
    text.push_str(&format!(
        "{same} tables do not differ; {read} of {all} pages were read, in {}\n",
        duration(found.took_ms)
    ));
    for one in differing.iter().filter(|one| one.why.is_some()) {
        let why = one.why.as_deref().unwrap_or_default();
        text.push_str(&format!("{}: {} ({why})\n", one.table, word(&one.read)));
    }
    for one in &found.notes {
        text.push_str(&format!("{}\n", one_line(one)));
    }
    for one in differing.iter().filter(|one| !one.rows.is_empty()) {
        text.push_str(&rows_text(one));
    }
    text
}

fn object(one: &DiffObject) -> String {
    let shown = |text: &str| short(text);
    let (sign, what) = match (&one.before, &one.after) {
        (None, after) => ('+', shown(after.as_deref().unwrap_or_default())),
        (before, None) => ('-', shown(before.as_deref().unwrap_or_default())),
        (Some(before), Some(after)) => ('~', format!("{} -> {}", shown(before), shown(after))),
    };
    format!("{sign} {} {}  {what}", one.kind, one_line(&one.name)).trim_end().to_owned() + "\n"
}

fn row(one: &DiffTable, several: bool) -> Vec<String> {
    let database = if several { format!("{}.", one.database) } else { String::new() };
    let key = if one.key.is_empty() { "whole rows".to_owned() } else { one.key.join(", ") };
    vec![
        one_line(&format!("{database}{}", one.table)),
        one.added.to_string(),
        one.changed.to_string(),
        one.removed.to_string(),
        one_line(&key),
        word(&one.read),
        one.pages_read.to_string(),
        one.pages.to_string(),
    ]
}

fn rows_text(one: &DiffTable) -> String {
    let mut text = format!("\n{}\n", one_line(&one.table));
    for row in &one.rows {
        text.push_str(&row_text(one, row));
    }
    let all = one.added + one.changed + one.removed;
    let left = all.saturating_sub(one.rows.len() as u64);
    if left > 0 {
        text.push_str(&format!("  and {left} more: see them with --limit\n"));
    }
    text
}

fn row_text(of: &DiffTable, row: &DiffRow) -> String {
    let value = |values: &[Option<String>], at: usize| match values.get(at).cloned().flatten() {
        Some(text) => short(&text),
        None => "NULL".to_owned(),
    };
    let named = |values: &[Option<String>], wanted: &dyn Fn(usize, &String) -> bool| {
        let columns = of.columns.iter().enumerate().filter(|(at, name)| wanted(*at, name));
        let all: Vec<String> =
            columns.map(|(at, name)| format!("{}={}", one_line(name), value(values, at))).collect();
        all.join(" ")
    };
    let line = match (&row.before, &row.after) {
        (Some(before), Some(after)) => {
            let changed = (0..of.columns.len()).filter(|at| before.get(*at) != after.get(*at));
            let changed: Vec<String> = changed
                .filter_map(|at| {
                    let name = of.columns.get(at)?;
                    Some(format!(
                        "{}: {} -> {}",
                        one_line(name),
                        value(before, at),
                        value(after, at)
                    ))
                })
                .collect();
            let key = named(before, &|_, name| of.key.contains(name));
            format!("~ {key}  {}", changed.join(", "))
        }
        (None, Some(after)) => format!("+ {}", named(after, &|_, _| true)),
        (Some(before), None) => format!("- {}", named(before, &|_, _| true)),
        (None, None) => String::new(),
    };
    format!("  {line}\n")
}

/// Without what a terminal would act on.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn short(text: &str) -> String {
    let mut line: String = one_line(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(SHOWN_MAX) {
        line.truncate(end);
        line.push('…');
    }
    line
}

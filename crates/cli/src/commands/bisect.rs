//! `offshoot bisect`

use super::Session;
use crate::args::{BisectArgs, End};
use crate::output::{Fields, duration, table};
use offshoot_api::{
    Answer, AnswerKind, AnsweredMoment, Bisection, ChangedRelation, ChangingCommit, StartBisection,
};
use offshoot_types::{Failure, JobId};

/// The most of an answer that a line shows, in characters; `--json` shows all.
const SHOWN_MAX: usize = 200;

/// Runs the command.
pub fn run(session: &Session, args: BisectArgs) -> Result<(), Failure> {
    if let Some(job) = args.show {
        return show(session, job);
    }
    let request = StartBisection {
        object: args.object.unwrap_or_default(),
        from: args.from.map(End::moment).unwrap_or_default(),
        to: args.to.map(End::moment).unwrap_or_default(),
        query: args.query.unwrap_or_default(),
        database: args.database,
        until: args.until,
        expect: args.expect,
        errors_are_answers: args.errors_are_answers,
        time_limit_ms: Some(args.time_limit),
    };
    let job = session.client.start_bisection(&request)?;
    session.follow(job, args.job, |job| show(session, job.id))
}

/// Shows what a job has found.
fn show(session: &Session, job: JobId) -> Result<(), Failure> {
    session.output.print(&session.client.show_bisection(job)?, text);
    Ok(())
}

fn text(found: &Bisection) -> String {
    let effort = format!(
        "{} commits, {} moments opened, {}",
        found.commits,
        found.moments_opened,
        duration(found.took_ms)
    );
    match &found.change {
        Some(change) => changed(change, &effort),
        None => unchanged(found, &effort),
    }
}

fn changed(change: &ChangingCommit, effort: &str) -> String {
    let mut text = Fields::default()
        .add("time", change.time)
        .add("transaction", &change.xid)
        .add("lsn", &change.lsn)
        .add("before", shown(&change.before))
        .add("after", shown(&change.after))
        .add("searched", effort)
        .text();
    text.push('\n');
    if change.changes.is_empty() {
        text.push_str("the transaction changed no rows");
    } else {
        let heads = ["database", "relation", "inserted", "updated", "deleted", "new file"];
        text.push_str(&table(&heads, change.changes.iter().map(row).collect()));
    }
    if !change.changes_whole {
        text.push_str("\nit began before the log that was read: it may have changed more");
    }
    text.push_str("\nif the answer changed more than once, this is one of the changes");
    text
}

fn row(change: &ChangedRelation) -> Vec<String> {
    vec![
        change.database.clone(),
        change.relation.clone(),
        change.inserted.to_string(),
        change.updated.to_string(),
        change.deleted.to_string(),
        if change.rewritten { "yes" } else { "" }.to_owned(),
    ]
}

/// Both ends are on the same side.
fn unchanged(found: &Bisection, effort: &str) -> String {
    let why = match (&found.until, &found.expect) {
        (Some(value), _) if is(&found.from.answer, value) => {
            format!("the answer is '{value}' at the earlier end already")
        }
        (Some(value), _) => format!("the answer is '{value}' at neither end"),
        (None, Some(value)) if is(&found.from.answer, value) => {
            format!("the answer is '{value}' at both ends")
        }
        (None, Some(value)) => format!("the answer is not '{value}' at the earlier end"),
        (None, None) => "the answer is the same at both ends".to_owned(),
    };
    let at = |end: &AnsweredMoment| format!("{} at {} ({})", shown(&end.answer), end.time, end.lsn);
    Fields::default()
        .add("no change found", why)
        .add("from", at(&found.from))
        .add("to", at(&found.to))
        .add("searched", effort)
        .text()
}

fn is(answer: &Answer, value: &str) -> bool {
    match answer.kind {
        AnswerKind::Null => value == "NULL",
        AnswerKind::Value => answer.text.as_deref() == Some(value),
        AnswerKind::NoRow | AnswerKind::Error => false,
    }
}

fn shown(answer: &Answer) -> String {
    let text = answer.text.as_deref().unwrap_or_default();
    let mut line: String =
        text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        line.push('…');
    }
    match answer.kind {
        AnswerKind::Value => line,
        AnswerKind::Null => "NULL".to_owned(),
        AnswerKind::NoRow => "(no row)".to_owned(),
        AnswerKind::Error => format!("error: {line}"),
    }
}

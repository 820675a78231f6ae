//! `offshoot job …`

use super::Session;
use crate::args::{JobCommand, ListJobsArgs};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, duration, or_dash, seconds, table, word};
use crate::progress::amount;
use offshoot_api::{Job, JobStep, StepState};
use offshoot_types::Failure;

/// Runs one command.
pub fn run(session: &Session, command: JobCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        JobCommand::List(args) => list(session, &args)?,
        JobCommand::Show { id } => output.print(&client.show_job(id)?, show_text),
        JobCommand::Watch { id } => output.print(&session.wait(id)?, show_text),
        JobCommand::Cancel { id } => output.print(&client.cancel_job(id)?, |job| {
            if job.state.is_final() {
                format!("{id} is {}", word(&job.state))
            } else {
                format!("{id} is asked to stop; follow it with: offshoot job watch {id}")
            }
        }),
    }
    Ok(())
}

fn show_text(job: &Job) -> String {
    let mut text = Fields::default()
        .add("id", job.id)
        .add("kind", &job.kind)
        .add("object", &job.object)
        .add("state", word(&job.state))
        .add_some("progress", amount(job))
        .add_some("started at", job.started_at)
        .add_some("ended at", job.ended_at)
        .add_some("result", job.result.as_ref())
        .add_some("notes", Some(job.notes.join("\n")).filter(|notes| !notes.is_empty()))
        .add_some("error", job.error.as_ref().map(|error| &error.message))
        .add_some("hint", job.error.as_ref().map(|error| &error.hint))
        .text();
    if !job.steps.is_empty() {
        let row = |step: &JobStep| {
            vec![
                step.name.clone(),
                word(&step.state),
                or_dash(step.started_at.map(|time| time.to_string())),
                or_dash(step.ended_at.map(|time| time.to_string())),
            ]
        };
        let rows = job.steps.iter().map(row).collect();
        text.push('\n');
        text.push_str(&table(&["step", "state", "started at", "ended at"], rows));
    }
    text
}

const COLUMNS: &[Column<Job>] = &[
    usual("job", |job| job.id.to_string(), |job| Key::Number(job.id.0)),
    usual("kind", |job| job.kind.clone(), |job| Key::text(&job.kind)),
    usual("object", |job| job.object.clone(), |job| Key::text(&job.object)),
    usual("state", |job| word(&job.state), |job| Key::text(word(&job.state))),
    usual("progress", |job| or_dash(progress(job)), |job| Key::Number(job.progress.done)),
    usual(
        "started-at",
        |job| or_dash(job.started_at.map(seconds)),
        |job| Key::time(job.started_at),
    ),
    usual("ended-at", |job| or_dash(job.ended_at.map(seconds)), |job| Key::time(job.ended_at)),
    more("step", |job| or_dash(step(job)), |job| step(job).map_or(Key::Nothing, Key::Text)),
    more("took", |job| or_dash(took(job).map(duration)), |job| Key::number(took(job))),
    more("error", |job| or_dash(error(job)), |job| error(job).map_or(Key::Nothing, Key::Text)),
];

fn progress(job: &Job) -> Option<String> {
    amount(job).filter(|_| !job.state.is_final())
}

/// The step that it is at, or that failed.
fn step(job: &Job) -> Option<String> {
    let at = |step: &&JobStep| matches!(step.state, StepState::Running | StepState::Failed);
    job.steps.iter().find(at).map(|step| step.name.clone())
}

/// In milliseconds.
fn took(job: &Job) -> Option<u64> {
    let (from, to) = (job.started_at?, job.ended_at?);
    u64::try_from(to.duration_since(from).as_millis()).ok()
}

fn error(job: &Job) -> Option<String> {
    job.error.as_ref().map(|error| error.message.clone())
}

fn list(session: &Session, args: &ListJobsArgs) -> Result<(), Failure> {
    listing::print(
        session.output,
        session.client.list_jobs()?,
        |list| &mut list.jobs,
        (&args.list, COLUMNS),
        |all| {
            listing::retain_in(all, &args.state, |job| word(&job.state));
            listing::retain_in(all, &args.kind, |job| job.kind.clone());
            all.retain(|job| args.on.as_ref().is_none_or(|name| *name == job.object));
        },
        "there is no job",
    )
}

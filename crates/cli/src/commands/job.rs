//! `offshoot job …`

use super::Session;
use crate::args::JobCommand;
use crate::output::{Fields, or_dash, seconds, table, word};
use crate::progress::amount;
use offshoot_api::{Job, JobStep};
use offshoot_types::Failure;

/// Runs one command.
pub fn run(session: &Session, command: JobCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        JobCommand::List => output.print(&client.list_jobs()?, |list| list_text(&list.jobs)),
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

fn list_text(jobs: &[Job]) -> String {
    if jobs.is_empty() {
        return "there is no job".to_owned();
    }
    let row = |job: &Job| {
        vec![
            job.id.to_string(),
            job.kind.clone(),
            job.object.clone(),
            word(&job.state),
            or_dash(amount(job).filter(|_| !job.state.is_final())),
            or_dash(job.started_at.map(seconds)),
            or_dash(job.ended_at.map(seconds)),
        ]
    };
    let heads = ["job", "kind", "object", "state", "progress", "started at", "ended at"];
    table(&heads, jobs.iter().map(row).collect())
}

//! Profiles: what is sent to other engines, and when.

use crate::args::{ListReplicationsArgs, ReplicationCreateArgs, Schedule};
use crate::commands::Session;
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, duration, or_dash, seconds, size, table, word};
use offshoot_api::{CreateReplication, Job, Replication, ReplicationRun};
use offshoot_types::Failure;

const ALL: &str = "all";
const REPLICAS: &str = "replicas";

pub fn create(session: &Session, args: ReplicationCreateArgs) -> Result<(), Failure> {
    let ReplicationCreateArgs { name, to, include, masked_only, .. } = args;
    let (all, replicas) =
        (include.iter().any(|one| one == ALL), include.iter().any(|one| one == REPLICAS));
    let named = include.into_iter().filter(|one| one != REPLICAS).collect();
    let (every_ms, crontab) = match args.schedule {
        Some(Schedule::Every(ms)) => (Some(ms), None),
        Some(Schedule::Crontab(text)) => (None, Some(text)),
        None => (None, None),
    };
    let made = session.client.create_replication(&CreateReplication {
        name,
        to,
        include: Some(named).filter(|_| !all),
        replicas,
        masked_only,
        with_secrets: args.with_secrets,
        connections: Some(args.connections),
        every_ms,
        crontab,
        continuous: args.continuous,
        rpo_ms: args.rpo,
        bytes_per_second_max: args.limit,
    })?;
    session.output.print(&made, |made| match (made.continuous, pace(made)) {
        (true, _) => format!("{} sends to {} what is new as it comes", made.name, made.peer),
        (_, Some(pace)) => format!("{} sends to {} {pace}", made.name, made.peer),
        _ => format!("{} is made; run it: offshoot replication run {}", made.name, made.name),
    });
    Ok(())
}

/// What a run has done.
pub fn ran(session: &Session, job: &Job, name: &str) -> Result<(), Failure> {
    let runs = session.client.replication_history(name)?.runs;
    let run = runs.into_iter().find(|run| run.job == job.id);
    session.done(
        job,
        match run {
            Some(run) => format!(
                "{name}: {} objects, {} sent, of which {} were lacking there",
                run.objects,
                size(run.sent_bytes),
                size(run.changed_unique_bytes)
            ),
            None => format!("{name} has run"),
        },
    );
    Ok(())
}

fn include(replication: &Replication) -> String {
    let mut named = replication.include.clone().unwrap_or_else(|| vec![ALL.to_owned()]);
    named.extend(replication.replicas.then(|| REPLICAS.to_owned()));
    named.join(", ")
}

/// When it runs by itself.
fn pace(replication: &Replication) -> Option<String> {
    match replication.continuous {
        true => Some("always".to_owned()),
        false => match replication.every_ms {
            Some(every) => Some(format!("every {}", duration(every))),
            None => replication.crontab.as_ref().map(|times| format!("at {times}")),
        },
    }
}

pub fn one(replication: &Replication) -> String {
    let rate = |bytes: u64| format!("{}/s", size(bytes));
    let mut fields = Fields::default()
        .add("name", &replication.name)
        .add("to", &replication.peer)
        .add("state", word(&replication.state))
        .add("includes", include(replication));
    if replication.masked_only {
        fields = fields.add("masked only", "yes");
    }
    if replication.with_secrets {
        fields = fields.add("with secrets", "yes");
    }
    let error = replication.error.as_ref().map(|error| error.message.clone());
    fields
        .add_some("runs", pace(replication))
        .add_some("lag allowed", replication.rpo_ms.map(duration))
        .add_some("limit", replication.bytes_per_second_max.map(rate))
        .add_some("next run at", replication.next_run_at.map(seconds))
        .add_some("last success at", replication.last_success_at.map(seconds))
        .add_some("lag", replication.lag_ms.map(duration))
        .add("log to be sent", size(replication.lag_bytes))
        .add("sent", size(replication.sent_bytes))
        .add("of it new there", size(replication.changed_unique_bytes))
        .add("saved", size(replication.saved_bytes))
        .add("rate", rate(replication.bytes_per_second))
        .add_some("error", error)
        .add("id", replication.id)
        .text()
}

const COLUMNS: &[Column<Replication>] = &[
    usual("profile", |one| one.name.clone(), |one| Key::text(&one.name)),
    usual("to", |one| one.peer.clone(), |one| Key::text(&one.peer)),
    usual("state", |one| word(&one.state), |one| Key::text(word(&one.state))),
    usual("includes", include, |one| Key::text(include(one))),
    usual("runs", |one| or_dash(pace(one)), |one| Key::text(or_dash(pace(one)))),
    usual(
        "last-success-at",
        |one| or_dash(one.last_success_at.map(seconds)),
        |one| Key::time(one.last_success_at),
    ),
    usual("lag", |one| or_dash(one.lag_ms.map(duration)), |one| Key::number(one.lag_ms)),
    more("sent", |one| size(one.sent_bytes), |one| Key::Number(one.sent_bytes)),
    more("saved", |one| size(one.saved_bytes), |one| Key::Number(one.saved_bytes)),
];

pub fn list(session: &Session, args: &ListReplicationsArgs) -> Result<(), Failure> {
    listing::print(
        session.output,
        session.client.list_replications()?,
        |list| &mut list.replications,
        (&args.list, COLUMNS),
        |all| {
            all.retain(|one| args.peer.as_ref().is_none_or(|peer| *peer == one.peer));
            listing::retain_in(all, &args.state, |one| word(&one.state));
        },
        "nothing is replicated; say what: offshoot replication create",
    )
}

pub fn history(runs: &[ReplicationRun]) -> String {
    if runs.is_empty() {
        return "it has not run yet".to_owned();
    }
    let row = |run: &ReplicationRun| {
        let took = run.ended_at.as_millisecond().abs_diff(run.started_at.as_millisecond());
        let error = run.error.as_ref().map(|error| error.message.clone());
        vec![
            run.job.to_string(),
            seconds(run.started_at),
            duration(took),
            size(run.sent_bytes),
            size(run.changed_unique_bytes),
            error.unwrap_or_else(|| if run.resumed { "done, resumed" } else { "done" }.to_owned()),
        ]
    };
    let heads = ["job", "started at", "took", "sent", "new there", "outcome"];
    table(&heads, runs.iter().map(row).collect())
}

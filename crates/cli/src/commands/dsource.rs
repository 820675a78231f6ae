//! `offshoot dsource …`

use super::{Session, removal, several, snapshot};
use crate::args::{DsourceCommand, JobArgs, LinkArgs, ListDsourcesArgs, NamesJobArgs, SetArgs};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, duration, or_dash, seconds, size, word};
use crate::password;
use jiff::Timestamp;
use offshoot_api::{Dsource, LinkDsource, SetDsource};
use offshoot_types::{Failure, JobId};

/// Runs one command.
pub fn run(session: &Session, command: DsourceCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        DsourceCommand::Link(args) => link(session, args),
        DsourceCommand::List(args) => list(session, &args),
        DsourceCommand::Show(args) => show(session, &args.name),
        DsourceCommand::Set(args) => set(session, args),
        DsourceCommand::Sync(NamesJobArgs { names, job }) => {
            several::each_shown(session, &names.all(), (job, show), "synced", |name| {
                client.sync_dsource(name)
            })
        }
        DsourceCommand::Pause(NamesJobArgs { names, job }) => {
            several::each_shown(session, &names.all(), (job, show), "paused", |name| {
                client.pause_dsource(name)
            })
        }
        DsourceCommand::Resume(NamesJobArgs { names, job }) => {
            several::each_shown(session, &names.all(), (job, show), "resumed", |name| {
                client.resume_dsource(name)
            })
        }
        DsourceCommand::Unlink(args) => {
            removal::confirm(session, "unlink", &args.names.all(), args.yes)?;
            let remove = |name: &str| client.unlink_dsource(name);
            several::each_done(session, &args.names.all(), args.job, "unlinked", remove)
        }
    }
}

fn link(session: &Session, args: LinkArgs) -> Result<(), Failure> {
    let request = LinkDsource {
        name: args.name.clone(),
        connector: args.connector,
        source: args.source.without_password().to_owned(),
        password: password::find(args.password_file.as_deref(), &args.source)?,
        snapshot_every_ms: args.snapshot_every,
    };
    let job = session.client.link_dsource(&request)?;
    change(session, &args.name, args.job, job)
}

fn set(session: &Session, args: SetArgs) -> Result<(), Failure> {
    let file = args.password_file.as_deref();
    let password = match &args.source {
        Some(source) => password::find(file, source)?,
        None => password::given(file)?,
    };
    let source = args.source.map(|source| source.without_password().to_owned());
    let request = SetDsource { source, password };
    let job = session.client.set_dsource(&args.name, &request)?;
    change(session, &args.name, args.job, job)
}

/// Waits for a job that leaves a dSource, and shows it.
fn change(session: &Session, name: &str, args: JobArgs, job: JobId) -> Result<(), Failure> {
    session.follow(job, args, |_| show(session, name))
}

fn show(session: &Session, name: &str) -> Result<(), Failure> {
    session.output.print(&session.client.show_dsource(name)?, show_text);
    Ok(())
}

fn show_text(dsource: &Dsource) -> String {
    let synced = dsource.synced_to.as_ref();
    let mut text = Fields::default()
        .add("name", &dsource.name)
        .add("state", word(&dsource.state))
        .add("connector", &dsource.connector)
        .add("source", &dsource.source)
        .add("server version", &dsource.server_version)
        .add("logical size", size(dsource.logical_bytes))
        .add("stored", size(dsource.stored_bytes))
        .add_some("synced to", synced.map(|synced| &synced.lsn))
        .add_some("synced at", synced.and_then(|synced| synced.time))
        .add_some("lag", lag(dsource))
        .add("snapshots every", or_dash(dsource.snapshot_every_ms.map(duration)))
        .add("linked at", dsource.created_at)
        .add_some("error", dsource.error.as_ref().map(|error| &error.message))
        .add_some("hint", dsource.error.as_ref().map(|error| &error.hint))
        .add_warnings(&dsource.warnings)
        .text();
    if !dsource.snapshots.is_empty() {
        text.push('\n');
        text.push_str(&snapshot::list_text(&dsource.snapshots));
    }
    text
}

fn lag(dsource: &Dsource) -> Option<String> {
    match (dsource.lag_bytes, dsource.lag_ms) {
        (Some(bytes), Some(ms)) => Some(format!("{}, {}", size(bytes), duration(ms))),
        (Some(bytes), None) => Some(size(bytes)),
        (None, Some(ms)) => Some(duration(ms)),
        (None, None) => None,
    }
}

const COLUMNS: &[Column<Dsource>] = &[
    usual("name", |one| one.name.clone(), |one| Key::text(&one.name)),
    usual("state", |one| word(&one.state), |one| Key::text(word(&one.state))),
    usual("database", database, |one| Key::Text(database(one))),
    usual("size", |one| size(one.logical_bytes), |one| Key::Number(one.logical_bytes)),
    usual("stored", |one| size(one.stored_bytes), |one| Key::Number(one.stored_bytes)),
    usual("synced-to", |one| or_dash(synced(one).map(seconds)), |one| Key::time(synced(one))),
    usual("lag", |one| or_dash(lag(one)), |one| Key::number(one.lag_ms)),
    usual(
        "snapshots",
        |one| one.snapshots.len().to_string(),
        |one| Key::Number(one.snapshots.len() as u64),
    ),
    more("source", |one| one.source.clone(), |one| Key::text(&one.source)),
    more("linked-at", |one| seconds(one.created_at), |one| Key::Time(one.created_at)),
    more("error", |one| or_dash(error(one)), |one| error(one).map_or(Key::Nothing, Key::Text)),
];

fn database(dsource: &Dsource) -> String {
    format!("{} {}", dsource.connector, dsource.server_version)
}

fn synced(dsource: &Dsource) -> Option<Timestamp> {
    dsource.synced_to.as_ref().and_then(|synced| synced.time)
}

fn error(dsource: &Dsource) -> Option<String> {
    dsource.error.as_ref().map(|error| error.message.clone())
}

fn list(session: &Session, args: &ListDsourcesArgs) -> Result<(), Failure> {
    listing::print(
        session.output,
        session.client.list_dsources()?,
        |list| &mut list.dsources,
        (&args.list, COLUMNS),
        |all| {
            listing::retain_in(all, &args.state, |one| word(&one.state));
        },
        "there is no dSource; link one with: offshoot dsource link",
    )
}

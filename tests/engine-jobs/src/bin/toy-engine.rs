//! `toy-engine POOL TOYD ACTION…`: opens the engine, does one action after the other, closes it. Each action is one
//! argument of words with spaces between; a line of JSON tells what came of it.

use offshoot_catalog::Job;
use offshoot_connector::Registry;
use offshoot_domain::Moment;
use offshoot_engine::{Engine, EngineOptions, JobKind, LinkRequest, ProvisionRequest};
use offshoot_fuse::Fuse;
use offshoot_os::{Clock, SystemClock};
use offshoot_toy::{Client, Toy};
use offshoot_types::{ErrorKind, Failure, JobId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure:?}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or_else(|| Failure::internal("an argument is missing"));
    let (pool, toyd) = (next()?, next()?);
    let options = EngineOptions {
        pool: pool.into(),
        cache_size: Some(64 << 20),
        capacity: None,
        connectors: Registry::new(vec![Arc::new(Toy::new(toyd))]),
        delivery: Arc::new(Fuse::default()),
        keeper: None,
    };
    let engine = Engine::open(&options)?;
    let mut result = Ok(());
    for action in arguments {
        let words: Vec<&str> = action.split(' ').collect();
        match act(&engine, &words) {
            Ok(answer) => println!("{answer}"),
            Err(failure) => {
                println!("{}", json!({ "failed": failure }));
                result = Err(failure);
                break;
            }
        }
    }
    engine.close()?;
    result
}

fn act(engine: &Engine, words: &[&str]) -> Result<Value, Failure> {
    let job = match *words {
        ["link", name, uri] => link(engine, name, uri)?,
        ["sync", name] => engine.dsources().sync(name)?,
        ["snapshot", name] => engine.snapshots().take(name)?,
        ["unlink", name] => engine.dsources().unlink(name)?,
        ["pause", name] => engine.dsources().pause(name)?,
        ["resume", name] => engine.dsources().resume(name)?,
        ["provision", name, from] => provision(engine, name, from, Moment::Latest)?,
        ["provision", name, from, label] => {
            provision(engine, name, from, Moment::Transaction(label.to_owned()))?
        }
        ["refresh", name] => engine.vdbs().refresh(name, Moment::Latest)?,
        ["rewind", name] => {
            let snapshots = engine.snapshots().list(Some(name))?;
            let newest = snapshots.last().map(|one| one.snapshot.id);
            let none = || Failure::internal("there is no snapshot to go back to");
            engine.vdbs().rewind(name, Moment::Snapshot(newest.ok_or_else(none)?))?
        }
        ["start", name] => engine.vdbs().start(name)?,
        ["stop", name] => engine.vdbs().stop(name)?,
        ["delete", name] => engine.vdbs().delete(name)?,
        ["content", name] => return content(engine, name),
        ["put", name, key, value] => return put(engine, name, key, value),
        ["prove", name] => return prove(engine, name),
        ["settle"] => return settle(engine),
        ["show"] => return show(engine),
        _ => return Err(Failure::internal(format!("{words:?} is no action"))),
    };
    told(&wait(engine, job)?)
}

fn link(engine: &Engine, name: &str, uri: &str) -> Result<JobId, Failure> {
    let (name, connector, source) = (name.to_owned(), "toy".to_owned(), uri.to_owned());
    engine.dsources().link(LinkRequest { name, connector, source, ..Default::default() })
}

fn provision(engine: &Engine, name: &str, from: &str, moment: Moment) -> Result<JobId, Failure> {
    let (name, from) = (name.to_owned(), from.to_owned());
    engine.vdbs().provision(ProvisionRequest { name, from, moment, ..Default::default() })
}

fn wait(engine: &Engine, id: JobId) -> Result<Job, Failure> {
    until(|| {
        let job = engine.jobs().show(id)?;
        Ok(job.state.is_final().then_some(job))
    })
}

fn until<T>(mut found: impl FnMut() -> Result<Option<T>, Failure>) -> Result<T, Failure> {
    let end = SystemClock.elapsed() + PATIENCE;
    while SystemClock.elapsed() < end {
        if let Some(found) = found()? {
            return Ok(found);
        }
        SystemClock.sleep(Duration::from_millis(2));
    }
    Err(Failure::internal("it was waited for too long"))
}

fn told(job: &Job) -> Result<Value, Failure> {
    let steps: Vec<&str> = job.steps.iter().map(|step| step.name.as_str()).collect();
    match &job.error {
        Some(error) => Err(error.clone()),
        None => Ok(json!({ "job": job.kind, "steps": steps })),
    }
}

fn client(engine: &Engine, name: &str) -> Result<Client, Failure> {
    let uri = engine.vdbs().show(name)?.uri;
    Client::open(&uri).map_err(|error| {
        Failure::new(ErrorKind::WrongState, format!("{name} does not open: {error}"), "")
    })
}

fn content(engine: &Engine, name: &str) -> Result<Value, Failure> {
    let text = client(engine, name)?.ask("DUMP").map_err(|e| Failure::internal(e.to_string()))?;
    serde_json::from_str(&text).map_err(|error| Failure::internal(error.to_string()))
}

fn put(engine: &Engine, name: &str, key: &str, value: &str) -> Result<Value, Failure> {
    let answer = client(engine, name)?.ask(&format!("SET {key} {value}"));
    answer.map(Value::from).map_err(|error| Failure::internal(error.to_string()))
}

/// Takes a snapshot and waits until it is proved.
fn prove(engine: &Engine, name: &str) -> Result<Value, Failure> {
    wait(engine, engine.snapshots().take(name)?)?;
    until(|| {
        let snapshots = engine.snapshots().list(Some(name))?;
        let proved = snapshots.last().is_some_and(|one| one.snapshot.ready_image().is_some());
        let jobs = engine.jobs().list()?;
        let proof = jobs.iter().find(|job| JobKind::SnapshotReady.is_of(job) && job.settled);
        proof.filter(|_| proved).map(told).transpose()
    })
}

/// Waits until no job is at work.
fn settle(engine: &Engine) -> Result<Value, Failure> {
    until(|| {
        let open = engine.jobs().list()?.into_iter().any(|job| !job.settled);
        Ok((!open).then_some(()))
    })?;
    show(engine)
}

fn show(engine: &Engine) -> Result<Value, Failure> {
    let dsources: BTreeMap<String, String> = (engine.dsources().list()?.into_iter())
        .map(|one| (one.dsource.name.to_string(), format!("{:?}", one.dsource.state)))
        .collect();
    let vdbs: BTreeMap<String, String> = (engine.vdbs().list()?.into_iter())
        .map(|one| (one.vdb.name.to_string(), format!("{:?}", one.vdb.state)))
        .collect();
    let faults: Vec<String> =
        engine.view()?.faults.into_iter().map(|fault| format!("{fault:?}")).collect();
    // Those at work were begun since, by the engine itself.
    let failed: Vec<String> = (engine.jobs().list()?.into_iter())
        .filter(|job| !job.settled && job.state.is_final())
        .map(|job| format!("{} {:?}", job.kind, job.error))
        .collect();
    Ok(json!({ "dsources": dsources, "vdbs": vdbs, "faults": faults, "open": failed }))
}

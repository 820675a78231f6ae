//! What the engine can be told to do.

use crate::{asked, world};
use offshoot_catalog::{Job, JobState};
use offshoot_engine::Engine;
use offshoot_os::process::{ProcessId, Signal};
use offshoot_os::{Clock, SystemClock};
use offshoot_toy::Client;
use offshoot_types::{Failure, JobId};
use offshoot_workflow::FailAt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// An open engine and what is told to it.
pub struct Session<'a> {
    pub engine: &'a Engine,
    pub fail: &'a FailAt,
    pub pool: &'a Path,
    /// The URI of the source.
    pub source: &'a str,
}

impl Session<'_> {
    /// Does one action and tells what came of it.
    ///
    /// # Errors
    /// The engine's, and what was found wrong.
    pub fn act(&self, words: &[&str]) -> Result<Value, Failure> {
        match *words {
            ["fail", place, ref action @ ..] => self.fail(place, action),
            ["again", kind, ref action @ ..] => self.again(kind, action),
            ["await", kind] => self.await_done(kind),
            ["rest"] => self.rest(),
            ["remember"] => self.remember(),
            ["same", name] => self.check_same(name),
            ["masked", name] => self.check_masked(name),
            ["show", name, key] => self.ask(name, &format!("GET {key}")),
            ["put", name, key, value] => self.ask(name, &format!("SET {key} {value}")),
            ["grow"] => self.grow(),
            ["group", name, ref members @ ..] => asked::group(self.engine, name, members),
            ["export", name] => asked::export(self.engine, name),
            ["break", name] => self.break_log(name),
            ["empty"] => self.empty(),
            ["abort"] => std::process::abort(),
            ["uri", name] => asked::uri(self.engine, name).map(Value::from),
            ["keep", name] => asked::keep(self.engine, name, true).map(|()| Value::Null),
            _ => told(&self.job(words)?),
        }
    }

    /// Does an action that is a job, and waits for its end.
    fn job(&self, words: &[&str]) -> Result<Job, Failure> {
        let id = match *words {
            ["prove", name] => return self.prove(name),
            ["revive", name] => return self.revive(name),
            ["retain", name] => return self.retain(name),
            _ => asked::submit(self.engine, self.source, words)?,
        };
        let id = id.ok_or_else(|| Failure::internal(format!("{words:?} is no action")))?;
        self.until("a job ends", || {
            let job = asked::job(self.engine, id)?;
            Ok(job.state.is_final().then_some(job))
        })
    }

    fn until<T>(
        &self,
        what: &str,
        mut found: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let end = SystemClock.elapsed() + PATIENCE;
        while SystemClock.elapsed() < end {
            if let Some(found) = found()? {
                return Ok(found);
            }
            SystemClock.sleep(Duration::from_millis(2));
        }
        Err(Failure::internal(format!("waited too long until {what}")))
    }

    fn newest(&self, kind: &str) -> Result<Option<Job>, Failure> {
        Ok(asked::jobs(self.engine)?.into_iter().find(|job| job.kind == kind))
    }

    /// Waits for the next job of a kind that the engine begins by itself.
    fn next(&self, kind: &str, after: Option<JobId>) -> Result<Job, Failure> {
        self.until("the engine begins and ends a job", || {
            let newest = self.newest(kind)?.filter(|job| Some(job.id) > after);
            Ok(newest.filter(|job| job.state.is_final()))
        })
    }

    /// Waits until no job is at work and nothing waits for one that the engine begins by itself.
    fn rest(&self) -> Result<Value, Failure> {
        self.until("all is at rest", || {
            let open = asked::jobs(self.engine)?.into_iter().find(|job| !job.settled);
            if let Some(stuck) = open.as_ref().filter(|job| job.state.is_final()) {
                return Err(Failure::internal(format!("it cannot be undone: {stuck:?}")));
            }
            let servers = world::servers(self.pool).len();
            let at_rest = open.is_none() && !asked::awaits_proof(self.engine)?;
            Ok((at_rest && servers == asked::wanted_servers(self.engine)?).then_some(()))
        })?;
        asked::states(self.engine)
    }

    fn memory(&self) -> PathBuf {
        self.pool.with_extension("world")
    }

    /// Notes the world for the next look at it.
    fn remember(&self) -> Result<Value, Failure> {
        self.rest()?;
        let world = world::look(self.engine, self.pool)?;
        let written = std::fs::write(self.memory(), world.to_string());
        written.map(|()| Value::Null).map_err(|error| Failure::internal(error.to_string()))
    }

    /// Waits until the world is as it was noted.
    fn await_remembered(&self) -> Result<(), Failure> {
        let text = std::fs::read_to_string(self.memory()).unwrap_or_default();
        let before: Value =
            serde_json::from_str(&text).map_err(|e| Failure::internal(e.to_string()))?;
        let end = SystemClock.elapsed() + PATIENCE / 4;
        loop {
            self.rest()?;
            let now = world::look(self.engine, self.pool);
            match now {
                Ok(now) if now == before => return Ok(()),
                now if SystemClock.elapsed() > end => {
                    let changes = changes("", &before, &now?);
                    return Err(Failure::internal(format!("the world has changed: {changes:#?}")));
                }
                _ => SystemClock.sleep(Duration::from_millis(5)),
            }
        }
    }

    /// An action whose job fails once at a place. Where that is undone, nothing of it is left, and it can be done.
    fn fail(&self, place: &str, action: &[&str]) -> Result<Value, Failure> {
        self.remember()?;
        self.fail.arm(place)?;
        let ended = self.job(action);
        if self.fail.disarm() {
            return Err(Failure::internal(format!("{place} was not passed: {ended:?}")));
        }
        let ended = ended?;
        let Some(error) = &ended.error else { return Ok(json!({ "done": true })) };
        if !error.message.contains("as asked for") {
            return Err(error.clone());
        }
        // An ending: what the job made stays.
        if place.contains("/hook:") {
            return Ok(json!({ "done": true }));
        }
        if is_undone(&ended.kind) {
            self.await_remembered()?;
        }
        told(&self.job(action)?)?;
        Ok(json!({ "done": false }))
    }

    /// After a death: where the last job of a kind was undone, nothing of it is left, and it can be done.
    fn again(&self, kind: &str, action: &[&str]) -> Result<Value, Failure> {
        let mut states = self.rest()?;
        let newest = self.newest(kind)?;
        let newest = newest.ok_or_else(|| Failure::internal(format!("there was no {kind}")))?;
        let done = newest.state == JobState::Done;
        if !done {
            if is_undone(kind) {
                self.await_remembered()?;
            }
            told(&self.job(action)?)?;
            states = asked::states(self.engine)?;
        }
        states["done"] = done.into();
        Ok(states)
    }

    /// After a death: what the engine does on its own it begins again.
    fn await_done(&self, kind: &str) -> Result<Value, Failure> {
        self.until("the engine has done it", || {
            Ok(self.newest(kind)?.filter(|job| job.state == JobState::Done))
        })?;
        let mut states = self.rest()?;
        states["done"] = false.into();
        Ok(states)
    }

    fn ask(&self, name: &str, line: &str) -> Result<Value, Failure> {
        let uri = asked::uri(self.engine, name)?;
        let answer = Client::open(&uri).and_then(|mut client| client.ask(line));
        answer.map(Value::from).map_err(|error| Failure::internal(format!("{name}: {error}")))
    }

    /// A VDB shows what the source does.
    fn check_same(&self, name: &str) -> Result<Value, Failure> {
        let (shown, wanted) = (self.ask(name, "DUMP")?, self.ask_source("DUMP")?);
        if shown.as_str() == Some(&wanted) {
            return Ok(Value::Null);
        }
        Err(Failure::internal(format!("{name} shows {shown:.300}, not {wanted:.300}")))
    }

    /// A VDB shows what the source does, but for values that are masked: of those it shows none.
    fn check_masked(&self, name: &str) -> Result<Value, Failure> {
        let values = |text: &str| {
            serde_json::from_str::<BTreeMap<String, String>>(text)
                .map_err(|error| Failure::internal(error.to_string()))
        };
        let shown = values(self.ask(name, "DUMP")?.as_str().unwrap_or_default())?;
        let source = values(&self.ask_source("DUMP")?)?;
        let fits = |(key, value): (&String, &String)| {
            shown.get(key).is_some_and(|shown| (shown == value) != asked::is_masked(key))
        };
        let masked = source.keys().filter(|key| asked::is_masked(key)).count();
        if masked > 0 && shown.len() == source.len() && source.iter().all(fits) {
            return Ok(Value::Null);
        }
        Err(Failure::internal(format!("{name} shows {shown:?} of {source:?}")))
    }

    fn ask_source(&self, line: &str) -> Result<String, Failure> {
        let answer = Client::open(self.source).and_then(|mut client| client.ask(line));
        answer.map_err(|error| Failure::internal(format!("{line:.20}: {error}")))
    }

    /// Commits more on the source than a file of its log holds.
    fn grow(&self) -> Result<Value, Failure> {
        for _ in 0..3 {
            self.ask_source(&format!("SET bulk {}", "b".repeat(30_000)))?;
        }
        self.ask_source("SET after bulk").map(Value::from)
    }

    /// Has the source give up log that was not received.
    fn break_log(&self, name: &str) -> Result<Value, Failure> {
        told(&self.job(&["pause", name])?)?;
        let reservations = self.ask_source("RESERVATIONS")?;
        let reservations: Value =
            serde_json::from_str(&reservations).map_err(|e| Failure::internal(e.to_string()))?;
        for reservation in reservations.as_object().into_iter().flatten() {
            self.ask_source(&format!("RELEASE {}", reservation.0))?;
        }
        self.grow()?;
        self.ask_source("CHECKPOINT")?;
        told(&self.job(&["resume", name])?)?;
        self.until("the gap is found", || Ok(asked::is_broken(self.engine, name)?.then_some(())))?;
        Ok(Value::Null)
    }

    /// Removes everything, and waits until the space it took is free.
    fn empty(&self) -> Result<Value, Failure> {
        for name in asked::vdb_groups(self.engine)? {
            told(&self.job(&["delete-all", &name])?)?;
        }
        asked::delete_groups(self.engine)?;
        let (vdbs, dsources) = asked::names(self.engine)?;
        for name in &vdbs {
            told(&self.job(&["delete", name])?)?;
        }
        for name in &dsources {
            told(&self.job(&["unlink", name])?)?;
        }
        self.rest()?;
        let end = SystemClock.elapsed() + PATIENCE / 4;
        loop {
            let store = asked::store(self.engine);
            if store == (0, 0, 0) {
                return Ok(Value::Null);
            }
            if SystemClock.elapsed() > end {
                return Err(Failure::internal(format!(
                    "what is left of an empty store: {store:?}"
                )));
            }
            SystemClock.sleep(Duration::from_millis(5));
        }
    }

    /// Takes a snapshot and waits until it is proved; the last proof.
    fn prove(&self, name: &str) -> Result<Job, Failure> {
        let before = self.newest("snapshot_ready")?.map(|job| job.id);
        told(&self.job(&["snapshot", name])?)?;
        self.until("it is proved", || Ok(asked::is_proved(self.engine, name)?.then_some(())))?;
        self.next("snapshot_ready", before)
    }

    /// Kills the server of a VDB and waits until the engine has started it again.
    fn revive(&self, name: &str) -> Result<Job, Failure> {
        let before = self.newest("vdb_revive")?.map(|job| job.id);
        let title = format!("vdb {name} in ");
        let servers = world::servers(self.pool);
        let server = servers.iter().find(|(_, server)| server.starts_with(&title));
        let server = server.and_then(|(pid, _)| ProcessId::of(*pid));
        let server = server.ok_or_else(|| Failure::internal(format!("{name} does not run")))?;
        let killed = server.signal(Signal::Kill);
        killed.map_err(|error| Failure::internal(error.to_string()))?;
        self.next("vdb_revive", before)
    }

    /// Makes something that retention does not keep, and waits until the engine has given it up.
    fn retain(&self, name: &str) -> Result<Job, Failure> {
        asked::keep(self.engine, name, true)?;
        if name == "shop" {
            for _ in 0..2 {
                self.grow()?;
                told(&self.job(&["sync", name])?)?;
            }
        } else {
            told(&self.job(&["refresh", name])?)?;
        }
        self.rest()?;
        let before = self.newest("retention")?.map(|job| job.id);
        asked::keep(self.engine, name, false)?;
        self.next("retention", before)
    }
}

/// Whether a job that fails leaves everything as it was: retention has given up what it came to, a scrub has read it.
fn is_undone(kind: &str) -> bool {
    !matches!(kind, "retention" | "pool_scrub")
}

fn told(job: &Job) -> Result<Value, Failure> {
    let steps: Vec<&str> = job.steps.iter().map(|step| step.name.as_str()).collect();
    match &job.error {
        Some(error) => Err(error.clone()),
        None => Ok(json!({ "job": job.kind, "steps": steps })),
    }
}

/// Where two values differ, with what is there.
fn changes(at: &str, before: &Value, now: &Value) -> Vec<String> {
    let (Some(old), Some(new)) = (before.as_object(), now.as_object()) else {
        let same = before == now;
        return if same { Vec::new() } else { vec![format!("{at}: {before} -> {now}")] };
    };
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let below = |key: &String| changes(&format!("{at}/{key}"), &before[key], &now[key]);
    keys.into_iter().flat_map(below).collect()
}

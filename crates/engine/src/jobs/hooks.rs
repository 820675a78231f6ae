//! Hooks: what runs before and after a VDB is made, replaced or stopped.
//!
//! Those before are the last step before anything changes: one that fails, or is cancelled, fails the job, and all is as
//! it was. Those after are the last step of all: one that fails fails the job, and nothing is undone: the VDB is there,
//! and says what it lacks.
//!
//! Of SQL a hook runs once. The step notes the mark of its transaction before that is committed, and a step that is repeated,
//! as the engine ended in the middle, asks the server first what became of it. A program runs again.

use crate::core::hooks;
use crate::core::keys::{database_key, vdb_key};
use crate::core::kind::Kind;
use crate::jobs::keepsakes;
use crate::parts::{Context, Parts};
use crate::serving::gateways;
use crate::serving::vdb::{open_vdb, present_dataset};
use crate::space::losses;
use offshoot_connector::{Script, ScriptCourse, Server, StopMode};
use offshoot_domain::{
    Hook, HookEvent, HookFailure, HookKind, Secret, Vdb, VdbState, format_duration,
};
use offshoot_types::{ErrorKind, Failure, VdbId};
use offshoot_workflow::Key;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

mod program;

/// Key under which a job stores the mark of the transaction of a hook after.
const MARK: Key<String> = Key::new("hook_mark");
/// The same of one before.
const MARK_BEFORE: Key<String> = Key::new("hook_before_mark");
/// Key under which a job on several VDBs stores that the hook after of one is done.
const DONE: Key<bool> = Key::new("hook_done");
/// Key under which a job stores that it woke a VDB for a hook.
const WOKEN: Key<bool> = Key::new("hook_woke_it");

/// What of its messages a job keeps.
const MESSAGES_MAX: usize = 100;
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// What the inputs of all jobs with hooks have.
#[derive(Deserialize)]
struct Of {
    vdb: VdbId,
}

fn vdb_of(context: &Context) -> Result<Vdb, Failure> {
    let of: Of = context.input()?;
    Ok(context.app().catalog.get(of.vdb)?)
}

/// Step: before a new VDB is opened.
pub fn before_provision(context: &Context) -> Result<(), Failure> {
    before(context, HookEvent::BeforeProvision)
}

/// Step: before a moment of its parent replaces it.
pub fn before_refresh(context: &Context) -> Result<(), Failure> {
    before(context, HookEvent::BeforeRefresh)?;
    let vdb = vdb_of(context)?;
    if vdb.refresh_keeps.is_empty() {
        return Ok(());
    }
    // Also of one that is stopped: it is there to be kept.
    let taken = wake(context, &vdb).and_then(|()| keepsakes::take(context.app(), &vdb));
    taken.map_err(|failure| {
        let name = &vdb.name;
        let message =
            format!("what a refresh is to keep of '{name}' cannot be taken: {}", failure.message);
        let hint =
            format!("keep nothing: offshoot vdb set {name} --refresh-keeps none; {}", failure.hint);
        Failure::new(failure.code, message, hint)
    })
}

/// Step: before an earlier state of its own replaces it.
pub fn before_rewind(context: &Context) -> Result<(), Failure> {
    before(context, HookEvent::BeforeRewind)
}

/// Step: before it is stopped.
pub fn before_stop(context: &Context) -> Result<(), Failure> {
    before(context, HookEvent::BeforeStop)
}

/// Step: after the VDB was made.
pub fn after_provision(context: &Context) -> Result<(), Failure> {
    after(context, HookEvent::AfterProvision)
}

/// Step: after a moment of its parent was opened.
pub fn after_refresh(context: &Context) -> Result<(), Failure> {
    after(context, HookEvent::AfterRefresh)
}

/// Step: after an earlier state of its own was opened.
pub fn after_rewind(context: &Context) -> Result<(), Failure> {
    after(context, HookEvent::AfterRewind)
}

/// Step: after it was stopped.
pub fn after_stop(context: &Context) -> Result<(), Failure> {
    after(context, HookEvent::AfterStop)
}

fn before(context: &Context, event: HookEvent) -> Result<(), Failure> {
    let parts = context.app();
    let vdb = vdb_of(context)?;
    program::forget_handed(parts, vdb.id)?;
    let Some(hook) = vdb.hooks.get(&event) else { return Ok(()) };
    if event.has_server() && vdb.state != VdbState::Running {
        if event == HookEvent::BeforeStop || !vdb.is_asleep() {
            let state = vdb.state.as_str();
            return context
                .note(format!("the hook {event} did not run: '{}' is {state}", vdb.name));
        }
        wake(context, &vdb)?;
    }
    run(context, &vdb, event, hook)
}

/// Sees to it that its server runs, if only for this job.
fn wake(context: &Context, vdb: &Vdb) -> Result<(), Failure> {
    if vdb.state != VdbState::Running {
        context.set(WOKEN, &true)?;
    }
    running(context.app(), vdb).map(drop)
}

/// Undo of a step before.
pub fn undo_before(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let vdb = vdb_of(context)?;
    program::forget_handed(parts, vdb.id)?;
    keepsakes::forget(parts, vdb.id)?;
    if context.get(WOKEN)? != Some(true) || vdb.state == VdbState::Running {
        return Ok(());
    }
    parts.servers.stop(&vdb_key(vdb.id), StopMode::Fast)?;
    parts.volumes.unmount(present_dataset(&vdb)?)?;
    gateways::rest(parts, &vdb)
}

fn after(context: &Context, event: HookEvent) -> Result<(), Failure> {
    let parts = context.app();
    let vdb = vdb_of(context)?;
    let Some(hook) = vdb.hooks.get(&event) else { return Ok(()) };
    if context.get(DONE)? == Some(true) {
        return Ok(());
    }
    let ran = run(context, &vdb, event, hook);
    if event.completes() {
        let at = parts.now();
        let failure = ran.clone().err().map(|failure| HookFailure { event, failure, at });
        parts.catalog.update::<Vdb>(vdb.id, |vdb| {
            let other = vdb.hook_failure.take().filter(|earlier| earlier.event != event);
            vdb.hook_failure = failure.clone().or(other);
        })?;
    }
    // One that the end of this engine cut off is run again.
    if !ran.as_ref().is_err_and(|failure| failure.code == ErrorKind::Cancelled) {
        program::forget_handed(parts, vdb.id)?;
    }
    ran?;
    context.set(DONE, &true)
}

/// Runs a hook for its job.
fn run(context: &Context, vdb: &Vdb, event: HookEvent, hook: &Hook) -> Result<(), Failure> {
    let parts = context.app();
    let text = hooks::text(parts, hook)?.ok_or_else(|| forgotten(vdb, event))?;
    let mut course = Course { context, event, said: Vec::new(), bytes: 0, unkept: 0 };
    let started = parts.elapsed_ms();
    let ran = match hook.kind {
        HookKind::Sql => run_sql(&mut course, vdb, hook, text),
        HookKind::Program => program::run(&mut course, vdb, hook, text),
    };
    if ran == Ok(false) {
        return Ok(());
    }
    let took = Duration::from_millis(parts.elapsed_ms() - started);
    let course = course.words();
    let end = if ran.is_ok() { "ran" } else { "did not run to its end" };
    context.note(format!("the hook {event} {end}, in {}{course}", format_duration(took)))?;
    ran.map(drop).map_err(|failure| explained(failure, vdb, event))
}

/// Whether it ran: it may have before.
fn run_sql(course: &mut Course<'_>, vdb: &Vdb, hook: &Hook, text: Secret) -> Result<bool, Failure> {
    let (context, parts) = (course.context, course.context.app());
    let kind = Kind::of_vdb(parts, vdb)?;
    let runner = hooks::runner(&kind)?;
    let server = running(parts, vdb)?;
    if let Some(mark) = context.get(mark_of(course.event))?
        && runner.has_committed(&*server, &mark)?
    {
        return Ok(false);
    }
    let database = database(parts, vdb, hook)?;
    let script = Script { text, database, time_limit: hook.time_limit() };
    runner.run(&*server, &script, course).map(|()| true)
}

fn mark_of(event: HookEvent) -> Key<String> {
    if event.counterpart().is_some() { MARK_BEFORE } else { MARK }
}

/// The database that a hook runs in.
fn database(parts: &Parts, vdb: &Vdb, hook: &Hook) -> Result<Option<String>, Failure> {
    let first = parts.catalog.secret(&database_key(vdb.id))?;
    Ok(hook.database.clone().or(first.map(|name| name.reveal().to_owned())))
}

/// The server of a VDB that should run: it may have ended together with the engine, and others leave it to the job that
/// holds the VDB.
fn running(parts: &Arc<Parts>, vdb: &Vdb) -> Result<Arc<dyn Server>, Failure> {
    losses::check(parts, vdb)?;
    let key = vdb_key(vdb.id);
    if !parts.servers.is_running(&key) {
        open_vdb(parts, vdb, present_dataset(vdb)?, false)?;
    }
    let gone = || Failure::internal(format!("'{}' does not run", vdb.name));
    parts.servers.get(&key).ok_or_else(gone)
}

fn forgotten(vdb: &Vdb, event: HookEvent) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!("the text of the hook {event} of '{}' went with a lost key", vdb.name),
        format!("give it again: offshoot vdb set {} --hook {event}=FILE", vdb.name),
    )
}

fn explained(failure: Failure, vdb: &Vdb, event: HookEvent) -> Failure {
    let name = &vdb.name;
    let message = match failure.code {
        ErrorKind::Cancelled => format!("the hook {event} of '{name}' was cancelled"),
        _ => format!("the hook {event} of '{name}' failed: {}", failure.message),
    };
    let own = match failure.hint.replace("NAME", name) {
        hint if hint.is_empty() => hint,
        hint => format!("{hint}; "),
    };
    let state = match event {
        HookEvent::BeforeProvision => return Failure { message, ..failure },
        HookEvent::AfterStop => format!("'{name}' is stopped"),
        _ if event.completes() => format!("'{name}' runs, without what the hook does"),
        _ => format!("'{name}' is as it was"),
    };
    let then = match event {
        HookEvent::AfterRewind => format!(", then rewind it again: offshoot vdb rewind {name}"),
        HookEvent::AfterRefresh => format!(", then refresh it again: offshoot vdb refresh {name}"),
        HookEvent::AfterProvision => format!(
            ", then provision it again, or run the file in it: offshoot vdb connect {name} -- -1 -f FILE"
        ),
        _ => format!(", or none: --no-hook {event}"),
    };
    let hint = format!(
        "{own}{state}; give another one: offshoot vdb set {name} --hook {event}=FILE{then}"
    );
    Failure::new(failure.code, message, hint)
}

/// Follows a hook for its job.
struct Course<'a> {
    context: &'a Context,
    event: HookEvent,
    said: Vec<String>,
    bytes: usize,
    unkept: u64,
}

impl Course<'_> {
    /// What it said, for the job's notes.
    fn words(self) -> String {
        let Course { mut said, unkept, .. } = self;
        if unkept > 0 {
            said.push(format!("… and {unkept} more"));
        }
        said.into_iter().map(|message| format!("\n  {message}")).collect()
    }
}

impl ScriptCourse for Course<'_> {
    fn check(&mut self) -> Result<(), Failure> {
        self.context.check_cancelled()
    }

    fn heard(&mut self, message: String) {
        self.bytes += message.len();
        if self.said.len() < MESSAGES_MAX && self.bytes <= MESSAGE_BYTES_MAX {
            self.said.push(message);
        } else {
            self.unkept += 1;
        }
    }

    fn committing(&mut self, mark: &str) -> Result<(), Failure> {
        self.context.set(mark_of(self.event), &mark.to_owned())
    }
}

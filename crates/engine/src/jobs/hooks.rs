//! Hooks: the last step of what makes or replaces a VDB. One that fails fails the job, and nothing is undone: the VDB is
//! there, and says what it lacks.
//!
//! A hook runs once. The step notes the mark of its transaction before that is committed, and a step that is repeated, as the
//! engine ended in the middle, asks the server first what became of it.

use crate::core::hooks;
use crate::core::keys::{database_key, vdb_key};
use crate::core::kind::Kind;
use crate::parts::{Context, Parts};
use crate::serving::vdb::{open_vdb, present_dataset};
use crate::space::losses;
use offshoot_connector::{Script, ScriptCourse, Server};
use offshoot_domain::{Hook, HookEvent, HookFailure, Vdb, format_duration};
use offshoot_types::{ErrorKind, Failure, VdbId};
use offshoot_workflow::Key;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Key under which a job stores the mark of a hook's transaction.
const MARK: Key<String> = Key::new("hook_mark");
/// Key under which a job on several VDBs stores that the hook of one is done.
const DONE: Key<bool> = Key::new("hook_done");

/// What of its messages a job keeps.
const MESSAGES_MAX: usize = 100;
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// What the inputs of all jobs with hooks have.
#[derive(Deserialize)]
struct Of {
    vdb: VdbId,
}

/// Step: after the VDB was made.
pub fn after_provision(context: &Context) -> Result<(), Failure> {
    run(context, HookEvent::AfterProvision)
}

/// Step: after a moment of its parent was opened.
pub fn after_refresh(context: &Context) -> Result<(), Failure> {
    run(context, HookEvent::AfterRefresh)
}

/// Step: after an earlier state of its own was opened.
pub fn after_rewind(context: &Context) -> Result<(), Failure> {
    run(context, HookEvent::AfterRewind)
}

fn run(context: &Context, event: HookEvent) -> Result<(), Failure> {
    let parts = context.app();
    let of: Of = context.input()?;
    let vdb: Vdb = parts.catalog.get(of.vdb)?;
    let Some(hook) = vdb.hooks.get(&event) else { return Ok(()) };
    if context.get(DONE)? == Some(true) {
        return Ok(());
    }
    let ran = run_hook(context, &vdb, event, hook);
    let at = parts.now();
    let failure = ran.clone().err().map(|failure| HookFailure { event, failure, at });
    parts.catalog.update::<Vdb>(vdb.id, |vdb| {
        let other = vdb.hook_failure.take().filter(|earlier| earlier.event != event);
        vdb.hook_failure = failure.clone().or(other);
    })?;
    ran?;
    context.set(DONE, &true)
}

fn run_hook(context: &Context, vdb: &Vdb, event: HookEvent, hook: &Hook) -> Result<(), Failure> {
    let parts = context.app();
    let kind = Kind::of_vdb(parts, vdb)?;
    let runner = kind.connector.script_runner();
    let runner =
        runner.ok_or_else(|| Failure::internal("a hook of a kind of database without any"))?;
    let text = hooks::text(parts, hook)?.ok_or_else(|| forgotten(vdb, event))?;
    let server = running(parts, vdb)?;
    if let Some(mark) = context.get(MARK)?
        && runner.has_committed(&*server, &mark)?
    {
        return Ok(());
    }
    let first = parts.catalog.secret(&database_key(vdb.id))?;
    let script = Script {
        text,
        database: hook.database.clone().or(first.map(|name| name.reveal().to_owned())),
        time_limit: hook.time_limit(),
    };
    let mut course = Course { context, said: Vec::new(), bytes: 0, unkept: 0 };
    let started = parts.elapsed_ms();
    let ran = runner.run(&*server, &script, &mut course);
    let took = Duration::from_millis(parts.elapsed_ms() - started);
    let course = course.words();
    let end = if ran.is_ok() { "ran" } else { "did not run to its end" };
    context.note(format!("the hook {event} {end}, in {}{course}", format_duration(took)))?;
    ran.map_err(|failure| explained(failure, vdb, event))
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
    let hint = format!(
        "{own}'{name}' runs, without what the hook does; give another one: offshoot vdb set {name} --hook {event}=FILE, \
         then {}",
        match event {
            HookEvent::AfterRewind => format!("rewind it again: offshoot vdb rewind {name}"),
            HookEvent::AfterRefresh => format!("refresh it again: offshoot vdb refresh {name}"),
            HookEvent::AfterProvision => format!(
                "provision it again, or run the file in it: offshoot vdb connect {name} -- -1 -f FILE"
            ),
        }
    );
    Failure::new(failure.code, message, hint)
}

/// Follows a hook for its job.
struct Course<'a> {
    context: &'a Context,
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
        self.context.set(MARK, &mark.to_owned())
    }
}

//! Hooks that are programs, and what one before hands to the one after.
//!
//! What is handed over is data of the VDB, and must outlive the engine: it is a secret of the catalog until the
//! hook after has run.

use super::{Course, database};
use crate::core::hooks;
use crate::core::keys::{handed_key, hook_runtime_key, password_key};
use crate::core::kind::Kind;
use crate::images::opening::DATASET;
use crate::parts::{Context, Parts};
use crate::serving::servers::remove_runtime_dir;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use offshoot_connector::{Login, Program};
use offshoot_domain::{Hook, HookEvent, HookKind, Secret, Vdb};
use offshoot_types::{Failure, VdbId};

/// How much a hook before may hand to the one after.
const HANDED_BYTES_MAX: usize = 16 << 20;

/// Runs a program: each time it is asked to.
pub(super) fn run(
    course: &mut Course<'_>,
    vdb: &Vdb,
    hook: &Hook,
    text: Secret,
) -> Result<bool, Failure> {
    let (context, event) = (course.context, course.event);
    let parts = context.app();
    let kind = Kind::of_vdb(parts, vdb)?;
    if event.has_server() {
        super::running(parts, vdb)?;
    }
    let program = program(context, vdb, (event, hook), text)?;
    let ran = hooks::runner(&kind)?.run_program(&program, course);
    remove_runtime_dir(&program.runtime_dir);
    let output = ran?;
    if program.output_bytes_max.is_some() {
        hand_over(parts, vdb.id, &output)?;
    }
    Ok(true)
}

fn program(
    context: &Context,
    vdb: &Vdb,
    (event, hook): (HookEvent, &Hook),
    text: Secret,
) -> Result<Program, Failure> {
    let parts = context.app();
    // A VDB that is being made has none yet.
    let dataset = match vdb.dataset {
        Some(present) => present,
        None => context.need(DATASET)?,
    };
    let owner = parts.volumes.owners().owner_of(dataset);
    let after = event.counterpart().and_then(|after| vdb.hooks.get(&after));
    let hands_over = after.is_some_and(|after| after.kind == HookKind::Program);
    Ok(Program {
        name: format!("hook {event} of '{}'", vdb.name),
        text,
        input: handed(parts, vdb.id, event)?,
        version: vdb.server_version.clone(),
        login: login(parts, vdb, (event, hook))?,
        environment: vec![
            ("OFFSHOOT_EVENT", event.to_string()),
            ("OFFSHOOT_VDB", vdb.name.to_string()),
            ("OFFSHOOT_PARENT", vdb.parent.name.to_string()),
            ("OFFSHOOT_JOB", context.job_id().to_string()),
        ],
        reaches: vdb.reaches.clone(),
        owner: owner.map(|owner| (owner.shown.uid, owner.shown.gid)),
        runtime_dir: parts.paths.server(&hook_runtime_key(vdb.id)),
        time_limit: hook.time_limit(),
        output_bytes_max: hands_over.then_some(HANDED_BYTES_MAX),
    })
}

fn login(
    parts: &Parts,
    vdb: &Vdb,
    (event, hook): (HookEvent, &Hook),
) -> Result<Option<Login>, Failure> {
    if !event.has_server() {
        return Ok(None);
    }
    let gone = || Failure::internal(format!("'{}' has no password", vdb.name));
    let password = parts.catalog.secret(&password_key(vdb.id))?.ok_or_else(gone)?;
    let database = database(parts, vdb, hook)?;
    Ok(Some(Login { port: vdb.port, password, database }))
}

fn hand_over(parts: &Parts, id: VdbId, output: &[u8]) -> Result<(), Failure> {
    let output = Secret::new(BASE64.encode(output));
    Ok(parts.catalog.put_secret(&handed_key(id), &output)?)
}

/// What the hook before left for this one.
fn handed(parts: &Parts, id: VdbId, event: HookEvent) -> Result<Vec<u8>, Failure> {
    if event.counterpart().is_some() {
        return Ok(Vec::new());
    }
    let Some(kept) = parts.catalog.secret(&handed_key(id))? else { return Ok(Vec::new()) };
    let damaged = |error| Failure::internal(format!("what a hook handed over is damaged: {error}"));
    BASE64.decode(kept.reveal()).map_err(damaged)
}

/// Forgets what was handed over; that there is nothing is no error.
pub(super) fn forget_handed(parts: &Parts, id: VdbId) -> Result<(), Failure> {
    Ok(parts.catalog.delete_secret(&handed_key(id))?)
}

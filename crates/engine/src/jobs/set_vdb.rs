//! What of a VDB can be changed: its name, what its users say about it, its hooks, its server's settings, memory and port. A
//! change of the latter three takes a restart of the server; if that fails, the old ones stay.

use crate::core::hooks::{self, NewHook};
use crate::core::job_kind::JobKind;
use crate::core::keys::hook_key;
use crate::core::kind::Kind;
use crate::history::groups;
use crate::history::names;
use crate::jobs::keepsakes;
use crate::jobs::provision::{check_memory, choose_port, on_port};
use crate::jobs::replicate;
use crate::jobs::vdb;
use crate::parts::{Context, Parts};
use crate::serving::gateways;
use crate::serving::vdb::{open_vdb, present_dataset};
use offshoot_catalog::Transaction;
use offshoot_domain::{
    Care, CareChange, Gateway, GatewayChange, Hook, HookEvent, Kept, ObjectName, Profile, Template,
    Vdb, VdbState,
};
use offshoot_types::{ErrorKind, Failure, JobId, VdbId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What to change of a VDB; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VdbChange {
    /// What its users say about it.
    pub care: CareChange,
    /// Settings to set; with none, to remove.
    pub settings: BTreeMap<String, Option<String>>,
    /// Bytes; `Some(None)`: the engine's default.
    pub memory_bytes: Option<Option<u64>>,
    /// Hooks to set; with none, to remove.
    pub hooks: BTreeMap<HookEvent, Option<NewHook>>,
    /// What listens on its port.
    pub gateway: GatewayChange,
    /// What a refresh keeps of it.
    pub refresh_keeps: Option<BTreeSet<Kept>>,
    /// Another name.
    pub name: Option<String>,
    /// Another port.
    pub port: Option<u16>,
}

/// What a VDB is to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Input {
    // Where the steps of `jobs::vdb` look.
    vdb: VdbId,
    requested_ms: u64,
    care: Care,
    settings: BTreeMap<String, String>,
    memory_bytes: Option<u64>,
    /// Jobs from before there were any have none; nor have their VDBs.
    #[serde(default)]
    hooks: BTreeMap<HookEvent, Hook>,
    /// As of hooks.
    #[serde(default)]
    gateway: Option<Gateway>,
    /// As of hooks.
    #[serde(default)]
    refresh_keeps: BTreeSet<Kept>,
    /// The name it had, and the one that it gets; none: it stays.
    #[serde(default)]
    renamed: Option<(ObjectName, ObjectName)>,
    /// Another port; none: it stays.
    #[serde(default)]
    port: Option<u16>,
}

impl Input {
    fn apply(&self, vdb: &mut Vdb) {
        vdb.care = self.care.clone();
        vdb.settings = self.settings.clone();
        vdb.memory_bytes = self.memory_bytes;
        vdb.gateway.clone_from(&self.gateway);
        vdb.refresh_keeps.clone_from(&self.refresh_keeps);
        vdb.port = self.port.unwrap_or(vdb.port);
        // Whoever replaces a hook knows that it failed.
        vdb.hook_failure = vdb
            .hook_failure
            .take()
            .filter(|failed| vdb.hooks.get(&failed.event) == self.hooks.get(&failed.event));
        vdb.hooks = self.hooks.clone();
    }

    fn needs_restart(&self, vdb: &Vdb) -> bool {
        let port = self.port.unwrap_or(vdb.port);
        let moves = vdb.gateway.is_some() != self.gateway.is_some() || vdb.port != port;
        moves || vdb.settings != self.settings || vdb.memory_bytes != self.memory_bytes
    }
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::VdbSet)
        .step("close", close, reopen)
        .step("open", open, close_again)
        .point_of_no_return()
        .step_without_undo("publish", publish)
}

/// Starts the job; refuses what the server would not start with.
pub fn submit(parts: &Arc<Parts>, name: &str, change: &VdbChange) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    if matches!(vdb.state, VdbState::Provisioning) {
        let message = format!("'{}' is being made", vdb.name);
        return Err(Failure::new(ErrorKind::Busy, message, "wait: offshoot job list"));
    }
    let care = vdb.care.changed(&change.care, parts.now())?;
    if care.expires_at.is_some() {
        groups::check_alone(parts, &vdb)?;
    }
    let mut settings = vdb.settings.clone();
    for (key, value) in &change.settings {
        match value {
            Some(value) => drop(settings.insert(key.clone(), value.clone())),
            None => drop(settings.remove(key)),
        }
    }
    let kind = Kind::of_vdb(parts, &vdb)?;
    kind.connector.validate_settings(&kind.version, &settings)?;
    let memory_bytes = change.memory_bytes.unwrap_or(vdb.memory_bytes);
    check_memory(&kind, memory_bytes)?;
    let port = change.port.filter(|port| *port != vdb.port);
    if port.is_some() {
        choose_port(parts, port)?;
    }
    let name = new_name(parts, &vdb, change.name.as_deref())?;
    let renamed = name.map(|name| (vdb.name.clone(), name));
    let gateway = gateway_of(parts, &vdb, &kind, &change.gateway, port.unwrap_or(vdb.port))?;
    let refresh_keeps = change.refresh_keeps.clone().unwrap_or_else(|| vdb.refresh_keeps.clone());
    keepsakes::check(&kind, &refresh_keeps)?;
    let new = change.hooks.iter().filter_map(|(event, hook)| Some((*event, hook.clone()?)));
    let new: BTreeMap<_, _> = new.collect();
    if !new.is_empty() {
        hooks::runner(&kind)?;
    }
    let new = hooks::keep(parts, &new)?;
    let mut hooks = vdb.hooks.clone();
    hooks.retain(|event, _| !change.hooks.contains_key(event));
    hooks.extend(new.clone());
    let requested_ms = parts.elapsed_ms();
    let input = Input {
        vdb: vdb.id,
        requested_ms,
        care,
        settings,
        memory_bytes,
        hooks,
        gateway,
        refresh_keeps,
        renamed,
        port,
    };
    let mut submission = Submission::new(JobKind::VdbSet, &vdb.name, &input).exclusive(vdb.id);
    if let Some((_, name)) = &input.renamed {
        submission = submission.exclusive(format!("name:{name}"));
    }
    let submitted = parts.submit(submission);
    if submitted.is_err() {
        hooks::forget(parts, new.values())?;
    }
    submitted
}

/// The name that it gets, if that is another one. Where its name stands for it elsewhere, it keeps that.
fn new_name(parts: &Parts, vdb: &Vdb, wanted: Option<&str>) -> Result<Option<ObjectName>, Failure> {
    let wanted: Option<ObjectName> = wanted.map(str::parse).transpose()?;
    let Some(name) = wanted.filter(|name| *name != vdb.name) else { return Ok(None) };
    names::check_free(parts, &name)?;
    let keeps = |why: String, hint: &str| {
        let message = format!("'{}' keeps its name: {why}", vdb.name);
        Err(Failure::new(ErrorKind::WrongState, message, hint))
    };
    if let Some(group) = groups::group_of(parts, vdb)? {
        return keeps(
            format!("it belongs to the VDB group '{}'", group.name),
            "name the group so from the beginning",
        );
    }
    for profile in parts.catalog.all::<Profile>()?.iter() {
        if replicate::included(parts, profile)?.contains(&vdb.id.into()) {
            let why = format!("the profile '{}' sends it by that", profile.name);
            return keeps(why, "leave it out of the profile first");
        }
    }
    Ok(Some(name))
}

/// A server moves to another port when a gateway takes its own.
fn gateway_of(
    parts: &Parts,
    vdb: &Vdb,
    kind: &Kind,
    change: &GatewayChange,
    port: u16,
) -> Result<Option<Gateway>, Failure> {
    let Some(gateway) = change.of(vdb.gateway.as_ref())? else { return Ok(None) };
    gateways::check(kind)?;
    match gateway.server_port {
        0 => on_port(parts, &gateway, port).map(Some),
        _ => Ok(Some(gateway)),
    }
}

fn vdb_of(context: &Context) -> Result<(Input, Vdb), Failure> {
    let input: Input = context.input()?;
    let vdb = context.app().catalog.get(input.vdb)?;
    Ok((input, vdb))
}

fn close(context: &Context) -> Result<(), Failure> {
    let (input, vdb) = vdb_of(context)?;
    let restarts = vdb.state == VdbState::Running && input.needs_restart(&vdb);
    if restarts { vdb::close_old(context) } else { Ok(()) }
}

/// Undo: it is as it was, and has the hooks that it had.
fn reopen(context: &Context) -> Result<(), Failure> {
    let (input, vdb) = vdb_of(context)?;
    let new = input.hooks.values().filter(|hook| !vdb.hooks.values().any(|one| one == *hook));
    hooks::forget(context.app(), new)?;
    vdb::reopen_old(context)
}

/// Undo: one that was not closed runs on.
fn close_again(context: &Context) -> Result<(), Failure> {
    let (_, vdb) = vdb_of(context)?;
    if vdb.state == VdbState::Provisioning { vdb::stop(context) } else { Ok(()) }
}

fn open(context: &Context) -> Result<(), Failure> {
    let (input, mut vdb) = vdb_of(context)?;
    if vdb.state != VdbState::Provisioning {
        return Ok(());
    }
    let dataset = present_dataset(&vdb)?;
    input.apply(&mut vdb);
    open_vdb(context.app(), &vdb, dataset, false)
}

/// Gives it its new name, also where others are said to come from it.
fn rename(
    tx: &Transaction<'_>,
    vdb: &mut Vdb,
    name: &ObjectName,
) -> Result<(), offshoot_catalog::Error> {
    for mut child in tx.list_of::<Vdb>(vdb.id)? {
        child.parent.name.clone_from(name);
        tx.put(&child)?;
    }
    for mut template in tx.list::<Template>()? {
        if template.from.as_ref() == Some(&vdb.name) {
            template.from = Some(name.clone());
            tx.put(&template)?;
        }
    }
    vdb.name.clone_from(name);
    Ok(())
}

fn publish(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let vdb = context.app().catalog.transaction(|tx| -> Result<Vdb, offshoot_catalog::Error> {
        let mut vdb: Vdb = tx.get(input.vdb)?;
        let kept = |hook: &&Hook| input.hooks.values().any(|one| one == *hook);
        for hook in vdb.hooks.values().filter(|hook| !kept(hook)) {
            tx.delete_secret(&hook_key(&hook.revision))?;
        }
        input.apply(&mut vdb);
        if vdb.state == VdbState::Provisioning {
            vdb.state = VdbState::Running;
        }
        if let Some((_, name)) = &input.renamed {
            rename(tx, &mut vdb, name)?;
        }
        tx.put(&vdb)?;
        Ok(vdb)
    })?;
    if let Some((from, to)) = &input.renamed {
        context.app().move_faults(&from.into(), to)?;
    }
    if vdb.state == VdbState::Running { Ok(()) } else { gateways::rest(context.app(), &vdb) }
}

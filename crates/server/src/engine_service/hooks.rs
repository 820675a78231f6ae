//! Hooks, as the API has them.

use offshoot_api as api;
use offshoot_domain::{Hook, HookEvent, HookKind, Secret};
use offshoot_engine::{KeptHook, NewHook};
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeMap;
use std::time::Duration;

fn event(event: api::HookEvent) -> HookEvent {
    match event {
        api::HookEvent::BeforeProvision => HookEvent::BeforeProvision,
        api::HookEvent::AfterProvision => HookEvent::AfterProvision,
        api::HookEvent::BeforeRefresh => HookEvent::BeforeRefresh,
        api::HookEvent::AfterRefresh => HookEvent::AfterRefresh,
        api::HookEvent::BeforeRewind => HookEvent::BeforeRewind,
        api::HookEvent::AfterRewind => HookEvent::AfterRewind,
        api::HookEvent::BeforeStop => HookEvent::BeforeStop,
        api::HookEvent::AfterStop => HookEvent::AfterStop,
    }
}

fn shown(event: HookEvent) -> api::HookEvent {
    match event {
        HookEvent::BeforeProvision => api::HookEvent::BeforeProvision,
        HookEvent::AfterProvision => api::HookEvent::AfterProvision,
        HookEvent::BeforeRefresh => api::HookEvent::BeforeRefresh,
        HookEvent::AfterRefresh => api::HookEvent::AfterRefresh,
        HookEvent::BeforeRewind => api::HookEvent::BeforeRewind,
        HookEvent::AfterRewind => api::HookEvent::AfterRewind,
        HookEvent::BeforeStop => api::HookEvent::BeforeStop,
        HookEvent::AfterStop => api::HookEvent::AfterStop,
    }
}

fn shown_kind(kind: HookKind) -> api::HookKind {
    match kind {
        HookKind::Sql => api::HookKind::Sql,
        HookKind::Program => api::HookKind::Program,
    }
}

/// Hooks that are asked for.
pub(super) fn new(asked: Vec<api::NewHook>) -> Result<BTreeMap<HookEvent, NewHook>, Failure> {
    let mut hooks = BTreeMap::new();
    for api::NewHook { event: at, sql, program, database, time_limit_ms } in asked {
        let time_limit = time_limit_ms.map(Duration::from_millis);
        let (kind, text) = match (sql, program) {
            (Some(sql), None) => (HookKind::Sql, sql),
            (None, Some(program)) => (HookKind::Program, program),
            _ => return Err(neither(event(at))),
        };
        let hook = NewHook { kind, text: Secret::new(text.reveal()), database, time_limit };
        if hooks.insert(event(at), hook).is_some() {
            return Err(twice(event(at)));
        }
    }
    Ok(hooks)
}

/// Hooks to set and to remove.
pub(super) fn changes(
    set: Vec<api::NewHook>,
    remove: Vec<api::HookEvent>,
) -> Result<BTreeMap<HookEvent, Option<NewHook>>, Failure> {
    let mut all: BTreeMap<_, _> =
        new(set)?.into_iter().map(|(event, hook)| (event, Some(hook))).collect();
    for at in remove.into_iter().map(event) {
        if all.insert(at, None).is_some_and(|earlier| earlier.is_some()) {
            return Err(twice(at));
        }
    }
    Ok(all)
}

fn neither(event: HookEvent) -> Failure {
    let message = format!("the hook {event} is neither SQL nor a program");
    Failure::new(ErrorKind::InvalidInput, message, "give one of sql and program")
}

fn twice(event: HookEvent) -> Failure {
    let message = format!("the hook {event} is named twice");
    Failure::new(ErrorKind::InvalidInput, message, "name each once; put all statements in one file")
}

/// Hooks without their texts.
pub(super) fn of(hooks: &BTreeMap<HookEvent, Hook>) -> Vec<api::VdbHook> {
    let hooks = hooks.iter().map(|(event, hook)| api::VdbHook {
        event: shown(*event),
        kind: shown_kind(hook.kind),
        bytes: hook.bytes,
        database: hook.database.clone(),
        time_limit_ms: hook.time_limit_ms,
    });
    hooks.collect()
}

/// A hook with its text.
pub(super) fn text(kept: KeptHook) -> api::HookText {
    let text = kept.text.map(|text| text.reveal().to_owned());
    let (sql, program) = match kept.hook.kind {
        HookKind::Sql => (text, None),
        HookKind::Program => (None, text),
    };
    api::HookText {
        event: shown(kept.event),
        kind: shown_kind(kept.hook.kind),
        sql,
        program,
        database: kept.hook.database,
        time_limit_ms: kept.hook.time_limit_ms,
    }
}

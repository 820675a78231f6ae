//! Hooks, as the API has them.

use offshoot_api as api;
use offshoot_domain::{HookEvent, Secret, Vdb};
use offshoot_engine::{KeptHook, NewHook};
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeMap;
use std::time::Duration;

fn event(event: api::HookEvent) -> HookEvent {
    match event {
        api::HookEvent::AfterProvision => HookEvent::AfterProvision,
        api::HookEvent::AfterRefresh => HookEvent::AfterRefresh,
        api::HookEvent::AfterRewind => HookEvent::AfterRewind,
    }
}

fn shown(event: HookEvent) -> api::HookEvent {
    match event {
        HookEvent::AfterProvision => api::HookEvent::AfterProvision,
        HookEvent::AfterRefresh => api::HookEvent::AfterRefresh,
        HookEvent::AfterRewind => api::HookEvent::AfterRewind,
    }
}

/// Hooks that are asked for.
pub(super) fn new(asked: Vec<api::NewHook>) -> Result<BTreeMap<HookEvent, NewHook>, Failure> {
    let mut hooks = BTreeMap::new();
    for api::NewHook { event: at, sql, database, time_limit_ms } in asked {
        let time_limit = time_limit_ms.map(Duration::from_millis);
        let hook = NewHook { text: Secret::new(sql.reveal()), database, time_limit };
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

fn twice(event: HookEvent) -> Failure {
    let message = format!("the hook {event} is named twice");
    Failure::new(ErrorKind::InvalidInput, message, "name each once; put all statements in one file")
}

/// The hooks of a VDB, without their texts.
pub(super) fn of(vdb: &Vdb) -> Vec<api::VdbHook> {
    let hooks = vdb.hooks.iter().map(|(event, hook)| api::VdbHook {
        event: shown(*event),
        bytes: hook.bytes,
        database: hook.database.clone(),
        time_limit_ms: hook.time_limit_ms,
    });
    hooks.collect()
}

/// A hook with its text.
pub(super) fn text(kept: KeptHook) -> api::HookText {
    api::HookText {
        event: shown(kept.event),
        sql: kept.text.map(|text| text.reveal().to_owned()),
        database: kept.hook.database,
        time_limit_ms: kept.hook.time_limit_ms,
    }
}

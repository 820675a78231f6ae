//! The texts of hooks, which are secrets.

use crate::core::Core;
use crate::core::keys::hook_key;
use crate::core::kind::Kind;
use offshoot_connector::ScriptRunner;
use offshoot_domain::{Hook, HookEvent, HookKind, Secret};
use offshoot_os::random_bytes;
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeMap;
use std::time::Duration;

/// A hook that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHook {
    /// What it is written in.
    pub kind: HookKind,
    /// Statements in the database's language, or a program.
    pub text: Secret,
    /// The database they run in; none: the one that users connect to first.
    pub database: Option<String>,
    /// How long they may take; none: [`Hook::TIME_LIMIT`].
    pub time_limit: Option<Duration>,
}

/// Keeps the texts of hooks, and returns their records: whoever drops a record [forgets](forget) its text.
///
/// # Errors
/// `InvalidInput` for what can be no hook.
pub fn keep(
    core: &Core,
    asked: &BTreeMap<HookEvent, NewHook>,
) -> Result<BTreeMap<HookEvent, Hook>, Failure> {
    let record = |(event, new): (&HookEvent, &NewHook)| {
        let revision = u64::from_be_bytes(random_bytes::<8>());
        let revision = format!("{revision:016x}");
        let (of, database) = ((*event, new.kind), new.database.clone());
        let hook = Hook::new(revision, of, new.text.reveal(), database, new.time_limit)?;
        Ok((*event, hook))
    };
    let hooks: BTreeMap<HookEvent, Hook> =
        asked.iter().map(record).collect::<Result<_, Failure>>()?;
    core.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
        let mut pairs = hooks.values().zip(asked.values());
        pairs.try_for_each(|(hook, new)| tx.put_secret(&hook_key(&hook.revision), &new.text))
    })?;
    Ok(hooks)
}

/// What runs the hooks of a kind of database.
///
/// # Errors
/// `InvalidInput` where it has none.
pub fn runner(kind: &Kind) -> Result<&dyn ScriptRunner, Failure> {
    kind.connector.script_runner().ok_or_else(|| {
        let message = format!("a VDB of {} has no hooks", kind.connector.kind());
        Failure::new(ErrorKind::InvalidInput, message, "leave them out")
    })
}

/// Forgets the texts of hooks; those that are forgotten already are no error.
pub fn forget<'a>(core: &Core, hooks: impl IntoIterator<Item = &'a Hook>) -> Result<(), Failure> {
    for hook in hooks {
        core.catalog.delete_secret(&hook_key(&hook.revision))?;
    }
    Ok(())
}

/// The text of a hook; none if it went with a lost key.
pub fn text(core: &Core, hook: &Hook) -> Result<Option<Secret>, Failure> {
    Ok(core.catalog.secret(&hook_key(&hook.revision))?)
}

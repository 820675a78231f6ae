//! Another key for the catalog's secrets, and for that of an encrypted pool.
//!
//! The new key is durable where keys are kept before anything is sealed with it; the old one is there until nothing is.
//! So whatever a crash interrupts, the keys that the secrets need are there.

use crate::core::encryption;
use crate::core::job_kind::JobKind;
use crate::parts::{Context, Parts};
use offshoot_catalog::{KeyId, Keyring, SecretKey, Subject};
use offshoot_types::{Failure, JobId};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The id of the key that is made.
const NEW: Key<String> = Key::new("new_key");
/// The ids of those before it.
const OLD: Key<Vec<String>> = Key::new("old_keys");

/// What to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Input {
    /// Whether the keys before it are removed.
    forget_old: bool,
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::SecretRotate)
        .step_without_undo("add_key", add_key)
        .step_without_undo("seal", seal)
        .step_without_undo("forget_old", forget_old)
}

/// Starts the job.
pub fn submit(parts: &Arc<Parts>, forget_old: bool) -> Result<JobId, Failure> {
    parts.key_places.check_changeable()?;
    let input = Input { forget_old };
    parts.submit(
        Submission::new(JobKind::SecretRotate, Subject::Engine, &input).exclusive("secrets"),
    )
}

fn add_key(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    if context.get(NEW)?.is_some() {
        return Ok(());
    }
    let before = keyring(parts)?;
    let old: Vec<_> = before.all().map(|key| key.id().to_string()).collect();
    context.set(OLD, &old)?;
    // Interrupted after this line, it is made again: a key that seals nothing is left.
    let key = SecretKey::random();
    parts.key_places.add(&key)?;
    context.set(NEW, &key.id().to_string())
}

fn seal(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let new = parts.key_places.need(&KeyId::stored(context.need(NEW)?))?;
    let before = keyring(parts)?;
    let others = before.all().filter(|key| key.id() != new.id()).cloned().collect();
    for name in parts.catalog.seal_with(Keyring::new(new.clone(), others))? {
        tracing::warn!(name, "a secret that does not open stays as it is");
    }
    // As durable as the key is.
    encryption::wrap_by(&parts.paths, &parts.key_places, &new)?;
    // Until then a copy of the pool has values that the old key opens.
    Ok(parts.catalog.empty_log()?)
}

fn forget_old(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    if !input.forget_old {
        return Ok(());
    }
    let mut kept = parts.catalog.keys_in_use()?;
    kept.extend(encryption::file::wrapped_by(&parts.paths)?);
    let old = context.need(OLD)?.into_iter().map(KeyId::stored);
    let gone: Vec<KeyId> = old.filter(|id| !kept.contains(id)).collect();
    parts.key_places.forget(&gone)?;
    let ring = keyring(parts)?;
    let others = ring.all().skip(1).filter(|key| !gone.contains(key.id())).cloned().collect();
    Ok(parts.catalog.seal_with(Keyring::new(ring.first().clone(), others)).map(drop)?)
}

fn keyring(parts: &Parts) -> Result<Arc<Keyring>, Failure> {
    parts.catalog.keyring().ok_or_else(|| Failure::internal("the catalog has no keys"))
}

//! Replication slots of dSources that are gone while their source could not be reached.
//!
//! A slot that nobody reads makes its source keep log without end, so forgetting it is not an option:
//! it is noted with what is needed to drop it, shown as a fault, and tried again until it is gone.

use crate::core::Core;
use crate::follower::password_key;
use offshoot_domain::{Dsource, Secret};
use offshoot_postgres::slot::drop_slot;
use offshoot_postgres::source::{Password, Source};
use offshoot_types::Failure;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Where the catalog keeps the list.
const LIST: &str = "left_slots";

/// One job or the watch changes the list at a time.
static CHANGES: Mutex<()> = Mutex::new(());

/// A slot to be dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LeftSlot {
    dsource: String,
    source: String,
    slot: String,
}

fn secret_key(slot: &str) -> String {
    format!("left-slot/{slot}")
}

fn topic(slot: &str) -> String {
    format!("slot {slot}")
}

/// Drops the slot of a dSource on its source, now or as soon as the source can be reached.
///
/// # Errors
/// The catalog's.
pub fn release(core: &Core, dsource: &Dsource) -> Result<(), Failure> {
    let Some(slot) = &dsource.slot else { return Ok(()) };
    let secret = core.catalog.secret(&password_key(dsource.id))?;
    let left = LeftSlot {
        dsource: dsource.name.to_string(),
        source: dsource.source.clone(),
        slot: slot.clone(),
    };
    let Err(failure) = drop_now(&left, secret.as_ref()) else { return Ok(()) };
    let _one_at_a_time = CHANGES.lock();
    if let Some(secret) = &secret {
        core.catalog.put_secret(&secret_key(slot), secret)?;
    }
    let mut list = read(core)?;
    if !list.contains(&left) {
        list.push(left.clone());
        core.catalog.set_setting(LIST, &list)?;
    }
    raise(core, &left, &failure);
    Ok(())
}

/// Tries all that are left once more.
///
/// # Errors
/// The catalog's.
pub fn retry(core: &Core) -> Result<(), Failure> {
    for left in read(core)? {
        let secret = core.catalog.secret(&secret_key(&left.slot))?;
        match drop_now(&left, secret.as_ref()) {
            Ok(()) => {
                let _one_at_a_time = CHANGES.lock();
                let mut list = read(core)?;
                list.retain(|one| *one != left);
                core.catalog.set_setting(LIST, &list)?;
                core.catalog.delete_secret(&secret_key(&left.slot))?;
                core.clear("engine", &topic(&left.slot));
            }
            Err(failure) => raise(core, &left, &failure),
        }
    }
    Ok(())
}

fn read(core: &Core) -> Result<Vec<LeftSlot>, Failure> {
    Ok(core.catalog.setting(LIST)?.unwrap_or_default())
}

fn drop_now(left: &LeftSlot, secret: Option<&Secret>) -> Result<(), Failure> {
    let password = secret.map(|secret| Password::new(secret.reveal()));
    let session = Source::parse(&left.source, password)?.connect()?;
    drop_slot(&session, &left.slot)
}

fn raise(core: &Core, left: &LeftSlot, why: &Failure) {
    let slot = &left.slot;
    let failure = Failure::new(
        why.code,
        format!(
            "the replication slot {slot} of the former dSource '{}' may still be on {}: {why}",
            left.dsource, left.source
        ),
        format!(
            "it is tried again until the source answers; if that source is gone for good, nothing is \
             lost; to drop it there by hand: SELECT pg_drop_replication_slot('{slot}');"
        ),
    );
    core.raise("engine", &topic(slot), &failure);
}

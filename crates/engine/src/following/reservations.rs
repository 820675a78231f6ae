//! Reservations of log of dSources that are gone while their source could not be reached.
//!
//! A reservation that nobody reads makes its source keep log without end, so it must not be
//! forgotten: it is recorded with what is needed to release it, shown as a fault, and retried until
//! it is gone.

use crate::core::Core;
use crate::core::keys::source_password_key;
use crate::core::topic::Topic;
use offshoot_catalog::Subject;
use offshoot_connector::{Source, SourceUri};
use offshoot_domain::{Dsource, Secret};
use offshoot_types::Failure;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Where the catalog keeps the list.
const LIST: &str = "left_slots";

/// Only one job, or the watch, changes the list at a time.
static CHANGES: Mutex<()> = Mutex::new(());

/// A reservation to be released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    dsource: String,
    /// The kind of database; empty in lists of the first releases.
    #[serde(default)]
    connector: String,
    source: String,
    #[serde(alias = "slot")]
    reservation: String,
}

fn secret_key(reservation: &str) -> String {
    format!("left-slot/{reservation}")
}

/// Releases the log of a dSource on its source, now or as soon as the source can be reached.
///
/// # Errors
/// The catalog's.
pub fn release(core: &Core, dsource: &Dsource) -> Result<(), Failure> {
    release_with(core, dsource, core.catalog.secret(&source_password_key(dsource.id))?)
}

/// The same with a password that is not the dSource's yet.
///
/// # Errors
/// The catalog's.
pub fn release_with(core: &Core, dsource: &Dsource, secret: Option<Secret>) -> Result<(), Failure> {
    let Some(reservation) = &dsource.reservation else { return Ok(()) };
    let left = Left {
        dsource: dsource.name.to_string(),
        connector: dsource.connector.clone(),
        source: dsource.source.clone(),
        reservation: reservation.clone(),
    };
    let Err(failure) = release_now(core, &left, secret.clone()) else { return Ok(()) };
    let _one_at_a_time = CHANGES.lock();
    if let Some(secret) = &secret {
        core.catalog.put_secret(&secret_key(reservation), secret)?;
    }
    let mut list = read(core)?;
    if !list.contains(&left) {
        list.push(left.clone());
        core.catalog.set_setting(LIST, &list)?;
    }
    raise(core, &left, &failure);
    Ok(())
}

/// Tries all that are left again.
///
/// # Errors
/// The catalog's.
pub fn retry(core: &Core) -> Result<(), Failure> {
    for left in read(core)? {
        let secret = core.catalog.secret(&secret_key(&left.reservation))?;
        match release_now(core, &left, secret) {
            Ok(()) => {
                let _one_at_a_time = CHANGES.lock();
                let mut list = read(core)?;
                list.retain(|one| *one != left);
                core.catalog.set_setting(LIST, &list)?;
                core.catalog.delete_secret(&secret_key(&left.reservation))?;
                core.clear(Subject::Engine, Topic::Reservation(&left.reservation));
            }
            Err(failure) => raise(core, &left, &failure),
        }
    }
    Ok(())
}

fn read(core: &Core) -> Result<Vec<Left>, Failure> {
    Ok(core.catalog.setting(LIST)?.unwrap_or_default())
}

fn source(core: &Core, left: &Left, secret: Option<Secret>) -> Result<Box<dyn Source>, Failure> {
    let uri = SourceUri { uri: left.source.clone(), secret };
    core.connectors.find(&left.connector)?.source(&uri)
}

fn release_now(core: &Core, left: &Left, secret: Option<Secret>) -> Result<(), Failure> {
    source(core, left, secret)?.release_log(&left.reservation)
}

fn raise(core: &Core, left: &Left, why: &Failure) {
    let name = &left.reservation;
    let by_hand =
        source(core, left, None).map_or(String::new(), |source| source.release_hint(name));
    let failure = Failure::new(
        why.code,
        format!(
            "the reservation of log {name} of the former dSource '{}' may still be on {}: {why}",
            left.dsource, left.source
        ),
        format!(
            "it is tried again until the source answers; if that source is gone for good, nothing is \
             lost; to release it there by hand: {}",
            by_hand
        ),
    );
    core.raise(Subject::Engine, Topic::Reservation(name), &failure);
}

//! The ledger: what each dSource, VDB and snapshot holds of the pool, and what deleting it would free.
//!
//! An object comprises datasets and snapshots of the store, of its *present* (what it shows now) and of its
//! *past* (kept so that one can go back):
//!
//! | object   | present          | past                                                          |
//! |----------|------------------|---------------------------------------------------------------|
//! | dSource  | staging          | its received log, its snapshots                               |
//! | VDB      | its dataset      | its snapshots, states that a rewind or refresh replaced       |
//! | snapshot | its images       | –                                                             |
//!
//! Of the stored bytes that an object reaches, each block counts once and in one of three classes: *shared*
//! if anything outside the object also reaches it; otherwise *exclusive* if its present does; otherwise
//! *pinned*: only its past keeps it. So deleting the object frees exclusive + pinned, and deleting only its
//! past frees pinned.
//!
//! The store computes these exactly, at a cost that follows what would be freed. That is too slow for a list
//! of thousands, so figures are cached and recomputed in the background ([`worker`]). Each says how old it is
//! and whether anything has changed since. Small ones are computed on request.

mod worker;

pub use worker::run;

use crate::space::Space;
use crate::space::inventory::{LedgerKey, Object, inventory};
use jiff::Timestamp;
use offshoot_dataset::{Holding, StoredBytes};
use offshoot_domain::Owner;
use offshoot_os::Clock;
use offshoot_types::{BlockHash, ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Figures that took longer than this are not recomputed for a request.
const PROMPT: Duration = Duration::from_millis(40);
/// After this time a request starts no more outdated figures.
const STALE_BUDGET: Duration = Duration::from_millis(20);
/// The same for figures that were never computed.
const FIRST_BUDGET: Duration = Duration::from_secs(2);

/// Stored bytes by class; see the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerFigures {
    /// What only this object reaches, from its present.
    pub exclusive_bytes: u64,
    /// What something else reaches as well.
    pub shared_bytes: u64,
    /// What the past alone keeps.
    pub pinned_bytes: u64,
}

impl LedgerFigures {
    /// What deleting the object would free.
    pub fn freed_if_deleted_bytes(&self) -> u64 {
        self.exclusive_bytes + self.pinned_bytes
    }

    /// All that the object reaches.
    pub fn stored_bytes(&self) -> u64 {
        self.freed_if_deleted_bytes() + self.shared_bytes
    }
}

/// Figures, and of when they are.
#[derive(Debug, Clone, Copy)]
pub struct DatedFigures {
    /// The figures.
    pub figures: LedgerFigures,
    /// When they were worked out.
    pub as_of: Timestamp,
    /// Whether the pool is still as it was then.
    pub current: bool,
}

/// An entry of the ledger.
#[derive(Debug, Clone)]
pub struct LedgerEntry {
    /// What it is about.
    pub key: LedgerKey,
    /// Its name; a snapshot's id.
    pub object: String,
    /// For a snapshot, the name of what it was taken of.
    pub of: Option<String>,
    /// What its files would take outside the pool.
    pub logical_bytes: u64,
    /// What it holds; none if never computed.
    pub figures: Option<DatedFigures>,
}

/// What deleting several objects together would free.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// The entries of the objects.
    pub entries: Vec<LedgerEntry>,
    /// Exact to the block, as of now.
    pub freed_if_deleted_bytes: u64,
}

/// Figures that were worked out.
#[derive(Debug, Clone)]
struct Known {
    whole: Holding,
    /// The store's.
    version: BlockHash,
    as_of: Timestamp,
    took: Duration,
    figures: LedgerFigures,
}

impl Known {
    /// Whether they are for what the object now comprises.
    fn is_of(&self, object: &Object) -> bool {
        self.whole == object.whole()
    }
}

/// The figures known.
#[derive(Default)]
pub struct Ledger {
    known: Mutex<HashMap<LedgerKey, Known>>,
    /// Whether figures are being worked out: what they are of is kept in the pool.
    at_work: AtomicBool,
    /// Whether somebody waits for what is kept.
    wanted: AtomicBool,
}

/// How long [`Ledger::let_go`] waits, at most, and how often it is looked whether somebody does.
const LET_GO: (Duration, Duration) = (Duration::from_secs(2), Duration::from_millis(50));

impl Ledger {
    /// Has the worker let go of what it keeps, so that what was deleted meanwhile gives its room back.
    pub fn let_go(&self, clock: &dyn Clock) {
        let deadline = clock.elapsed() + LET_GO.0;
        self.wanted.store(true, Ordering::Relaxed);
        let kept = || self.at_work.load(Ordering::Relaxed) && self.wanted.load(Ordering::Relaxed);
        while kept() && clock.elapsed() < deadline {
            clock.sleep(LET_GO.1);
        }
    }

    fn dated(&self, key: LedgerKey, version: BlockHash) -> Option<DatedFigures> {
        let known = self.known.lock();
        let Known { figures, as_of, version: of, .. } = known.get(&key)?;
        Some(DatedFigures { figures: *figures, as_of: *as_of, current: *of == version })
    }

    /// Whether to compute an object's figures for a request that has already `spent` this much time on
    /// others.
    fn is_due(&self, object: &Object, version: BlockHash, spent: Duration) -> bool {
        match self.known.lock().get(&object.key) {
            None => spent < FIRST_BUDGET,
            Some(known) if known.version == version && known.is_of(object) => false,
            Some(known) => known.took < PROMPT && spent < STALE_BUDGET,
        }
    }

    /// Computes an object's figures; `stored` continues from the previous object. What it took counts no waiting for a
    /// processor: on a busy host that would make every figure look dear, and leave it as it is for long.
    fn work_out(
        &self,
        space: &Space,
        object: &Object,
        stored: &mut StoredBytes,
    ) -> Result<Duration, Failure> {
        let cost = || space.clock.elapsed().saturating_sub(offshoot_os::processor_wait());
        let begun = cost();
        let (version, as_of) = (space.store.version(), space.now());
        let whole = object.whole();
        let failed = |error: offshoot_dataset::Error| error.failure();
        let freed = space.store.freed_by_deleting(&whole).map_err(failed)?;
        let pinned = match object.past == Holding::default() {
            true => 0,
            false => space.store.freed_by_deleting(&object.past).map_err(failed)?.min(freed),
        };
        let reached = stored.replace(&whole).or_else(|_| {
            // A commit or a deletion removed what was about to be read.
            *stored = space.store.stored_bytes();
            stored.replace(&whole).map_err(failed)
        })?;
        let figures = LedgerFigures {
            exclusive_bytes: freed - pinned,
            shared_bytes: reached.saturating_sub(freed),
            pinned_bytes: pinned,
        };
        let took = cost().saturating_sub(begun);
        self.known.lock().insert(object.key, Known { whole, version, as_of, took, figures });
        Ok(took)
    }
}

/// The figures of some objects; outdated ones are recomputed now if that is quick.
pub fn figures(
    space: &Space,
    keys: &HashSet<LedgerKey>,
) -> Result<HashMap<LedgerKey, LedgerFigures>, Failure> {
    let mut objects = inventory(&space.catalog)?;
    objects.retain(|object| keys.contains(&object.key));
    freshen(space, &objects.iter().collect::<Vec<_>>());
    let known = space.ledger.known.lock();
    Ok(keys.iter().filter_map(|key| Some((*key, known.get(key)?.figures))).collect())
}

/// What deleting each of some objects alone would free: for a VDB this is quick whatever its size, as most of it
/// is shared.
pub fn freed_if_deleted(
    space: &Space,
    keys: &HashSet<LedgerKey>,
) -> Result<HashMap<LedgerKey, u64>, Failure> {
    let (begun, version) = (space.clock.elapsed(), space.store.version());
    let mut all = HashMap::new();
    for object in inventory(&space.catalog)?.iter().filter(|object| keys.contains(&object.key)) {
        let spent = space.clock.elapsed() - begun;
        let freed = if space.ledger.is_due(object, version, spent) {
            let freed = space.store.freed_by_deleting(&object.whole());
            Some(freed.map_err(|error| error.failure())?)
        } else {
            let known = space.ledger.known.lock();
            known.get(&object.key).map(|known| known.figures.freed_if_deleted_bytes())
        };
        all.extend(freed.map(|freed| (object.key, freed)));
    }
    Ok(all)
}

/// Recomputes what is outdated, as far as time allows.
fn freshen(space: &Space, objects: &[&Object]) {
    let begun = space.clock.elapsed();
    let version = space.store.version();
    let mut stored = space.store.stored_bytes();
    for object in objects {
        let spent = space.clock.elapsed() - begun;
        if space.ledger.is_due(object, version, spent)
            && let Err(failure) = space.ledger.work_out(space, object, &mut stored)
        {
            tracing::warn!(object = object.name, %failure, "the ledger");
        }
    }
}

/// All objects' entries, or those of one object and its snapshots.
///
/// # Errors
/// `NotFound`.
pub fn list(space: &Space, object: Option<&str>) -> Result<Vec<LedgerEntry>, Failure> {
    let mut objects = inventory(&space.catalog)?;
    if let Some(name) = object {
        let one = find(&objects, name)?;
        let (key, name) = (one.key, one.name.clone());
        objects.retain(|other| other.key == key || other.of.as_deref() == Some(name.as_str()));
    }
    let all: Vec<&Object> = objects.iter().collect();
    freshen(space, &all);
    Ok(all.into_iter().map(|object| entry(space, object)).collect())
}

/// What deleting objects together would free, computed now.
///
/// # Errors
/// `NotFound`.
pub fn deletion(space: &Space, names: &[String]) -> Result<Deletion, Failure> {
    let objects = inventory(&space.catalog)?;
    let mut whole = Holding::default();
    let mut chosen: Vec<&Object> = Vec::new();
    for name in names {
        let object = find(&objects, name)?;
        whole.extend(&object.whole());
        if !chosen.iter().any(|one| one.key == object.key) {
            chosen.push(object);
        }
    }
    let freed = space.store.freed_by_deleting(&whole).map_err(|error| error.failure())?;
    freshen(space, &chosen);
    let entries = chosen.into_iter().map(|object| entry(space, object)).collect();
    Ok(Deletion { entries, freed_if_deleted_bytes: freed })
}

/// An object by its name, or a dSource or VDB by its id.
fn find<'a>(objects: &'a [Object], name: &str) -> Result<&'a Object, Failure> {
    let id = name.parse::<Owner>().ok().map(LedgerKey::from);
    let is_meant = |object: &&Object| object.name == name || Some(object.key) == id;
    objects.iter().find(is_meant).ok_or_else(|| {
        let shown: String = name.chars().take(80).collect();
        Failure::new(
            ErrorKind::NotFound,
            format!("there is no dSource, VDB or snapshot '{shown}'"),
            "list them: offshoot pool ledger",
        )
    })
}

fn entry(space: &Space, object: &Object) -> LedgerEntry {
    let store = &space.store;
    let datasets = object.present.datasets.iter();
    let mut logical: u64 = datasets.filter_map(|id| store.dataset_logical_bytes(*id).ok()).sum();
    match object.key {
        // The received log is part of what was copied from the source.
        LedgerKey::Dsource(_) => {
            let log = object.past.datasets.iter();
            logical += log.filter_map(|id| store.dataset_logical_bytes(*id).ok()).sum::<u64>();
        }
        LedgerKey::Snapshot(id) => logical = store.snapshot_logical_bytes(id).unwrap_or_default(),
        LedgerKey::Vdb(_) => {}
    }
    LedgerEntry {
        key: object.key,
        object: object.name.clone(),
        of: object.of.clone(),
        logical_bytes: logical,
        figures: space.ledger.dated(object.key, store.version()),
    }
}

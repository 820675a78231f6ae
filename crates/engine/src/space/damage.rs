//! Damaged blocks: listed with their holders, kept across restarts, forgotten once they are healed.
//!
//! The pool finds damage (a read, a scrub, compaction) and knows when it is healed. This turns its list into
//! faults in the catalog, and stores it, so that the next engine knows what to replace when its content comes
//! again. The holders of a block are looked up in the background, as that reads the metadata of the whole store;
//! until then the fault says so.

use crate::core::topic::Topic;
use crate::ground::stopping::Stopping;
use crate::space::Space;
use crate::space::inventory::{self, BlockHolder};
use jiff::Timestamp;
use offshoot_catalog::{Catalog, Subject};
use offshoot_dataset::{Fault, Holder, Holders, StateId};
use offshoot_types::{BlockHash, ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// The setting with the names of damaged blocks.
const SETTING: &str = "pool.damage";
/// At most this many are stored; a pool with more needs another remedy.
const WRITTEN_MAX: usize = 10_000;
/// At most this many have a fault of their own; one fault counts the rest.
const FAULTS_MAX: usize = 100;
/// Pause between checks for blocks whose holders are unknown.
const LOOK: Duration = Duration::from_millis(250);
/// If anything changed, holders are looked up again after this time, or this many times the
/// duration of the last look-up.
const AGAIN: (Duration, u32) = (Duration::from_secs(30), 20);

/// A damaged block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedBlock {
    /// Its name.
    pub hash: BlockHash,
    /// Where it lies; segment 0: nowhere.
    pub segment: u32,
    /// The byte in the segment.
    pub offset: u32,
    /// What is wrong with it.
    pub detail: String,
    /// When that was found; none if nobody recorded it.
    pub since: Option<Timestamp>,
    /// What holds it; none: not looked up yet.
    pub holders: Option<Vec<BlockHolder>>,
    /// How many more places hold it.
    pub more: u64,
}

impl DamagedBlock {
    fn new(fault: &Fault) -> DamagedBlock {
        // The reader's message begins with the block's name, which is also shown here.
        let twice = format!("block {} is damaged on disk: ", fault.hash);
        DamagedBlock {
            hash: fault.hash,
            segment: fault.segment,
            offset: fault.offset,
            detail: fault.detail.strip_prefix(&twice).unwrap_or(&fault.detail).to_owned(),
            since: Timestamp::from_second(fault.found_at_unix_s as i64).ok(),
            holders: None,
            more: 0,
        }
    }

    fn topic(&self) -> Topic<'static> {
        Topic::Block(self.hash)
    }

    fn failure(&self) -> Failure {
        if self.hash.is_zero() {
            let hint = "check the disk; read everything: offshoot pool scrub";
            return Failure::new(ErrorKind::DataDamaged, self.detail.clone(), hint);
        }
        let held = match &self.holders {
            None => "who holds it is being looked up".to_owned(),
            Some(holders) => describe(holders, self.more),
        };
        let place = match self.segment {
            0 => String::new(),
            segment => format!("segment {segment}, byte {}: ", self.offset),
        };
        Failure::new(
            ErrorKind::DataDamaged,
            format!("block {} is damaged ({place}{}); {held}", self.hash, self.detail),
            "reads of it answer with an I/O error until the same content is written or received again, which \
             replaces it; else provision again from another snapshot; check the disk",
        )
    }
}

/// The holders in words.
fn describe(holders: &[BlockHolder], more: u64) -> String {
    let mut words: Vec<String> = holders.iter().map(BlockHolder::describe).collect();
    match (words.is_empty(), more) {
        (true, _) => return "no file holds it".to_owned(),
        (false, 0) => {}
        (false, more) => words.push(format!("{more} more places")),
    }
    format!("held by {}", words.join("; "))
}

/// Damage known.
#[derive(Default)]
pub struct Damage {
    known: Mutex<BTreeMap<BlockHash, DamagedBlock>>,
}

impl Damage {
    /// All damaged blocks, without damaged structures.
    pub fn blocks(&self) -> Vec<DamagedBlock> {
        self.known.lock().values().filter(|block| !block.hash.is_zero()).cloned().collect()
    }
}

/// Tells the pool what was damaged when the last engine ended.
///
/// # Errors
/// The catalog's.
pub fn recall(space: &Space) -> Result<(), Failure> {
    let kept: Vec<String> = space.catalog.setting(SETTING)?.unwrap_or_default();
    for hash in kept.iter().filter_map(|text| BlockHash::from_hex(text)) {
        space.store.pool().recall_damage(hash);
    }
    // What an earlier engine reported about blocks that are now gone.
    let known = space.store.faults();
    let topics: Vec<String> =
        (known.iter()).map(|fault| DamagedBlock::new(fault).topic().to_string()).collect();
    for fault in space.catalog.faults()?.iter().filter(|fault| fault.subject == Subject::Pool) {
        if Topic::is_of_blocks(fault) && !topics.contains(&fault.topic) {
            space.clear_stored(&fault.subject, &fault.topic);
        }
    }
    report(space);
    Ok(())
}

/// Whether a block is damaged.
pub fn is_known(space: &Space) -> bool {
    report(space);
    !space.damage.blocks().is_empty()
}

/// Raises faults for what the pool knows now.
pub fn report(space: &Space) {
    let now = space.store.faults();
    let damaged: HashSet<BlockHash> = now.iter().map(|fault| fault.hash).collect();
    let mut known = space.damage.known.lock();
    let before = known.len();
    let healed: Vec<BlockHash> =
        known.keys().filter(|hash| !damaged.contains(*hash)).copied().collect();
    for hash in &healed {
        if let Some(block) = known.remove(hash) {
            space.clear(Subject::Pool, block.topic());
        }
    }
    let mut raised = known.len();
    let mut new = 0;
    for fault in &now {
        if known.contains_key(&fault.hash) {
            continue;
        }
        let block = DamagedBlock::new(fault);
        if raised < FAULTS_MAX {
            space.raise(Subject::Pool, block.topic(), &block.failure());
        }
        (raised, new) = (raised + 1, new + 1);
        known.insert(fault.hash, block);
    }
    if healed.is_empty() && new == 0 {
        return;
    }
    report_more(space, before, known.len());
    let names: Vec<String> = known.keys().take(WRITTEN_MAX).map(BlockHash::to_hex).collect();
    if let Err(error) = space.catalog.set_setting(SETTING, &names) {
        tracing::error!(%error, "damaged blocks could not be written down");
    }
}

fn report_more(space: &Space, before: usize, now: usize) {
    if now > FAULTS_MAX {
        let message = format!("{now} blocks are damaged, {FAULTS_MAX} of them listed");
        let hint = "look at all of them: offshoot pool scrub --last; check the disk";
        space.raise(
            Subject::Pool,
            Topic::Blocks,
            &Failure::new(ErrorKind::DataDamaged, message, hint),
        );
    } else if before > FAULTS_MAX {
        space.clear(Subject::Pool, Topic::Blocks);
    }
}

/// Looks up who holds all damaged blocks and says so in their faults.
///
/// # Errors
/// The catalog's.
pub fn look_up_holders(space: &Space) -> Result<(), Failure> {
    report(space);
    let wanted: Vec<BlockHash> = space.damage.blocks().iter().map(|block| block.hash).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let found = space.store.holders(&wanted);
    let owners = inventory::owners(&space.catalog)?;
    let mut known = space.damage.known.lock();
    for (index, block) in known.values_mut().enumerate() {
        let Some(holders) = found.get(&block.hash) else { continue };
        let named = Some(name_holders(&owners, holders));
        if block.holders != named || block.more != holders.more {
            (block.holders, block.more) = (named, holders.more);
            if index < FAULTS_MAX {
                space.raise(Subject::Pool, block.topic(), &block.failure());
            }
        }
    }
    Ok(())
}

fn name_holders(owners: &HashMap<StateId, BlockHolder>, holders: &Holders) -> Vec<BlockHolder> {
    let name = |holder: &Holder| {
        let unknown = || BlockHolder {
            key: None,
            object: match holder.state {
                StateId::Dataset(id) => id.to_string(),
                StateId::Snapshot(id) => id.to_string(),
                StateId::Directory => "the directory of all objects".to_owned(),
            },
            of: None,
            file: None,
        };
        let owner = owners.get(&holder.state).cloned().unwrap_or_else(unknown);
        BlockHolder { file: holder.file.clone(), ..owner }
    };
    holders.named.iter().map(name).collect()
}

/// Damage that a check of a closed pool found, with the names that its catalog knows.
pub fn of_check(catalog: Option<&Catalog>, found: &[(BlockHash, Holders)]) -> Vec<DamagedBlock> {
    let owners = catalog.and_then(|catalog| inventory::owners(catalog).ok()).unwrap_or_default();
    let block = |(hash, holders): &(BlockHash, Holders)| DamagedBlock {
        hash: *hash,
        segment: 0,
        offset: 0,
        detail: String::new(),
        since: None,
        holders: Some(name_holders(&owners, holders)),
        more: holders.more,
    };
    found.iter().map(block).collect()
}

/// Watches damage until told to stop.
pub fn run(space: &Space, stopping: &Stopping) {
    for block in space.damage.blocks() {
        if stopping.is_told() {
            return;
        }
        if let Err(error) = space.store.pool().recheck_damage(&block.hash) {
            tracing::warn!(hash = %block.hash, %error, "looking at a damaged block again");
        }
    }
    let (mut next, mut version) = (Duration::ZERO, BlockHash::ZERO);
    while !stopping.rest(LOOK) {
        let blocks = space.damage.blocks();
        let new = blocks.iter().any(|block| block.holders.is_none());
        let begun = space.clock.elapsed();
        let now = space.store.version();
        let again = !blocks.is_empty() && begun >= next && version != now;
        if !new && !again {
            continue;
        }
        if let Err(failure) = look_up_holders(space) {
            tracing::warn!(%failure, "looking up who holds damaged blocks");
        }
        version = now;
        let ended = space.clock.elapsed();
        next = ended + AGAIN.0.max((ended - begun) * AGAIN.1);
    }
}

//! VDBs and dSources that lack acknowledged writes, because the part of the intent log that held them was
//! damaged.
//!
//! The store refuses such a dataset ([`offshoot_dataset::Error::Lost`]) until somebody accepts it as it is:
//!
//! - *The present state of a VDB*: its user, by starting it. A fault and the VDB's own error say so.
//!   Refreshing, rewinding or deleting it settles it, too, as a choice for another state.
//! - *A state that a rewind or refresh replaced*: the user who goes back to it (`vdb rewind --undo`); a fault
//!   says so.
//! - *A dSource*: the engine, immediately. It receives and replays again what its datasets lack, and until then
//!   a fault says so. If the source no longer has it, that is a gap, with its own fault.

use crate::core::Core;
use crate::core::topic::Topic;
use offshoot_domain::{Dsource, ObjectName, Timeflow, Vdb, VdbState};
use offshoot_types::{DatasetId, ErrorKind, Failure, VdbId};

/// Refuses a VDB whose present state lacks acknowledged writes.
///
/// # Errors
/// `DataDamaged`, with all that settles it.
pub fn check(core: &Core, vdb: &Vdb) -> Result<(), Failure> {
    match vdb.dataset.filter(|id| core.store.lost().contains(id)) {
        Some(_) => Err(of_present(vdb)),
        None => Ok(()),
    }
}

fn of_present(vdb: &Vdb) -> Failure {
    let name = &vdb.name;
    Failure::new(
        ErrorKind::DataDamaged,
        format!(
            "'{name}' lacks acknowledged writes: the part of the intent log that held them is damaged"
        ),
        format!(
            "go on with the state before them: offshoot vdb start {name}; or open another one: offshoot vdb \
             refresh {name}, offshoot vdb rewind {name} --snapshot ID; check the disk"
        ),
    )
}

fn of_past(vdb: &Vdb) -> Failure {
    let name = &vdb.name;
    Failure::new(
        ErrorKind::DataDamaged,
        format!(
            "the state of '{name}' before a rewind or refresh lacks acknowledged writes: the part of the \
             intent log that held them is damaged"
        ),
        format!(
            "nothing, unless you want to go back to it: offshoot vdb rewind {name} --undo opens what is there; \
             it goes with the retention of '{name}'; check the disk"
        ),
    )
}

/// States that a rewind or refresh of a VDB replaced and that lack writes.
fn past(core: &Core, vdb: &Vdb) -> Result<Vec<DatasetId>, Failure> {
    let lost = core.store.lost();
    if lost.is_empty() {
        return Ok(lost);
    }
    let timeflows: Vec<Timeflow> = core.catalog.list_of(vdb.id)?;
    let states = timeflows.into_iter().filter_map(|one| one.dataset);
    Ok(states.filter(|id| Some(*id) != vdb.dataset && lost.contains(id)).collect())
}

/// Raises faults for what all VDBs lack; those that now lack something are failed, whatever they were
/// before.
///
/// # Errors
/// The catalog's.
pub fn report_all(core: &Core) -> Result<(), Failure> {
    for vdb in core.catalog.list::<Vdb>()? {
        report(core, vdb.id)?;
        let Err(failure) = check(core, &vdb) else { continue };
        // A VDB that is being changed is left to its job.
        if vdb.state != VdbState::Provisioning {
            core.catalog.update::<Vdb>(vdb.id, |vdb| {
                (vdb.state, vdb.problem) = (VdbState::Failed, Some(failure));
            })?;
        }
    }
    Ok(())
}

/// Raises a fault for what a VDB lacks, or clears it.
///
/// # Errors
/// The catalog's.
pub fn report(core: &Core, id: VdbId) -> Result<(), Failure> {
    let Some(vdb) = core.catalog.find::<Vdb>(id)? else { return Ok(()) };
    match check(core, &vdb) {
        Err(failure) => core.raise(&vdb.name, Topic::Loss, &failure),
        Ok(()) if !past(core, &vdb)?.is_empty() => {
            core.raise(&vdb.name, Topic::Loss, &of_past(&vdb))
        }
        Ok(()) => core.clear(&vdb.name, Topic::Loss),
    }
    Ok(())
}

/// Accepts what is left of a VDB's present or past state, as its user asked.
///
/// # Errors
/// The store's and the catalog's.
pub fn accept(core: &Core, id: VdbId, dataset: DatasetId) -> Result<(), Failure> {
    if !core.store.lost().contains(&dataset) {
        return Ok(());
    }
    core.store.accept_loss(dataset).map_err(|error| error.failure())?;
    // If it does not start now, that has another reason.
    core.catalog.update::<Vdb>(id, |vdb| {
        if vdb.dataset == Some(dataset) {
            (vdb.state, vdb.problem) = (VdbState::Stopped, None);
        }
    })?;
    report(core, id)
}

/// Another state of a VDB was opened: what the others lack no longer matters.
///
/// # Errors
/// The store's and the catalog's.
pub fn settle_past(core: &Core, id: VdbId) -> Result<(), Failure> {
    for dataset in past(core, &core.catalog.get(id)?)? {
        core.store.accept_loss(dataset).map_err(|error| error.failure())?;
    }
    report(core, id)
}

/// Accepts a dSource's datasets although they lack writes; returns its record as it is then. How far its
/// log went can no longer be trusted: that is forgotten first, and determined again.
///
/// # Errors
/// The store's and the catalog's.
pub fn accept_of_dsource(core: &Core, dsource: &Dsource) -> Result<Dsource, Failure> {
    let mut lost = core.store.lost();
    lost.retain(|id| [dsource.log_dataset, dsource.staging_dataset].contains(&Some(*id)));
    if lost.is_empty() {
        return Ok(dsource.clone());
    }
    let name = &dsource.name;
    let (what, mend) = match dsource.log_dataset.is_some_and(|log| lost.contains(&log)) {
        true => (format!("'{name}' lacks log that was received"), "it is received again"),
        false => {
            (format!("staging of '{name}' lacks log that was replayed"), "it is replayed again")
        }
    };
    let failure = Failure::new(
        ErrorKind::DataDamaged,
        format!("{what}: the part of the intent log that held it is damaged; {mend}"),
        format!(
            "nothing as long as the source has that log; else it is a gap, which a new copy mends: offshoot \
             dsource sync {name}; check the disk"
        ),
    );
    core.raise(name, Topic::Loss, &failure);
    let dsource = core.catalog.update::<Dsource>(dsource.id, |one| one.synced_to = None)?;
    for dataset in lost {
        tracing::warn!(dsource = %dsource.name, %dataset, "continues after what is lost");
        core.store.accept_loss(dataset).map_err(|error| error.failure())?;
    }
    Ok(dsource)
}

/// A dSource again has everything that its source has.
pub fn received_again(core: &Core, name: &ObjectName) {
    core.clear(name, Topic::Loss);
}

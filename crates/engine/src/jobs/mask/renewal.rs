//! Masking only what has changed since a masked dSource was last renewed.
//!
//! The last masked image is cloned and brought up to date by its kind of database, which compares the state of the source
//! that was masked then with the one that is wanted now ([`offshoot_connector::Masking::renew`]). Where that cannot be,
//! everything is masked, and the job says why.

use super::keys::StoredKey;
use super::{Input, discard_clone};
use crate::core::keys::job_key;
use crate::core::kind::{Kind, PositionWriter};
use crate::history::moments::Resolved;
use crate::images::opening::{self, BASE, DATASET, RECOVERY_DEADLINE, RESOLVED};
use crate::images::pair::{self, Side};
use crate::jobs::provision::resolve_from;
use crate::parts::{Context, Parts};
use offshoot_connector::{Masked, Masking as Rules, MaskingTick, Renewal, Renewed};
use offshoot_domain::{Dsource, MaskReport, Masking, Moment, Owner, Snapshot};
use offshoot_types::{ErrorKind, Failure, SnapshotId};

/// What a renewal begins with.
struct Last {
    masked: Dsource,
    /// What the last run gave.
    image: SnapshotId,
    /// The moment of the source that it masked.
    moment: Moment,
    report: MaskReport,
}

/// What became of it.
pub enum Outcome {
    /// The job's clone is masked, and its server has stopped.
    Renewed(Masked),
    /// Everything has to be masked; for this reason, if that is worth to be told.
    InFull(Option<String>),
}

/// The states of the source that a job compares: the one that was masked last, and the one to be masked.
fn sides(context: &Context, source: Owner) -> Result<[Side; 2], Failure> {
    Ok([Side::new(context, "before", source)?, Side::new(context, "now", source)?])
}

/// Ends what compares both states, if anything does.
pub fn discard(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    pair::discard(context, &sides(context, input.source.into())?)
}

/// Brings a clone of the last masked image up to date, if there is one that can be.
pub fn renew(
    context: &Context,
    rules: &dyn Rules,
    key: &StoredKey,
    tick: &mut MaskingTick<'_>,
) -> Result<Outcome, Failure> {
    let input: Input = context.input()?;
    let last = match last(context.app(), &input, key)? {
        Ok(last) => last,
        Err(why) => return Ok(Outcome::InFull(why)),
    };
    let renewed = renew_last(context, &input, &last, rules, key, tick);
    discard(context)?;
    let why = match renewed {
        Ok(Renewed::Done(masked)) => return Ok(Outcome::Renewed(masked)),
        Ok(Renewed::InFull(why)) => why,
        Err(failure) if context.is_cancelled() || failure.code == ErrorKind::PoolFull => {
            return Err(failure);
        }
        // If it was for what is to be masked, masking everything fails, too, and says what.
        Err(failure) => {
            tracing::warn!(masked = %input.name, %failure, "what has changed cannot be masked alone");
            failure.message
        }
    };
    discard_clone(context)?;
    Ok(Outcome::InFull(Some(why)))
}

/// What can be renewed; or why nothing can.
fn last(
    parts: &Parts,
    input: &Input,
    key: &StoredKey,
) -> Result<Result<Last, Option<String>>, Failure> {
    let no = |why: &str| Ok(Err(Some(why.to_owned())));
    let masked = parts.catalog.find_named::<Dsource>(&input.name)?;
    let Some(masked) = masked else { return Ok(Err(None)) };
    let Some(masking) = parts.catalog.find::<Masking>(masked.id)? else { return Ok(Err(None)) };
    if input.full {
        return no("that was asked for");
    }
    if masking.source != input.source {
        return no("it was masked from another dSource before");
    }
    if masking.rules != input.rules {
        return no("the rules are others than before");
    }
    let at = masking.last.snapshot;
    let snapshot: Option<Snapshot> = parts.catalog.find(at)?;
    let image = snapshot.as_ref().and_then(|one| Some((one.ready_image()?, one.position)));
    let report: Option<MaskReport> = parts.catalog.find(at)?;
    let (Some((image, position)), Some(report)) = (image, report) else {
        return no("the image of the last run is gone");
    };
    if report.key_version != key.version || report.key != masking.key {
        return no("the key is another one than before");
    }
    if report.engine_version != env!("CARGO_PKG_VERSION") {
        return no("the last run was done by another release of Offshoot");
    }
    // A snapshot is its own moment, also where no log is kept from before it.
    let of: Option<Snapshot> = parts.catalog.find(masking.last.of)?;
    if let Some(of) = of.filter(|of| of.position.log == position.log) {
        let moment = Moment::Snapshot(of.id);
        return Ok(Ok(Last { masked, image, moment, report }));
    }
    let moment = Moment::Log(PositionWriter::of(parts, input.source.into())?.write(position.log));
    Ok(Ok(Last { masked, image, moment, report }))
}

fn renew_last(
    context: &Context,
    input: &Input,
    last: &Last,
    rules: &dyn Rules,
    key: &StoredKey,
    tick: &mut MaskingTick<'_>,
) -> Result<Renewed, Failure> {
    let source: Owner = input.source.into();
    let sides = sides(context, source)?;
    let [before, now] = &sides;
    resolve_from(&before.part, source, &last.moment)?;
    let resolved: Resolved = context.need(RESOLVED)?;
    now.part.set(BASE, &source)?;
    now.part.set(RESOLVED, &resolved)?;
    for side in &sides {
        context.check_cancelled()?;
        side.open()?;
    }
    let parts = context.app();
    let dataset = parts.store.clone_snapshot(last.image).map_err(|e| e.failure())?;
    context.set(DATASET, &dataset)?;
    parts.volumes.mount_gathering(dataset)?;
    let job = job_key(context.job_id());
    let kind = Kind::of(parts, last.masked.id.into())?;
    let masked = opening::start_private(parts, &job, &kind, dataset, RECOVERY_DEADLINE)?;
    let opened = pair::serve(&sides)?;
    let renewed = pair::compared(context, &opened, |compared| {
        let (masked, earlier) = (&*masked, &last.report.facts);
        rules.renew(Renewal { masked, earlier, compared }, &key.secret, tick)
    })?;
    // Before what compares both states is ended, which ends whatever server the job has.
    opening::stop_clean(parts, &job, dataset)?;
    Ok(renewed)
}

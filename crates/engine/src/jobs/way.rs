//! Another way to the source of a dSource: address, password, or both.
//!
//! For a dSource that was taken over from another engine it is the first one, and the job makes what a link would have made: a
//! reservation of log, and staging, which begins as the last snapshot that was taken of it. So it goes on where
//! its history ends, without another copy of the source, if the source still has the log.

use crate::core::job_kind::JobKind;
use crate::core::keys::{new_source_password_key, sent_password_key, source_password_key};
use crate::core::kind::Kind;
use crate::following::reservations;
use crate::history::snapshots;
use crate::jobs::dsource::start_paused;
use crate::parts::{Context, Parts};
use offshoot_connector::{Source, SourceUri};
use offshoot_domain::{Dsource, DsourceState, Secret, Timeflow};
use offshoot_os::process::User;
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, JobId};
use offshoot_workflow::{Key, Submission, Workflow};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long the job waits for what the source has, to say whether the log goes on.
const ASK_TIMEOUT: Duration = Duration::from_secs(60);
/// Key under which the job stores what the check of the source warned of.
const WARNINGS: Key<Vec<Failure>> = Key::new("warnings");
/// Key under which it stores the reservation that it makes, if the kind of database needs one.
const RESERVATION: Key<Option<String>> = Key::new("reservation");
/// Key under which it stores the staging that it makes.
const STAGING: Key<DatasetId> = Key::new("staging_dataset");

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::DsourceSet)
        .step("check_source", check_way, forget_way)
        .step("take_up", take_up, leave)
        .point_of_no_return()
        .step_without_undo("switch", switch)
        .step_without_undo("follow", follow_again)
}

/// Another way to the source of a dSource. Its password is a secret of the catalog until the job ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Way {
    dsource: DsourceId,
    /// Without a password.
    source: String,
}

/// Held while a new password is put where the job finds it.
static SETTING: Mutex<()> = Mutex::new(());

/// Changes how a source is reached; without a password in `to`, the present one stays.
pub fn submit_set(parts: &Arc<Parts>, dsource: &Dsource, to: SourceUri) -> Result<JobId, Failure> {
    let key = new_source_password_key(dsource.id);
    let input = Way { dsource: dsource.id, source: to.uri };
    // From here to the job's acceptance nobody else puts a password there; from then on the job
    // keeps others out.
    let _alone = SETTING.lock();
    let runner = parts.runner()?;
    if runner.is_busy(dsource.id) {
        let hint = "wait until it has ended: offshoot job list";
        let message = format!("a job is at work on '{}'", dsource.name);
        return Err(Failure::new(ErrorKind::Busy, message, hint));
    }
    match &to.secret {
        Some(secret) => parts.catalog.put_secret(&key, secret)?,
        None => parts.catalog.delete_secret(&key)?,
    }
    parts.submit(submission(dsource, &input))
}

fn submission(dsource: &Dsource, input: &Way) -> Submission {
    Submission::new(JobKind::DsourceSet, &dsource.name, input).exclusive(dsource.id)
}

/// Has one that was taken over follow its source by the way that the other engine took, with the password that came.
///
/// # Errors
/// `Busy`.
pub fn submit_as_sent(parts: &Arc<Parts>, dsource: &Dsource) -> Result<JobId, Failure> {
    let input = Way { dsource: dsource.id, source: dsource.source.clone() };
    parts.submit(submission(dsource, &input).of_engine())
}

/// The source by the new way. A new password is a secret of the job until it ends.
fn source_by(parts: &Parts, dsource: &Dsource, way: &Way) -> Result<Box<dyn Source>, Failure> {
    let uri = SourceUri { uri: way.source.clone(), secret: secret_of(parts, dsource.id)? };
    parts.connectors.find(&dsource.connector)?.source(&uri)
}

fn secret_of(parts: &Parts, id: DsourceId) -> Result<Option<Secret>, Failure> {
    for key in [new_source_password_key(id), source_password_key(id), sent_password_key(id)] {
        if let Some(secret) = parts.catalog.secret(&key)? {
            return Ok(Some(secret).filter(|secret| !secret.reveal().is_empty()));
        }
    }
    Ok(None)
}

/// Checks that the new way leads to the same database, as a link does.
fn check_way(context: &Context) -> Result<(), Failure> {
    let (parts, way): (_, Way) = (context.app(), context.input()?);
    let dsource: Dsource = parts.catalog.get(way.dsource)?;
    let checked = source_by(parts, &dsource, &way)?.check()?;
    if !dsource.identity.is_empty() && dsource.identity != checked.identity {
        return Err(Failure::new(
            ErrorKind::SourceRefused,
            format!(
                "{} is another database than the one '{}' was copied from",
                way.source, dsource.name
            ),
            "link it as a dSource of its own: offshoot dsource link",
        ));
    }
    context.set(WARNINGS, &checked.warnings)
}

fn forget_way(context: &Context) -> Result<(), Failure> {
    let way: Way = context.input()?;
    Ok(context.app().catalog.delete_secret(&new_source_password_key(way.dsource))?)
}

/// Makes what one that was taken over lacks to follow its source.
fn take_up(context: &Context) -> Result<(), Failure> {
    let (parts, way): (_, Way) = (context.app(), context.input()?);
    let dsource: Dsource = parts.catalog.get(way.dsource)?;
    if !dsource.awaits_way() {
        return Ok(());
    }
    let base = snapshots::base_of_staging(parts, &dsource)?;
    let base = base.filter(|_| dsource.log_dataset.is_some()).ok_or_else(|| {
        Failure::new(
            ErrorKind::WrongState,
            format!("'{}' has no snapshot that its log goes on from", dsource.name),
            "link the source anew, as a dSource of its own: offshoot dsource link",
        )
    })?;
    let source = source_by(parts, &dsource, &way)?;
    let unique = format!("{}_{:x}", dsource.id.0, parts.now().as_millisecond());
    let reservation = context.get(RESERVATION)?.unwrap_or_else(|| source.reservation_name(&unique));
    context.set(RESERVATION, &reservation)?;
    if let Some(name) = &reservation {
        source.reserve_log(name)?;
    }
    if context.get(STAGING)?.is_some() {
        return Ok(());
    }
    let staging = parts.store.clone_snapshot(base.id).map_err(|e| e.failure())?;
    context.set(STAGING, &staging)?;
    // The other engine's servers may have had another user.
    let kind = Kind::of_dsource(parts, &dsource)?;
    let (uid, gid) = kind.server_owner();
    Ok(parts.volumes.files(staging)?.set_owner(kind.connector.layout().data, uid, gid)?)
}

/// Undo: gives that up.
fn leave(context: &Context) -> Result<(), Failure> {
    let (parts, way): (_, Way) = (context.app(), context.input()?);
    if let Some(staging) = context.get(STAGING)? {
        parts.delete_dataset(staging)?;
    }
    let Some(Some(reservation)) = context.get(RESERVATION)? else { return Ok(()) };
    let Some(dsource) = parts.catalog.find::<Dsource>(way.dsource)? else { return Ok(()) };
    let secret = secret_of(parts, way.dsource)?;
    let reserved = Dsource { reservation: Some(reservation), source: way.source, ..dsource };
    reservations::release_with(parts, &reserved, secret)
}

fn switch(context: &Context) -> Result<(), Failure> {
    let (parts, way): (_, Way) = (context.app(), context.input()?);
    parts.stop(way.dsource)?;
    if let Some(secret) = secret_of(parts, way.dsource)? {
        parts.catalog.put_secret(&source_password_key(way.dsource), &secret)?;
    }
    let warnings: Vec<Failure> = context.need(WARNINGS)?;
    let staging = context.get(STAGING)?;
    let reservation = context.get(RESERVATION)?.flatten();
    parts.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
        let dsource = tx.update::<Dsource>(way.dsource, |dsource| {
            (dsource.source, dsource.warnings) = (way.source.clone(), warnings);
            if staging.is_some() {
                (dsource.staging_dataset, dsource.reservation) = (staging, reservation);
                (dsource.state, dsource.problem) = (DsourceState::Active, None);
            }
        })?;
        if let (Some(_), Some(timeflow)) = (staging, dsource.timeflow) {
            tx.update::<Timeflow>(timeflow, |timeflow| timeflow.dataset = staging)?;
        }
        Ok(())
    })?;
    parts.catalog.delete_secret(&sent_password_key(way.dsource))?;
    forget_way(context)
}

/// Follows the source by the new way if it was followed before, or was taken over.
fn follow_again(context: &Context) -> Result<(), Failure> {
    let (parts, way): (_, Way) = (context.app(), context.input()?);
    parts.stop(way.dsource)?;
    let dsource: Dsource = parts.catalog.get(way.dsource)?;
    parts.clear_all(&dsource.name)?;
    if dsource.state != DsourceState::Active {
        return start_paused(parts, &dsource);
    }
    if context.get(STAGING)?.is_none() {
        return parts.start(&dsource, true);
    }
    own_log(parts, &dsource)?;
    parts.start(&dsource, true)?;
    say_whether_it_goes_on(context, &dsource)
}

/// The engine's own programs write to the log from now on, and the other engine may have had another user.
fn own_log(parts: &Parts, dsource: &Dsource) -> Result<(), Failure> {
    let Some(log) = dsource.log_dataset else { return Ok(()) };
    let layout = Kind::of_dsource(parts, dsource)?.connector.layout();
    let (uid, gid) = User::own_ids();
    let files = parts.volumes.files(log)?;
    for directory in [layout.log, layout.index] {
        files.set_owner(directory, uid, gid)?;
    }
    Ok(())
}

fn say_whether_it_goes_on(context: &Context, dsource: &Dsource) -> Result<(), Failure> {
    let parts = context.app();
    let follower = parts.need_follower(dsource)?;
    let name = &dsource.name;
    let end = dsource.synced_to.map(|end| format!(", at {:.0}", end.time)).unwrap_or_default();
    let asked = follower.ask_now(ASK_TIMEOUT);
    let said = match (follower.broken(), asked) {
        (Some(gap), _) => format!(
            "'{name}' cannot go on where its history ends{end}: {}; what it has stays, and it goes on with a new copy of its \
             source: offshoot dsource sync {name}",
            gap.message
        ),
        (None, Ok(_)) => format!("'{name}' goes on where its history ends{end}"),
        (None, Err(why)) => format!("'{name}' follows its source; so far: {}", why.message),
    };
    context.note(said)
}

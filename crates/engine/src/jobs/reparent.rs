//! Another parent for a VDB whose own is gone, or is no longer what it should follow: what it holds, its snapshots and
//! states stay; the next refresh opens a moment of the new parent.

use crate::core::job_kind::JobKind;
use crate::core::kind::Kind;
use crate::parts::{Context, Parts};
use offshoot_domain::{Dsource, DsourceState, Owner, Parent, Vdb, is_masked};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, VdbId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Input {
    vdb: VdbId,
    to: DsourceId,
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::VdbReparent).point_of_no_return().step_without_undo("adopt", adopt)
}

/// Starts the job; refuses a parent that the VDB could never be refreshed from.
pub fn submit(parts: &Arc<Parts>, name: &str, to: &str) -> Result<JobId, Failure> {
    let (vdb, dsource) = (parts.vdb(name)?, parts.dsource(to)?);
    check(parts, &vdb, &dsource)?;
    let input = Input { vdb: vdb.id, to: dsource.id };
    let submission = Submission::new(JobKind::VdbReparent, &vdb.name, &input);
    parts.submit(submission.exclusive(vdb.id).shared(dsource.id))
}

fn check(parts: &Parts, vdb: &Vdb, to: &Dsource) -> Result<(), Failure> {
    if matches!(to.state, DsourceState::Linking | DsourceState::Unlinking) {
        let message = format!("'{}' is {}", to.name, to.state.as_str());
        return Err(Failure::new(ErrorKind::WrongState, message, "wait: offshoot job list"));
    }
    if is_masked(&vdb.source_identity) && !is_masked(&to.identity) {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!(
                "'{}' is masked, and '{}' is not: it would show what was masked",
                vdb.name, to.name
            ),
            format!("provision a new VDB: offshoot vdb provision NAME --from {}", to.name),
        ));
    }
    let (own, new) = (Kind::of_vdb(parts, vdb)?, Kind::of_dsource(parts, to)?);
    let described = |kind: &Kind| format!("{} {}", kind.connector.kind(), kind.version);
    let major = |kind: &Kind| kind.version.split('.').next().map(str::to_owned);
    if own.connector.kind() == new.connector.kind() && major(&own) == major(&new) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!(
            "'{}' is {} and '{}' is {}: it could not be refreshed from there",
            vdb.name,
            described(&own),
            to.name,
            described(&new)
        ),
        format!("provision a new VDB: offshoot vdb provision NAME --from {}", to.name),
    ))
}

fn adopt(context: &Context) -> Result<(), Failure> {
    let (parts, Input { vdb, to }) = (context.app(), context.input()?);
    let dsource: Dsource = parts.catalog.get(to)?;
    let vdb = parts.catalog.update::<Vdb>(vdb, |vdb| {
        vdb.parent = Parent { owner: to.into(), name: dsource.name.clone() };
    })?;
    let (name, parent) = (&vdb.name, &dsource.name);
    if vdb.source_identity == dsource.identity {
        return Ok(());
    }
    context.note(match vdb.source_identity.is_empty() {
        true => format!(
            "it is not known whether '{parent}' is the database that '{name}' came from: a refresh \
             replaces all its data by that of '{parent}'"
        ),
        false => format!(
            "'{parent}' is another database than '{name}' came from: a refresh replaces all its data by \
             that of '{parent}'"
        ),
    })
}

/// Notes in the VDBs of a dSource that is given up which database they came from, as records of earlier
/// releases do not say it.
pub fn remember_source(parts: &Parts, dsource: &Dsource) -> Result<(), Failure> {
    let children = |vdb: &Vdb| vdb.parent.owner == dsource.id.into();
    for vdb in parts.catalog.list::<Vdb>()?.into_iter().filter(children) {
        parts.catalog.update::<Vdb>(vdb.id, |vdb| {
            if vdb.source_identity.is_empty() {
                vdb.source_identity.clone_from(&dsource.identity);
            }
        })?;
    }
    Ok(())
}

/// VDBs that came from a database and have no parent any more.
pub fn orphans_of(parts: &Parts, identity: &str) -> Result<Vec<String>, Failure> {
    let mut orphans = Vec::new();
    for vdb in parts.catalog.list::<Vdb>()? {
        let Owner::Dsource(parent) = vdb.parent.owner else { continue };
        let same = !identity.is_empty() && vdb.source_identity == identity;
        if same && parts.catalog.find::<Dsource>(parent)?.is_none() {
            orphans.push(vdb.name.to_string());
        }
    }
    Ok(orphans)
}

//! Every question to the engine.

use offshoot_catalog::{Job, Subject};
use offshoot_domain::{Condition, Moment, PolicyChange};
use offshoot_engine::{
    BisectRequest, BookmarkRequest, Engine, ExportRequest, FailoverRequest, GroupProvisionRequest,
    LinkRequest, MaskRequest, PreviewRequest, ProvisionRequest, VdbChange,
};
use offshoot_types::{Failure, JobId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

/// Submits the job that an action names; none where it names another kind of action.
pub fn submit(engine: &Engine, source: &str, words: &[&str]) -> Result<Option<JobId>, Failure> {
    Ok(Some(match *words {
        ["link", name] => link(engine, name, source)?,
        ["move", name] => engine.dsources().set(name, Some(source.to_owned()), None)?,
        ["sync", name] => engine.dsources().sync(name)?,
        ["snapshot", name] => engine.snapshots().take(name)?,
        ["forget", name] => engine.snapshots().delete(newest(engine, name)?)?,
        ["unlink", name] => engine.dsources().unlink(name)?,
        ["pause", name] => engine.dsources().pause(name)?,
        ["resume", name] => engine.dsources().resume(name)?,
        ["provision", name, from] => provision(engine, name, from)?,
        ["refresh", name] => engine.vdbs().refresh(name, Moment::Latest)?,
        ["adjust", name] => adjust(engine, name)?,
        ["adopt", name, to] => engine.vdbs().reparent(name, to)?,
        ["rewind", name] => engine.vdbs().rewind(name, Moment::Snapshot(newest(engine, name)?))?,
        ["unwind", name] => engine.vdbs().undo_rewind(name)?,
        ["start", name] => engine.vdbs().start(name)?,
        ["stop", name] => engine.vdbs().stop(name)?,
        ["password", name] => engine.vdbs().reset_password(name)?,
        ["delete", name] => engine.vdbs().delete(name)?,
        ["provision-all", name, group] => provision_all(engine, name, group)?,
        ["refresh-all", name] => engine.groups().refresh(name, None)?,
        ["mark-all", name, mark] => engine.groups().bookmark(name, mark)?,
        ["rewind-all", name, mark] => engine.groups().rewind(name, mark)?,
        ["start-all", name] => engine.groups().start(name)?,
        ["stop-all", name] => engine.groups().stop(name)?,
        ["delete-all", name] => engine.groups().delete_vdb_group(name)?,
        ["mark", name, on] => bookmark(engine, name, on)?,
        ["unmark", name] => engine.bookmarks().delete(name)?,
        ["mask", name, from] => mask(engine, name, from)?,
        ["mask-check", from] => engine.masks().check(rules_for(from))?,
        ["mask-discover", from] => engine.masks().discover(from, 10)?,
        ["mask-preview", from] => engine.masks().preview(preview(from))?,
        ["bisect", name, key, value] => bisect(engine, name, key, value)?,
        ["import", namespace] => import(engine, namespace)?,
        ["failover", namespace, ref renames @ ..] => failover(engine, namespace, renames)?,
        ["reclaim"] => engine.pool().reclaim()?,
        ["rotate"] => engine.secrets().rotate(false)?,
        ["rotate", "forget"] => engine.secrets().rotate(true)?,
        ["scrub"] => engine.pool().scrub(None)?,
        _ => return Ok(None),
    }))
}

fn link(engine: &Engine, name: &str, uri: &str) -> Result<JobId, Failure> {
    let (name, connector, source) = (name.to_owned(), "toy".to_owned(), uri.to_owned());
    engine.dsources().link(LinkRequest { name, connector, source, ..Default::default() })
}

fn provision(engine: &Engine, name: &str, from: &str) -> Result<JobId, Failure> {
    let (name, from) = (name.to_owned(), from.to_owned());
    engine.vdbs().provision(ProvisionRequest { name, from, ..Default::default() })
}

/// Another limit of its memory, so that its server is restarted.
fn adjust(engine: &Engine, name: &str) -> Result<JobId, Failure> {
    let other = match engine.vdbs().show(name)?.vdb.memory_bytes {
        None => Some(1 << 30),
        Some(_) => None,
    };
    engine.vdbs().set(name, &VdbChange { memory_bytes: Some(other), ..Default::default() })
}

fn provision_all(engine: &Engine, name: &str, group: &str) -> Result<JobId, Failure> {
    let (name, group) = (name.to_owned(), group.to_owned());
    engine.groups().provision(GroupProvisionRequest { name, group, ..Default::default() })
}

/// Makes a group.
pub fn group(engine: &Engine, name: &str, members: &[&str]) -> Result<Value, Failure> {
    let members: Vec<String> = members.iter().map(|&one| one.to_owned()).collect();
    engine.groups().create(name, &members).map(|_| Value::Null)
}

/// The names of all VDB groups.
pub fn vdb_groups(engine: &Engine) -> Result<Vec<String>, Failure> {
    let all = engine.groups().list_vdb_groups()?.into_iter();
    Ok(all.map(|one| one.group.name.to_string()).collect())
}

/// Deletes all groups; their members stay.
pub fn delete_groups(engine: &Engine) -> Result<(), Failure> {
    for one in engine.groups().list()? {
        engine.groups().delete(&one.group.name)?;
    }
    Ok(())
}

fn bookmark(engine: &Engine, name: &str, on: &str) -> Result<JobId, Failure> {
    let (name, on) = (name.to_owned(), on.to_owned());
    engine.bookmarks().create(BookmarkRequest { name, on, ..Default::default() })
}

fn archive(engine: &Engine) -> PathBuf {
    engine.pool_dir().with_extension("archive")
}

/// Writes a dSource as the archive that is imported.
pub fn export(engine: &Engine, name: &str) -> Result<Value, Failure> {
    let request = ExportRequest { name: name.to_owned(), plain: true };
    let export = engine.replication().export(&request)?;
    let file = File::create(archive(engine)).map_err(|e| Failure::internal(e.to_string()))?;
    export.write(&mut BufWriter::new(file)).map(|_| Value::Null)
}

fn import(engine: &Engine, namespace: &str) -> Result<JobId, Failure> {
    let file = File::open(archive(engine)).map_err(|e| Failure::internal(e.to_string()))?;
    engine.replication().import(Box::new(file), namespace, None)
}

/// Takes over; each further word is `NAME=NEW`.
fn failover(engine: &Engine, namespace: &str, renames: &[&str]) -> Result<JobId, Failure> {
    let pair = |text: &&str| text.split_once('=').map(|(one, to)| (one.to_owned(), to.to_owned()));
    engine.replication().fail_over(&FailoverRequest {
        namespace: namespace.to_owned(),
        planned: false,
        force: false,
        rename: renames.iter().filter_map(pair).collect(),
    })
}

/// All values of the source are masked; nothing else begins so.
const RULES: &str = "k";

fn rules_for(from: &str) -> MaskRequest {
    MaskRequest { from: from.to_owned(), rules: RULES.to_owned(), ..Default::default() }
}

fn preview(from: &str) -> PreviewRequest {
    PreviewRequest {
        from: from.to_owned(),
        rules: RULES.to_owned(),
        table: RULES.to_owned(),
        rows: 3,
        originals: false,
    }
}

fn mask(engine: &Engine, name: &str, from: &str) -> Result<JobId, Failure> {
    engine.masks().apply(MaskRequest { name: Some(name.to_owned()), ..rules_for(from) })
}

/// Whether rules mask the value of a key.
pub fn is_masked(key: &str) -> bool {
    key.starts_with(RULES)
}

/// Looks for the commit that set a key, in all of a history.
fn bisect(engine: &Engine, name: &str, key: &str, value: &str) -> Result<JobId, Failure> {
    let snapshots = engine.snapshots().list(Some(name))?;
    let oldest = snapshots.first().map(|one| one.snapshot.id);
    let oldest = oldest.ok_or_else(|| Failure::internal(format!("{name} has no snapshot")))?;
    engine.bisections().start(BisectRequest {
        object: name.to_owned(),
        from: Moment::Snapshot(oldest),
        to: Moment::Latest,
        query: key.to_owned(),
        database: None,
        condition: Condition::Until(value.to_owned()),
        errors_are_answers: false,
        time_limit: Duration::from_secs(10),
    })
}

fn newest(engine: &Engine, name: &str) -> Result<offshoot_types::SnapshotId, Failure> {
    let snapshots = engine.snapshots().list(Some(name))?;
    let newest = snapshots.last().map(|one| one.snapshot.id);
    newest.ok_or_else(|| Failure::internal(format!("{name} has no snapshot")))
}

/// A job.
pub fn job(engine: &Engine, id: JobId) -> Result<Job, Failure> {
    engine.jobs().show(id)
}

/// All jobs, newest first.
pub fn jobs(engine: &Engine) -> Result<Vec<Job>, Failure> {
    engine.jobs().list()
}

/// How a user opens a VDB.
pub fn uri(engine: &Engine, name: &str) -> Result<String, Failure> {
    Ok(engine.vdbs().show(name)?.uri)
}

/// The names of the VDBs that run.
pub fn running(engine: &Engine) -> Result<Vec<String>, Failure> {
    let vdbs = engine.vdbs().list()?.into_iter().map(|one| one.vdb);
    Ok(vdbs.filter(is_running).map(|vdb| vdb.name.to_string()).collect())
}

/// How many servers should run: those of VDBs, and staging of each dSource that is followed.
pub fn wanted_servers(engine: &Engine) -> Result<usize, Failure> {
    let active = |one: &offshoot_engine::DsourceView| {
        one.dsource.state == offshoot_domain::DsourceState::Active
    };
    Ok(running(engine)?.len() + engine.dsources().list()?.iter().filter(|one| active(one)).count())
}

fn is_running(vdb: &offshoot_domain::Vdb) -> bool {
    vdb.state == offshoot_domain::VdbState::Running
}

/// The names of all VDBs, and of all dSources.
pub fn names(engine: &Engine) -> Result<(Vec<String>, Vec<String>), Failure> {
    let vdbs = engine.vdbs().list()?.into_iter().map(|one| one.vdb.name.to_string());
    let dsources = engine.dsources().list()?.into_iter().map(|one| one.dsource.name.to_string());
    Ok((vdbs.collect(), dsources.collect()))
}

/// Whether the source of a dSource is known to have given up log that is needed.
pub fn is_broken(engine: &Engine, name: &str) -> Result<bool, Failure> {
    Ok(engine
        .view()?
        .faults
        .iter()
        .any(|fault| fault.subject == Subject::named(name) && fault.topic == "source"))
}

/// Whether a snapshot waits for its proof.
pub fn awaits_proof(engine: &Engine) -> Result<bool, Failure> {
    Ok(engine.snapshots().list(None)?.iter().any(|one| one.snapshot.awaits_proof()))
}

/// Whether the newest snapshot of an object is proved.
pub fn is_proved(engine: &Engine, name: &str) -> Result<bool, Failure> {
    let snapshots = engine.snapshots().list(Some(name))?;
    Ok(snapshots.last().is_some_and(|one| one.snapshot.ready_image().is_some()))
}

/// Has everything of an object kept for a day, or nothing but what it cannot do without.
pub fn keep(engine: &Engine, name: &str, everything: bool) -> Result<(), Failure> {
    let day = if everything { 24 * 3_600_000 } else { 0 };
    let change = PolicyChange {
        keep_all_ms: Some(day),
        hourly_ms: Some(0),
        daily_ms: Some(0),
        weekly_ms: Some(0),
        // A VDB has no log to keep.
        log_ms: engine.dsources().show(name).ok().map(|_| day),
        ..PolicyChange::default()
    };
    engine.policies().set(name, &change).map(drop)
}

/// The states of all dSources and VDBs, and what is wrong.
pub fn states(engine: &Engine) -> Result<Value, Failure> {
    let dsources: BTreeMap<String, String> = (engine.dsources().list()?.into_iter())
        .map(|one| (one.dsource.name.to_string(), format!("{:?}", one.dsource.state)))
        .collect();
    let vdbs: BTreeMap<String, String> = (engine.vdbs().list()?.into_iter())
        .map(|one| (one.vdb.name.to_string(), format!("{:?}", one.vdb.state)))
        .collect();
    let bookmarks: Vec<String> =
        engine.bookmarks().list()?.into_iter().map(|one| one.bookmark.name.to_string()).collect();
    let faults: Vec<String> = engine
        .view()?
        .faults
        .into_iter()
        .map(|fault| format!("{:?}: {}", fault.subject, fault.message))
        .collect();
    Ok(json!({ "dsources": dsources, "vdbs": vdbs, "bookmarks": bookmarks, "faults": faults }))
}

/// How many datasets and images the store has, and what their blocks take.
pub fn store(engine: &Engine) -> (u64, u64, u64) {
    let pool = engine.pool().view();
    (pool.datasets, pool.images, pool.stats.live)
}

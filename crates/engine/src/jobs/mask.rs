//! Masking: the moment of a dSource is opened in a private server, masked there by rules, and what is left becomes an
//! image of a masked dSource.
//!
//! # Invariants
//! 1. A masked dSource and its images appear in one transaction, the last step: nothing half masked can be
//!    provisioned.
//! 2. The masked image MUST reach no block that only the unmasked copy had. It does not: an image is a tree of what its
//!    files hold, the masked tables are new files, and the connector removes what else shows what was
//!    ([`offshoot_connector::Masking::finish`]). Nothing leads from an image to the one that it was cloned from.
//! 3. The image was opened and checked before anybody can depend on it, as other snapshots are. What it shares with a
//!    proven snapshot of the source is not checked again.
//! 4. Masking that was cut off is begun again with a new clone, never continued on the same.
//! 5. Where only what has changed is masked ([`renewal`]), the clone is one of the last masked image, and nothing unmasked
//!    is ever in it.

pub mod keys;
pub mod looking;
pub mod renewal;

use crate::core::job_kind::JobKind;
use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::core::topic::Topic;
use crate::history::moments::{Resolved, check};
use crate::history::names;
use crate::history::snapshots;
use crate::images::opening::{self, DATASET, RECOVERY_DEADLINE, RESOLVED};
use crate::images::proof::{self, Proof};
use crate::images::readiness::{IMAGE, PROOF, drop_image, take_image};
use crate::jobs::provision::resolve_from;
use crate::jobs::snapshot::SNAPSHOT;
use crate::parts::{Context, Parts};
use crate::serving::servers;
use crate::space::room;
use jiff::Timestamp;
use offshoot_connector::{DataDir, MaskedTable, Masker, Server, TableState};
use offshoot_domain::{
    Dsource, DsourceState, MaskFacts, MaskReport, MaskedRows, MaskedRowsState, Masking,
    MaskingMode, MaskingRun, Moment, ObjectName, Pace, Policy, Readiness, Snapshot, SnapshotKind,
    Timeflow, masked_identity, signed,
};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, SnapshotId, TimeflowId};
use offshoot_workflow::{Key, Submission, Workflow};
use renewal::Outcome;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pause between two looks at how far it is that are stored.
const TOLD_PAUSE_MS: u64 = 500;
/// Findings that an error lists; all of them are notes of the job.
const FINDINGS_SHOWN: usize = 10;

/// Key under which the job stores how far each table is.
pub const TABLES: Key<Vec<MaskedRows>> = Key::new("tables");
/// Key under which it stores what was masked.
const DONE: Key<Done> = Key::new("masked");

/// What to mask.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    /// The id of the masked dSource if it is a new one.
    pub new: DsourceId,
    /// The masked dSource.
    pub name: ObjectName,
    pub source: DsourceId,
    pub moment: Moment,
    pub rules: String,
    pub every_ms: Option<u64>,
    /// Who applies the rules.
    #[serde(default)]
    pub by: String,
    /// Everything is masked, whatever has changed.
    #[serde(default)]
    pub full: bool,
}

/// What a run did.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Done {
    key: String,
    #[serde(default)]
    key_version: u32,
    #[serde(default)]
    mode: MaskingMode,
    #[serde(default)]
    started_at: Timestamp,
    took_ms: u64,
    values: u64,
    tables: Vec<MaskedRows>,
    idle: Vec<String>,
    unruled: Vec<String>,
    #[serde(default)]
    facts: MaskFacts,
}

/// The workflows.
pub fn workflows() -> Vec<Workflow<Parts>> {
    let mut workflows = vec![
        Workflow::new(JobKind::MaskApply)
            .step_without_undo("resolve", resolve)
            .step("mask", mask, discard_all)
            .step("image", take_image, drop_image)
            .step_without_undo("close", opening::delete_clone)
            .step("check", prove, proof::clear)
            .point_of_no_return()
            .step_without_undo("publish", publish),
        Workflow::new(JobKind::MaskCheck).step_without_undo("resolve", resolve).step(
            "check",
            check_rules,
            discard_clone,
        ),
    ];
    workflows.extend(looking::workflows());
    workflows
}

/// Starts a job that makes or renews a masked dSource.
pub fn submit_apply(parts: &Arc<Parts>, input: &Input) -> Result<JobId, Failure> {
    room::check_takes_on(parts, "a masked image")?;
    check_input(parts, input)?;
    let present = present(parts, &input.name)?;
    let mut submission = Submission::new(JobKind::MaskApply, &input.name, input)
        .exclusive(format!("name:{}", input.name))
        .shared(input.source);
    if let Some(present) = present {
        submission = submission.shared(present.id);
    }
    parts.submit(submission)
}

/// Starts a job that holds rules against a dSource.
pub fn submit_check(parts: &Arc<Parts>, input: &Input) -> Result<JobId, Failure> {
    check_input(parts, input)?;
    let source: Dsource = parts.catalog.get(input.source)?;
    parts.submit(Submission::new(JobKind::MaskCheck, &source.name, input).shared(input.source))
}

/// Renews a masked dSource by the rules that it was made with.
pub fn submit_renewal(parts: &Arc<Parts>, masking: &Masking) -> Result<JobId, Failure> {
    let masked: Dsource = parts.catalog.get(masking.id)?;
    submit_apply(
        parts,
        &Input {
            new: masking.id,
            name: masked.name,
            source: masking.source,
            moment: Moment::Latest,
            rules: masking.rules.clone(),
            every_ms: masking.every_ms,
            by: masking.accepted_by.clone(),
            full: false,
        },
    )
}

/// The masked dSource of a name; none: the name is free.
fn present(parts: &Parts, name: &ObjectName) -> Result<Option<Dsource>, Failure> {
    let Some(owner) = parts.catalog.find_owner(name)? else {
        return names::check_free(parts, name).map(|()| None);
    };
    let taken = || {
        let hint = "choose another name for the masked dSource: --as NAME";
        Failure::new(
            ErrorKind::AlreadyExists,
            format!("the name '{name}' is taken by {owner}"),
            hint,
        )
    };
    match parts.catalog.find_named::<Dsource>(name)? {
        Some(one) if one.state == DsourceState::Masked => Ok(Some(one)),
        _ => Err(taken()),
    }
}

fn check_input(parts: &Parts, input: &Input) -> Result<(), Failure> {
    let source: Dsource = parts.catalog.get(input.source)?;
    if source.state == DsourceState::Masked {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("'{}' is masked already", source.name),
            "name the dSource that follows production",
        ));
    }
    rules(parts, input.source, &input.rules)?;
    check(parts, input.source.into(), &input.moment)
}

/// What masks databases of a kind.
fn masker(kind: &Kind) -> Result<&dyn Masker, Failure> {
    kind.connector.masker().ok_or_else(|| {
        let message = format!("databases of the kind '{}' cannot be masked", kind.connector.kind());
        Failure::new(ErrorKind::InvalidInput, message, "mask one of another kind")
    })
}

/// The rules, understood by the kind of database they are for.
fn rules(
    parts: &Parts,
    source: DsourceId,
    rules: &str,
) -> Result<Box<dyn offshoot_connector::Masking>, Failure> {
    masker(&Kind::of(parts, source.into())?)?.read(rules)
}

fn resolve(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    resolve_from(context, input.source.into(), &input.moment)
}

/// Undo: ends all servers and removes all clones.
fn discard_all(context: &Context) -> Result<(), Failure> {
    renewal::discard(context)?;
    discard_clone(context)
}

/// Undo: ends the server and removes the clone.
fn discard_clone(context: &Context) -> Result<(), Failure> {
    opening::unmount_clone(context)?;
    opening::delete_clone(context)
}

/// A private server on a new clone of what was resolved, replayed to its moment. What an attempt before this one left
/// is removed (invariant 4).
fn open(context: &Context, kind: &Kind) -> Result<Arc<dyn Server>, Failure> {
    discard_clone(context)?;
    let (parts, resolved): (_, Resolved) = (context.app(), context.need(RESOLVED)?);
    let dataset = parts.store.clone_snapshot(resolved.image).map_err(|e| e.failure())?;
    context.set(DATASET, &dataset)?;
    parts.volumes.mount_gathering(dataset)?;
    opening::replay_resolved(context)?;
    let key = job_key(context.job_id());
    opening::start_private(parts, &key, kind, dataset, RECOVERY_DEADLINE)
}

fn mask(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let (kind, rules) =
        (Kind::of(parts, input.source.into())?, rules(parts, input.source, &input.rules)?);
    discard_all(context)?;
    let key = keys::key(parts, rules.key_name())?;
    let (mut started, started_at) = (parts.elapsed_ms(), parts.now());
    let mut told_at = None;
    let mut tick = |tables: &[MaskedTable]| {
        context.check_cancelled()?;
        tell(context, tables, &mut told_at)
    };
    let (masked, mode) = match renewal::renew(context, &*rules, &key, &mut tick)? {
        Outcome::Renewed(masked) => (masked, MaskingMode::Incremental),
        Outcome::InFull(why) => {
            if let Some(why) = &why {
                context.note(format!("everything is masked, not only what has changed: {why}"))?;
            }
            let server = open(context, &kind)?;
            started = parts.elapsed_ms();
            (rules.mask(&*server, &key.secret, &mut tick)?, MaskingMode::Full { because: why })
        }
    };
    let job = job_key(context.job_id());
    let dataset = context.need(DATASET)?;
    opening::stop_clean(parts, &job, dataset)?;
    let files: Arc<dyn DataDir> = servers::files(parts, &kind, dataset)?;
    rules.finish(&files)?;
    note_fit(context, &masked.idle, &masked.unruled)?;
    context.set(
        DONE,
        &Done {
            key: rules.key_name().to_owned(),
            key_version: key.version,
            mode,
            started_at,
            took_ms: parts.elapsed_ms() - started,
            values: masked.values,
            tables: masked.tables.iter().map(shown).collect(),
            idle: masked.idle,
            unruled: masked.unruled,
            facts: masked.facts,
        },
    )
}

fn note(context: &Context, findings: &[String], what: &str) -> Result<(), Failure> {
    findings.iter().try_for_each(|one| context.note(format!("{what}{one}")))
}

/// Notes rules that meet nothing, and columns that seem to lack one.
fn note_fit(context: &Context, idle: &[String], unruled: &[String]) -> Result<(), Failure> {
    note(context, idle, "no table or column fits the rule ")?;
    note(context, unruled, "no rule for ")
}

fn check_rules(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let (kind, rules) =
        (Kind::of(parts, input.source.into())?, rules(parts, input.source, &input.rules)?);
    let checked = rules.check(&*open(context, &kind)?);
    discard_clone(context)?;
    let checked = checked?;
    note(context, &checked.problems, "")?;
    note_fit(context, &checked.idle, &checked.unruled)?;
    if checked.problems.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!("the rules do not fit: {}", first(&checked.problems)),
        "change the rules; docs/masking.md says what fits which column",
    ))
}

/// The first findings, in a sentence.
fn first(findings: &[String]) -> String {
    let mut shown = findings[..findings.len().min(FINDINGS_SHOWN)].join("; ");
    if findings.len() > FINDINGS_SHOWN {
        shown += &format!("; and {} more", findings.len() - FINDINGS_SHOWN);
    }
    shown
}

/// Stores how far it is, now and then.
fn tell(
    context: &Context,
    tables: &[MaskedTable],
    told_at: &mut Option<u64>,
) -> Result<(), Failure> {
    let now = context.app().elapsed_ms();
    let all_done = tables.iter().all(|table| table.state == TableState::Done);
    if !all_done && told_at.is_some_and(|at| now < at + TOLD_PAUSE_MS) {
        return Ok(());
    }
    *told_at = Some(now);
    let sum = |of: fn(&MaskedTable) -> u64| tables.iter().map(of).sum::<u64>();
    let total = sum(|table| table.rows_total.max(table.rows));
    context.progress(sum(|table| table.rows), total, "rows");
    context.set(TABLES, &tables.iter().map(shown).collect())
}

fn shown(table: &MaskedTable) -> MaskedRows {
    let MaskedTable { name, rows, rows_total, state } = table.clone();
    let state = match state {
        TableState::Waiting => MaskedRowsState::Waiting,
        TableState::Running => MaskedRowsState::Running,
        TableState::Done => MaskedRowsState::Done,
    };
    MaskedRows { name, rows, rows_total, state }
}

/// Checks the image before it is published.
fn prove(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let (image, resolved): (SnapshotId, Resolved) = (context.need(IMAGE)?, context.need(RESOLVED)?);
    let source: Dsource = parts.catalog.get(input.source)?;
    let done: Done = context.need(DONE)?;
    // As if it were of what it shares blocks with: of the source, or of the last masked image.
    let masked = parts.catalog.find_named::<Dsource>(&input.name)?;
    let like = masked.filter(|_| done.mode == MaskingMode::Incremental).unwrap_or(source);
    let snapshot = masked_snapshot(image, (&like, like.timeflow), &resolved, parts.now());
    let found = proof::prove(context, &snapshot, image)?;
    proof::clear(context)?;
    if !found.damage.is_empty() {
        let damage = first(&found.damage);
        return Err(Failure::new(
            ErrorKind::DataDamaged,
            format!("the masked image did not pass its checks: {damage}"),
            "check the source itself, and mask it again",
        ));
    }
    context.set(PROOF, &found)
}

/// The record of a masked image.
fn masked_snapshot(
    image: SnapshotId,
    (owner, timeflow): (&Dsource, Option<TimeflowId>),
    resolved: &Resolved,
    now: Timestamp,
) -> Snapshot {
    Snapshot {
        id: image,
        owner: owner.id.into(),
        timeflow: timeflow.unwrap_or(TimeflowId(0)),
        position: resolved.position,
        replay_from: resolved.position.log,
        epoch: 0,
        kind: SnapshotKind::Masked,
        taken_at: now,
        readiness: Readiness::Pending,
        unchecked: Vec::new(),
    }
}

fn publish(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let (image, done): (SnapshotId, Done) = (context.need(IMAGE)?, context.need(DONE)?);
    let found: Proof = context.need(PROOF)?;
    let resolved: Resolved = context.need(RESOLVED)?;
    let base = snapshots::find(parts, resolved.snapshot).ok();
    let source: Dsource = parts.catalog.get(input.source)?;
    let now = parts.now();
    let report = report(&input, (image, &resolved), &source, &done, now);
    let Done { key, mode, took_ms, values, tables, idle, unruled, .. } = done;
    let of = resolved.snapshot;
    let last = MaskingRun {
        snapshot: image,
        of,
        mode,
        ended_at: now,
        took_ms,
        values,
        tables,
        idle,
        unruled,
    };
    parts.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
        if tx.find::<Snapshot>(image)?.is_some() {
            return Ok(());
        }
        let present = tx.find_named::<Dsource>(&input.name)?;
        let masked = match present {
            Some(present) => Dsource { server_version: source.server_version.clone(), ..present },
            None => masked_of(&source, &input, now),
        };
        let timeflow = match masked.timeflow {
            Some(timeflow) => timeflow,
            None => tx.allocate::<Timeflow>()?,
        };
        if masked.timeflow.is_none() {
            tx.put(&timeflow_of(&masked, timeflow, now))?;
        }
        let masked = Dsource { timeflow: Some(timeflow), ..masked };
        tx.put(&masked)?;
        tx.put(&Snapshot {
            epoch: base.as_ref().map_or(0, |base| base.epoch),
            readiness: Readiness::Ready { image, proven: found.whole },
            unchecked: found.unchecked.clone(),
            ..masked_snapshot(image, (&masked, Some(timeflow)), &resolved, now)
        })?;
        for old in tx.list_of::<MaskReport>(masked.id)? {
            // Kept as long as the image.
            if tx.find::<Snapshot>(old.id)?.is_none() {
                tx.delete::<MaskReport>(old.id)?;
            }
        }
        tx.put(&MaskReport { masked: masked.id, ..report.clone() })?;
        tx.put(&Masking {
            id: masked.id,
            source: source.id,
            source_name: source.name.clone(),
            rules: input.rules.clone(),
            key,
            every_ms: input.every_ms,
            accepted_by: input.by.clone(),
            last,
        })
    })?;
    parts.clear(&input.name, Topic::Renewal);
    context.set(SNAPSHOT, &image)
}

/// What a report tells of the run.
fn report(
    input: &Input,
    (image, resolved): (SnapshotId, &Resolved),
    source: &Dsource,
    done: &Done,
    now: Timestamp,
) -> MaskReport {
    MaskReport {
        id: image,
        masked: input.new,
        source_name: source.name.clone(),
        source_snapshot: resolved.snapshot,
        source_time: Some(resolved.position.time),
        server_version: source.server_version.clone(),
        engine_version: env!("CARGO_PKG_VERSION").to_owned(),
        rules_sha256: signed::sha256(&input.rules),
        key: done.key.clone(),
        key_version: done.key_version,
        mode: done.mode.clone(),
        accepted_by: input.by.clone(),
        started_at: done.started_at,
        ended_at: now,
        took_ms: done.took_ms,
        values: done.values,
        idle: done.idle.clone(),
        unruled: done.unruled.clone(),
        facts: done.facts.clone(),
    }
}

/// The record of a new masked dSource.
fn masked_of(source: &Dsource, input: &Input, now: Timestamp) -> Dsource {
    Dsource {
        id: input.new,
        name: input.name.clone(),
        state: DsourceState::Masked,
        problem: None,
        source: format!("masked:{}", source.name),
        identity: masked_identity(input.new, &source.identity),
        reservation: None,
        created_at: now,
        policy: Policy::default(),
        log_dataset: None,
        staging_dataset: None,
        timeflow: None,
        synced_to: None,
        warnings: Vec::new(),
        pace: Pace::default(),
        ..source.clone()
    }
}

fn timeflow_of(masked: &Dsource, id: TimeflowId, now: Timestamp) -> Timeflow {
    Timeflow {
        id,
        owner: masked.id.into(),
        parent: None,
        origin: None,
        dataset: None,
        log: Vec::new(),
        log_dataset: None,
        started_at: now,
        ended_at: None,
    }
}

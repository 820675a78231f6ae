//! The engine as the API shows it.

mod accounts;
mod bisections;
mod diffs;
mod groups;
mod history;
mod hooks;
mod latencies;
mod masks;
mod replication;
pub(crate) mod scrub;
mod templates;
mod vdbs;
mod webhooks;

use crate::EngineService;
use crate::service::latencies::Latencies;
use crate::service::notifier::Notifier;
use crate::service::replicator::Replicator;
use crate::service::templates::Templates;
use crate::service::{ArchiveReader, ArchiveWriter};
use jiff::Timestamp;
use offshoot_api as api;
use offshoot_catalog as catalog;
use offshoot_domain as domain;
use offshoot_engine::{
    BookmarkRequest, DsourceView, Engine, ExportRequest, FollowState, GroupProvisionRequest,
    LedgerEntry, LedgerKey, LinkRequest, ObjectKind, PolicyView, PoolView, SecretsView,
    SnapshotView, Survival,
};
use offshoot_types::{Failure, JobId, SnapshotId, UserId};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use vdbs::vdb;

/// An engine behind an address.
pub struct LocalEngine {
    engine: Engine,
    listen: OnceLock<Address>,
    /// What should be known of how it runs.
    warnings: Vec<(String, Failure)>,
}

/// Where it is reached.
struct Address {
    tcp: SocketAddr,
    socket: Option<PathBuf>,
    /// Of the certificate, where it answers by TLS.
    fingerprint: Option<String>,
}

impl LocalEngine {
    /// Answers for an engine, with what should be known of how it runs.
    pub fn new(engine: Engine, warnings: Vec<Failure>) -> Self {
        let warnings = warnings.into_iter().map(|one| ("engine".to_owned(), one)).collect();
        LocalEngine { engine, listen: OnceLock::new(), warnings }
    }

    /// Sets where it is reached, once that is known.
    pub fn set_address(&self, tcp: SocketAddr, socket: Option<&Path>, fingerprint: Option<String>) {
        let socket = socket.map(Path::to_owned);
        let _ = self.listen.set(Address { tcp, socket, fingerprint });
    }

    fn socket(&self) -> Option<&Path> {
        self.listen.get()?.socket.as_deref()
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl EngineService for LocalEngine {
    fn status(&self) -> Result<api::Status, Failure> {
        let view = self.engine.view()?;
        let pool = self.pool_status()?;
        Ok(api::Status {
            engine_version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            pool: self.engine.pool_dir().display().to_string(),
            listen: self.listen.get().map(|at| at.tcp.to_string()).unwrap_or_default(),
            socket: self.socket().map(|path| path.display().to_string()).unwrap_or_default(),
            tls_fingerprint: self.listen.get().and_then(|at| at.fingerprint.clone()),
            started_at: view.started_at,
            dsources: view.dsources,
            vdbs: view.vdbs,
            vdbs_running: view.vdbs_running,
            jobs_active: view.jobs_active,
            survival: match view.survival {
                Survival::Ready => api::Survival::Ready,
                Survival::NoKeeper => api::Survival::NoKeeper,
                Survival::OldKernel => api::Survival::OldKernel,
            },
            cache: pool.cache,
            pool_status: pool,
            last_scrub: view.last_scrub.map(scrub::scrub),
            faults: view.faults.into_iter().map(fault).collect(),
            warnings: self.warnings.iter().cloned().chain(view.warnings).map(warning).collect(),
        })
    }

    fn latencies(&self) -> Result<Latencies, Failure> {
        Ok(latencies::latencies(self.engine.latencies()?))
    }

    fn local_ways(&self, connector: &str, source: &str) -> Result<Vec<String>, Failure> {
        self.engine.dsources().local_ways(connector, source)
    }

    fn link_dsource(&self, request: api::LinkDsource) -> Result<JobId, Failure> {
        let api::LinkDsource { name, connector, source, password, snapshot_every_ms } = request;
        let password = password.map(|one| domain::Secret::new(one.reveal()));
        let request = LinkRequest { name, connector, source, password, snapshot_every_ms };
        self.engine.dsources().link(request)
    }

    fn list_dsources(&self) -> Result<Vec<api::Dsource>, Failure> {
        Ok(self.engine.dsources().list()?.into_iter().map(dsource).collect())
    }

    fn show_dsource(&self, name: &str) -> Result<api::Dsource, Failure> {
        self.engine.dsources().show(name).map(dsource)
    }

    fn set_dsource(&self, name: &str, request: api::SetDsource) -> Result<JobId, Failure> {
        let password = request.password.map(|one| domain::Secret::new(one.reveal()));
        self.engine.dsources().set(name, request.source, password)
    }

    fn sync_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.dsources().sync(name)
    }

    fn pause_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.dsources().pause(name)
    }

    fn resume_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.dsources().resume(name)
    }

    fn unlink_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.dsources().unlink(name)
    }

    fn take_snapshot(&self, request: api::TakeSnapshot) -> Result<JobId, Failure> {
        self.engine.snapshots().take(&request.object)
    }

    fn list_snapshots(&self, object: Option<&str>) -> Result<Vec<api::Snapshot>, Failure> {
        Ok(self.engine.snapshots().list(object)?.into_iter().map(snapshot).collect())
    }

    fn show_snapshot(&self, id: SnapshotId) -> Result<api::Snapshot, Failure> {
        self.engine.snapshots().show(id).map(snapshot)
    }

    fn delete_snapshot(&self, id: SnapshotId) -> Result<JobId, Failure> {
        self.engine.snapshots().delete(id)
    }

    fn provision_vdb(
        &self,
        request: api::ProvisionVdb,
        user: Option<UserId>,
    ) -> Result<JobId, Failure> {
        self.engine.vdbs().provision(vdbs::wanted(request, user)?)
    }

    fn set_vdb(&self, name: &str, request: api::SetVdb) -> Result<JobId, Failure> {
        self.engine.vdbs().set(name, &vdbs::change(request)?)
    }

    fn vdb_log(
        &self,
        name: &str,
        since: Option<&str>,
        bytes_max: u64,
    ) -> Result<api::VdbLog, Failure> {
        let (text, end) = self.engine.vdbs().log(name, since, bytes_max)?;
        Ok(api::VdbLog { name: name.to_owned(), text, end })
    }

    fn vdb_hooks(&self, name: &str) -> Result<api::VdbHooks, Failure> {
        let hooks = self.engine.vdbs().hooks(name)?.into_iter().map(hooks::text).collect();
        Ok(api::VdbHooks { name: name.to_owned(), hooks })
    }

    fn list_vdbs(&self) -> Result<Vec<api::Vdb>, Failure> {
        Ok(self.engine.vdbs().list()?.into_iter().map(vdb).collect())
    }

    fn show_vdb(&self, name: &str) -> Result<api::Vdb, Failure> {
        self.engine.vdbs().show(name).map(vdb)
    }

    fn start_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.vdbs().start(name)
    }

    fn stop_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.vdbs().stop(name)
    }

    fn reset_password_of_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.vdbs().reset_password(name)
    }

    fn delete_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.vdbs().delete(name)
    }

    fn reparent_vdb(&self, name: &str, request: api::ReparentVdb) -> Result<JobId, Failure> {
        self.engine.vdbs().reparent(name, &request.to)
    }

    fn refresh_vdb(&self, name: &str, request: api::RefreshVdb) -> Result<JobId, Failure> {
        self.engine.vdbs().refresh(name, moment(request.moment)?)
    }

    fn rewind_vdb(&self, name: &str, request: api::RewindVdb) -> Result<JobId, Failure> {
        match request.to {
            api::RewindTo::Snapshot { id } => {
                self.engine.vdbs().rewind(name, domain::Moment::Snapshot(id))
            }
            api::RewindTo::Bookmark { name: bookmark } => {
                self.engine.vdbs().rewind(name, domain::Moment::Bookmark(bookmark))
            }
            api::RewindTo::Undo => self.engine.vdbs().undo_rewind(name),
        }
    }

    fn create_group(&self, request: api::CreateGroup) -> Result<api::Group, Failure> {
        self.engine.groups().create(&request.name, &request.members).map(groups::group)
    }

    fn list_groups(&self) -> Result<Vec<api::Group>, Failure> {
        Ok(self.engine.groups().list()?.into_iter().map(groups::group).collect())
    }

    fn show_group(&self, name: &str) -> Result<api::Group, Failure> {
        self.engine.groups().show(name).map(groups::group)
    }

    fn delete_group(&self, name: &str) -> Result<api::Group, Failure> {
        self.engine.groups().delete(name).map(groups::group)
    }

    fn provision_vdb_group(
        &self,
        request: api::ProvisionVdbGroup,
        user: Option<UserId>,
    ) -> Result<JobId, Failure> {
        let api::ProvisionVdbGroup { name, group, at, settings, memory_bytes } = request;
        let request = GroupProvisionRequest { name, group, at, settings, memory_bytes, user };
        self.engine.groups().provision(request)
    }

    fn list_vdb_groups(&self) -> Result<Vec<api::VdbGroup>, Failure> {
        Ok(self.engine.groups().list_vdb_groups()?.into_iter().map(groups::vdb_group).collect())
    }

    fn show_vdb_group(&self, name: &str) -> Result<api::VdbGroup, Failure> {
        self.engine.groups().show_vdb_group(name).map(groups::vdb_group)
    }

    fn delete_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.groups().delete_vdb_group(name)
    }

    fn start_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.groups().start(name)
    }

    fn stop_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.groups().stop(name)
    }

    fn refresh_vdb_group(
        &self,
        name: &str,
        request: api::RefreshVdbGroup,
    ) -> Result<JobId, Failure> {
        self.engine.groups().refresh(name, request.at)
    }

    fn rewind_vdb_group(&self, name: &str, request: api::RewindVdbGroup) -> Result<JobId, Failure> {
        self.engine.groups().rewind(name, &request.bookmark)
    }

    fn bookmark_vdb_group(
        &self,
        name: &str,
        request: api::BookmarkVdbGroup,
    ) -> Result<JobId, Failure> {
        self.engine.groups().bookmark(name, &request.bookmark)
    }

    fn apply_mask(&self, request: api::ApplyMask, by: &str) -> Result<JobId, Failure> {
        self.engine
            .masks()
            .apply(offshoot_engine::MaskRequest { by: by.to_owned(), ..masks::request(request) })
    }

    fn export_archive(&self, name: &str, plain: bool) -> Result<ArchiveWriter, Failure> {
        let request = ExportRequest { name: name.to_owned(), plain };
        let export = self.engine.replication().export(&request)?;
        Ok(Box::new(|out| export.write(out).map(drop)))
    }

    fn import_archive(
        &self,
        archive: ArchiveReader,
        namespace: &str,
        bytes: Option<u64>,
    ) -> Result<JobId, Failure> {
        self.engine.replication().import(archive, namespace, bytes)
    }

    fn replicator(&self) -> &dyn Replicator {
        self
    }

    fn notifier(&self) -> &dyn Notifier {
        self
    }

    fn templates(&self) -> &dyn Templates {
        self
    }

    fn run_replication(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.profiles().run(name)
    }

    fn fail_over(&self, request: api::FailOver) -> Result<JobId, Failure> {
        let api::FailOver { name: namespace, planned, force, rename } = request;
        let request = offshoot_engine::FailoverRequest { namespace, planned, force, rename };
        self.engine.replication().fail_over(&request)
    }

    fn check_mask(&self, request: api::ApplyMask) -> Result<JobId, Failure> {
        self.engine.masks().check(masks::request(request))
    }

    fn discover_mask(&self, request: api::DiscoverMask) -> Result<JobId, Failure> {
        let sample = masks::within(request.sample, masks::SAMPLE, "values")?;
        self.engine.masks().discover(&request.from, sample)
    }

    fn show_discovery(&self, job: JobId) -> Result<api::Discovery, Failure> {
        self.engine.masks().discovery(job).map(masks::discovery)
    }

    fn preview_mask(&self, request: api::PreviewMask) -> Result<JobId, Failure> {
        self.engine.masks().preview(masks::preview_request(request)?)
    }

    fn show_preview(&self, job: JobId) -> Result<api::MaskPreview, Failure> {
        self.engine.masks().previewed(job).map(masks::preview)
    }

    fn create_diff(&self, request: api::CreateDiff) -> Result<JobId, Failure> {
        self.engine.diffs().create(diffs::request(request)?)
    }

    fn show_diff(&self, job: JobId) -> Result<api::Diff, Failure> {
        self.engine.diffs().show(job).map(diffs::diff)
    }

    fn list_masks(&self) -> Result<Vec<api::Mask>, Failure> {
        Ok(self.engine.masks().list()?.into_iter().map(masks::mask).collect())
    }

    fn show_mask(&self, name: &str) -> Result<api::Mask, Failure> {
        self.engine.masks().show(name).map(masks::mask)
    }

    fn mask_report(
        &self,
        name: &str,
        format: api::MaskReportFormat,
        snapshot: Option<SnapshotId>,
    ) -> Result<api::SignedMaskReport, Failure> {
        let masks = self.engine.masks();
        masks::report::signed(masks.report(name, snapshot)?, format, &masks.report_key()?)
    }

    fn list_mask_keys(&self) -> Result<Vec<api::MaskKey>, Failure> {
        Ok(self.engine.masks().keys()?.into_iter().map(masks::key).collect())
    }

    fn rotate_mask_key(&self, name: &str) -> Result<api::MaskKey, Failure> {
        self.engine.masks().rotate_key(name).map(masks::key)
    }

    fn mask_report_key(&self) -> Result<api::MaskReportKey, Failure> {
        let public_key = self.engine.masks().report_key()?.public();
        Ok(api::MaskReportKey { algorithm: masks::report::ALGORITHM.to_owned(), public_key })
    }

    fn start_bisection(&self, request: api::StartBisection) -> Result<JobId, Failure> {
        self.engine.bisections().start(bisections::request(request)?)
    }

    fn show_bisection(&self, job: JobId) -> Result<api::Bisection, Failure> {
        self.engine.bisections().show(job).map(|view| bisections::bisection(job, view))
    }

    fn create_bookmark(&self, request: api::CreateBookmark) -> Result<JobId, Failure> {
        let api::CreateBookmark { name, on, moment: at } = request;
        self.engine.bookmarks().create(BookmarkRequest { name, on, at: moment(at)? })
    }

    fn list_bookmarks(&self) -> Result<Vec<api::Bookmark>, Failure> {
        Ok(self.engine.bookmarks().list()?.into_iter().map(history::bookmark).collect())
    }

    fn show_bookmark(&self, name: &str) -> Result<api::Bookmark, Failure> {
        self.engine.bookmarks().show(name).map(history::bookmark)
    }

    fn delete_bookmark(&self, name: &str) -> Result<JobId, Failure> {
        self.engine.bookmarks().delete(name)
    }

    fn show_timeflows(&self, name: &str) -> Result<api::TimeflowList, Failure> {
        self.engine.timeflows().show(name).map(history::timeflows)
    }

    fn count_commits(
        &self,
        name: &str,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure> {
        self.engine.timeflows().count_commits(name, from, to, parts)
    }

    fn list_policies(&self) -> Result<Vec<api::Policy>, Failure> {
        Ok(self.engine.policies().list()?.into_iter().map(policy).collect())
    }

    fn show_policy(&self, name: &str) -> Result<api::Policy, Failure> {
        self.engine.policies().show(name).map(policy)
    }

    fn set_policy(&self, name: &str, request: api::SetPolicy) -> Result<api::Policy, Failure> {
        let change = domain::PolicyChange {
            snapshot_every_ms: request.snapshot_every_ms,
            keep_all_ms: request.keep_all_ms,
            hourly_ms: request.hourly_ms,
            daily_ms: request.daily_ms,
            weekly_ms: request.weekly_ms,
            log_ms: request.log_ms,
            quota_bytes: request.quota_bytes,
            warm: request.warm,
            open_within_ms: request.open_within_ms,
        };
        self.engine.policies().set(name, &change).map(policy)
    }

    fn list_jobs(&self) -> Result<Vec<api::Job>, Failure> {
        Ok(self.engine.jobs().list()?.into_iter().map(job).collect())
    }

    fn show_job(&self, id: JobId) -> Result<api::Job, Failure> {
        self.engine.jobs().show(id).map(job)
    }

    fn cancel_job(&self, id: JobId) -> Result<api::Job, Failure> {
        self.engine.jobs().cancel(id).map(job)
    }

    fn pool_status(&self) -> Result<api::PoolStatus, Failure> {
        Ok(pool(&self.engine.pool().view()))
    }

    fn ledger(&self, object: Option<&str>) -> Result<api::Ledger, Failure> {
        Ok(ledger(self.engine.pool().ledger(object)?, None))
    }

    fn ledger_deletion(&self, objects: &[String]) -> Result<api::Ledger, Failure> {
        let deletion = self.engine.pool().deletion(objects)?;
        Ok(ledger(deletion.entries, Some(deletion.freed_if_deleted_bytes)))
    }

    fn secrets(&self) -> Result<api::Secrets, Failure> {
        let view = self.engine.secrets().view()?;
        let SecretsView { sealed, keys, place, changeable } = view;
        Ok(api::Secrets { sealed, keys, place, changeable })
    }

    fn rotate_secrets(&self, request: api::RotateSecrets) -> Result<JobId, Failure> {
        self.engine.secrets().rotate(request.forget_old)
    }

    fn reclaim_pool(&self) -> Result<JobId, Failure> {
        self.engine.pool().reclaim()
    }

    fn last_scrub(&self) -> Result<api::ScrubReport, Failure> {
        self.engine.pool().last_scrub().map(scrub::report)
    }

    fn scrub_pool(&self, request: api::ScrubPool) -> Result<JobId, Failure> {
        self.engine.pool().scrub(request.bytes_per_s)
    }
}

fn moment(asked: api::Moment) -> Result<domain::Moment, Failure> {
    Ok(match asked {
        api::Moment::Latest => domain::Moment::Latest,
        api::Moment::Snapshot { id } => domain::Moment::Snapshot(id),
        api::Moment::At { time } => domain::Moment::At(time),
        api::Moment::Lsn { lsn } => domain::Moment::Log(lsn),
        api::Moment::Bookmark { name } => domain::Moment::Bookmark(name),
        api::Moment::Xid { xid } => domain::Moment::Transaction(xid.to_string()),
    })
}

fn fault(one: catalog::Fault) -> api::Fault {
    api::Fault {
        time: one.time,
        object: one.subject.to_string(),
        message: one.message,
        hint: one.hint,
    }
}

fn warning((object, what): (String, Failure)) -> api::Warning {
    api::Warning { object, message: what.message, hint: what.hint }
}

fn warnings(object: &str, all: Vec<Failure>) -> Vec<api::Warning> {
    all.into_iter().map(|one| warning((object.to_owned(), one))).collect()
}

fn kind(of: ObjectKind) -> api::ObjectKind {
    match of {
        ObjectKind::Dsource => api::ObjectKind::Dsource,
        ObjectKind::Vdb => api::ObjectKind::Vdb,
    }
}

/// What it is doing, and what stopped it.
fn follow_state(state: FollowState) -> (api::DsourceState, Option<Failure>) {
    match state {
        FollowState::Linking => (api::DsourceState::Linking, None),
        FollowState::Syncing => (api::DsourceState::Active, None),
        FollowState::Disconnected(why) => (api::DsourceState::Disconnected, Some(why)),
        FollowState::Paused(why) => (api::DsourceState::Paused, why),
        FollowState::Failed(why) => (api::DsourceState::Failed, Some(why)),
        FollowState::Masked => (api::DsourceState::Masked, None),
        FollowState::Replica => (api::DsourceState::Replica, None),
        FollowState::Unlinking => (api::DsourceState::Unlinking, None),
    }
}

fn dsource(view: DsourceView) -> api::Dsource {
    let told = view.dsource.warnings.iter().cloned().chain(view.clock_warning()).collect();
    let (state, error) = follow_state(view.state);
    let DsourceView { dsource, synced_to, lag_bytes, lag_ms, clock_skew_ms, .. } = view;
    api::Dsource {
        warnings: warnings(&dsource.name, told),
        id: dsource.id,
        name: dsource.name.to_string(),
        state,
        connector: dsource.connector,
        source: dsource.source,
        server_version: dsource.server_version,
        logical_bytes: view.logical_bytes,
        stored_bytes: view.stored_bytes,
        synced_to: synced_to.map(|at| api::SyncedTo { lsn: at.log, time: Some(at.time) }),
        lag_bytes,
        lag_ms,
        clock_skew_ms,
        snapshot_every_ms: dsource.policy.snapshots.every_ms,
        created_at: dsource.created_at,
        snapshots: view.snapshots.into_iter().map(snapshot).collect(),
        error: error.map(Into::into),
    }
}

fn snapshot(view: SnapshotView) -> api::Snapshot {
    let SnapshotView { snapshot, position, object, bookmarks } = view;
    let (state, error) = match &snapshot.readiness {
        domain::Readiness::Pending if !snapshot.awaits_proof() => {
            (api::SnapshotState::OnDemand, None)
        }
        domain::Readiness::Pending => (api::SnapshotState::Pending, None),
        domain::Readiness::Ready { .. } => (api::SnapshotState::Ready, None),
        domain::Readiness::Failed { reason } => (api::SnapshotState::Failed, Some(reason.clone())),
    };
    api::Snapshot {
        id: snapshot.id,
        object,
        object_kind: kind(snapshot.owner.into()),
        kind: match snapshot.kind {
            domain::SnapshotKind::Link => api::SnapshotKind::Link,
            domain::SnapshotKind::Policy => api::SnapshotKind::Policy,
            domain::SnapshotKind::Manual => api::SnapshotKind::Manual,
            domain::SnapshotKind::RecoveryPoint => api::SnapshotKind::RecoveryPoint,
            domain::SnapshotKind::PreRewind => api::SnapshotKind::PreRewind,
            domain::SnapshotKind::Masked => api::SnapshotKind::Masked,
            domain::SnapshotKind::Bookmark => api::SnapshotKind::Bookmark,
        },
        time: position.time,
        lsn: Some(position.log),
        ready: state == api::SnapshotState::Ready,
        state,
        bookmarks,
        error,
        unchecked: snapshot.unchecked,
    }
}

fn policy(view: PolicyView) -> api::Policy {
    let domain::Policy { snapshots, retention, quota_bytes, warm, open_within_ms } = view.policy;
    let has_log = view.kind == offshoot_engine::ObjectKind::Dsource;
    api::Policy {
        name: view.object,
        kind: kind(view.kind),
        snapshot_every_ms: snapshots.every_ms,
        keep_all_ms: retention.keep_all_ms,
        hourly_ms: retention.hourly_ms,
        daily_ms: retention.daily_ms,
        weekly_ms: retention.weekly_ms,
        log_ms: retention.log_ms,
        quota_bytes,
        warm,
        open_within_ms: if has_log { open_within_ms } else { 0 },
    }
}

fn job(job: catalog::Job) -> api::Job {
    let result = offshoot_engine::snapshot_taken(&job).map(|id| id.to_string());
    let step = |step: catalog::StepRecord| api::JobStep {
        name: step.name,
        state: match step.state {
            catalog::StepState::Pending => api::StepState::Pending,
            catalog::StepState::Running => api::StepState::Running,
            catalog::StepState::Done => api::StepState::Done,
            catalog::StepState::Failed => api::StepState::Failed,
            catalog::StepState::Undone => api::StepState::Undone,
        },
        started_at: step.started_at,
        ended_at: step.ended_at,
    };
    api::Job {
        id: job.id,
        kind: job.kind,
        object: job.object.to_string(),
        state: job_state(job.state),
        progress: progress(job.state, job.progress),
        started_at: Some(job.started_at),
        ended_at: job.ended_at,
        steps: job.steps.into_iter().map(step).collect(),
        error: job.error.map(Into::into),
        notes: job.notes,
        result,
    }
}

/// A job that is done has nothing left to do, also if it had less to do than it thought.
fn progress(state: catalog::JobState, counted: catalog::Progress) -> api::JobProgress {
    let total = Some(counted.total).filter(|total| *total > 0);
    let whole = total.filter(|_| state == catalog::JobState::Done).unwrap_or(0);
    api::JobProgress { done: counted.done.max(whole), total, unit: counted.unit }
}

fn job_state(state: catalog::JobState) -> api::JobState {
    match state {
        catalog::JobState::Running => api::JobState::Running,
        catalog::JobState::Undoing => api::JobState::Undoing,
        catalog::JobState::Done => api::JobState::Done,
        catalog::JobState::Failed => api::JobState::Failed,
        catalog::JobState::Cancelled => api::JobState::Cancelled,
    }
}

fn ledger_kind(key: LedgerKey) -> api::LedgerKind {
    match key {
        LedgerKey::Dsource(_) => api::LedgerKind::Dsource,
        LedgerKey::Vdb(_) => api::LedgerKind::Vdb,
        LedgerKey::Snapshot(_) => api::LedgerKind::Snapshot,
    }
}

fn ledger(entries: Vec<LedgerEntry>, freed_if_deleted_bytes: Option<u64>) -> api::Ledger {
    let entry = |entry: LedgerEntry| {
        let figures = entry.figures.map(|dated| dated.figures);
        api::LedgerEntry {
            object: entry.object,
            kind: ledger_kind(entry.key),
            of: entry.of,
            logical_bytes: entry.logical_bytes,
            stored_bytes: figures.map(|figures| figures.stored_bytes()),
            exclusive_bytes: figures.map(|figures| figures.exclusive_bytes),
            shared_bytes: figures.map(|figures| figures.shared_bytes),
            pinned_bytes: figures.map(|figures| figures.pinned_bytes),
            freed_if_deleted_bytes: figures.map(|figures| figures.freed_if_deleted_bytes()),
            as_of: entry.figures.map(|dated| dated.as_of),
            current: entry.figures.is_some_and(|dated| dated.current),
        }
    };
    api::Ledger { objects: entries.into_iter().map(entry).collect(), freed_if_deleted_bytes }
}

fn pool(view: &PoolView) -> api::PoolStatus {
    let stats = &view.stats;
    let cache = &stats.cache;
    let reads = cache.hits + cache.misses;
    api::PoolStatus {
        capacity_bytes: stats.capacity,
        used_bytes: view.used_bytes,
        free_bytes: stats.free,
        logical_bytes: view.logical_bytes,
        live_bytes: stats.live,
        compression_ratio: stats.compression_ratio,
        dedup_ratio: stats.dedup_ratio,
        zero_saved_bytes: stats.zero_saved,
        encryption: view
            .encrypted_by
            .clone()
            .map(|key_id| api::PoolEncryption { cipher: "AES-256-GCM".to_owned(), key_id }),
        cache: api::CacheStatus {
            size_bytes: cache.size,
            used_bytes: cache.used,
            blocks: cache.blocks,
            hits: cache.hits,
            misses: cache.misses,
            hit_ratio: if reads == 0 { 0.0 } else { cache.hits as f64 / reads as f64 },
        },
    }
}

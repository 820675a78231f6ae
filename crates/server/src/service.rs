//! What the HTTP layer asks of an engine, but not how it is done.

pub mod latencies;
pub mod notifier;
pub mod replicator;
pub mod templates;

use jiff::Timestamp;
use latencies::Latencies;
use notifier::Notifier;
use offshoot_api::{
    ApplyMask, Bisection, Bookmark, BookmarkVdbGroup, CreateBookmark, CreateDiff, CreateGroup,
    Diff, DiscoverMask, Discovery, Dsource, FailOver, Group, Job, Ledger, LinkDsource, Mask,
    MaskKey, MaskPreview, MaskReportFormat, MaskReportKey, Policy, PoolStatus, PreviewMask,
    ProvisionVdb, ProvisionVdbGroup, RefreshVdb, RefreshVdbGroup, ReparentVdb, RewindVdb,
    RewindVdbGroup, RotateSecrets, ScrubPool, ScrubReport, Secrets, SetDsource, SetPolicy, SetVdb,
    SignedMaskReport, Snapshot, StartBisection, Status, TakeSnapshot, TimeflowList, Vdb, VdbGroup,
    VdbHooks, VdbLog,
};
use offshoot_types::{Failure, JobId, SnapshotId, UserId};
use replicator::Replicator;
use std::io::{Read, Write};
use templates::Templates;

/// Writes an archive.
pub type ArchiveWriter = Box<dyn FnOnce(&mut dyn Write) -> Result<(), Failure> + Send>;
/// An archive as it comes.
pub type ArchiveReader = Box<dyn Read + Send>;

/// One method for each endpoint of the API.
///
/// Methods may block: each is called on its own thread, several at the same time. Long work is started
/// as a job whose id is returned before the work is done; everything that can be refused without doing
/// the work (names that are taken, states that do not allow it, moments outside what is kept) should be
/// refused by the method itself, so that the caller learns it immediately.
pub trait EngineService: Send + Sync + 'static {
    /// The engine at a glance.
    fn status(&self) -> Result<Status, Failure>;
    /// How long reads, writes and flushes took.
    fn latencies(&self) -> Result<Latencies, Failure>;

    /// What of the engine's own host an address of a source would have it use to get in.
    fn local_ways(&self, connector: &str, source: &str) -> Result<Vec<String>, Failure>;
    /// Links a source.
    fn link_dsource(&self, request: LinkDsource) -> Result<JobId, Failure>;
    /// All dSources, by name.
    fn list_dsources(&self) -> Result<Vec<Dsource>, Failure>;
    /// One dSource.
    fn show_dsource(&self, name: &str) -> Result<Dsource, Failure>;
    /// Changes how a source is reached.
    fn set_dsource(&self, name: &str, request: SetDsource) -> Result<JobId, Failure>;
    /// Receives what the source has flushed by now and takes a snapshot.
    fn sync_dsource(&self, name: &str) -> Result<JobId, Failure>;
    /// Stops following the source.
    fn pause_dsource(&self, name: &str) -> Result<JobId, Failure>;
    /// Follows the source again.
    fn resume_dsource(&self, name: &str) -> Result<JobId, Failure>;
    /// Removes a dSource; VDBs made from it stay.
    fn unlink_dsource(&self, name: &str) -> Result<JobId, Failure>;

    /// Takes a snapshot of a dSource or VDB. The job's `result` is the snapshot's id.
    fn take_snapshot(&self, request: TakeSnapshot) -> Result<JobId, Failure>;
    /// Snapshots of one dSource or VDB, or of all; oldest first.
    fn list_snapshots(&self, object: Option<&str>) -> Result<Vec<Snapshot>, Failure>;
    /// One snapshot.
    fn show_snapshot(&self, id: SnapshotId) -> Result<Snapshot, Failure>;
    /// Deletes a snapshot; what was made from it stays.
    fn delete_snapshot(&self, id: SnapshotId) -> Result<JobId, Failure>;

    /// Provisions a VDB, for a user or for the administrators.
    fn provision_vdb(&self, request: ProvisionVdb, user: Option<UserId>) -> Result<JobId, Failure>;
    /// All VDBs, by name.
    fn list_vdbs(&self) -> Result<Vec<Vdb>, Failure>;
    /// One VDB.
    fn show_vdb(&self, name: &str) -> Result<Vdb, Failure>;
    /// Changes a VDB.
    fn set_vdb(&self, name: &str, request: SetVdb) -> Result<JobId, Failure>;
    /// The end of its server's log, or what was written since an end that was told.
    fn vdb_log(&self, name: &str, since: Option<&str>, bytes_max: u64) -> Result<VdbLog, Failure>;
    /// Its hooks, with what they run.
    fn vdb_hooks(&self, name: &str) -> Result<VdbHooks, Failure>;
    /// Starts a stopped VDB.
    fn start_vdb(&self, name: &str) -> Result<JobId, Failure>;
    /// Stops a running VDB; its data is kept.
    fn stop_vdb(&self, name: &str) -> Result<JobId, Failure>;
    /// Gives a running VDB another password.
    fn reset_password_of_vdb(&self, name: &str) -> Result<JobId, Failure>;
    /// Deletes a VDB; what was made from it stays.
    fn delete_vdb(&self, name: &str) -> Result<JobId, Failure>;
    /// Gives a VDB another parent.
    fn reparent_vdb(&self, name: &str, request: ReparentVdb) -> Result<JobId, Failure>;
    /// Opens another moment of the parent under the same name.
    fn refresh_vdb(&self, name: &str, request: RefreshVdb) -> Result<JobId, Failure>;
    /// Goes back to an earlier state of the VDB itself.
    fn rewind_vdb(&self, name: &str, request: RewindVdb) -> Result<JobId, Failure>;

    /// Makes a group of dSources.
    fn create_group(&self, request: CreateGroup) -> Result<Group, Failure>;
    /// All groups, by name.
    fn list_groups(&self) -> Result<Vec<Group>, Failure>;
    /// One group.
    fn show_group(&self, name: &str) -> Result<Group, Failure>;
    /// Deletes a group; returns what it was.
    fn delete_group(&self, name: &str) -> Result<Group, Failure>;
    /// Makes a VDB of each member of a group, for a user.
    fn provision_vdb_group(
        &self,
        request: ProvisionVdbGroup,
        user: Option<UserId>,
    ) -> Result<JobId, Failure>;
    /// All VDB groups, by name.
    fn list_vdb_groups(&self) -> Result<Vec<VdbGroup>, Failure>;
    /// One VDB group.
    fn show_vdb_group(&self, name: &str) -> Result<VdbGroup, Failure>;
    /// Deletes a VDB group with its VDBs.
    fn delete_vdb_group(&self, name: &str) -> Result<JobId, Failure>;
    /// Starts all VDBs of a VDB group.
    fn start_vdb_group(&self, name: &str) -> Result<JobId, Failure>;
    /// Stops them.
    fn stop_vdb_group(&self, name: &str) -> Result<JobId, Failure>;
    /// Opens another moment in all of them.
    fn refresh_vdb_group(&self, name: &str, request: RefreshVdbGroup) -> Result<JobId, Failure>;
    /// Goes back to the bookmarks of a name.
    fn rewind_vdb_group(&self, name: &str, request: RewindVdbGroup) -> Result<JobId, Failure>;
    /// Sets a bookmark on each of them.
    fn bookmark_vdb_group(&self, name: &str, request: BookmarkVdbGroup) -> Result<JobId, Failure>;

    /// Makes or renews a masked dSource; `by` is who asks for it, as reports name it.
    fn apply_mask(&self, request: ApplyMask, by: &str) -> Result<JobId, Failure>;
    /// Holds rules against a dSource.
    fn check_mask(&self, request: ApplyMask) -> Result<JobId, Failure>;
    /// Looks for what should be masked.
    fn discover_mask(&self, request: DiscoverMask) -> Result<JobId, Failure>;
    /// What such a job found.
    fn show_discovery(&self, job: JobId) -> Result<Discovery, Failure>;
    /// Masks some rows, to be looked at.
    fn preview_mask(&self, request: PreviewMask) -> Result<JobId, Failure>;
    /// These rows, once.
    fn show_preview(&self, job: JobId) -> Result<MaskPreview, Failure>;
    /// All masked dSources, by name.
    fn list_masks(&self) -> Result<Vec<Mask>, Failure>;
    /// One masked dSource.
    fn show_mask(&self, name: &str) -> Result<Mask, Failure>;
    /// The signed report of one, or of one of its images.
    fn mask_report(
        &self,
        name: &str,
        format: MaskReportFormat,
        snapshot: Option<SnapshotId>,
    ) -> Result<SignedMaskReport, Failure>;
    /// The keys that masked dSources use, by name.
    fn list_mask_keys(&self) -> Result<Vec<MaskKey>, Failure>;
    /// Makes another key of a name.
    fn rotate_mask_key(&self, name: &str) -> Result<MaskKey, Failure>;
    /// What the signatures of reports are checked with.
    fn mask_report_key(&self) -> Result<MaskReportKey, Failure>;

    /// Compares two states.
    fn create_diff(&self, request: CreateDiff) -> Result<JobId, Failure>;
    /// What differs.
    fn show_diff(&self, job: JobId) -> Result<Diff, Failure>;

    /// Looks for the commit at which an answer changed.
    fn start_bisection(&self, request: StartBisection) -> Result<JobId, Failure>;
    /// What such a job found.
    fn show_bisection(&self, job: JobId) -> Result<Bisection, Failure>;

    /// Gives a name to a moment.
    fn create_bookmark(&self, request: CreateBookmark) -> Result<JobId, Failure>;
    /// All bookmarks, by name.
    fn list_bookmarks(&self) -> Result<Vec<Bookmark>, Failure>;
    /// One bookmark.
    fn show_bookmark(&self, name: &str) -> Result<Bookmark, Failure>;
    /// Deletes a bookmark; what was made from it stays.
    fn delete_bookmark(&self, name: &str) -> Result<JobId, Failure>;
    /// What can be opened of a dSource or VDB.
    fn show_timeflows(&self, name: &str) -> Result<TimeflowList, Failure>;
    /// How many commits its source made in each of so many equal parts of a time.
    fn count_commits(
        &self,
        name: &str,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure>;

    /// Policies: of dSources first, then of VDBs; by name.
    fn list_policies(&self) -> Result<Vec<Policy>, Failure>;
    /// The policy of a dSource or VDB.
    fn show_policy(&self, name: &str) -> Result<Policy, Failure>;
    /// Changes the policy of a dSource or VDB; returns the new one.
    fn set_policy(&self, name: &str, request: SetPolicy) -> Result<Policy, Failure>;

    /// Jobs, newest first.
    fn list_jobs(&self) -> Result<Vec<Job>, Failure>;
    /// One job.
    fn show_job(&self, id: JobId) -> Result<Job, Failure>;
    /// Asks a job to stop and undo what it did; returns the job as it is then.
    fn cancel_job(&self, id: JobId) -> Result<Job, Failure>;

    /// What the pool holds.
    fn pool_status(&self) -> Result<PoolStatus, Failure>;
    /// What all objects hold of the pool, or one object and its snapshots.
    fn ledger(&self, object: Option<&str>) -> Result<Ledger, Failure>;
    /// The entries of objects, and what deleting all of them together would free.
    fn ledger_deletion(&self, objects: &[String]) -> Result<Ledger, Failure>;
    /// Gives space that nothing needs back to the filesystem.
    fn reclaim_pool(&self) -> Result<JobId, Failure>;

    /// Gets a dSource ready to be exported: what writes the archive, all of it as of now. `plain`: also where the pool
    /// is encrypted.
    fn export_archive(&self, name: &str, plain: bool) -> Result<ArchiveWriter, Failure>;
    /// Takes an archive in, into a namespace. Returns when its beginning was read; the job reads the rest.
    fn import_archive(
        &self,
        archive: ArchiveReader,
        namespace: &str,
        bytes: Option<u64>,
    ) -> Result<JobId, Failure>;

    /// What is asked about other engines, by who may.
    fn replicator(&self) -> &dyn Replicator;
    /// What is asked about those who are told of events.
    fn notifier(&self) -> &dyn Notifier;
    /// What is asked about templates.
    fn templates(&self) -> &dyn Templates;
    /// Runs a profile.
    fn run_replication(&self, name: &str) -> Result<JobId, Failure>;
    /// Makes the copies of another engine's dSources this engine's own.
    fn fail_over(&self, request: FailOver) -> Result<JobId, Failure>;

    /// How passwords are sealed.
    fn secrets(&self) -> Result<Secrets, Failure>;

    /// Seals them with a new key.
    fn rotate_secrets(&self, request: RotateSecrets) -> Result<JobId, Failure>;
    /// The last scrub, and the known damage.
    fn last_scrub(&self) -> Result<ScrubReport, Failure>;
    /// Reads and verifies everything in the pool.
    fn scrub_pool(&self, request: ScrubPool) -> Result<JobId, Failure>;
}

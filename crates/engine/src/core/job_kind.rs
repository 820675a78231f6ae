//! Which jobs there are.

use offshoot_catalog::Job;

/// What a job does; its workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Copies a source for the first time and follows it.
    DsourceLink,
    /// Copies a source again.
    DsourceResync,
    /// Receives what the source has now and takes a snapshot.
    DsourceSync,
    /// Changes how a source is reached.
    DsourceSet,
    /// Stops following a source.
    DsourcePause,
    /// Follows a source again.
    DsourceResume,
    /// Removes a dSource.
    DsourceUnlink,
    /// Makes a VDB.
    VdbProvision,
    /// Starts a stopped VDB.
    VdbStart,
    /// Stops a running VDB.
    VdbStop,
    /// Stops a VDB that nobody uses.
    VdbSleep,
    /// Deletes a VDB.
    VdbDelete,
    /// Opens another moment of a VDB's parent.
    VdbRefresh,
    /// Opens an earlier moment of a VDB.
    VdbRewind,
    /// Takes a rewind or refresh back.
    VdbRewindUndo,
    /// Gives a VDB another password.
    VdbResetPassword,
    /// Changes a VDB's settings, and what is said about it.
    VdbSet,
    /// Gives a VDB another parent.
    VdbReparent,
    /// Gives a name to a warm copy.
    VdbHandOut,
    /// Starts the server of a VDB that should run and does not.
    VdbRevive,
    /// Takes a snapshot.
    SnapshotTake,
    /// Makes a snapshot ready.
    SnapshotReady,
    /// Makes a recovery point.
    SnapshotPoint,
    /// Deletes a snapshot.
    SnapshotDelete,
    /// Sets a bookmark.
    BookmarkCreate,
    /// Deletes a bookmark.
    BookmarkDelete,
    /// Makes or renews a masked dSource.
    MaskApply,
    /// Holds rules of masking against a dSource.
    MaskCheck,
    /// Makes a VDB of each member of a group.
    GroupProvision,
    /// Opens another moment in all VDBs of a VDB group.
    GroupRefresh,
    /// Opens an earlier moment of each VDB of a VDB group.
    GroupRewind,
    /// Sets a bookmark on each VDB of a VDB group.
    GroupBookmark,
    /// Starts all VDBs of a VDB group.
    GroupStart,
    /// Stops all VDBs of a VDB group.
    GroupStop,
    /// Deletes a VDB group with its VDBs.
    GroupDelete,
    /// Looks for what should be masked.
    MaskDiscover,
    /// Shows what rules make of some rows.
    MaskPreview,
    /// Compares two states.
    Diff,
    /// Finds the commit at which an answer changed.
    Bisect,
    /// Gives up what a policy does not keep.
    Retention,
    /// Gives space back that nothing needs.
    PoolReclaim,
    /// Reads and verifies everything.
    PoolScrub,
    /// Seals the secrets with another key.
    SecretRotate,
    /// Takes in what another engine has sent.
    ReplicationImport,
    /// Takes in what another engine sends by a connection.
    ReplicationReceive,
    /// Sends to another engine what it lacks.
    ReplicationRun,
    /// Makes the copies of another engine's objects this engine's own.
    Failover,
}

impl JobKind {
    /// The text that is stored with its jobs, and which users see.
    pub fn as_str(self) -> &'static str {
        match self {
            JobKind::DsourceLink => "dsource_link",
            JobKind::DsourceResync => "dsource_resync",
            JobKind::DsourceSync => "dsource_sync",
            JobKind::DsourceSet => "dsource_set",
            JobKind::DsourcePause => "dsource_pause",
            JobKind::DsourceResume => "dsource_resume",
            JobKind::DsourceUnlink => "dsource_unlink",
            JobKind::VdbProvision => "vdb_provision",
            JobKind::VdbStart => "vdb_start",
            JobKind::VdbStop => "vdb_stop",
            JobKind::VdbSleep => "vdb_sleep",
            JobKind::VdbDelete => "vdb_delete",
            JobKind::VdbResetPassword => "vdb_reset_password",
            JobKind::VdbRefresh => "vdb_refresh",
            JobKind::VdbRewind => "vdb_rewind",
            JobKind::VdbRewindUndo => "vdb_rewind_undo",
            JobKind::VdbSet => "vdb_set",
            JobKind::VdbReparent => "vdb_reparent",
            JobKind::VdbHandOut => "vdb_hand_out",
            JobKind::VdbRevive => "vdb_revive",
            JobKind::SnapshotTake => "snapshot_take",
            JobKind::SnapshotReady => "snapshot_ready",
            JobKind::SnapshotPoint => "snapshot_point",
            JobKind::SnapshotDelete => "snapshot_delete",
            JobKind::BookmarkCreate => "bookmark_create",
            JobKind::BookmarkDelete => "bookmark_delete",
            JobKind::MaskApply => "mask_apply",
            JobKind::MaskCheck => "mask_check",
            JobKind::GroupProvision => "group_provision",
            JobKind::GroupRefresh => "group_refresh",
            JobKind::GroupRewind => "group_rewind",
            JobKind::GroupBookmark => "group_bookmark",
            JobKind::GroupStart => "group_start",
            JobKind::GroupStop => "group_stop",
            JobKind::GroupDelete => "group_delete",
            JobKind::MaskDiscover => "mask_discover",
            JobKind::MaskPreview => "mask_preview",
            JobKind::Diff => "diff",
            JobKind::Bisect => "bisect",
            JobKind::Retention => "retention",
            JobKind::PoolReclaim => "pool_reclaim",
            JobKind::PoolScrub => "pool_scrub",
            JobKind::SecretRotate => "secret_rotate",
            JobKind::ReplicationImport => "replication_import",
            JobKind::ReplicationReceive => "replication_receive",
            JobKind::ReplicationRun => "replication_run",
            JobKind::Failover => "failover",
        }
    }

    /// Whether a job works on a VDB itself, or on several.
    pub fn is_on_vdb(job: &Job) -> bool {
        job.kind.starts_with("vdb_") || job.kind.starts_with("group_")
    }

    /// Whether a job is of this kind.
    pub fn is_of(self, job: &Job) -> bool {
        job.kind == self.as_str()
    }
}

impl From<JobKind> for &'static str {
    fn from(kind: JobKind) -> &'static str {
        kind.as_str()
    }
}

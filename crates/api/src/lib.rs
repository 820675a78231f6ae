//! Request and response types of the HTTP API, apart from any code that serves or calls it.
//!
//! One module per noun. Sizes are in bytes, durations in milliseconds, times RFC 3339 in UTC, unless a
//! field's name says otherwise. Fields are only ever added: scripts rely on those that are there.
//! Requests refuse unknown fields, so that a misspelt one is an error and not a silent default;
//! responses may carry more than a client knows.

pub mod access;
pub mod bisection;
pub mod bookmark;
pub mod console;
pub mod diff;
pub mod digest;
pub mod doctor;
pub mod dsource;
pub mod error;
pub mod event;
pub mod group;
pub mod hook;
pub mod job;
pub mod ledger;
pub mod mask;
pub mod moment;
pub mod peer;
pub mod policy;
pub mod pool;
pub mod rendezvous;
pub mod replication;
pub mod routes;
pub mod secret;
pub mod secrets;
pub mod snapshot;
pub mod status;
pub mod template;
pub mod timeflow;
pub mod vdb;
pub mod webhook;

pub use access::{
    AddUser, Audit, AuditEntry, CreateToken, CreatedToken, Role, SetUser, Token, TokenList, User,
    UserList,
};
pub use bisection::{
    Answer, AnswerKind, AnsweredMoment, Bisection, ChangedRelation, ChangingCommit, StartBisection,
};
pub use bookmark::{Bookmark, BookmarkList, CreateBookmark};
pub use console::{ConsoleCode, ConsoleSession, OpenConsoleSession, OpenedConsoleSession};
pub use diff::{
    CreateDiff, Diff, DiffObject, DiffRead, DiffRow, DiffState, DiffTable, DiffedState,
};
pub use doctor::{HostCheck, HostCheckState, HostReport};
pub use dsource::{Dsource, DsourceList, DsourceState, LinkDsource, SetDsource, SyncedTo};
pub use error::{ErrorBody, ErrorDetail};
pub use event::StreamEvent;
pub use group::{
    BookmarkVdbGroup, CreateGroup, Group, GroupList, GroupMember, ProvisionVdbGroup,
    RefreshVdbGroup, RewindVdbGroup, VdbGroup, VdbGroupList,
};
pub use hook::{HookEvent, HookKind, HookText, NewHook, VdbHook, VdbHooks};
pub use job::{Job, JobAccepted, JobList, JobProgress, JobState, JobStep, StepState};
pub use ledger::{Ledger, LedgerEntry, LedgerKind};
pub use mask::keys::{MaskKey, MaskKeyList};
pub use mask::looking::{
    DiscoverMask, Discovery, FoundColumn, MaskPreview, PreviewColumn, PreviewMask, PreviewValue,
};
pub use mask::report::{
    MaskReport, MaskReportAnonymity, MaskReportColumn, MaskReportFormat, MaskReportKey,
    MaskReportRemoved, MaskReportTable, SignedMaskReport,
};
pub use mask::{ApplyMask, Mask, MaskList, MaskMode, MaskState, MaskTable, MaskTableState};
pub use moment::{Moment, Position};
pub use peer::{
    AddPeer, InvitePeer, Peer, PeerInvitation, PeerKeyRotation, PeerList, Topology, TopologyEngine,
    TopologyLink,
};
pub use policy::{Policy, PolicyList, SetPolicy};
pub use pool::{
    BlockHolder, CacheStatus, DamagedBlock, PoolCheck, PoolEncryption, PoolFinding, PoolStatus,
    Scrub, ScrubPool, ScrubReport,
};
pub use replication::{
    CreateReplication, FailOver, Replication, ReplicationHistory, ReplicationList, ReplicationRun,
    ReplicationState,
};
pub use secret::Secret;
pub use secrets::{RotateSecrets, Secrets};
pub use snapshot::{ObjectKind, Snapshot, SnapshotKind, SnapshotList, SnapshotState, TakeSnapshot};
pub use status::{Fault, Status, Survival, Warning};
pub use template::{SetTemplate, Template, TemplateList};
pub use timeflow::{CommitCounts, OpenRange, TimePoint, TimeRange, Timeflow, TimeflowList};
pub use vdb::{
    Kept, ProvisionTimings, ProvisionVdb, RefreshVdb, ReparentVdb, RewindTo, RewindVdb, SetVdb,
    Vdb, VdbGateway, VdbList, VdbLog, VdbNetwork, VdbState,
};
pub use webhook::{
    AddWebhook, AddedWebhook, SetWebhook, Webhook, WebhookList, WebhookState, WebhookTest,
};

//! The engine: dSources, snapshots and VDBs over a store, servers and jobs.
//!
//! # How the parts work together
//! ```text
//!   source ══▶ stream of log ════▶ log dataset ──feed──▶ staging dataset (a standby replays)
//!                                     │                     │ snapshot
//!                                     │                     ▼
//!                                     │               image as taken ──recover, settle, check──▶ clean image
//!                                     └──────cut at a moment─────┐                                 │
//!                                                                ▼                                 ▼
//!                                                     clone, replay to the moment            clone, open
//!                                                                └───────────────▶ VDB ◀───────────┘
//! ```
//! - [`Engine`] is the API. Every change is a job of a workflow ([`jobs`]), whose steps are plain functions
//!   over [`Parts`](parts::Parts).
//! - A [`follower`](following::follower) for each dSource keeps the stream, the index of commits and the
//!   staging server going.
//! - The modules below are rooms, from [`ground`] up to [`face`]: `ARCHITECTURE.md` says what each may know.
//!
//! # Invariants
//! 1. The engine MUST NOT use `std::fs` on a mount it serves: it would wait for its own answer, and
//!    could then not even be killed. It works by path through `offshoot_fs`; its children may use mounts.
//! 2. What a crash may leave in the store (a clone that its job had not recorded yet) is found because
//!    the catalog does not know it: [`leftovers`](housekeeping::leftovers) removes it once no job is
//!    open.
//! 3. The catalog says what should run; after any crash the next start makes it so.

mod core;
mod face;
mod following;
mod ground;
mod history;
mod housekeeping;
mod images;
mod jobs;
mod parts;
mod serving;
mod space;

pub use core::encryption::row_key_of;
pub use core::hooks::NewHook;
pub use core::job_kind::JobKind;
pub use core::kind::ShownPosition;
pub use core::secret_keys::KeyPlaces;
pub use face::bisections::{BisectRequest, BisectionView, Bisections};
pub use face::bookmarks::{BookmarkRequest, Bookmarks};
pub use face::diffs::{DiffRequest, DiffView, Diffs, StateRequest, StateView};
pub use face::dsources::{DsourceView, Dsources, FollowState, LinkRequest};
pub use face::engine::{Engine, EngineView, run_keeper};
pub use face::failover::FailoverRequest;
pub use face::groups::{GroupProvisionRequest, GroupView, Groups, VdbGroupView};
pub use face::jobs::{Jobs, snapshot_taken};
pub use face::latencies::{FileLatencies, LatenciesView};
pub use face::masks::keys::MaskKeyView;
pub use face::masks::report::ReportView;
pub use face::masks::{MaskRequest, MaskState, MaskView, Masks, PreviewRequest};
pub use face::opening::{EngineOptions, check_delivery, check_pool_dir};
pub use face::peers::{AddPeerRequest, InviteRequest, PeerView, Peers};
pub use face::policies::{Policies, PolicyView};
pub use face::pool::{Pool, PoolView};
pub use face::profiles::{ProfileRequest, ProfileState, ProfileView, Profiles};
pub use face::replication::{Export, ExportRequest, Replication};
pub use face::secrets::{Secrets, SecretsView};
pub use face::snapshots::{SnapshotView, Snapshots};
pub use face::templates::Templates;
pub use face::timeflows::{HistoryView, OpenRange, ShownRange, TimeflowView, Timeflows};
pub use face::users::{UserChange, UserRequest, UserView, Users};
pub use face::vdbs::{KeptHook, VdbView, Vdbs};
pub use face::wanted::ProvisionRequest;
pub use face::webhooks::{
    AddWebhookRequest, NewSecret, SetWebhookRequest, WebhookTest, WebhookView, Webhooks,
};
pub use ground::custody::Survival;
pub use ground::network::{Network, NoNetwork, PeerKey, Reached};
pub use ground::poster::{NoPoster, Poster, Posting};
pub use history::bookmarks::BookmarkView;
pub use history::names::ObjectKind;
pub use housekeeping::takeover::{displace, outlast_killed};
pub use jobs::pool::{PoolReport, check_pool};
pub use jobs::scrub::{ScrubReport, ScrubView};
pub use jobs::set_vdb::VdbChange;
pub use offshoot_connector::{
    Differences, ObjectChange, Preview, PreviewValue, RowChange, TableChanges, TableRead,
};
pub use offshoot_dataset::{CheckReport, Finding, StoreLatencies};
pub use offshoot_delivery::RequestCounts;
pub use offshoot_replication::archive::Tally;
pub use offshoot_replication::talk::Wire;
pub use space::damage::DamagedBlock;
pub use space::inventory::{BlockHolder, LedgerKey};
pub use space::ledger::{DatedFigures, Deletion, LedgerEntry, LedgerFigures};

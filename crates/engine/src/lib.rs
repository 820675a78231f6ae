//! The engine: dSources, snapshots and VDBs over a store, servers and jobs.
//!
//! # How the parts work together
//! ```text
//!   source ══▶ pg_receivewal ══▶ log dataset ──feed──▶ staging dataset (a standby replays)
//!                                     │                     │ snapshot
//!                                     │                     ▼
//!                                     │               image as taken ──recover, settle, check──▶ clean image
//!                                     └──────cut at a moment─────┐                                 │
//!                                                                ▼                                 ▼
//!                                                     clone, replay to the moment            clone, open
//!                                                                └───────────────▶ VDB ◀───────────┘
//! ```
//! - [`Engine`] is the API; every change is a job of a workflow (`*_jobs` modules), whose steps are
//!   plain functions over [`Core`](core::Core).
//! - A [`follower`] per dSource keeps the stream, the index of commits and the staging standby going.
//!
//! # Invariants
//! 1. The engine MUST NOT use `std::fs` on a mount it serves: it would wait for its own answer, and
//!    could then not even be killed. It works by path through `offshoot_fs`; its children may use mounts.
//! 2. What a crash may leave in the store (a clone whose job had not noted it yet) is found because the
//!    catalog does not know it: [`leftovers`] removes it once no job is open.
//! 3. The catalog says what should run; after any crash the next start makes it so.

mod bookmarks;
mod core;
mod damage;
mod data_files;
mod dsource_jobs;
mod engine;
mod exports;
mod follower;
mod host;
mod keeping;
mod ledger;
mod left_slots;
mod leftovers;
mod link;
mod log_feed;
mod losses;
mod moments;
mod opening;
mod paths;
mod policies;
mod pool_jobs;
mod ports;
mod proof;
mod provision;
mod readiness;
mod restart;
mod resync;
mod retention;
mod room;
mod scrub;
mod servers;
mod snapshots;
mod takeover;
mod timeflows;
mod vdb_jobs;
mod views;
mod watch;

pub use bookmarks::BookmarkView;
pub use damage::{BlockHolder, DamagedBlock};
pub use engine::{Engine, EngineOptions, keep};
pub use keeping::Survival;
pub use ledger::{DatedFigures, Deletion, LedgerEntry, LedgerFigures, LedgerKey};
pub use offshoot_dataset::{CheckReport, Finding};
pub use policies::PolicyView;
pub use pool_jobs::{PoolReport, check_pool};
pub use scrub::{ScrubReport, ScrubView};
pub use takeover::displace;
pub use timeflows::{HistoryView, TimeflowView};
pub use views::{
    DsourceView, EngineView, FollowState, ObjectKind, PoolView, SnapshotView, VdbView,
};

//! What every kind of database implements, so that the engine knows none of them.
//!
//! ```text
//!   engine ──▶ Connector ─┬─ source()    ──▶ Source      check · reserve log · copy · stream ──▶ LogStream
//!   (knows only           ├─ open_log()  ──▶ ReceivedLog index · feed staging · place into a clone
//!    these traits)        ├─ start()     ──▶ Server      ready · position · cut ties · grant · stop
//!                         ├─ replay()    ──▶ Server      a clone brought to a position
//!                         ├─ image_checker()             is an image sound?
//!                         ├─ point_maker()               recovery points where the source has none
//!                         ├─ masker()                    what a copy may not show
//!                         ├─ differ()                    what differs between two copies
//!                         ├─ inquirer()                  when did an answer change?
//!                         ├─ script_runner()             what users run in their VDBs
//!                         ├─ keepsakes()                 what users made beside the data
//!                         └─ gateways()                  connections outlive servers
//! ```
//! A connector gets directories ([`DataDir`]) and names of places; it knows neither the store nor the catalog. It
//! puts what it must remember about a source into a [`ConnectorState`](offshoot_domain::ConnectorState), which
//! the engine keeps and never reads.
//!
//! # The same things under other names
//! | here | PostgreSQL | MariaDB |
//! |---|---|---|
//! | [`LogPosition`](offshoot_types::LogPosition) | LSN | byte of the received binlog, mapped to (file, offset) |
//! | epoch | timeline | the server the log comes from; a switch maps by GTID |
//! | label of a commit | transaction id | GTID |
//! | reservation | replication slot | none; expiry is watched |
//! | replay to a moment | WAL cut there, crash recovery | binlogs cut there as relay logs, restart |
//! | ties to production | settings, subscriptions, mappings, logins | accounts, replica state, servers, events |
//!
//! # Rules of every connector (each a test of the conformance suite)
//! 1. Positions order the log: a commit that ends at or before a position is in what is opened there, and
//!    no later commit is.
//! 2. Log is durable in its directory before the source is told that it was received.
//! 3. Every step can be repeated, and undone, after a kill at any point of it.
//! 4. A running server is found again by its runtime directory alone.
//! 5. A VDB has no way to its source once its ties are cut.

mod connector;
mod data_dir;
mod differ;
mod gateway;
mod image;
mod inquiry;
mod kept;
mod log;
mod masking;
mod point;
mod registry;
mod script;
mod server;
mod source;

pub use connector::{Connector, Layout};
pub use data_dir::{DataDir, DataFile, PlainDir, READ_BYTES_MAX, WritableFile, read_full};
pub use differ::{
    Ancestor, Compared, DiffSide, DiffTick, DiffWanted, Differ, Differences, DifferingFn,
    NextAncestor, ObjectChange, RowChange, TableChanges, TableRead,
};
pub use gateway::{Absence, GatewaySpec, Gateways, OpenGateway};
pub use image::{Differing, Findings, ImageChecker, ImageScope, Tick};
pub use inquiry::{Inquirer, Question, Reads, Reply, Suspect};
pub use kept::Keepsakes;
pub use log::{Commit, LogFeed, LogStream, LogTarget, ReceivedLog, StreamState, StreamStatus};
pub use masking::{
    DiscoveryTick, Masked, MaskedTable, Masker, Masking, MaskingTick, Preview, PreviewColumn,
    PreviewValue, Renewal, Renewed, RulesChecked, TableState,
};
pub use point::{PointMaker, RecoveryPoint};
pub use registry::Registry;
pub use script::{Login, Program, Script, ScriptCourse, ScriptRunner};
pub use server::{
    Grant, Granted, Network, Progress, Replay, Replayed, Role, Server, ServerSpec, StopMode,
    VdbOptions,
};
pub use source::{CheckedSource, Copied, CopyRequest, Source, SourceUri, StreamRequest};

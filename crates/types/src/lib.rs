//! Typed ids, positions and error kinds that every layer shares. No I/O.

mod block;
mod error;
mod ids;
mod latency;
mod log_position;
mod remote;
mod share;

pub use block::{BLOCK_SIZE, BlockHash};
pub use error::{ErrorKind, Failure};
pub use ids::{
    BookmarkId, DatasetId, DsourceId, GroupId, Ino, JobId, ParseIdError, PeerId, ProfileId,
    SnapshotId, TemplateId, TimeflowId, TokenId, Txg, UserId, VdbGroupId, VdbId, WebhookId,
};
pub use latency::{Latency, LatencyCounts};
pub use log_position::LogPosition;
pub use remote::Remote;
pub use share::Share;

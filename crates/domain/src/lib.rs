//! The words of Offshoot as types, and its decisions as pure functions: no I/O, no clock.
//!
//! Objects ([`Dsource`], [`Vdb`], [`Timeflow`], [`Snapshot`], [`Bookmark`], [`User`]) are what the catalog
//! keeps. [`plan`] decides from which snapshot a moment is opened, [`Retention`] what may be
//! removed.

mod bisection;
mod bookmark;
mod care;
mod connector_state;
mod crontab;
mod dsource;
mod exposure;
mod gateway;
mod group;
mod hook;
mod kept;
mod mask_report;
mod masking;
mod moment;
mod name;
mod owner;
mod pace;
mod peer;
mod planner;
mod policy;
mod profile;
mod replica;
mod secret;
mod sent_vdb;
pub mod signed;
mod snapshot;
mod template;
mod timeflow;
mod topology;
mod units;
mod user;
mod vdb;
mod webhook;

pub use bisection::{
    ANSWER_BYTES_MAX, Answer, Answered, Bisection, ChangeFound, Condition, FoundCommit,
    RelationChange, TransactionChanges,
};
pub use bookmark::Bookmark;
pub use care::{Care, CareChange};
pub use connector_state::ConnectorState;
pub use crontab::Crontab;
pub use dsource::{Dsource, DsourceState};
pub use exposure::Exposure;
pub use gateway::{Gateway, GatewayChange};
pub use group::{Group, VdbGroup};
pub use hook::{Hook, HookEvent, HookFailure, HookKind};
pub use kept::Kept;
pub use mask_report::{
    Anonymity, MaskFacts, MaskReport, MaskedColumnFacts, MaskedTableFacts, Removed,
};
pub use masking::{
    Discovered, FoundColumn, MaskedRows, MaskedRowsState, Masking, MaskingMode, MaskingRun,
    is_masked, masked_identity,
};
pub use moment::{Moment, ParsedTime, Position, parse_time, parse_time_near};
pub use name::ObjectName;
pub use owner::{Owner, Parent};
pub use pace::{OpenTimes, Pace};
pub use peer::{Awaited, HandedOver, Incoming, Invitation, Peer};
pub use planner::{
    Notation, ProvisionPlan, Target, TimeRefusal, TimeflowView, check_time, openable, plan,
};
pub use policy::{KeptLog, Policy, PolicyChange, Retention, SnapshotPolicy};
pub use profile::{CONNECTIONS, Included, Profile, ProfileRun, SentMark};
pub use replica::{Hop, Manifest, Replica, SentBookmark, SentDsource, SentSnapshot, SentTimeflow};
pub use secret::Secret;
pub use sent_vdb::{LeftThere, SentVdb};
pub use snapshot::{Readiness, Snapshot, SnapshotKind};
pub use template::{Template, Wishes};
pub use timeflow::{LogRange, Origin, Timeflow};
pub use topology::{KnownEngine, Neighbour, Neighbourhood, Told, Topology, newest};
pub use units::{format_duration, format_size, parse_duration, parse_size};
pub use user::{AccessToken, Role, User};
pub use vdb::{Opened, TiesCut, Timings, Vdb, VdbState};
pub use webhook::{EventPattern, Webhook, WebhookKey, webhook_url};

//! What about an object is wrong: with the object, the key of a fault.

use offshoot_catalog::{Fault, Subject};
use offshoot_types::BlockHash;
use std::fmt;

/// What about an object is wrong. Its text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic<'a> {
    /// A VDB's server.
    Server,
    /// A VDB's or dSource's quota.
    Quota,
    /// What the VDBs of a VDB's user may take together.
    Share,
    /// Acknowledged writes that a VDB or dSource lacks.
    Loss,
    /// The start of a dSource.
    Start,
    /// The connection of a dSource to its source.
    Source,
    /// The received log of a dSource.
    Log,
    /// The staging server of a dSource.
    Staging,
    /// How soon a dSource's moments open.
    Promise,
    /// The renewal of a masked dSource.
    Renewal,
    /// The runs of a profile.
    Replication,
    /// How far behind the peer of a profile is.
    Behind,
    /// The proof of a snapshot.
    Proof,
    /// How full the pool is.
    Room,
    /// A damaged block of the pool.
    Block(BlockHash),
    /// More damaged blocks than are listed.
    Blocks,
    /// A webhook that cannot be told anything, by its name.
    Webhook(&'a str),
    /// Log that is still reserved on a source for nobody, by the reservation's name.
    Reservation(&'a str),
}

/// What only a dSource or VDB can have.
const OF_OBJECTS: [Topic<'_>; 9] = [
    Topic::Server,
    Topic::Quota,
    Topic::Share,
    Topic::Loss,
    Topic::Start,
    Topic::Source,
    Topic::Log,
    Topic::Staging,
    Topic::Promise,
];
const BLOCK: &str = "block ";

impl Topic<'_> {
    /// Whether a fault of the pool is about damaged blocks.
    pub fn is_of_blocks(fault: &Fault) -> bool {
        fault.topic.starts_with(BLOCK) || fault.topic == Topic::Blocks.to_string()
    }

    /// Whether an earlier release took a dSource or VDB of the name `pool` or `engine` for the subject of this
    /// fault. What is still wrong is raised again under the object's own subject.
    pub fn is_misplaced(fault: &Fault) -> bool {
        matches!(fault.subject, Subject::Pool | Subject::Engine)
            && OF_OBJECTS.iter().any(|topic| topic.to_string() == fault.topic)
    }
}

impl fmt::Display for Topic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topic::Server => f.write_str("server"),
            Topic::Quota => f.write_str("quota"),
            Topic::Share => f.write_str("share"),
            Topic::Loss => f.write_str("loss"),
            Topic::Start => f.write_str("start"),
            Topic::Source => f.write_str("source"),
            Topic::Log => f.write_str("log"),
            Topic::Staging => f.write_str("staging"),
            Topic::Promise => f.write_str("promise"),
            Topic::Renewal => f.write_str("renewal"),
            Topic::Replication => f.write_str("replication"),
            Topic::Behind => f.write_str("behind"),
            Topic::Proof => f.write_str("proof"),
            Topic::Room => f.write_str("room"),
            Topic::Block(hash) => write!(f, "{BLOCK}{hash}"),
            Topic::Blocks => f.write_str("blocks"),
            Topic::Webhook(name) => write!(f, "webhook {name}"),
            Topic::Reservation(name) => write!(f, "slot {name}"),
        }
    }
}

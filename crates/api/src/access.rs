//! Users, their tokens, and the audit.

use crate::policy::given;
use jiff::Timestamp;
use offshoot_types::{JobId, TokenId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a user is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May do everything.
    Admin,
    /// Runs dSources and VDBs of everybody; neither links sources nor sees passwords of others.
    Operator,
    /// Has VDBs of its own.
    Developer,
    /// Reads everything but passwords, and the audit.
    Auditor,
}

impl Role {
    /// The word the API uses.
    pub fn word(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Developer => "developer",
            Role::Auditor => "auditor",
        }
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// Its id, which is never given to another one.
    #[schema(value_type = String, example = "user-1")]
    pub id: UserId,
    /// Its name.
    pub name: String,
    /// What it is there for.
    pub role: Role,
    /// What a developer may make VDBs from, besides its own VDBs.
    pub parents: Vec<String>,
    /// How many VDBs it may have; null: as many as it likes.
    #[schema(required)]
    pub vdbs_max: Option<u32>,
    /// How many it has.
    pub vdbs: u64,
    /// What its VDBs may take in the pool for themselves; null: as much as there is.
    #[schema(required)]
    pub space_bytes_max: Option<u64>,
    /// What they take; null where that is not limited.
    #[schema(required)]
    pub space_bytes: Option<u64>,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// All users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserList {
    /// By name.
    pub users: Vec<User>,
}

/// Adds a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddUser {
    /// The name to give it: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// What it is there for.
    pub role: Role,
    /// The dSources and VDBs that a developer may make VDBs from; none but its own where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// How many VDBs it may have; as many as it likes where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vdbs_max: Option<u32>,
    /// What these may take in the pool for themselves, together; as much as there is where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space_bytes_max: Option<u64>,
}

/// Changes what a user may do. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetUser {
    /// The dSources and VDBs that a developer may make VDBs from, in place of those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parents: Option<Vec<String>>,
    /// How many VDBs it may have; null: as many as it likes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub vdbs_max: Option<Option<u32>>,
    /// What these may take in the pool for themselves, together; null: as much as there is.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub space_bytes_max: Option<Option<u64>>,
}

/// What a user is known by. The token itself is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its id.
    #[schema(value_type = String, example = "token-1")]
    pub id: TokenId,
    /// The name of the user.
    pub user: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it ends; null: it does not.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Whether it has ended.
    pub expired: bool,
}

/// All tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Oldest first.
    pub tokens: Vec<Token>,
}

/// Makes a token for a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// The name of the user.
    pub user: String,
    /// For how long it is good; until it is revoked where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// A new token. This is the only time that it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// Its id.
    #[schema(value_type = String, example = "token-1")]
    pub id: TokenId,
    /// The name of the user.
    pub user: String,
    /// When it ends; null: it does not.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// The token itself.
    pub token: String,
}

/// Leaves out the token.
impl std::fmt::Debug for CreatedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedToken").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Somebody asked for something: a change, a VDB's password, or what he may not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Counts entries.
    pub id: u64,
    /// When it was answered.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// The user's name; in parentheses who has none: `(uid 0)` by the Unix socket, `(pool token)`,
    /// `(console)`, `(unknown)`.
    pub user: String,
    /// From where: an address and port, or the user and process of this host.
    pub origin: String,
    /// What was asked for, as `vdb stop`.
    #[schema(example = "vdb stop")]
    pub action: String,
    /// Of which object; may be empty.
    pub object: String,
    /// `done`, or the code of the error.
    pub outcome: String,
    /// The job that does it; how it ended is shown there.
    #[schema(required, value_type = Option<String>, example = "job-12")]
    pub job: Option<JobId>,
}

/// The audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Audit {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
}

//! Who may use an engine, and for what.

use crate::{ObjectName, Owner};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure, TokenId, UserId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a user is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// All of them.
    pub const ALL: [Role; 4] = [Role::Admin, Role::Operator, Role::Developer, Role::Auditor];

    /// As users and scripts see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Developer => "developer",
            Role::Auditor => "auditor",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Role, Failure> {
        Role::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("'{text}' is no role"),
                "roles are admin, operator, developer and auditor",
            )
        })
    }
}

/// Who may use an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The id.
    pub id: UserId,
    /// Unique among users.
    pub name: ObjectName,
    /// What it is there for.
    pub role: Role,
    /// What a developer may make VDBs from, besides its own VDBs.
    #[serde(default)]
    pub parents: Vec<Owner>,
    /// How many VDBs it may have; none: as many as it likes.
    #[serde(default)]
    pub vdbs_max: Option<u32>,
    /// What its VDBs may take in the pool for themselves, in bytes; none: as much as there is.
    #[serde(default)]
    pub space_bytes_max: Option<u64>,
    /// When it was added.
    pub created_at: Timestamp,
}

/// What a user shows to be known. The token itself is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// The id.
    pub id: TokenId,
    /// Whose it is.
    pub user: UserId,
    /// SHA-256 of the token, in hexadecimal digits. Tokens are random, so it says nothing about them.
    pub hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends; none: it does not.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

impl AccessToken {
    /// Whether it has ended.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

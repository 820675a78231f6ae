//! What the HTTP layer asks of an engine about those who ask.

use offshoot_api::{AddUser, AuditEntry, SetUser, Token, User};
use offshoot_catalog::AuditFilter;
use offshoot_domain::{Owner, Role};
use offshoot_types::{Failure, JobId, TokenId, UserId};
use std::collections::HashSet;
use std::time::Duration;

/// A user, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The id.
    pub id: UserId,
    /// The name.
    pub name: String,
    /// What it is there for.
    pub role: Role,
    /// What a developer may make VDBs from.
    pub parents: Vec<Owner>,
}

/// A dSource or VDB, as far as decisions need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thing {
    /// Its id.
    pub id: Owner,
    /// Whose it is; none: the administrators'. dSources are theirs.
    pub user: Option<UserId>,
}

/// A request, as the audit keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who asked.
    pub user: String,
    /// From where.
    pub origin: String,
    /// What for.
    pub action: String,
    /// Of which object.
    pub object: String,
    /// What became of it.
    pub outcome: String,
    /// The job that does it.
    pub job: Option<JobId>,
    /// Whether the caller was not known, or had no right to it.
    pub refused: bool,
}

/// Users, what they are known by, what is theirs, and what they did. Methods may block.
pub trait Accounts: Send + Sync + 'static {
    /// Adds a user.
    fn add_user(&self, request: AddUser) -> Result<User, Failure>;
    /// All users, by name.
    fn list_users(&self) -> Result<Vec<User>, Failure>;
    /// Changes what a user may do.
    fn set_user(&self, name: &str, request: SetUser) -> Result<User, Failure>;
    /// Removes a user and its tokens; returns what it was.
    fn remove_user(&self, name: &str) -> Result<User, Failure>;

    /// Gives a user a token, of which only the hash is told.
    fn add_token(
        &self,
        user: &str,
        hash: String,
        expires_in: Option<Duration>,
    ) -> Result<Token, Failure>;
    /// All tokens, oldest first.
    fn list_tokens(&self) -> Result<Vec<Token>, Failure>;
    /// Takes a token back; returns what it was.
    fn revoke_token(&self, id: TokenId) -> Result<Token, Failure>;
    /// Whose token has this hash now.
    fn account_of_token(&self, hash: &str) -> Result<Option<Account>, Failure>;

    /// The dSource or VDB of a name or id.
    fn find_thing(&self, name: &str) -> Result<Thing, Failure>;
    /// Records who began a job.
    fn set_job_user(&self, job: JobId, user: UserId) -> Result<(), Failure>;
    /// The jobs that a user began.
    fn jobs_of(&self, user: UserId) -> Result<HashSet<JobId>, Failure>;

    /// Adds to the audit.
    fn record(&self, record: Record) -> Result<(), Failure>;
    /// The audit, newest first.
    fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Failure>;
}

//! What can be asked of users, of what they are known by, and of the audit.

use crate::core::missing;
use crate::history::names;
use crate::parts::Parts;
use crate::space::shares;
use jiff::Timestamp;
use offshoot_catalog::{AuditEntry, AuditFilter};
use offshoot_domain::{AccessToken, ObjectName, Owner, Role, User, Vdb};
use offshoot_types::{ErrorKind, Failure, JobId, TokenId, UserId};
use std::sync::Arc;
use std::time::Duration;

/// Tokens that a user may have.
const TOKENS_MAX: usize = 100;

/// Who is added.
#[derive(Debug, Clone)]
pub struct UserRequest {
    /// The name.
    pub name: String,
    /// What it is there for.
    pub role: Role,
    /// The names of what a developer may make VDBs from.
    pub parents: Vec<String>,
    /// How many VDBs it may have.
    pub vdbs_max: Option<u32>,
    /// What these may take in the pool for themselves, in bytes.
    pub space_bytes_max: Option<u64>,
}

/// What to change of a user; what is absent stays.
#[derive(Debug, Clone, Default)]
pub struct UserChange {
    /// The names of what a developer may make VDBs from.
    pub parents: Option<Vec<String>>,
    /// How many VDBs it may have; `Some(None)`: as many as it likes.
    pub vdbs_max: Option<Option<u32>>,
    /// What these may take in the pool for themselves, in bytes; `Some(None)`: as much as there is.
    pub space_bytes_max: Option<Option<u64>>,
}

/// A user, and what it has.
#[derive(Debug, Clone)]
pub struct UserView {
    /// The record.
    pub user: User,
    /// The names of what it may make VDBs from.
    pub parents: Vec<String>,
    /// How many VDBs it has.
    pub vdbs: u64,
    /// What these take in the pool for themselves, in bytes; none where that is not limited.
    pub space_bytes: Option<u64>,
}

/// Users, as an administrator works with them.
pub struct Users<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

/// The name of a user; none if there is no such user.
pub(super) fn name(parts: &Parts, id: UserId) -> Result<Option<String>, Failure> {
    let all = parts.catalog.all::<User>()?;
    Ok(all.iter().find(|user| user.id == id).map(|user| user.name.to_string()))
}

impl Users<'_> {
    /// Adds a user.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` for a parent, `InvalidInput` for the name.
    pub fn add(&self, request: UserRequest) -> Result<UserView, Failure> {
        let name: ObjectName = request.name.parse()?;
        let parents = self.owners(&request.parents)?;
        let UserRequest { role, vdbs_max, space_bytes_max, .. } = request;
        let catalog = &self.parts.catalog;
        let (id, created_at) = (catalog.allocate::<User>()?, self.parts.now());
        let user = User { id, name, role, parents, vdbs_max, space_bytes_max, created_at };
        catalog.put(&user)?;
        self.view(user)
    }

    fn owners(&self, names: &[String]) -> Result<Vec<Owner>, Failure> {
        names.iter().map(|name| names::find(self.parts, name)).collect()
    }

    /// Changes what a user may do. What it has already stays, even if that is more.
    ///
    /// # Errors
    /// `NotFound`, also for a parent.
    pub fn set(&self, name: &str, change: &UserChange) -> Result<UserView, Failure> {
        let parents = change.parents.as_ref().map(|names| self.owners(names)).transpose()?;
        let user = self.parts.catalog.update::<User>(self.find(name)?.id, |user| {
            user.parents = parents.clone().unwrap_or_else(|| user.parents.clone());
            user.vdbs_max = change.vdbs_max.unwrap_or(user.vdbs_max);
            user.space_bytes_max = change.space_bytes_max.unwrap_or(user.space_bytes_max);
        })?;
        shares::set(self.parts)?;
        self.view(user)
    }

    /// All users, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<UserView>, Failure> {
        let mut all: Vec<User> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter().map(|user| self.view(user)).collect()
    }

    fn view(&self, user: User) -> Result<UserView, Failure> {
        let parents = user.parents.iter().map(|parent| names::of(self.parts, *parent));
        let parents = parents.collect::<Result<_, _>>()?;
        let vdbs = self.parts.catalog.all::<Vdb>()?;
        let vdbs = vdbs.iter().filter(|vdb| vdb.owner == Some(user.id)).count() as u64;
        let limited = user.space_bytes_max.is_some();
        let space_bytes = limited.then(|| shares::used(self.parts, &user)).transpose()?;
        Ok(UserView { user, parents, vdbs, space_bytes })
    }

    /// Removes a user and its tokens; its VDBs are the administrators' then.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn remove(&self, name: &str) -> Result<UserView, Failure> {
        let user = self.find(name)?;
        let view = self.view(user.clone())?;
        self.parts.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
            for token in tx.list::<AccessToken>()?.iter().filter(|token| token.user == user.id) {
                tx.delete::<AccessToken>(token.id)?;
            }
            tx.delete::<User>(user.id)?;
            Ok(())
        })?;
        shares::forget(self.parts, &user)?;
        Ok(view)
    }

    fn find(&self, name: &str) -> Result<User, Failure> {
        let found = self.parts.catalog.find_named(name)?;
        found.ok_or_else(|| missing("user", name, "list them: offshoot user list"))
    }

    /// The name of a user; none if it has been removed.
    ///
    /// # Errors
    /// The catalog's.
    pub fn name(&self, id: UserId) -> Result<Option<String>, Failure> {
        name(self.parts, id)
    }

    /// Gives a user a token of this hash.
    ///
    /// # Errors
    /// `NotFound`; `WrongState` for one token too many.
    pub fn add_token(
        &self,
        name: &str,
        hash: String,
        expires_in: Option<Duration>,
    ) -> Result<AccessToken, Failure> {
        let user = self.find(name)?;
        let created_at = self.parts.now();
        let far = || {
            let message = "the token would end after the last day that can be named";
            Failure::new(ErrorKind::InvalidInput, message, "give it a shorter time")
        };
        let expires_at = expires_in.map(|after| created_at.checked_add(after)).transpose();
        let expires_at = expires_at.map_err(|_| far())?;
        let catalog = &self.parts.catalog;
        let id = catalog.allocate::<AccessToken>()?;
        let token = AccessToken { id, user: user.id, hash, created_at, expires_at };
        let added = catalog.transaction(|tx| -> Result<bool, offshoot_catalog::Error> {
            // The user may have been removed meanwhile.
            tx.get::<User>(user.id)?;
            let all = tx.list::<AccessToken>()?;
            let room = all.iter().filter(|one| one.user == user.id).count() < TOKENS_MAX;
            if room {
                tx.put(&token)?;
            }
            Ok(room)
        })?;
        let full = || {
            let message = format!("'{name}' has {TOKENS_MAX} tokens, and may have no more");
            Failure::new(ErrorKind::WrongState, message, "revoke some: offshoot token list")
        };
        added.then_some(token).ok_or_else(full)
    }

    /// All tokens, oldest first, with the names of their users.
    ///
    /// # Errors
    /// The catalog's.
    pub fn tokens(&self) -> Result<Vec<(AccessToken, String)>, Failure> {
        let tokens: Vec<AccessToken> = self.parts.catalog.list()?;
        let named = |token: AccessToken| {
            let name = self.name(token.user)?.unwrap_or_else(|| token.user.to_string());
            Ok((token, name))
        };
        tokens.into_iter().map(named).collect()
    }

    /// Takes a token back. When this returns, it is good for nothing.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn revoke(&self, id: TokenId) -> Result<AccessToken, Failure> {
        let gone = || missing("token", &id.to_string(), "list them: offshoot token list");
        let catalog = &self.parts.catalog;
        catalog
            .transaction(|tx| {
                let found = tx.find::<AccessToken>(id)?;
                tx.delete::<AccessToken>(id)?;
                Ok::<_, offshoot_catalog::Error>(found)
            })?
            .ok_or_else(gone)
    }

    /// Whose token has this hash; nobody's if it has expired.
    ///
    /// # Errors
    /// The catalog's.
    pub fn by_token(&self, hash: &str) -> Result<Option<User>, Failure> {
        let tokens = self.parts.catalog.all::<AccessToken>()?;
        let now = self.parts.now();
        let Some(token) = tokens.iter().find(|one| one.hash == hash && !one.is_expired(now)) else {
            return Ok(None);
        };
        let users = self.parts.catalog.all::<User>()?;
        Ok(users.iter().find(|user| user.id == token.user).cloned())
    }

    /// The id of a dSource or VDB, by name or id, and whose it is. dSources are the administrators'.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn find_object(&self, name: &str) -> Result<(Owner, Option<UserId>), Failure> {
        let id = names::find(self.parts, name)?;
        let user = match id {
            Owner::Vdb(vdb) => self.parts.catalog.get::<Vdb>(vdb)?.owner,
            Owner::Dsource(_) => None,
        };
        // What a removed user had is the administrators'.
        let is_there =
            |user: UserId| Ok::<_, Failure>(self.parts.catalog.find::<User>(user)?.is_some());
        let there = user.map(is_there).transpose()?.unwrap_or_default();
        Ok((id, user.filter(|_| there)))
    }

    /// Records which user began a job.
    ///
    /// # Errors
    /// The catalog's.
    pub fn set_job_user(&self, job: JobId, user: UserId) -> Result<(), Failure> {
        Ok(self.parts.catalog.set_job_user(job, user)?)
    }

    /// The jobs that a user began.
    ///
    /// # Errors
    /// The catalog's.
    pub fn jobs_of(&self, user: UserId) -> Result<Vec<JobId>, Failure> {
        Ok(self.parts.catalog.jobs_of(user)?)
    }

    /// Adds an entry to the audit.
    ///
    /// # Errors
    /// The catalog's.
    pub fn record(&self, entry: &AuditEntry) -> Result<(), Failure> {
        Ok(self.parts.catalog.add_audit(entry)?)
    }

    /// Entries of the audit, newest first.
    ///
    /// # Errors
    /// The catalog's.
    pub fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Failure> {
        Ok(self.parts.catalog.audit(filter)?)
    }

    /// The time of day, as tokens and audit have it.
    pub fn now(&self) -> Timestamp {
        self.parts.now()
    }
}

//! Users, their tokens and the audit, as the API shows them.

use super::LocalEngine;
use crate::access::accounts::{Account, Accounts, Record, Thing};
use jiff::Timestamp;
use offshoot_api as api;
use offshoot_catalog::{AuditEntry, AuditFilter};
use offshoot_domain::{AccessToken, Role};
use offshoot_engine::{UserChange, UserRequest, UserView};
use offshoot_types::{Failure, JobId, TokenId, UserId};
use std::collections::HashSet;
use std::time::Duration;

impl Accounts for LocalEngine {
    fn add_user(&self, request: api::AddUser) -> Result<api::User, Failure> {
        let api::AddUser { name, role, parents, vdbs_max, space_bytes_max } = request;
        let role = match role {
            api::Role::Admin => Role::Admin,
            api::Role::Operator => Role::Operator,
            api::Role::Developer => Role::Developer,
            api::Role::Auditor => Role::Auditor,
        };
        let request = UserRequest { name, role, parents, vdbs_max, space_bytes_max };
        self.engine().users().add(request).map(user)
    }

    fn set_user(&self, name: &str, request: api::SetUser) -> Result<api::User, Failure> {
        let api::SetUser { parents, vdbs_max, space_bytes_max } = request;
        let change = UserChange { parents, vdbs_max, space_bytes_max };
        self.engine().users().set(name, &change).map(user)
    }

    fn list_users(&self) -> Result<Vec<api::User>, Failure> {
        Ok(self.engine().users().list()?.into_iter().map(user).collect())
    }

    fn remove_user(&self, name: &str) -> Result<api::User, Failure> {
        self.engine().users().remove(name).map(user)
    }

    fn add_token(
        &self,
        user: &str,
        hash: String,
        expires_in: Option<Duration>,
    ) -> Result<api::Token, Failure> {
        let users = self.engine().users();
        let made = users.add_token(user, hash, expires_in)?;
        Ok(token(made, user.to_owned(), users.now()))
    }

    fn list_tokens(&self) -> Result<Vec<api::Token>, Failure> {
        let users = self.engine().users();
        let now = users.now();
        Ok(users.tokens()?.into_iter().map(|(one, user)| token(one, user, now)).collect())
    }

    fn revoke_token(&self, id: TokenId) -> Result<api::Token, Failure> {
        let users = self.engine().users();
        let revoked = users.revoke(id)?;
        let user = users.name(revoked.user)?.unwrap_or_else(|| revoked.user.to_string());
        Ok(token(revoked, user, users.now()))
    }

    fn account_of_token(&self, hash: &str) -> Result<Option<Account>, Failure> {
        let found = self.engine().users().by_token(hash)?;
        Ok(found.map(|user| Account {
            id: user.id,
            name: user.name.to_string(),
            role: user.role,
            parents: user.parents,
        }))
    }

    fn find_thing(&self, name: &str) -> Result<Thing, Failure> {
        let (id, user) = self.engine().users().find_object(name)?;
        Ok(Thing { id, user })
    }

    fn set_job_user(&self, job: JobId, user: UserId) -> Result<(), Failure> {
        self.engine().users().set_job_user(job, user)
    }

    fn jobs_of(&self, user: UserId) -> Result<HashSet<JobId>, Failure> {
        Ok(self.engine().users().jobs_of(user)?.into_iter().collect())
    }

    fn record(&self, record: Record) -> Result<(), Failure> {
        let Record { user, origin, action, object, outcome, job, refused } = record;
        let time = self.engine().users().now();
        let entry = AuditEntry { id: 0, time, user, origin, action, object, outcome, job, refused };
        self.engine().users().record(&entry)
    }

    fn audit(&self, filter: &AuditFilter) -> Result<Vec<api::AuditEntry>, Failure> {
        let entries = self.engine().users().audit(filter)?;
        Ok(entries.into_iter().map(entry).collect())
    }
}

fn user(view: UserView) -> api::User {
    let UserView { user, parents, vdbs, space_bytes } = view;
    api::User {
        id: user.id,
        name: user.name.to_string(),
        role: match user.role {
            Role::Admin => api::Role::Admin,
            Role::Operator => api::Role::Operator,
            Role::Developer => api::Role::Developer,
            Role::Auditor => api::Role::Auditor,
        },
        parents,
        vdbs_max: user.vdbs_max,
        vdbs,
        space_bytes_max: user.space_bytes_max,
        space_bytes,
        created_at: user.created_at,
    }
}

fn token(token: AccessToken, user: String, now: Timestamp) -> api::Token {
    api::Token {
        expired: token.is_expired(now),
        id: token.id,
        user,
        created_at: token.created_at,
        expires_at: token.expires_at,
    }
}

fn entry(entry: AuditEntry) -> api::AuditEntry {
    let AuditEntry { id, time, user, origin, action, object, outcome, job, refused: _ } = entry;
    api::AuditEntry { id, time, user, origin, action, object, outcome, job }
}

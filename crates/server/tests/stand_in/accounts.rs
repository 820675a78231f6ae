//! Users of the stand-in, and what they did.

use super::{StandIn, missing, taken, time};
use offshoot_api::{AddUser, AuditEntry, Role, SetUser, Token, User};

use offshoot_domain::Owner;
use offshoot_server::{Account, Accounts, AuditFilter, Record, Thing};
use offshoot_types::{Failure, JobId, TokenId, UserId};
use std::collections::HashSet;
use std::time::Duration;

#[derive(Default)]
pub struct People {
    users: Vec<User>,
    tokens: Vec<(Token, String)>,
    jobs: Vec<(JobId, UserId)>,
    records: Vec<Record>,
}

impl People {
    pub fn name_of(&self, id: Option<UserId>) -> Option<String> {
        self.users.iter().find(|user| Some(user.id) == id).map(|user| user.name.clone())
    }

    fn find(&self, name: &str) -> Result<&User, Failure> {
        self.users.iter().find(|user| user.name == name).ok_or_else(|| missing("user", name))
    }
}

impl Accounts for StandIn {
    fn add_user(&self, request: AddUser) -> Result<User, Failure> {
        let AddUser { name, role, parents, vdbs_max, space_bytes_max } = request;
        let mut state = self.lock();
        if state.people.find(&name).is_ok() {
            return Err(taken(&name));
        }
        let id = UserId(state.people.users.len() as u64 + 1);
        let user = User {
            id,
            name,
            role,
            parents,
            vdbs_max,
            vdbs: 0,
            space_bytes_max,
            space_bytes: space_bytes_max.map(|_| 0),
            created_at: time(),
        };
        state.people.users.push(user.clone());
        Ok(user)
    }

    fn list_users(&self) -> Result<Vec<User>, Failure> {
        Ok(self.lock().people.users.clone())
    }

    fn set_user(&self, name: &str, request: SetUser) -> Result<User, Failure> {
        let mut state = self.lock();
        let mut user = state.people.find(name)?.clone();
        user.vdbs_max = request.vdbs_max.unwrap_or(user.vdbs_max);
        state.people.users.retain(|one| one.id != user.id);
        state.people.users.push(user.clone());
        Ok(user)
    }

    fn remove_user(&self, name: &str) -> Result<User, Failure> {
        let mut state = self.lock();
        let user = state.people.find(name)?.clone();
        state.people.users.retain(|one| one.id != user.id);
        state.people.tokens.retain(|(token, _)| token.user != name);
        Ok(user)
    }

    fn add_token(
        &self,
        user: &str,
        hash: String,
        _expires_in: Option<Duration>,
    ) -> Result<Token, Failure> {
        let mut state = self.lock();
        let user = state.people.find(user)?.name.clone();
        let id = TokenId(state.people.tokens.len() as u64 + 1);
        let token = Token { id, user, created_at: time(), expires_at: None, expired: false };
        state.people.tokens.push((token.clone(), hash));
        Ok(token)
    }

    fn list_tokens(&self) -> Result<Vec<Token>, Failure> {
        Ok(self.lock().people.tokens.iter().map(|(token, _)| token.clone()).collect())
    }

    fn revoke_token(&self, id: TokenId) -> Result<Token, Failure> {
        let tokens = &mut self.lock().people.tokens;
        let index = tokens.iter().position(|(token, _)| token.id == id);
        Ok(tokens.remove(index.ok_or_else(|| missing("token", &id.to_string()))?).0)
    }

    fn account_of_token(&self, hash: &str) -> Result<Option<Account>, Failure> {
        let state = self.lock();
        let Some((token, _)) = state.people.tokens.iter().find(|(_, known)| known == hash) else {
            return Ok(None);
        };
        let user = state.people.find(&token.user)?;
        let owned = |name: &String| state.name_of(name);
        let parents = user.parents.iter().map(owned).filter_map(|name| {
            let dsource = state.dsources.get(&name).map(|one| Owner::Dsource(one.id));
            dsource.or(state.vdbs.get(&name).map(|one| Owner::Vdb(one.id)))
        });
        let role = match user.role {
            Role::Admin => offshoot_domain::Role::Admin,
            Role::Operator => offshoot_domain::Role::Operator,
            Role::Developer => offshoot_domain::Role::Developer,
            Role::Auditor => offshoot_domain::Role::Auditor,
        };
        let parents = parents.collect();
        Ok(Some(Account { id: user.id, name: user.name.clone(), role, parents }))
    }

    fn find_thing(&self, name: &str) -> Result<Thing, Failure> {
        let state = self.lock();
        let name = state.name_of(name);
        if let Some(vdb) = state.vdbs.get(&name) {
            let user =
                state.people.users.iter().find(|user| Some(&user.name) == vdb.owner.as_ref());
            return Ok(Thing { id: Owner::Vdb(vdb.id), user: user.map(|user| user.id) });
        }
        let dsource = state.dsources.get(&name).ok_or_else(|| missing("dSource or VDB", &name))?;
        Ok(Thing { id: Owner::Dsource(dsource.id), user: None })
    }

    fn set_job_user(&self, job: JobId, user: UserId) -> Result<(), Failure> {
        self.lock().people.jobs.push((job, user));
        Ok(())
    }

    fn jobs_of(&self, user: UserId) -> Result<HashSet<JobId>, Failure> {
        let state = self.lock();
        Ok(state.people.jobs.iter().filter(|one| one.1 == user).map(|one| one.0).collect())
    }

    fn record(&self, record: Record) -> Result<(), Failure> {
        self.lock().people.records.push(record);
        Ok(())
    }

    fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Failure> {
        let state = self.lock();
        let all = state.people.records.iter().enumerate().rev();
        let asked =
            all.filter(|(_, one)| filter.user.as_ref().is_none_or(|user| *user == one.user));
        let entries = asked.take(filter.limit as usize).map(|(index, one)| {
            let id = index as u64 + 1;
            let Record { user, origin, action, object, outcome, job, refused: _ } = one.clone();
            AuditEntry { id, time: time(), user, origin, action, object, outcome, job }
        });
        Ok(entries.collect())
    }
}

//! What can be asked of VDBs.

use crate::core::hooks::{self, NewHook};
use crate::core::keys::{database_key, password_key, vdb_key};
use crate::core::kind::{Kind, PositionWriters, ShownPosition};
use crate::face::templates;
use crate::face::users;
use crate::face::wanted::{ProvisionRequest, check_rights};
use crate::history::names;
use crate::jobs::provision;
use crate::jobs::reparent;
use crate::jobs::set_vdb::{self, VdbChange};
use crate::jobs::vdb;
use crate::jobs::warm;
use crate::parts::Parts;
use crate::serving::servers::group_of;
use crate::space::inventory::{LedgerKey, logical_bytes};
use crate::space::ledger;
use crate::space::room;
use offshoot_domain::{
    Care, Hook, HookEvent, Moment, ObjectName, Opened, Owner, Parent, Position, Secret, Vdb,
    VdbState, Wishes,
};
use offshoot_os::bounded_log::{self, LogPlace};
use offshoot_os::cgroup::Group;
use offshoot_types::{ErrorKind, Failure, JobId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A hook with its text.
#[derive(Debug, Clone)]
pub struct KeptHook {
    /// When it runs.
    pub event: HookEvent,
    /// Its record.
    pub hook: Hook,
    /// What runs; none if it went with a lost key.
    pub text: Option<Secret>,
}

/// A VDB and its present state.
#[derive(Debug, Clone)]
pub struct VdbView {
    /// Its record.
    pub vdb: Vdb,
    /// The name of its user; none: the administrators'.
    pub owner: Option<String>,
    /// The moment it was opened at; none while it is first provisioned.
    pub moment: Option<ShownPosition>,
    /// Opens it with psql as it is; holds the password.
    pub uri: String,
    /// What its files would take outside the pool, in bytes.
    pub logical_bytes: u64,
    /// What the pool would not hold without it, in bytes.
    pub unique_bytes: u64,
    /// What its users should know.
    pub warnings: Vec<Failure>,
}

/// VDBs, as a user works with them.
pub struct Vdbs<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Vdbs<'_> {
    /// Provisions a VDB.
    ///
    /// # Errors
    /// What can be checked immediately: names, ports, settings, moments.
    pub fn provision(&self, request: ProvisionRequest) -> Result<JobId, Failure> {
        let request = templates::fill(self.parts, request)?;
        if request.from.is_empty() {
            let message = "it is not said what the VDB is made from";
            return Err(Failure::new(ErrorKind::InvalidInput, message, "name it: --from DSOURCE"));
        }
        let owner = names::find(self.parts, &request.from)?;
        names::check_linked(self.parts, owner)?;
        if !request.hooks.is_empty() {
            hooks::runner(&Kind::of(self.parts, owner)?)?;
        }
        let hooks = hooks::keep(self.parts, &request.hooks)?;
        let submitted = self.submit_provision(request, owner, hooks.clone());
        if submitted.is_err() {
            hooks::forget(self.parts, hooks.values())?;
        }
        submitted
    }

    fn submit_provision(
        &self,
        request: ProvisionRequest,
        owner: Owner,
        hooks: BTreeMap<HookEvent, Hook>,
    ) -> Result<JobId, Failure> {
        let requested_ms = self.parts.elapsed_ms();
        let name: ObjectName = request.name.parse()?;
        let wishes = &request.wishes;
        check_rights(wishes)?;
        let care = Care::default().changed(&wishes.care, self.parts.now())?;
        if wishes.warm {
            check_as_it_is(&request)?;
            let (user, hooks) = (request.user, &hooks);
            let wanted = warm::Wanted { name: &name, user, care: &care, hooks };
            if let Some(job) = warm::submit_hand_out(self.parts, owner, wanted, requested_ms)? {
                return Ok(job);
            }
        }
        room::check_takes_on(self.parts, "a new VDB")?;
        let vdb = self.parts.catalog.allocate::<Vdb>()?;
        let parent = Parent { owner, name: names::of(self.parts, owner)?.try_into()? };
        let wishes = request.wishes;
        let input = provision::Input {
            moment: wishes.moment,
            port: request.port,
            gateway: wishes.gateway.of(None)?,
            settings: wishes.settings,
            memory_bytes: wishes.memory_bytes,
            keep_source_logins: wishes.keep_source_logins,
            superuser: wishes.superuser,
            keep_foreign_servers: wishes.keep_foreign_servers,
            exposure: wishes.exposure,
            reaches: wishes.reaches,
            user: request.user,
            care,
            hooks,
            refresh_keeps: wishes.refresh_keeps,
            requested_ms,
            ..provision::Input::of_latest(self.parts, vdb, name, parent)
        };
        provision::submit(self.parts, input)
    }

    /// All VDBs, by name; not the warm copies that nobody has yet.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<VdbView>, Failure> {
        let mut all: Vec<Vdb> = self.parts.catalog.list()?;
        all.retain(|vdb| !vdb.warm);
        all.sort_by(|a, b| a.name.cmp(&b.name));
        views(self.parts, all)
    }

    /// One VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<VdbView, Failure> {
        let mut one = views(self.parts, vec![self.parts.vdb(name)?])?;
        one.pop().ok_or_else(|| Failure::internal("a VDB without a view"))
    }

    /// Starts a VDB; one that runs stays as it is.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn start(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_start(self.parts, name)
    }

    /// Stops a running VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn stop(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_stop(self.parts, name)
    }

    /// Gives a running VDB another password; sessions that are open stay.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn reset_password(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_reset_password(self.parts, name)
    }

    /// Deletes a VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_delete(self.parts, name)
    }

    /// Changes what its users say about it, its server's settings and its memory.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `InvalidInput`.
    pub fn set(&self, name: &str, change: &VdbChange) -> Result<JobId, Failure> {
        set_vdb::submit(self.parts, name, change)
    }

    /// Its hooks, with their texts.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn hooks(&self, name: &str) -> Result<Vec<KeptHook>, Failure> {
        let kept = |(event, hook): (HookEvent, Hook)| {
            Ok(KeptHook { event, text: hooks::text(self.parts, &hook)?, hook })
        };
        self.parts.vdb(name)?.hooks.into_iter().map(kept).collect()
    }

    /// The end of its server's log, or what was written into it since an end that this has told: lines, at most so many bytes; and
    /// where they end.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for what is no such end.
    pub fn log(
        &self,
        name: &str,
        since: Option<&str>,
        bytes_max: u64,
    ) -> Result<(String, String), Failure> {
        let log = self.parts.paths.log(&vdb_key(self.parts.vdb(name)?.id));
        if let Some(since) = since {
            let place = since.parse().map_err(|_| no_end_of_a_log(since))?;
            let (text, end) = bounded_log::lines_since(&log, &place, bytes_max);
            return Ok((text, end.to_string()));
        }
        let (now, end) = bounded_log::lines_since(&log, &LogPlace::default(), bytes_max);
        // What is missing may be in the part before, which was cut off.
        let before = bytes_max.saturating_sub(now.len() as u64);
        let text = bounded_log::tail(&bounded_log::earlier(&log), 0, before) + &now;
        let whole = (text.len() as u64) < bytes_max;
        // The first line may have been cut.
        let text = if whole {
            text
        } else {
            text.split_once('\n').map_or(text.clone(), |it| it.1.to_owned())
        };
        Ok((text, end.to_string()))
    }

    /// Gives it another parent, which it is refreshed from next.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `InvalidInput` for one of another kind or version.
    pub fn reparent(&self, name: &str, to: &str) -> Result<JobId, Failure> {
        reparent::submit(self.parts, name, to)
    }

    /// Opens another moment of the parent.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `MomentUnavailable`.
    pub fn refresh(&self, name: &str, moment: Moment) -> Result<JobId, Failure> {
        vdb::submit_refresh(self.parts, name, moment)
    }

    /// Goes back to a snapshot or bookmark of the VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn rewind(&self, name: &str, to: Moment) -> Result<JobId, Failure> {
        vdb::submit_rewind(self.parts, name, to)
    }

    /// Undoes the last rewind or refresh.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn undo_rewind(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_rewind_undo(self.parts, name)
    }
}

/// VDBs as they are now.
pub fn views(parts: &Parts, all: Vec<Vdb>) -> Result<Vec<VdbView>, Failure> {
    let key = |one: &Vdb| LedgerKey::Vdb(one.id);
    let unique = ledger::freed_if_deleted(parts, &all.iter().map(key).collect())?;
    let mut writers = PositionWriters::new(parts);
    let shown = |one: Vdb| {
        let unique = unique.get(&key(&one)).copied();
        view(parts, one, unique.unwrap_or_default(), &mut writers)
    };
    all.into_iter().map(shown).collect()
}

fn view(
    parts: &Parts,
    vdb: Vdb,
    unique_bytes: u64,
    writers: &mut PositionWriters<'_>,
) -> Result<VdbView, Failure> {
    let secret = |key: String| parts.catalog.secret(&key);
    let password = secret(password_key(vdb.id))?;
    let has_password = password.is_some();
    let uri = match (password, secret(database_key(vdb.id))?) {
        (Some(password), Some(database)) if vdb.port != 0 => {
            Kind::of_vdb(parts, &vdb)?.connector.vdb_uri(vdb.port, &password, database.reveal())
        }
        _ => String::new(),
    };
    let logical_bytes = logical_bytes(&parts.store, vdb.dataset);
    let moment = match vdb.moment {
        Some(Opened { log, time, .. }) => Some(writers.of_vdb(&vdb)?.show(Position { log, time })),
        None => None,
    };
    let mut warnings = warnings(parts, &vdb);
    if vdb.state != VdbState::Provisioning && !has_password {
        warnings.push(forgotten(&vdb));
    }
    let owner = vdb.owner.map(|owner| users::name(parts, owner)).transpose()?.flatten();
    Ok(VdbView { uri, owner, moment, logical_bytes, unique_bytes, warnings, vdb })
}

/// A warm copy was made before anybody said how; what is said about it comes when it is handed out.
fn check_as_it_is(request: &ProvisionRequest) -> Result<(), Failure> {
    let usual = ProvisionRequest {
        name: request.name.clone(),
        from: request.from.clone(),
        user: request.user,
        wishes: Wishes { care: request.wishes.care.clone(), warm: true, ..Wishes::default() },
        hooks: after(&request.hooks),
        ..ProvisionRequest::default()
    };
    if *request == usual {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        "a warm copy is of the latest moment, with the usual settings and rights",
        "leave out --warm, or everything else",
    ))
}

/// Those hooks that a copy which is there already can have.
fn after(hooks: &BTreeMap<HookEvent, NewHook>) -> BTreeMap<HookEvent, NewHook> {
    let mut hooks = hooks.clone();
    hooks.remove(&HookEvent::BeforeProvision);
    hooks
}

/// Its password went with a lost key.
fn forgotten(vdb: &Vdb) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        "the engine has forgotten its password; whoever knows it still gets in",
        format!("make another one: offshoot vdb reset-password {}", vdb.name),
    )
}

/// What the users of a VDB should know.
pub fn warnings(parts: &Parts, vdb: &Vdb) -> Vec<Failure> {
    let server = vdb.memory_bytes.and_then(|_| parts.servers.get(&vdb_key(vdb.id)));
    let limits = |group: Group| group.limits_memory();
    let unlimited = server.is_some_and(|server| !group_of(&*server).is_some_and(limits));
    let warning = || {
        Failure::new(
            ErrorKind::HostUnprepared,
            "its memory is not limited: only the sizes of its buffers follow --memory",
            "give the engine a memory control group that it may divide, as offshoot-vdbs.service of the package is",
        )
    };
    let hint = "look at it in the VDB: it may still name production, or hold what others wait for";
    let ties = vdb.ties.warnings.iter();
    let ties = ties.map(|one| Failure::new(ErrorKind::SourceRefused, one.clone(), hint));
    let hook = vdb.hook_failure.iter().map(|failed| failed.failure.clone());
    unlimited.then(warning).into_iter().chain(hook).chain(ties).collect()
}

fn no_end_of_a_log(since: &str) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("since: '{since}' is not the end of a log"),
        "give what `end` was in an earlier answer, or leave it out",
    )
}

//! An engine as one caller sees it: whose objects it reaches, and which passwords it is shown.
//!
//! What a developer may not see does not exist for it: the answer is the one for a name that is not there. A VDB whose
//! owner was checked is named by its id from there on, as its name may be another one's a moment later.

use super::accounts::{Account, Accounts, Thing};
use super::caller::Caller;
use super::settings;
use crate::EngineService;
use crate::service::latencies::Latencies;
use crate::service::notifier::Notifier;
use crate::service::replicator::Replicator;
use crate::service::templates::Templates;
use crate::service::{ArchiveReader, ArchiveWriter};
use jiff::Timestamp;
use offshoot_api as api;
use offshoot_domain::{Owner, Role};
use offshoot_types::{ErrorKind, Failure, JobId, SnapshotId, UserId};
use std::collections::HashSet;
use std::sync::Arc;

mod templates;

/// An engine as one caller sees it.
pub(crate) struct Guard {
    pub(crate) service: Arc<dyn EngineService>,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) caller: Caller,
}

impl Guard {
    fn developer(&self) -> Option<&Account> {
        self.caller.account().filter(|account| account.role == Role::Developer)
    }

    fn administers(&self) -> bool {
        self.caller.account().is_none_or(|account| account.role == Role::Admin)
    }

    fn user(&self) -> Option<UserId> {
        self.caller.account().map(|account| account.id)
    }

    /// Records who began a job.
    fn began(&self, job: JobId) -> Result<JobId, Failure> {
        if let Some(user) = self.user() {
            self.accounts.set_job_user(job, user)?;
        }
        Ok(job)
    }

    /// An object that a developer may see.
    fn found(&self, user: &Account, name: &str) -> Result<Thing, Failure> {
        // Whether there is none or it is somebody else's, the answer is the same.
        let thing = self.accounts.find_thing(name).map_err(|failure| match failure.code {
            ErrorKind::NotFound => absent(name),
            _ => failure,
        })?;
        let seen = thing.user == Some(user.id) || user.parents.contains(&thing.id);
        if seen { Ok(thing) } else { Err(absent(name)) }
    }

    /// Whether the caller may see an object.
    fn seen(&self, name: &str) -> Result<(), Failure> {
        self.developer().map_or(Ok(()), |user| self.found(user, name).map(drop))
    }

    /// What to go on with of an object that the caller may see: its id, where that was checked.
    fn looked_at(&self, name: &str) -> Result<String, Failure> {
        match self.developer() {
            Some(user) => Ok(self.found(user, name)?.id.to_string()),
            None => Ok(name.to_owned()),
        }
    }

    /// The id of a VDB that the caller may change.
    fn own(&self, name: &str) -> Result<String, Failure> {
        let Some(user) = self.developer() else { return Ok(name.to_owned()) };
        let thing = self.found(user, name)?;
        match thing.id {
            Owner::Vdb(id) if thing.user == Some(user.id) => Ok(id.to_string()),
            _ => Err(Failure::new(
                ErrorKind::Forbidden,
                format!("'{name}' is not yours"),
                "provision a VDB of your own from it: offshoot vdb provision NAME --from PARENT",
            )),
        }
    }

    /// Whether the caller may make VDBs of all members of a group.
    fn reaches(&self, group: &api::Group) -> bool {
        let member = |user: &Account| {
            group.members.iter().all(|one| user.parents.contains(&Owner::Dsource(one.id)))
        };
        self.developer().is_none_or(member)
    }

    /// A group that the caller may see.
    fn seen_group(&self, name: &str) -> Result<api::Group, Failure> {
        let found = self.service.show_group(name).map_err(|failure| self.hidden(name, failure))?;
        if self.reaches(&found) { Ok(found) } else { Err(absent(name)) }
    }

    /// A VDB group that the caller may see: to a developer, whose VDBs are all its own.
    fn seen_vdb_group(&self, name: &str) -> Result<api::VdbGroup, Failure> {
        let found = self.service.show_vdb_group(name);
        let found = found.map_err(|failure| self.hidden(name, failure))?;
        if self.developer().is_none_or(|user| owned(&found, user)) {
            Ok(found)
        } else {
            Err(absent(name))
        }
    }

    /// The id of a VDB group that the caller may change.
    fn own_vdb_group(&self, name: &str) -> Result<String, Failure> {
        match self.developer() {
            Some(_) => Ok(self.seen_vdb_group(name)?.id.to_string()),
            None => Ok(name.to_owned()),
        }
    }

    /// What a developer is told of a name that is not there: the same as of one that it may not see.
    fn hidden(&self, name: &str, failure: Failure) -> Failure {
        match failure.code {
            ErrorKind::NotFound if self.developer().is_some() => absent(name),
            _ => failure,
        }
    }

    /// The names of what a developer may see; none for others, who see everything.
    fn visible(&self) -> Result<Option<HashSet<String>>, Failure> {
        if self.developer().is_none() {
            return Ok(None);
        }
        let dsources = self.list_dsources()?.into_iter().map(|one| one.name);
        let vdbs = self.list_vdbs()?.into_iter().map(|one| one.name);
        Ok(Some(dsources.chain(vdbs).collect()))
    }

    /// Keeps of a list what the caller may see.
    fn visible_of<T>(&self, all: Vec<T>, object: impl Fn(&T) -> &str) -> Result<Vec<T>, Failure> {
        Ok(match self.visible()? {
            Some(visible) => all.into_iter().filter(|one| visible.contains(object(one))).collect(),
            None => all,
        })
    }

    /// A dSource as the caller may see it: where production is, is none of a developer's business.
    fn shown_dsource(&self, mut dsource: api::Dsource) -> api::Dsource {
        if self.developer().is_some() {
            dsource.source.clear();
            dsource.warnings.clear();
            dsource.error = None;
        }
        dsource
    }

    fn is_own_job(&self, id: JobId) -> Result<(), Failure> {
        let Some(user) = self.developer() else { return Ok(()) };
        match self.accounts.jobs_of(user.id)?.contains(&id) {
            true => Ok(()),
            false => Err(Failure::new(
                ErrorKind::NotFound,
                format!("there is no job {id}"),
                "list yours: offshoot job list",
            )),
        }
    }

    /// Whether a moment is named by what the caller may see: an error would say on whose object a bookmark is.
    fn seen_moment(&self, moment: &api::Moment) -> Result<(), Failure> {
        match moment {
            api::Moment::Bookmark { name } => self.seen_bookmark(name),
            _ => Ok(()),
        }
    }

    fn seen_bookmark(&self, name: &str) -> Result<(), Failure> {
        self.developer().map_or(Ok(()), |_| self.show_bookmark(name).map(drop))
    }

    /// Where no password is given, the engine looks for one in its own user's files; a socket or key of its host may
    /// need none: those are not for others.
    fn check_way(
        &self,
        connector: &str,
        source: &str,
        password: Option<&api::Secret>,
    ) -> Result<(), Failure> {
        if self.caller.account().is_none() {
            return Ok(());
        }
        if password.is_none_or(|one| one.reveal().is_empty()) {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                "a user links a source with a password of its own, not with those of the engine's user",
                "give it by --password-file or PGPASSWORD; a source that needs none is linked by the engine's own user",
            ));
        }
        match self.service.local_ways(connector, source)?.first() {
            None => Ok(()),
            Some(way) => Err(Failure::new(
                ErrorKind::Forbidden,
                format!("{way} is the engine's host's own: not for users to link a source by"),
                "name the source by its host and port, and certificates by a file of /etc/ssl/certs; a source that \
                 needs more is linked by the engine's own user",
            )),
        }
    }

    /// What a developer may not have of a VDB, whatever it is made from.
    fn check_wishes(&self, request: &api::ProvisionVdb) -> Result<(), Failure> {
        if self.developer().is_none() {
            return Ok(());
        }
        let refused = [
            ("--superuser", request.superuser),
            ("--keep-source-logins", request.keep_source_logins),
            ("--keep foreign-servers", request.keep_foreign_servers),
            ("--allow-network", !request.allow_network.is_empty()),
            ("--listen", !request.listen.is_empty()),
        ];
        if let Some((option, _)) = refused.iter().find(|(_, wished)| *wished) {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                format!("{option} is not for developers"),
                "ask an operator to provision it",
            ));
        }
        settings::check_hooks(&request.hooks)?;
        settings::check(&request.settings)
    }

    /// A VDB as the caller may see it: its password is for its owner alone. Those without one are the administrators'.
    fn shown_vdb(&self, vdb: api::Vdb) -> Result<api::Vdb, Failure> {
        let own = self.has_secrets_of(&vdb.id.to_string())?;
        Ok(if own { vdb } else { concealed(vdb) })
    }

    /// Whether the secrets of a VDB are the caller's.
    fn has_secrets_of(&self, vdb: &str) -> Result<bool, Failure> {
        Ok(match self.accounts.find_thing(vdb)?.user {
            Some(owner) => self.user() == Some(owner),
            None => self.administers(),
        })
    }
}

/// Whether all VDBs of a VDB group are a user's. One without any is nobody's.
fn owned(group: &api::VdbGroup, user: &Account) -> bool {
    let own = |vdb: &api::Vdb| vdb.owner.as_ref() == Some(&user.name);
    !group.vdbs.is_empty() && group.vdbs.iter().all(own)
}

/// As of a name that is not there.
fn absent(name: &str) -> Failure {
    let shown: String = name.chars().take(80).collect();
    Failure::new(
        ErrorKind::NotFound,
        format!("there is no dSource or VDB named '{shown}' that you may see"),
        "list them: offshoot dsource list; offshoot vdb list",
    )
}

/// A URI without the password in it.
fn without_password(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return String::new() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((login, host)) = authority.rsplit_once('@') else { return uri.to_owned() };
    let user = login.split_once(':').map_or(login, |(user, _)| user);
    format!("{scheme}://{user}@{host}{path}")
}

fn concealed(mut vdb: api::Vdb) -> api::Vdb {
    vdb.uri = without_password(&vdb.uri);
    vdb
}

impl EngineService for Guard {
    fn status(&self) -> Result<api::Status, Failure> {
        let mut status = self.service.status()?;
        if let Some(visible) = self.visible()? {
            status.faults.retain(|fault| visible.contains(&fault.object));
            status.warnings.retain(|warning| visible.contains(&warning.object));
            status.pool.clear();
            status.socket.clear();
        }
        Ok(status)
    }

    fn latencies(&self) -> Result<Latencies, Failure> {
        let Latencies { files, store } = self.service.latencies()?;
        let files = self.visible_of(files, |one| &one.owner)?;
        Ok(Latencies { files, store: store.filter(|_| self.caller.surveys()) })
    }

    fn link_dsource(&self, request: api::LinkDsource) -> Result<JobId, Failure> {
        self.check_way(&request.connector, &request.source, request.password.as_ref())?;
        self.began(self.service.link_dsource(request)?)
    }

    fn local_ways(&self, connector: &str, source: &str) -> Result<Vec<String>, Failure> {
        self.service.local_ways(connector, source)
    }

    fn list_dsources(&self) -> Result<Vec<api::Dsource>, Failure> {
        let mut all = self.service.list_dsources()?;
        if let Some(user) = self.developer() {
            all.retain(|one| user.parents.contains(&Owner::Dsource(one.id)));
        }
        Ok(all.into_iter().map(|one| self.shown_dsource(one)).collect())
    }

    fn show_dsource(&self, name: &str) -> Result<api::Dsource, Failure> {
        self.seen(name)?;
        self.service.show_dsource(name).map(|one| self.shown_dsource(one))
    }

    fn set_dsource(&self, name: &str, request: api::SetDsource) -> Result<JobId, Failure> {
        if let Some(source) = &request.source {
            let connector = self.service.show_dsource(name)?.connector;
            self.check_way(&connector, source, request.password.as_ref())?;
        }
        self.began(self.service.set_dsource(name, request)?)
    }

    fn sync_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.sync_dsource(name)?)
    }

    fn pause_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.pause_dsource(name)?)
    }

    fn resume_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.resume_dsource(name)?)
    }

    fn unlink_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.unlink_dsource(name)?)
    }

    fn take_snapshot(&self, request: api::TakeSnapshot) -> Result<JobId, Failure> {
        let object = self.own(&request.object)?;
        self.began(self.service.take_snapshot(api::TakeSnapshot { object })?)
    }

    fn list_snapshots(&self, object: Option<&str>) -> Result<Vec<api::Snapshot>, Failure> {
        if let Some(name) = object {
            self.seen(name)?;
        }
        self.visible_of(self.service.list_snapshots(object)?, |one| &one.object)
    }

    fn show_snapshot(&self, id: SnapshotId) -> Result<api::Snapshot, Failure> {
        let snapshot = self.service.show_snapshot(id)?;
        self.seen(&snapshot.object).map_err(|_| absent(&id.to_string()))?;
        Ok(snapshot)
    }

    fn delete_snapshot(&self, id: SnapshotId) -> Result<JobId, Failure> {
        self.own(&self.show_snapshot(id)?.object)?;
        self.began(self.service.delete_snapshot(id)?)
    }

    fn provision_vdb(
        &self,
        request: api::ProvisionVdb,
        _user: Option<UserId>,
    ) -> Result<JobId, Failure> {
        self.check_wishes(&request)?;
        self.seen_moment(&request.moment)?;
        let from = self.looked_at(&self.parent_of(&request)?)?;
        let request = api::ProvisionVdb { from, ..request };
        self.began(self.service.provision_vdb(request, self.user())?)
    }

    fn list_vdbs(&self) -> Result<Vec<api::Vdb>, Failure> {
        let mut all = self.service.list_vdbs()?;
        if let Some(user) = self.developer() {
            let own = |vdb: &api::Vdb| vdb.owner.as_ref() == Some(&user.name);
            all.retain(|one| own(one) || user.parents.contains(&Owner::Vdb(one.id)));
        }
        Ok(all.into_iter().map(concealed).collect())
    }

    fn show_vdb(&self, name: &str) -> Result<api::Vdb, Failure> {
        self.shown_vdb(self.service.show_vdb(&self.looked_at(name)?)?)
    }

    fn set_vdb(&self, name: &str, request: api::SetVdb) -> Result<JobId, Failure> {
        if self.developer().is_some() {
            settings::check_hooks(&request.hooks)?;
            settings::check_changes(&request.settings)?;
        }
        self.began(self.service.set_vdb(&self.own(name)?, request)?)
    }

    fn vdb_log(
        &self,
        name: &str,
        since: Option<&str>,
        bytes_max: u64,
    ) -> Result<api::VdbLog, Failure> {
        let log = self.service.vdb_log(&self.own(name)?, since, bytes_max)?;
        Ok(api::VdbLog { name: name.to_owned(), ..log })
    }

    fn vdb_hooks(&self, name: &str) -> Result<api::VdbHooks, Failure> {
        // By its id, as its name may be another one's a moment later.
        let id = self.service.show_vdb(&self.own(name)?)?.id.to_string();
        if !self.has_secrets_of(&id)? {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                format!("what the hooks of '{name}' run is shown to its owner alone"),
                format!("see which there are: offshoot vdb show {name}"),
            ));
        }
        let hooks = self.service.vdb_hooks(&id)?;
        Ok(api::VdbHooks { name: name.to_owned(), ..hooks })
    }

    fn start_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.start_vdb(&self.own(name)?)?)
    }

    fn stop_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.stop_vdb(&self.own(name)?)?)
    }

    fn reset_password_of_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.reset_password_of_vdb(&self.own(name)?)?)
    }

    fn delete_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.delete_vdb(&self.own(name)?)?)
    }

    fn reparent_vdb(&self, name: &str, request: api::ReparentVdb) -> Result<JobId, Failure> {
        self.began(self.service.reparent_vdb(&self.own(name)?, request)?)
    }

    fn refresh_vdb(&self, name: &str, request: api::RefreshVdb) -> Result<JobId, Failure> {
        self.seen_moment(&request.moment)?;
        self.began(self.service.refresh_vdb(&self.own(name)?, request)?)
    }

    fn rewind_vdb(&self, name: &str, request: api::RewindVdb) -> Result<JobId, Failure> {
        if let api::RewindTo::Bookmark { name } = &request.to {
            self.seen_bookmark(name)?;
        }
        self.began(self.service.rewind_vdb(&self.own(name)?, request)?)
    }

    fn create_group(&self, request: api::CreateGroup) -> Result<api::Group, Failure> {
        self.service.create_group(request)
    }

    fn list_groups(&self) -> Result<Vec<api::Group>, Failure> {
        let mut all = self.service.list_groups()?;
        all.retain(|group| self.reaches(group));
        Ok(all)
    }

    fn show_group(&self, name: &str) -> Result<api::Group, Failure> {
        self.seen_group(name)
    }

    fn delete_group(&self, name: &str) -> Result<api::Group, Failure> {
        self.service.delete_group(name)
    }

    fn provision_vdb_group(
        &self,
        request: api::ProvisionVdbGroup,
        _user: Option<UserId>,
    ) -> Result<JobId, Failure> {
        if self.developer().is_some() {
            settings::check(&request.settings)?;
        }
        let group = self.seen_group(&request.group)?.id.to_string();
        let request = api::ProvisionVdbGroup { group, ..request };
        self.began(self.service.provision_vdb_group(request, self.user())?)
    }

    fn list_vdb_groups(&self) -> Result<Vec<api::VdbGroup>, Failure> {
        let mut all = self.service.list_vdb_groups()?;
        if let Some(user) = self.developer() {
            all.retain(|group| owned(group, user));
        }
        for group in &mut all {
            group.vdbs = group.vdbs.drain(..).map(concealed).collect();
        }
        Ok(all)
    }

    fn show_vdb_group(&self, name: &str) -> Result<api::VdbGroup, Failure> {
        let mut group = self.seen_vdb_group(name)?;
        let shown = |vdb| self.shown_vdb(vdb);
        group.vdbs = group.vdbs.drain(..).map(shown).collect::<Result<_, Failure>>()?;
        Ok(group)
    }

    fn delete_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.delete_vdb_group(&self.own_vdb_group(name)?)?)
    }

    fn start_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.start_vdb_group(&self.own_vdb_group(name)?)?)
    }

    fn stop_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.stop_vdb_group(&self.own_vdb_group(name)?)?)
    }

    fn refresh_vdb_group(
        &self,
        name: &str,
        request: api::RefreshVdbGroup,
    ) -> Result<JobId, Failure> {
        self.began(self.service.refresh_vdb_group(&self.own_vdb_group(name)?, request)?)
    }

    fn rewind_vdb_group(&self, name: &str, request: api::RewindVdbGroup) -> Result<JobId, Failure> {
        self.began(self.service.rewind_vdb_group(&self.own_vdb_group(name)?, request)?)
    }

    fn bookmark_vdb_group(
        &self,
        name: &str,
        request: api::BookmarkVdbGroup,
    ) -> Result<JobId, Failure> {
        self.began(self.service.bookmark_vdb_group(&self.own_vdb_group(name)?, request)?)
    }

    fn apply_mask(&self, request: api::ApplyMask, _: &str) -> Result<JobId, Failure> {
        self.began(self.service.apply_mask(request, &self.caller.name())?)
    }

    fn export_archive(&self, name: &str, plain: bool) -> Result<ArchiveWriter, Failure> {
        self.service.export_archive(name, plain)
    }

    fn import_archive(
        &self,
        archive: ArchiveReader,
        namespace: &str,
        bytes: Option<u64>,
    ) -> Result<JobId, Failure> {
        self.began(self.service.import_archive(archive, namespace, bytes)?)
    }

    /// Whoever may ask for it, by the table, sees and changes all of it.
    fn replicator(&self) -> &dyn Replicator {
        self.service.replicator()
    }

    /// The same.
    fn notifier(&self) -> &dyn Notifier {
        self.service.notifier()
    }

    fn templates(&self) -> &dyn Templates {
        self
    }

    fn run_replication(&self, name: &str) -> Result<JobId, Failure> {
        self.began(self.service.run_replication(name)?)
    }

    fn fail_over(&self, request: api::FailOver) -> Result<JobId, Failure> {
        self.began(self.service.fail_over(request)?)
    }

    fn check_mask(&self, request: api::ApplyMask) -> Result<JobId, Failure> {
        self.began(self.service.check_mask(request)?)
    }

    fn discover_mask(&self, request: api::DiscoverMask) -> Result<JobId, Failure> {
        self.began(self.service.discover_mask(request)?)
    }

    fn show_discovery(&self, job: JobId) -> Result<api::Discovery, Failure> {
        self.service.show_discovery(job)
    }

    fn preview_mask(&self, request: api::PreviewMask) -> Result<JobId, Failure> {
        if request.originals && !self.administers() {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                "values of production are shown to administrators only",
                "ask for masked values alone: without --show-originals",
            ));
        }
        self.began(self.service.preview_mask(request)?)
    }

    fn show_preview(&self, job: JobId) -> Result<api::MaskPreview, Failure> {
        let mut preview = self.service.show_preview(job)?;
        if !self.administers() {
            for value in preview.rows.iter_mut().flatten() {
                value.before = None;
                value.after = value.after.take().filter(|_| value.masked);
            }
        }
        Ok(preview)
    }

    fn list_masks(&self) -> Result<Vec<api::Mask>, Failure> {
        self.visible_of(self.service.list_masks()?, |one| &one.name)
    }

    fn show_mask(&self, name: &str) -> Result<api::Mask, Failure> {
        if self.developer().is_some() {
            self.seen(name)?;
        }
        self.service.show_mask(name)
    }

    fn create_diff(&self, request: api::CreateDiff) -> Result<JobId, Failure> {
        // Who may make VDBs of both may see what differs.
        let state = |one: api::DiffState| -> Result<api::DiffState, Failure> {
            self.seen_moment(&one.moment)?;
            Ok(api::DiffState { object: self.looked_at(&one.object)?, ..one })
        };
        let (left, right) = (state(request.left)?, state(request.right)?);
        self.began(self.service.create_diff(api::CreateDiff { left, right, ..request })?)
    }

    fn show_diff(&self, job: JobId) -> Result<api::Diff, Failure> {
        self.is_own_job(job)?;
        self.service.show_diff(job)
    }

    fn mask_report(
        &self,
        name: &str,
        format: api::MaskReportFormat,
        snapshot: Option<SnapshotId>,
    ) -> Result<api::SignedMaskReport, Failure> {
        self.seen(name)?;
        self.service.mask_report(name, format, snapshot)
    }

    fn list_mask_keys(&self) -> Result<Vec<api::MaskKey>, Failure> {
        self.service.list_mask_keys()
    }

    fn rotate_mask_key(&self, name: &str) -> Result<api::MaskKey, Failure> {
        self.service.rotate_mask_key(name)
    }

    fn mask_report_key(&self) -> Result<api::MaskReportKey, Failure> {
        self.service.mask_report_key()
    }

    fn start_bisection(&self, request: api::StartBisection) -> Result<JobId, Failure> {
        self.seen_moment(&request.from)?;
        self.seen_moment(&request.to)?;
        // Whoever may make VDBs of it may ask them.
        let object = self.looked_at(&request.object)?;
        let request = api::StartBisection { object, ..request };
        self.began(self.service.start_bisection(request)?)
    }

    fn show_bisection(&self, job: JobId) -> Result<api::Bisection, Failure> {
        self.is_own_job(job)?;
        self.service.show_bisection(job)
    }

    fn create_bookmark(&self, request: api::CreateBookmark) -> Result<JobId, Failure> {
        self.seen_moment(&request.moment)?;
        let on = self.own(&request.on)?;
        self.began(self.service.create_bookmark(api::CreateBookmark { on, ..request })?)
    }

    fn list_bookmarks(&self) -> Result<Vec<api::Bookmark>, Failure> {
        self.visible_of(self.service.list_bookmarks()?, |one| &one.object)
    }

    fn show_bookmark(&self, name: &str) -> Result<api::Bookmark, Failure> {
        let bookmark = self.service.show_bookmark(name);
        if self.developer().is_none() {
            return bookmark;
        }
        let bookmark = bookmark.map_err(|failure| match failure.code {
            ErrorKind::NotFound => absent(name),
            _ => failure,
        })?;
        self.seen(&bookmark.object).map_err(|_| absent(name))?;
        Ok(bookmark)
    }

    fn delete_bookmark(&self, name: &str) -> Result<JobId, Failure> {
        if self.developer().is_none() {
            return self.began(self.service.delete_bookmark(name)?);
        }
        let bookmark = self.show_bookmark(name)?;
        self.own(&bookmark.object)?;
        self.began(self.service.delete_bookmark(&bookmark.id.to_string())?)
    }

    fn show_timeflows(&self, name: &str) -> Result<api::TimeflowList, Failure> {
        self.service.show_timeflows(&self.looked_at(name)?)
    }

    fn count_commits(
        &self,
        name: &str,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure> {
        self.service.count_commits(&self.looked_at(name)?, from, to, parts)
    }

    fn list_policies(&self) -> Result<Vec<api::Policy>, Failure> {
        self.visible_of(self.service.list_policies()?, |one| &one.name)
    }

    fn show_policy(&self, name: &str) -> Result<api::Policy, Failure> {
        self.service.show_policy(&self.looked_at(name)?)
    }

    fn set_policy(&self, name: &str, request: api::SetPolicy) -> Result<api::Policy, Failure> {
        self.service.set_policy(name, request)
    }

    fn list_jobs(&self) -> Result<Vec<api::Job>, Failure> {
        let mut jobs = self.service.list_jobs()?;
        if let Some(user) = self.developer() {
            let own = self.accounts.jobs_of(user.id)?;
            jobs.retain(|job| own.contains(&job.id));
        }
        Ok(jobs)
    }

    fn show_job(&self, id: JobId) -> Result<api::Job, Failure> {
        self.is_own_job(id)?;
        self.service.show_job(id)
    }

    fn cancel_job(&self, id: JobId) -> Result<api::Job, Failure> {
        self.is_own_job(id)?;
        self.service.cancel_job(id)
    }

    fn pool_status(&self) -> Result<api::PoolStatus, Failure> {
        self.service.pool_status()
    }

    fn ledger(&self, object: Option<&str>) -> Result<api::Ledger, Failure> {
        match (object, self.developer()) {
            (None, Some(_)) => Err(Failure::new(
                ErrorKind::Forbidden,
                "the whole ledger is not for developers",
                "name a VDB of yours: offshoot pool ledger NAME",
            )),
            (Some(name), Some(_)) => self.service.ledger(Some(&self.own(name)?)),
            (object, None) => self.service.ledger(object),
        }
    }

    fn ledger_deletion(&self, objects: &[String]) -> Result<api::Ledger, Failure> {
        let own = objects.iter().map(|name| self.own(name)).collect::<Result<Vec<_>, _>>()?;
        self.service.ledger_deletion(&own)
    }

    fn reclaim_pool(&self) -> Result<JobId, Failure> {
        self.began(self.service.reclaim_pool()?)
    }

    fn secrets(&self) -> Result<api::Secrets, Failure> {
        self.service.secrets()
    }

    fn rotate_secrets(&self, request: api::RotateSecrets) -> Result<JobId, Failure> {
        self.began(self.service.rotate_secrets(request)?)
    }

    fn last_scrub(&self) -> Result<api::ScrubReport, Failure> {
        self.service.last_scrub()
    }

    fn scrub_pool(&self, request: api::ScrubPool) -> Result<JobId, Failure> {
        self.began(self.service.scrub_pool(request)?)
    }
}

#[cfg(test)]
mod tests;

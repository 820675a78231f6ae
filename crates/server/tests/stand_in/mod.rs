//! An engine that only remembers names: a stand-in for the real one in tests of the protocol.
//!
//! Changes take effect when asked for; the job that "does" them is done after three checks. An object
//! named `slow` has jobs that end only when cancelled, one named `broken` has jobs that fail, `full`
//! is refused for lack of room, and `panic` makes the service panic.
#![allow(dead_code)]

mod accounts;
mod diffs;
mod groups;
mod latencies;
mod mask;
mod replication;
mod templates;
mod webhooks;

use accounts::People;
use jiff::Timestamp;
use offshoot_api::*;
use offshoot_server::{
    ArchiveReader, ArchiveWriter, EngineService, HttpServer, Latencies, Notifier, Replicator,
    Templates, Token,
};
use offshoot_types::{ErrorKind, Failure, JobId, SnapshotId, UserId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct State {
    dsources: BTreeMap<String, Dsource>,
    vdbs: BTreeMap<String, Vdb>,
    templates: BTreeMap<String, Template>,
    snapshots: Vec<Snapshot>,
    jobs: Vec<(Job, u32)>,
    links: Vec<LinkDsource>,
    provisions: Vec<ProvisionVdb>,
    refreshes: Vec<(String, RefreshVdb)>,
    rewinds: Vec<(String, RewindVdb)>,
    policies: BTreeMap<String, Policy>,
    bookmarks: BTreeMap<String, Bookmark>,
    marked: Vec<CreateBookmark>,
    masks: BTreeMap<String, Mask>,
    masked: Vec<ApplyMask>,
    diffed: Option<CreateDiff>,
    groups: BTreeMap<String, Group>,
    vdb_groups: BTreeMap<String, VdbGroup>,
    grouped: Vec<ProvisionVdbGroup>,
    originals: bool,
    people: People,
}

#[derive(Default)]
pub struct StandIn {
    state: Mutex<State>,
    uri: Option<String>,
}

fn time() -> Timestamp {
    "2026-11-21T14:03:27.5Z".parse().unwrap()
}

fn missing(kind: &str, name: &str) -> Failure {
    Failure::new(ErrorKind::NotFound, format!("no {kind} '{name}'"), "see the list")
}

fn taken(name: &str) -> Failure {
    Failure::new(ErrorKind::AlreadyExists, format!("'{name}' is taken"), "choose another name")
}

impl State {
    /// The name of an object that is given by its name or id.
    fn name_of(&self, given: &str) -> String {
        let vdb = self.vdbs.values().find(|vdb| vdb.id.to_string() == given);
        let dsource = self.dsources.values().find(|one| one.id.to_string() == given);
        let found = vdb.map(|one| &one.name).or(dsource.map(|one| &one.name));
        found.cloned().unwrap_or_else(|| given.to_owned())
    }

    fn job(&mut self, kind: &str, object: &str, result: Option<String>) -> JobId {
        let id = JobId(self.jobs.len() as u64 + 1);
        let step = JobStep {
            name: "work".into(),
            state: StepState::Pending,
            started_at: None,
            ended_at: None,
        };
        let job = Job {
            id,
            kind: kind.into(),
            object: object.into(),
            state: JobState::Queued,
            progress: JobProgress { done: 0, total: Some(3), unit: "steps".into() },
            started_at: None,
            ended_at: None,
            steps: vec![step],
            error: None,
            notes: Vec::new(),
            result,
        };
        self.jobs.push((job, 0));
        id
    }

    fn look(&mut self, id: JobId) -> Result<Job, Failure> {
        let (job, looks) = self
            .jobs
            .iter_mut()
            .find(|(job, _)| job.id == id)
            .ok_or_else(|| missing("job", &id.to_string()))?;
        *looks += 1;
        if !job.state.is_final() && job.object != "slow" {
            job.progress.done = u64::from(*looks).min(3);
            job.started_at = Some(time());
            job.state = JobState::Running;
            job.steps[0].state = StepState::Running;
            if *looks >= 3 {
                job.ended_at = Some(time());
                job.state = JobState::Done;
                job.steps[0].state = StepState::Done;
                if job.object == "broken" {
                    job.state = JobState::Failed;
                    let why = Failure::new(ErrorKind::SourceRefused, "it is broken", "mend it");
                    job.error = Some(why.into());
                }
            }
        }
        Ok(job.clone())
    }

    fn policy(&self, name: &str) -> Policy {
        let default = || Policy {
            name: name.to_owned(),
            kind: ObjectKind::Dsource,
            snapshot_every_ms: Some(600_000),
            keep_all_ms: 86_400_000,
            hourly_ms: 0,
            daily_ms: 0,
            weekly_ms: 0,
            log_ms: 86_400_000,
            quota_bytes: None,
            warm: 0,
            open_within_ms: 3000,
        };
        self.policies.get(name).cloned().unwrap_or_else(default)
    }

    fn snapshot(&mut self, object: &str, object_kind: ObjectKind) -> SnapshotId {
        let id = SnapshotId(self.snapshots.len() as u64 + 1);
        let snapshot = Snapshot {
            id,
            object: object.into(),
            object_kind,
            kind: SnapshotKind::Manual,
            time: time(),
            lsn: Some("0/3A2B1C0".to_owned()),
            ready: true,
            state: SnapshotState::Ready,
            bookmarks: Vec::new(),
            unchecked: Vec::new(),
            error: None,
        };
        if let Some(dsource) = self.dsources.get_mut(object) {
            dsource.snapshots.push(snapshot.clone());
        }
        self.snapshots.push(snapshot);
        id
    }
}

/// A server of an engine that does nothing, on a free port of loopback, and its owner's token.
pub fn served() -> (HttpServer, Token) {
    let (listen, token) = (SocketAddr::from(([127, 0, 0, 1], 0)), Token::random());
    let http = HttpServer::start(listen, Arc::new(StandIn::default()), token.clone()).unwrap();
    (http, token)
}

impl StandIn {
    /// One whose VDBs all have this URI.
    pub fn with_uri(uri: &str) -> Self {
        StandIn { uri: Some(uri.to_owned()), ..StandIn::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn on_dsource(&self, kind: &str, name: &str) -> Result<JobId, Failure> {
        let mut state = self.lock();
        state.dsources.get(name).ok_or_else(|| missing("dSource", name))?;
        Ok(state.job(kind, name, None))
    }

    fn on_vdb(&self, kind: &str, name: &str, to: VdbState) -> Result<JobId, Failure> {
        let mut state = self.lock();
        let name = &state.name_of(name);
        state.vdbs.get_mut(name).ok_or_else(|| missing("VDB", name))?.state = to;
        Ok(state.job(kind, name, None))
    }

    /// The last request to link that was received.
    pub fn last_link(&self) -> Option<LinkDsource> {
        self.lock().links.last().cloned()
    }

    /// The last request to provision that was received.
    pub fn last_provision(&self) -> Option<ProvisionVdb> {
        self.lock().provisions.last().cloned()
    }

    /// The last request to set a bookmark that was received.
    pub fn last_bookmark(&self) -> Option<CreateBookmark> {
        self.lock().marked.last().cloned()
    }

    /// The last request to mask, or to check rules, that was received.
    pub fn last_mask(&self) -> Option<ApplyMask> {
        self.lock().masked.last().cloned()
    }

    /// The last request to provision a VDB group that was received.
    pub fn last_vdb_group(&self) -> Option<ProvisionVdbGroup> {
        self.lock().grouped.last().cloned()
    }

    /// The last request to refresh that was received.
    pub fn last_refresh(&self) -> Option<(String, RefreshVdb)> {
        self.lock().refreshes.last().cloned()
    }

    /// The last request to rewind that was received.
    pub fn last_rewind(&self) -> Option<(String, RewindVdb)> {
        self.lock().rewinds.last().cloned()
    }
}

impl EngineService for StandIn {
    fn status(&self) -> Result<Status, Failure> {
        let state = self.lock();
        let pool_status = pool();
        let fault = Fault {
            time: time(),
            object: "pool".into(),
            message: "it is nearly full".into(),
            hint: "delete something".into(),
        };
        Ok(Status {
            engine_version: "0.1.0".into(),
            pid: std::process::id(),
            pool: "/pool".into(),
            listen: "127.0.0.1:1".into(),
            socket: "/pool/engine.socket".into(),
            tls_fingerprint: None,
            started_at: time(),
            dsources: state.dsources.len() as u64,
            vdbs: state.vdbs.len() as u64,
            vdbs_running: 0,
            jobs_active: 0,
            survival: Survival::Ready,
            cache: pool_status.cache,
            pool_status,
            last_scrub: None,
            faults: vec![fault],
            warnings: Vec::new(),
        })
    }

    fn latencies(&self) -> Result<Latencies, Failure> {
        let state = self.lock();
        Ok(latencies::latencies(state.dsources.keys(), state.vdbs.keys()))
    }

    fn local_ways(&self, _: &str, source: &str) -> Result<Vec<String>, Failure> {
        let socket = source.split_once("host=/").map(|(_, rest)| format!("the socket in /{rest}"));
        Ok(socket.into_iter().collect())
    }

    fn link_dsource(&self, request: LinkDsource) -> Result<JobId, Failure> {
        let mut state = self.lock();
        if state.dsources.contains_key(&request.name) {
            return Err(taken(&request.name));
        }
        let dsource = Dsource {
            id: offshoot_types::DsourceId(state.links.len() as u64 + 1),
            name: request.name.clone(),
            state: DsourceState::Active,
            connector: request.connector.clone(),
            source: request.source.clone(),
            server_version: "15.20".into(),
            logical_bytes: 3 << 30,
            stored_bytes: 1 << 30,
            synced_to: Some(SyncedTo { lsn: "0/4000000".to_owned(), time: Some(time()) }),
            lag_bytes: Some(0),
            lag_ms: None,
            clock_skew_ms: Some(-12),
            snapshot_every_ms: request.snapshot_every_ms,
            created_at: time(),
            snapshots: Vec::new(),
            error: None,
            warnings: vec![Warning {
                object: request.name.clone(),
                message: "its log has no bound".into(),
                hint: "set one".into(),
            }],
        };
        state.dsources.insert(request.name.clone(), dsource);
        state.snapshot(&request.name, ObjectKind::Dsource);
        let job = state.job("dsource_link", &request.name, None);
        state.links.push(request);
        Ok(job)
    }

    fn list_dsources(&self) -> Result<Vec<Dsource>, Failure> {
        Ok(self.lock().dsources.values().cloned().collect())
    }

    fn show_dsource(&self, name: &str) -> Result<Dsource, Failure> {
        assert_ne!(name, "panic", "asked to");
        if name == "full" {
            return Err(Failure::pool_full("the pool is full"));
        }
        let state = self.lock();
        state.dsources.get(&state.name_of(name)).cloned().ok_or_else(|| missing("dSource", name))
    }

    fn set_dsource(&self, name: &str, request: SetDsource) -> Result<JobId, Failure> {
        let job = self.on_dsource("dsource_set", name)?;
        if let (Some(dsource), Some(source)) = (self.lock().dsources.get_mut(name), request.source)
        {
            dsource.source = source;
        }
        Ok(job)
    }

    fn sync_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.on_dsource("dsource_sync", name)
    }

    fn pause_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.on_dsource("dsource_pause", name)
    }

    fn resume_dsource(&self, name: &str) -> Result<JobId, Failure> {
        self.on_dsource("dsource_resume", name)
    }

    fn unlink_dsource(&self, name: &str) -> Result<JobId, Failure> {
        let job = self.on_dsource("dsource_unlink", name)?;
        self.lock().dsources.remove(name);
        Ok(job)
    }

    fn take_snapshot(&self, request: TakeSnapshot) -> Result<JobId, Failure> {
        let mut state = self.lock();
        let kind = match &request.object {
            name if state.dsources.contains_key(name) => ObjectKind::Dsource,
            name if state.vdbs.contains_key(name) => ObjectKind::Vdb,
            name => return Err(missing("dSource or VDB", name)),
        };
        let id = state.snapshot(&request.object, kind);
        Ok(state.job("snapshot_take", &request.object, Some(id.to_string())))
    }

    fn list_snapshots(&self, object: Option<&str>) -> Result<Vec<Snapshot>, Failure> {
        let wanted = |snapshot: &&Snapshot| object.is_none_or(|name| snapshot.object == name);
        Ok(self.lock().snapshots.iter().filter(wanted).cloned().collect())
    }

    fn show_snapshot(&self, id: SnapshotId) -> Result<Snapshot, Failure> {
        let state = self.lock();
        let found = state.snapshots.iter().find(|snapshot| snapshot.id == id).cloned();
        found.ok_or_else(|| missing("snapshot", &id.to_string()))
    }

    fn delete_snapshot(&self, id: SnapshotId) -> Result<JobId, Failure> {
        self.show_snapshot(id)?;
        Ok(self.lock().job("snapshot_delete", &id.to_string(), None))
    }

    fn provision_vdb(
        &self,
        mut request: ProvisionVdb,
        user: Option<UserId>,
    ) -> Result<JobId, Failure> {
        let mut state = self.lock();
        request.from = state.name_of(&request.from);
        if state.vdbs.contains_key(&request.name) {
            return Err(taken(&request.name));
        }
        if !state.dsources.contains_key(&request.from) {
            return Err(missing("dSource or VDB", &request.from));
        }
        let uri = "postgresql://offshoot:secret@127.0.0.1:6001/postgres".to_owned();
        let vdb = Vdb {
            id: offshoot_types::VdbId(state.provisions.len() as u64 + 1),
            name: request.name.clone(),
            state: VdbState::Running,
            parent: request.from.clone(),
            parent_kind: ObjectKind::Dsource,
            moment: Position { snapshot: Some(SnapshotId(1)), lsn: None, time: Some(time()) },
            host: "127.0.0.1".into(),
            port: request.port.unwrap_or(6001),
            user: "offshoot".into(),
            uri: self.uri.clone().unwrap_or(uri),
            owner: state.people.name_of(user),
            server_version: "15.20".into(),
            logical_bytes: 3 << 30,
            unique_bytes: 5 << 20,
            settings: request.settings.clone(),
            refresh_keeps: request.refresh_keeps.clone(),
            superuser: request.superuser,
            keep_source_logins: request.keep_source_logins,
            keep_foreign_servers: request.keep_foreign_servers,
            removed: vec!["logins of roles: app".to_owned()],
            network: None,
            allow_network: request.allow_network.clone(),
            memory_bytes: request.memory_bytes,
            description: request.description.clone().unwrap_or_default(),
            labels: request.labels.clone(),
            protected: request.protected,
            expires_at: None,
            hooks: vec![VdbHook {
                event: HookEvent::AfterRefresh,
                kind: HookKind::Sql,
                bytes: 8,
                database: None,
                time_limit_ms: 600_000,
            }],
            gateway: request
                .gateway
                .then_some(VdbGateway { stop_when_idle_ms: None, asleep: false }),
            created_at: time(),
            timings: ProvisionTimings { total_ms: 420, start_ms: 300, ..Default::default() },
            warnings: Vec::new(),
            error: None,
        };
        state.vdbs.insert(request.name.clone(), vdb);
        let job = state.job("vdb_provision", &request.name, None);
        state.provisions.push(request);
        Ok(job)
    }

    fn list_vdbs(&self) -> Result<Vec<Vdb>, Failure> {
        Ok(self.lock().vdbs.values().cloned().collect())
    }

    fn show_vdb(&self, name: &str) -> Result<Vdb, Failure> {
        let state = self.lock();
        let found = state.vdbs.get(&state.name_of(name)).cloned();
        found.ok_or_else(|| missing("VDB", name))
    }

    fn start_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.on_vdb("vdb_start", name, VdbState::Running)
    }

    fn set_vdb(&self, name: &str, _: SetVdb) -> Result<JobId, Failure> {
        self.on_vdb("vdb_set", name, VdbState::Running)
    }

    fn vdb_log(&self, name: &str, _: Option<&str>, _: u64) -> Result<VdbLog, Failure> {
        let name = self.show_vdb(name)?.name;
        Ok(VdbLog { name, text: "LOG:  ready\n".to_owned(), end: "12".to_owned() })
    }

    fn vdb_hooks(&self, name: &str) -> Result<VdbHooks, Failure> {
        let name = self.show_vdb(name)?.name;
        let sql = Some("SELECT 1".to_owned());
        let event = HookEvent::AfterRefresh;
        let kind = HookKind::Sql;
        let hook =
            HookText { event, kind, sql, program: None, database: None, time_limit_ms: 600_000 };
        Ok(VdbHooks { name, hooks: vec![hook] })
    }

    fn stop_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.on_vdb("vdb_stop", name, VdbState::Stopped)
    }

    fn reset_password_of_vdb(&self, name: &str) -> Result<JobId, Failure> {
        self.on_vdb("vdb_reset_password", name, VdbState::Running)
    }

    fn delete_vdb(&self, name: &str) -> Result<JobId, Failure> {
        let job = self.on_vdb("vdb_delete", name, VdbState::Stopped)?;
        let name = self.lock().name_of(name);
        self.lock().vdbs.remove(&name);
        Ok(job)
    }

    fn reparent_vdb(&self, name: &str, _: ReparentVdb) -> Result<JobId, Failure> {
        self.on_vdb("vdb_reparent", name, VdbState::Running)
    }

    fn refresh_vdb(&self, name: &str, request: RefreshVdb) -> Result<JobId, Failure> {
        let job = self.on_vdb("vdb_refresh", name, VdbState::Running)?;
        self.lock().refreshes.push((name.to_owned(), request));
        Ok(job)
    }

    fn rewind_vdb(&self, name: &str, request: RewindVdb) -> Result<JobId, Failure> {
        let job = self.on_vdb("vdb_rewind", name, VdbState::Running)?;
        self.lock().rewinds.push((name.to_owned(), request));
        Ok(job)
    }

    fn create_group(&self, request: CreateGroup) -> Result<Group, Failure> {
        self.lock().create_group(&request)
    }

    fn list_groups(&self) -> Result<Vec<Group>, Failure> {
        Ok(self.lock().groups.values().cloned().collect())
    }

    fn show_group(&self, name: &str) -> Result<Group, Failure> {
        self.lock().group(name)
    }

    fn delete_group(&self, name: &str) -> Result<Group, Failure> {
        self.lock().groups.remove(name).ok_or_else(|| missing("group", name))
    }

    fn provision_vdb_group(
        &self,
        request: ProvisionVdbGroup,
        user: Option<UserId>,
    ) -> Result<JobId, Failure> {
        let group = self.lock().group(&request.group)?;
        for member in &group.members {
            let name = format!("{}-{}", request.name, member.name);
            let body = serde_json::json!({ "name": name, "from": member.name });
            self.provision_vdb(serde_json::from_value(body).unwrap(), user)?;
        }
        Ok(self.lock().provision_vdb_group(&group, request))
    }

    fn list_vdb_groups(&self) -> Result<Vec<VdbGroup>, Failure> {
        Ok(self.lock().vdb_groups.values().cloned().collect())
    }

    fn show_vdb_group(&self, name: &str) -> Result<VdbGroup, Failure> {
        self.lock().vdb_group(name)
    }

    fn delete_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        let job = self.lock().on_vdb_group("group_delete", name)?;
        self.lock().vdb_groups.retain(|known, one| known != name && one.id.to_string() != name);
        Ok(job)
    }

    fn start_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.lock().on_vdb_group("group_start", name)
    }

    fn stop_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        self.lock().on_vdb_group("group_stop", name)
    }

    fn refresh_vdb_group(&self, name: &str, _: RefreshVdbGroup) -> Result<JobId, Failure> {
        self.lock().on_vdb_group("group_refresh", name)
    }

    fn rewind_vdb_group(&self, name: &str, _: RewindVdbGroup) -> Result<JobId, Failure> {
        self.lock().on_vdb_group("group_rewind", name)
    }

    fn bookmark_vdb_group(&self, name: &str, _: BookmarkVdbGroup) -> Result<JobId, Failure> {
        self.lock().on_vdb_group("group_bookmark", name)
    }

    fn export_archive(&self, name: &str, _plain: bool) -> Result<ArchiveWriter, Failure> {
        replication::export(&self.show_dsource(name)?)
    }

    fn import_archive(
        &self,
        archive: ArchiveReader,
        namespace: &str,
        _bytes: Option<u64>,
    ) -> Result<JobId, Failure> {
        let name = replication::import(archive, namespace)?;
        Ok(self.lock().job("replication_import", &name, None))
    }

    fn notifier(&self) -> &dyn Notifier {
        self
    }

    fn templates(&self) -> &dyn Templates {
        self
    }

    fn replicator(&self) -> &dyn Replicator {
        self
    }

    fn run_replication(&self, name: &str) -> Result<JobId, Failure> {
        self.show_replication(name)?;
        Ok(self.lock().job("replication_run", name, None))
    }

    fn fail_over(&self, request: FailOver) -> Result<JobId, Failure> {
        self.show_peer(&request.name)?;
        Ok(self.lock().job("failover", &request.name, None))
    }

    fn apply_mask(&self, request: ApplyMask, _: &str) -> Result<JobId, Failure> {
        let mut state = self.lock();
        let name = request.name.clone().unwrap_or_else(|| format!("{}-masked", request.from));
        let mask = Mask {
            name: name.clone(),
            source: request.from.clone(),
            state: MaskState::Masked,
            snapshot: Some(SnapshotId(1)),
            masked_at: Some(time()),
            key: Some("main".to_owned()),
            every_ms: request.every_ms,
            rows_masked: 7,
            rows_per_second: 3,
            values_masked: 14,
            took_ms: 2000,
            tables: vec![MaskTable {
                name: "public.customers".to_owned(),
                rows: 7,
                rows_total: 7,
                state: MaskTableState::Done,
            }],
            mode: MaskMode::Full,
            full_because: None,
            columns_without_rule: vec![
                "public.customers.phone: looks like a phone number".to_owned(),
            ],
            idle_rules: Vec::new(),
            error: None,
        };
        state.masks.insert(name.clone(), mask);
        state.masked.push(request);
        Ok(state.job("mask_apply", &name, None))
    }

    fn check_mask(&self, request: ApplyMask) -> Result<JobId, Failure> {
        let mut state = self.lock();
        let job = state.job("mask_check", &request.from, None);
        state.masked.push(request);
        Ok(job)
    }

    fn start_bisection(&self, request: StartBisection) -> Result<JobId, Failure> {
        Ok(self.lock().job("bisect", &request.object, None))
    }

    fn show_bisection(&self, job: JobId) -> Result<Bisection, Failure> {
        let answer = |text: &str| Answer { kind: AnswerKind::Value, text: Some(text.to_owned()) };
        let at = |text: &str| AnsweredMoment {
            time: Timestamp::UNIX_EPOCH,
            lsn: "0/3A2B1C0".to_owned(),
            answer: answer(text),
        };
        Ok(Bisection {
            job,
            object: "prod".to_owned(),
            database: "shop".to_owned(),
            query: "SELECT count(*) FROM orders".to_owned(),
            until: None,
            expect: None,
            from: at("1"),
            to: at("2"),
            change: Some(ChangingCommit {
                xid: "74123".to_owned(),
                lsn: "0/3A2B1C0".to_owned(),
                time: Timestamp::UNIX_EPOCH,
                before: answer("1"),
                after: answer("2"),
                changes: vec![ChangedRelation {
                    database: "shop".to_owned(),
                    relation: "public.orders".to_owned(),
                    inserted: 1,
                    updated: 0,
                    deleted: 0,
                    rewritten: false,
                }],
                changes_whole: true,
            }),
            commits: 3412,
            moments_opened: 9,
            took_ms: 2500,
        })
    }

    fn discover_mask(&self, request: DiscoverMask) -> Result<JobId, Failure> {
        Ok(self.lock().job("mask_discover", &request.from, None))
    }

    fn show_discovery(&self, _: JobId) -> Result<Discovery, Failure> {
        Ok(Discovery {
            findings: vec![FoundColumn {
                table: "public.customers".to_owned(),
                column: "email".to_owned(),
                kind: "e-mail".to_owned(),
                algorithm: "email".to_owned(),
                confidence: 0.9,
                why: "looks like e-mail by its name".to_owned(),
                samples: 0,
            }],
            rules: "version: 1\nkey: main\n".to_owned(),
        })
    }

    fn preview_mask(&self, request: PreviewMask) -> Result<JobId, Failure> {
        let mut state = self.lock();
        state.originals = request.originals;
        Ok(state.job("mask_preview", &request.from, None))
    }

    fn show_preview(&self, _: JobId) -> Result<MaskPreview, Failure> {
        let before = self.lock().originals.then(|| "maria@firm.test".to_owned());
        let after = Some("masked@example.com".to_owned());
        Ok(MaskPreview {
            table: "public.customers".to_owned(),
            columns: vec![PreviewColumn {
                name: "email".to_owned(),
                algorithm: "email".to_owned(),
            }],
            rows: vec![vec![PreviewValue { before, after, masked: true }]],
        })
    }

    fn create_diff(&self, request: CreateDiff) -> Result<JobId, Failure> {
        let mut state = self.lock();
        let job = state.job("diff", &request.left.object, None);
        state.diffed = Some(request);
        Ok(job)
    }

    fn show_diff(&self, job: JobId) -> Result<Diff, Failure> {
        let asked = self.lock().diffed.clone();
        asked.map(|asked| diffs::found(&asked)).ok_or_else(|| missing("diff", &job.to_string()))
    }

    fn list_masks(&self) -> Result<Vec<Mask>, Failure> {
        Ok(self.lock().masks.values().cloned().collect())
    }

    fn show_mask(&self, name: &str) -> Result<Mask, Failure> {
        self.lock().masks.get(name).cloned().ok_or_else(|| missing("masked dSource", name))
    }

    fn mask_report(
        &self,
        name: &str,
        format: MaskReportFormat,
        _: Option<SnapshotId>,
    ) -> Result<SignedMaskReport, Failure> {
        Ok(mask::report(&self.show_mask(name)?, format))
    }

    fn list_mask_keys(&self) -> Result<Vec<MaskKey>, Failure> {
        Ok(vec![self.rotate_mask_key("main")?])
    }

    fn rotate_mask_key(&self, name: &str) -> Result<MaskKey, Failure> {
        if name == "nobody" {
            return Err(missing("key", name));
        }
        let used_by = vec!["prod-masked".to_owned()];
        Ok(MaskKey { name: name.to_owned(), version: 2, made_at: Some(time()), used_by })
    }

    fn mask_report_key(&self) -> Result<MaskReportKey, Failure> {
        Ok(MaskReportKey { algorithm: "ed25519".to_owned(), public_key: "00".to_owned() })
    }

    fn create_bookmark(&self, request: CreateBookmark) -> Result<JobId, Failure> {
        let mut state = self.lock();
        if state.bookmarks.contains_key(&request.name) {
            return Err(taken(&request.name));
        }
        let bookmark = Bookmark {
            id: offshoot_types::BookmarkId(state.marked.len() as u64 + 1),
            name: request.name.clone(),
            object: request.on.clone(),
            object_kind: ObjectKind::Dsource,
            snapshot: SnapshotId(1),
            lsn: "0/3A2B1C0".to_owned(),
            time: time(),
            created_at: time(),
        };
        state.bookmarks.insert(request.name.clone(), bookmark);
        let job = state.job("bookmark_create", &request.name, None);
        state.marked.push(request);
        Ok(job)
    }

    fn list_bookmarks(&self) -> Result<Vec<Bookmark>, Failure> {
        Ok(self.lock().bookmarks.values().cloned().collect())
    }

    /// One named `fleeting` is another one's as soon as it was looked at.
    fn show_bookmark(&self, name: &str) -> Result<Bookmark, Failure> {
        let mut state = self.lock();
        let found = state.bookmarks.get_mut(name).ok_or_else(|| missing("bookmark", name))?;
        let shown = found.clone();
        if name == "fleeting" {
            (found.id, found.object) = (offshoot_types::BookmarkId(1000), "theirs".to_owned());
        }
        Ok(shown)
    }

    fn delete_bookmark(&self, name: &str) -> Result<JobId, Failure> {
        let mut state = self.lock();
        let is_meant = |one: &&Bookmark| one.name == name || one.id.to_string() == name;
        let found = state.bookmarks.values().find(is_meant).map(|one| one.name.clone());
        let found = found.ok_or_else(|| missing("bookmark", name))?;
        state.bookmarks.remove(&found);
        Ok(state.job("bookmark_delete", &found, None))
    }

    fn count_commits(
        &self,
        name: &str,
        _from: Timestamp,
        _to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure> {
        self.show_dsource(name)?;
        Ok((0..parts as u64).collect())
    }

    fn show_timeflows(&self, name: &str) -> Result<TimeflowList, Failure> {
        let Dsource { name, snapshots, .. } = self.show_dsource(name)?;
        let point = |lsn: &str| TimePoint { lsn: lsn.to_owned(), time: time() };
        let range = OpenRange {
            from: point("0/1000000"),
            to: point("0/4000000"),
            typical_open_ms: Some(900),
            longest_open_ms: Some(2100),
        };
        let timeflow = Timeflow {
            id: offshoot_types::TimeflowId(1),
            current: true,
            parent: None,
            origin: None,
            started_at: time(),
            ended_at: None,
            kept: false,
            ranges: vec![range.clone()],
            gaps: vec![TimeRange { from: range.from, to: range.to }],
            snapshots,
            recovery_points: Vec::new(),
            bookmarks: vec!["release".into()],
        };
        Ok(TimeflowList { name, kind: ObjectKind::Dsource, timeflows: vec![timeflow] })
    }

    fn list_policies(&self) -> Result<Vec<Policy>, Failure> {
        let state = self.lock();
        Ok(state.dsources.keys().map(|name| state.policy(name)).collect())
    }

    fn show_policy(&self, name: &str) -> Result<Policy, Failure> {
        let name = self.show_dsource(name)?.name;
        Ok(self.lock().policy(&name))
    }

    fn set_policy(&self, name: &str, request: SetPolicy) -> Result<Policy, Failure> {
        let mut policy = self.show_policy(name)?;
        policy.snapshot_every_ms = request.snapshot_every_ms.unwrap_or(policy.snapshot_every_ms);
        policy.quota_bytes = request.quota_bytes.unwrap_or(policy.quota_bytes);
        policy.log_ms = request.log_ms.unwrap_or(policy.log_ms);
        self.lock().policies.insert(name.to_owned(), policy.clone());
        Ok(policy)
    }

    fn list_jobs(&self) -> Result<Vec<Job>, Failure> {
        Ok(self.lock().jobs.iter().rev().map(|(job, _)| job.clone()).collect())
    }

    fn show_job(&self, id: JobId) -> Result<Job, Failure> {
        self.lock().look(id)
    }

    fn cancel_job(&self, id: JobId) -> Result<Job, Failure> {
        let mut state = self.lock();
        let job = state.look(id)?;
        if job.state.is_final() {
            let message = format!("{id} has ended");
            return Err(Failure::new(ErrorKind::WrongState, message, "nothing to do"));
        }
        let (job, _) = state.jobs.iter_mut().find(|(job, _)| job.id == id).unwrap();
        job.state = JobState::Cancelled;
        job.error = Some(Failure::new(ErrorKind::Cancelled, "it was cancelled", "").into());
        Ok(job.clone())
    }

    fn pool_status(&self) -> Result<PoolStatus, Failure> {
        Ok(pool())
    }

    fn ledger(&self, object: Option<&str>) -> Result<Ledger, Failure> {
        let state = self.lock();
        let names = state.dsources.keys().chain(state.vdbs.keys());
        let objects = names.filter(|name| object.is_none_or(|object| object == *name));
        Ok(Ledger {
            objects: objects.map(|name| ledger_entry(name)).collect(),
            freed_if_deleted_bytes: None,
        })
    }

    fn ledger_deletion(&self, objects: &[String]) -> Result<Ledger, Failure> {
        Ok(Ledger {
            objects: objects.iter().map(|name| ledger_entry(name)).collect(),
            freed_if_deleted_bytes: Some(objects.len() as u64 * (6 << 20)),
        })
    }

    fn reclaim_pool(&self) -> Result<JobId, Failure> {
        Ok(self.lock().job("pool_reclaim", "pool", None))
    }

    fn secrets(&self) -> Result<Secrets, Failure> {
        Ok(Secrets {
            sealed: self.lock().dsources.len() as u64,
            keys: vec!["371c5242b4ad4fe5".into()],
            place: "/etc/offshoot/keys".into(),
            changeable: true,
        })
    }

    fn rotate_secrets(&self, _: RotateSecrets) -> Result<JobId, Failure> {
        Ok(self.lock().job("secret_rotate", "engine", None))
    }

    fn last_scrub(&self) -> Result<ScrubReport, Failure> {
        Ok(scrub_report())
    }

    fn scrub_pool(&self, request: ScrubPool) -> Result<JobId, Failure> {
        if request.bytes_per_s == Some(0) {
            return Err(Failure::new(ErrorKind::InvalidInput, "it does not end", "give a rate"));
        }
        Ok(self.lock().job("pool_scrub", "pool", None))
    }
}

fn scrub_report() -> ScrubReport {
    let holder = BlockHolder {
        object: "dev".into(),
        kind: Some(LedgerKind::Vdb),
        of: None,
        path: Some("data/base/5/16384".into()),
        offset: Some(8192),
        len: Some(8192),
    };
    let block = DamagedBlock {
        block: "0123456789abcdef".into(),
        segment: Some(3),
        segment_offset: Some(4096),
        message: "its content has another hash".into(),
        since: Some(time()),
        holders: Some(vec![holder]),
        more_holders: 2,
    };
    let scrub = Scrub {
        job: JobId(1),
        state: JobState::Done,
        bytes_per_s: 64 << 20,
        started_at: time(),
        ended_at: Some(time()),
        done_bytes: 5 << 20,
        total_bytes: 5 << 20,
        blocks: 700,
        damaged_blocks: 1,
        healed_blocks: 0,
    };
    ScrubReport { scrub: Some(scrub), damage: vec![block] }
}

fn ledger_entry(object: &str) -> LedgerEntry {
    LedgerEntry {
        object: object.to_owned(),
        kind: LedgerKind::Vdb,
        of: None,
        logical_bytes: 90 << 20,
        stored_bytes: Some(10 << 20),
        exclusive_bytes: Some(2 << 20),
        shared_bytes: Some(5 << 20),
        pinned_bytes: Some(3 << 20),
        freed_if_deleted_bytes: Some(5 << 20),
        as_of: Some(time()),
        current: true,
    }
}

fn pool() -> PoolStatus {
    PoolStatus {
        capacity_bytes: 100 << 30,
        used_bytes: 2 << 30,
        free_bytes: 98 << 30,
        logical_bytes: 9 << 30,
        live_bytes: 3 << 29,
        compression_ratio: 2.5,
        dedup_ratio: 3.0,
        zero_saved_bytes: 1 << 20,
        encryption: None,
        cache: CacheStatus {
            size_bytes: 1 << 30,
            used_bytes: 1 << 29,
            blocks: 1 << 16,
            hits: 3,
            misses: 1,
            hit_ratio: 0.75,
        },
    }
}

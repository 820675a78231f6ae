//! What is sent to other engines, and when.

use crate::core::missing;
use crate::core::peers;
use crate::core::topic::Topic;
use crate::history::names;
use crate::jobs::replicate;
use crate::parts::Parts;
use jiff::Timestamp;
use offshoot_domain::{
    CONNECTIONS, Crontab, Dsource, Included, ObjectName, Owner, Peer, Profile, ProfileRun, Replica,
    Vdb, is_masked,
};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The shortest time between two runs, in milliseconds.
const EVERY_MS_MIN: u64 = 1000;
/// The least that the peer may be allowed to be behind, in milliseconds: twice the pause after which a continuous run sends
/// although nothing seems to have changed.
const RPO_MS_MIN: u64 = 10_000;
/// The least that a limit may be, in bytes a second.
const LIMIT_MIN: u64 = 16 << 10;

/// The most connections of a profile.
const CONNECTIONS_MAX: u8 = 8;

/// What to send.
#[derive(Debug, Clone, Default)]
pub struct ProfileRequest {
    /// The name.
    pub name: String,
    /// The name of the peer.
    pub to: String,
    /// The names of dSources and VDBs; none: all.
    pub include: Option<Vec<String>>,
    /// Whether copies of others' are sent on besides.
    pub replicas: bool,
    /// Whether only what is masked may be sent.
    pub masked_only: bool,
    /// Whether the passwords go with it.
    pub with_secrets: bool,
    /// How many objects are sent at the same time; none: [as many as usual](CONNECTIONS).
    pub connections: Option<u8>,
    /// How often, in milliseconds.
    pub every_ms: Option<u64>,
    /// At which times, as crontab(5) writes them; instead of that.
    pub crontab: Option<String>,
    /// Whether it always runs.
    pub continuous: bool,
    /// How far behind the peer may be before that is a fault, in milliseconds.
    pub rpo_ms: Option<u64>,
    /// Bytes a second that it may take.
    pub bytes_per_second_max: Option<u64>,
}

/// How a profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileState {
    /// It runs now.
    Running,
    /// It does not run by itself.
    Paused,
    /// The last run failed.
    Failed,
    /// It waits for its time, or for somebody to run it.
    Waiting,
}

/// A profile, and how it is.
#[derive(Debug, Clone)]
pub struct ProfileView {
    /// The record.
    pub profile: Profile,
    /// The name of the peer.
    pub peer: String,
    /// What it includes, by name; none: all.
    pub include: Option<Vec<String>>,
    /// How it is.
    pub state: ProfileState,
    /// The run that is at work.
    pub running: Option<JobId>,
    /// When it runs next by itself.
    pub next_run_at: Option<Timestamp>,
    /// How long ago the state is that the peer has all of; none: it never had.
    pub lag_ms: Option<u64>,
    /// Bytes of log that the peer lacks.
    pub lag_bytes: u64,
}

/// Profiles, as a user works with them.
pub struct Profiles<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Profiles<'_> {
    /// Makes a profile.
    ///
    /// # Errors
    /// `NotFound` for the peer or an object; `WrongState` for a peer that nothing is sent to, or a copy that has passed it;
    /// `Forbidden` for
    /// what is not masked; `AlreadyExists`.
    pub fn create(&self, request: &ProfileRequest) -> Result<ProfileView, Failure> {
        let name: ObjectName = request.name.parse()?;
        let peer = peers::find(self.parts, &request.to)?;
        if peer.address.is_none() {
            return Err(Failure::new(
                ErrorKind::WrongState,
                format!("'{}' sends to this engine, and is sent nothing", peer.name),
                "make a code there (offshoot peer invite), and add it here: offshoot peer add",
            ));
        }
        let include = match &request.include {
            None => Included::All,
            Some(named) => Included::Objects(self.objects(named, &peer, request)?),
        };
        check(request)?;
        let crontab = request.crontab.as_deref();
        let crontab = crontab.map(|text| Crontab::new(text, self.parts.now())).transpose()?;
        let catalog = &self.parts.catalog;
        let profile = Profile {
            id: catalog.allocate::<Profile>()?,
            name,
            peer: peer.id,
            include,
            replicas: request.replicas,
            masked_only: request.masked_only,
            with_secrets: request.with_secrets,
            connections: request.connections.unwrap_or(CONNECTIONS),
            every_ms: request.every_ms,
            crontab,
            continuous: request.continuous,
            rpo_ms: request.rpo_ms,
            bytes_per_second_max: request.bytes_per_second_max,
            paused: false,
            created_at: self.parts.now(),
            running: None,
            sent_as_of: None,
            sent: BTreeMap::new(),
            runs: Vec::new(),
        };
        catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
            // The peer may have been removed meanwhile.
            tx.get::<Peer>(peer.id)?;
            tx.put(&profile)
        })?;
        self.view(profile)
    }

    fn objects(
        &self,
        named: &[String],
        peer: &Peer,
        request: &ProfileRequest,
    ) -> Result<Vec<Owner>, Failure> {
        let mut owners = Vec::with_capacity(named.len());
        for name in named {
            let owner = self.object(name)?;
            let identity = match owner {
                Owner::Dsource(id) => {
                    self.check_way(id, name, peer)?;
                    self.parts.catalog.get::<Dsource>(id)?.identity
                }
                Owner::Vdb(id) => self.parts.catalog.get::<Vdb>(id)?.source_identity,
            };
            if request.masked_only && !is_masked(&identity) {
                return Err(Failure::new(
                    ErrorKind::Forbidden,
                    format!("'{name}' is not masked, and only what is may be sent"),
                    "mask it first (offshoot mask apply), or leave --masked-only out",
                ));
            }
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
        if owners.is_empty() && !request.replicas {
            let hint = "name some: --include dsource:shop,vdb:dev, or all";
            return Err(Failure::new(ErrorKind::InvalidInput, "nothing is included", hint));
        }
        Ok(owners)
    }

    /// Refuses a copy that has passed the peer: it would go round for ever.
    fn check_way(&self, id: DsourceId, name: &str, peer: &Peer) -> Result<(), Failure> {
        let replica = self.parts.catalog.find::<Replica>(id)?;
        let Some(replica) = replica.filter(|one| one.has_passed(&peer.engine)) else {
            return Ok(());
        };
        let passed = replica.via.iter().map(|hop| hop.name.as_str());
        let way: Vec<&str> = passed.chain(["this engine", &peer.name]).collect();
        let way = way.join(" → ");
        Err(Failure::new(
            ErrorKind::WrongState,
            format!("'{name}' would go round: {way}"),
            "make the profile without it",
        ))
    }

    /// `dsource:NAME`, `vdb:NAME`, or `NAME`.
    fn object(&self, text: &str) -> Result<Owner, Failure> {
        let (kind, name) = match text.split_once(':') {
            Some((kind @ ("dsource" | "vdb"), name)) => (Some(kind), name),
            _ => (None, text),
        };
        match kind {
            Some("dsource") => Ok(self.parts.dsource(name)?.id.into()),
            Some(_) => Ok(self.parts.vdb(name)?.id.into()),
            None => names::find(self.parts, name),
        }
    }

    /// All profiles, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<ProfileView>, Failure> {
        let mut all: Vec<Profile> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter().map(|profile| self.view(profile)).collect()
    }

    /// One profile.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<ProfileView, Failure> {
        self.view(self.find(name)?)
    }

    /// Its runs that have ended, newest first.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn history(&self, name: &str) -> Result<Vec<ProfileRun>, Failure> {
        let mut runs = self.find(name)?.runs;
        runs.reverse();
        Ok(runs)
    }

    /// Runs it now; also a paused one.
    ///
    /// # Errors
    /// `NotFound`; `Busy` while it runs.
    pub fn run(&self, name: &str) -> Result<JobId, Failure> {
        replicate::submit(self.parts, &self.find(name)?, false)
    }

    /// Lets it run by itself, or not.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn set_paused(&self, name: &str, paused: bool) -> Result<ProfileView, Failure> {
        let found = self.find(name)?;
        let set = |profile: &mut Profile| profile.paused = paused;
        self.view(self.parts.catalog.update(found.id, set)?)
    }

    /// Deletes it. What it has sent stays with the peer.
    ///
    /// # Errors
    /// `NotFound`; `Busy` while it runs.
    pub fn delete(&self, name: &str) -> Result<ProfileView, Failure> {
        let view = self.show(name)?;
        if let Some(job) = view.running {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("'{name}' is being run by {job}"),
                match view.profile.continuous {
                    true => format!("pause it first: offshoot replication pause {name}"),
                    false => format!("wait, or stop it: offshoot job cancel {job}"),
                },
            ));
        }
        self.parts.catalog.delete::<Profile>(view.profile.id)?;
        for topic in [Topic::Replication, Topic::Behind] {
            self.parts.clear(&view.profile.name, topic);
        }
        Ok(view)
    }

    fn find(&self, name: &str) -> Result<Profile, Failure> {
        let found = self.parts.catalog.find_named(name)?;
        found.ok_or_else(|| missing("profile", name, "list them: offshoot replication list"))
    }

    fn view(&self, profile: Profile) -> Result<ProfileView, Failure> {
        let peer: Option<Peer> = self.parts.catalog.find(profile.peer)?;
        let busy = self.parts.runner()?.is_taken(profile.id);
        let running = profile.running.filter(|_| busy);
        let failed = profile.runs.last().is_some_and(|run| run.error.is_some());
        let state = match (busy, profile.paused, failed) {
            (true, ..) => ProfileState::Running,
            (_, true, _) => ProfileState::Paused,
            (.., true) => ProfileState::Failed,
            _ => ProfileState::Waiting,
        };
        let include = match &profile.include {
            Included::All => None,
            Included::Objects(owners) => {
                let names = owners.iter().map(|owner| names::of(self.parts, *owner));
                Some(names.collect::<Result<_, _>>()?)
            }
        };
        let now = self.parts.now();
        Ok(ProfileView {
            peer: peer.map_or_else(|| profile.peer.to_string(), |peer| peer.name.to_string()),
            include,
            state,
            running,
            next_run_at: profile.next_run_at(now),
            lag_ms: profile.sent_as_of.map(|_| profile.behind_ms(now)),
            lag_bytes: self.lag_bytes(&profile)?,
            profile,
        })
    }

    /// The log that the sources have made since.
    fn lag_bytes(&self, profile: &Profile) -> Result<u64, Failure> {
        let mut bytes = 0u64;
        for owner in replicate::included(self.parts, profile)? {
            let Owner::Dsource(id) = owner else { continue };
            let Some(dsource) = self.parts.catalog.find::<Dsource>(id)? else { continue };
            let follower = self.parts.follower(id);
            let here = follower.map_or(dsource.synced_to, |follower| follower.indexed());
            let there = profile.sent.get(&owner).and_then(|mark| mark.synced_to);
            if let (Some(here), Some(there)) = (here, there) {
                bytes += here.log.0.saturating_sub(there.log.0);
            }
        }
        Ok(bytes)
    }
}

/// What a profile may be asked to do.
fn check(request: &ProfileRequest) -> Result<(), Failure> {
    let refuse =
        |message: &str, hint: &str| Err(Failure::new(ErrorKind::InvalidInput, message, hint));
    let scheduled = request.every_ms.is_some() || request.crontab.is_some();
    if request.every_ms.is_some() && request.crontab.is_some() {
        return refuse("there may be one schedule", "give it a pause or times, not both");
    }
    if request.continuous && scheduled {
        let hint = "give it --continuous or --schedule, not both";
        return refuse("what runs always has no schedule", hint);
    }
    if request.every_ms.is_some_and(|every| every < EVERY_MS_MIN) {
        return refuse("that is too often", "give it more time: --schedule 'every 5min'");
    }
    if request.rpo_ms.is_some_and(|rpo| rpo < RPO_MS_MIN) {
        return refuse("the peer may be behind by 10 s at least", "allow it more: --rpo 1min");
    }
    if request.connections.is_some_and(|number| !(1..=CONNECTIONS_MAX).contains(&number)) {
        return refuse("there may be 1 to 8 connections", "say how many: --connections 4");
    }
    if request.bytes_per_second_max.is_some_and(|limit| limit < LIMIT_MIN) {
        return refuse("the limit is too low", "give it more: --limit 50MB/s");
    }
    Ok(())
}

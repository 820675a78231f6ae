//! Several databases of the same content, made in different ways: what is compared.

use crate::host::filesystem_of;
use crate::limits::{Cage, Limits};
use crate::server::Server;
use crate::stage::Stage;
use crate::volume::{Filesystem, Volume, run};
use anyhow::{Context, Result, anyhow, ensure};
use offshoot_api::{CacheStatus, Vdb};
use offshoot_os::process::Spec;
use offshoot_rig::bytes_below;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The argument that gives the memory to read from.
const DIRECT_SIZE: &str = "--direct-size=";

/// How copies are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Files copied on the host's filesystem, servers with their defaults.
    Plain,
    /// The same with full_page_writes=off, which is not safe on that filesystem.
    PlainFpwOff,
    /// Reflink copies on XFS.
    Xfs,
    /// Snapshots of btrfs.
    Btrfs,
    /// Virtual databases.
    Vdb,
    /// The same with a part of the engine's cache as memory from which servers read without asking: `--direct-size`, or three
    /// quarters.
    VdbDirect,
}

impl Variant {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::PlainFpwOff => "plain-fpw-off",
            Variant::Xfs => "xfs",
            Variant::Btrfs => "btrfs",
            Variant::Vdb => "vdb",
            Variant::VdbDirect => "vdb-direct",
        }
    }

    fn is_virtual(self) -> bool {
        matches!(self, Variant::Vdb | Variant::VdbDirect)
    }
}

/// What groups are made from: a source that was linked and then stopped, so that its files do not
/// change, and an engine that is stopped while others are measured.
#[derive(Debug)]
pub struct Origin {
    /// Source, engine, scratch directory.
    pub stage: Stage,
    snapshot: String,
    volumes: BTreeMap<Variant, (Volume, PathBuf)>,
    settings: Vec<(String, String)>,
    /// The engine's cache, or cache and memory to read from together, in bytes.
    memory: u64,
    /// How much of it is to read from, where it is.
    direct: u64,
    /// What holds for each group as a whole.
    pub limits: Limits,
}

/// Databases that can be started, stopped and made cold.
#[derive(Debug)]
pub struct Group {
    variant: Variant,
    count: usize,
    directories: Vec<PathBuf>,
    servers: Vec<Server>,
    cage: Option<Cage>,
}

impl Origin {
    /// From a filled source: links it, stops it and the engine. `settings` hold for every server.
    ///
    /// # Errors
    /// What did not work.
    pub fn new(mut stage: Stage, settings: Vec<(String, String)>, limits: Limits) -> Result<Self> {
        stage.link("prod")?;
        let snapshot = stage.ready_snapshot("prod")?.id.to_string();
        stage.engine.command(["dsource", "pause", "prod"])?;
        stage.source.stop_server()?;
        stage.engine.stop()?;
        // A copy must not keep log for a reader that it does not have.
        for slot in std::fs::read_dir(stage.source.data_dir().join("pg_replslot"))?.flatten() {
            std::fs::remove_dir_all(slot.path())?;
        }
        let options = &stage.engine.options;
        let bytes = |size| offshoot_domain::parse_size(size).map_err(|why| anyhow!(why.message));
        let memory = bytes(&options.cache_size)?;
        let given =
            options.arguments.iter().find_map(|argument| argument.strip_prefix(DIRECT_SIZE));
        let direct = given.map_or(Ok(memory / 4 * 3), bytes)?;
        ensure!(direct < memory, "--direct-size is a part of --cache-size, and smaller");
        let mut origin =
            Origin { stage, snapshot, volumes: BTreeMap::new(), settings, memory, direct, limits };
        origin.limits.devices.extend(whole_device(origin.stage.scratch.path()));
        Ok(origin)
    }

    /// Makes what a variant needs, once. `copies` is the most there will be at a time.
    ///
    /// # Errors
    /// What this machine lacks.
    pub fn prepare(&mut self, variant: Variant, copies: usize) -> Result<()> {
        let filesystem = match variant {
            Variant::Xfs => Filesystem::Xfs,
            Variant::Btrfs => Filesystem::Btrfs,
            Variant::Plain | Variant::PlainFpwOff | Variant::Vdb | Variant::VdbDirect => {
                return Ok(());
            }
        };
        let data = self.stage.source.data_dir();
        // Each copy may be rewritten once, and has a log of its own.
        let bytes = (bytes_below(&data) + (1 << 30)) * (copies as u64 + 1) + (1 << 30);
        let volume = Volume::make(&self.stage.scratch, filesystem, bytes)?;
        let template = volume.make_template()?;
        run(Spec::new("cp").args(["-a", "--reflink=never"]).arg(data.join(".")).arg(&template))?;
        self.limits.devices.extend(whole_device(&volume.mount));
        self.volumes.insert(variant, (volume, template));
        Ok(())
    }

    /// Makes a group of fresh copies; none of them runs yet.
    ///
    /// # Errors
    /// What did not work.
    pub fn make(&mut self, variant: Variant, count: usize) -> Result<Group> {
        let mut group =
            Group { variant, count, directories: Vec::new(), servers: Vec::new(), cage: None };
        if variant.is_virtual() {
            self.set_memory(variant);
            self.provision(count)?;
            return Ok(group);
        }
        for number in 1..=count {
            let name = format!("copy-{number}");
            let copy = match self.volumes.get(&variant) {
                Some((volume, template)) => {
                    let copy = volume.mount.join(name);
                    volume.share(template, &copy)?;
                    copy
                }
                None => {
                    let copy = self.stage.scratch.path().join(format!("{}-{name}", variant.name()));
                    let data = self.stage.source.data_dir();
                    run(Spec::new("cp").args(["-a", "--reflink=never"]).arg(data).arg(&copy))?;
                    copy
                }
            };
            group.directories.push(copy);
        }
        Ok(group)
    }

    /// The engine's memory from its next start on: as much for both kinds of virtual databases.
    fn set_memory(&mut self, variant: Variant) {
        let direct = if variant == Variant::VdbDirect { self.direct } else { 0 };
        let options = &mut self.stage.engine.options;
        options.cache_size = (self.memory - direct).to_string();
        options.arguments.retain(|argument| !argument.starts_with(DIRECT_SIZE));
        options.arguments.push(format!("{DIRECT_SIZE}{direct}"));
    }

    /// The engine is alone with its VDBs from its restart on: the dSource is paused.
    fn provision(&mut self, count: usize) -> Result<()> {
        self.stage.engine.restart()?;
        let settings: Vec<String> =
            self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for number in 1..=count {
            let mut more = vec!["--snapshot", self.snapshot.as_str()];
            for setting in &settings {
                more.extend(["--set", setting]);
            }
            self.stage.provision(&format!("copy-{number}"), "prod", &more)?;
        }
        self.stage.engine.stop()?;
        Ok(())
    }

    /// Starts a group that does not run, cold: nothing of its files is in memory. Returns the URIs.
    ///
    /// # Errors
    /// What did not start; also a limit that this machine cannot set.
    pub fn start_cold(&mut self, group: &mut Group) -> Result<Vec<String>> {
        ensure!(group.cage.is_none(), "the group runs already");
        // An engine that starts removes empty groups whose names begin as those of its own do.
        let name = format!("bench-{}", std::process::id());
        let cage = Cage::new(&name, &self.limits)?;
        let uris = if group.variant.is_virtual() {
            forget(self.stage.engine.pool());
            self.stage.engine.restart()?;
            let pid = self.stage.engine.pid().context("the engine has just started")?;
            cage.add(pid)?;
            self.restart_vdbs(group.count)?
        } else {
            group.directories.iter().for_each(|directory| forget(directory));
            for (volume, _) in self.volumes.values() {
                forget(volume.image());
            }
            self.start_servers(group, &cage)?
        };
        group.cage = Some(cage);
        Ok(uris)
    }

    /// VDBs are restarted, so that also their servers are in the engine's group.
    fn restart_vdbs(&self, count: usize) -> Result<Vec<String>> {
        let names: Vec<String> = (1..=count).map(|number| format!("copy-{number}")).collect();
        for name in &names {
            self.stage.engine.command(["vdb", "stop", name])?;
            self.stage.engine.command(["vdb", "start", name])?;
        }
        // A list has no passwords.
        let show = |name: &String| self.stage.engine.ask::<Vdb, _>(["vdb", "show", name]);
        names.iter().map(|name| Ok(show(name)?.uri)).collect()
    }

    fn start_servers(&self, group: &mut Group, cage: &Cage) -> Result<Vec<String>> {
        let unsafe_pages =
            (group.variant == Variant::PlainFpwOff).then_some(("full_page_writes", "off"));
        for directory in &group.directories {
            let settings =
                self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let settings = settings.chain(unsafe_pages);
            let server = Server::spawn(&self.stage.source, directory, settings)?;
            cage.add(server.pid())?;
            server.wait_ready()?;
            group.servers.push(server);
        }
        Ok(group.servers.iter().map(|server| server.uri().to_owned()).collect())
    }

    /// Stops what runs of a group.
    ///
    /// # Errors
    /// What does not stop in time.
    pub fn stop(&mut self, group: &mut Group) -> Result<()> {
        if group.variant.is_virtual() {
            self.stage.engine.stop()?;
        }
        let stopped = group.servers.drain(..).try_for_each(Server::stop);
        group.cage = None;
        stopped
    }

    /// Removes a group that is stopped.
    ///
    /// # Errors
    /// What cannot be removed.
    pub fn remove(&mut self, group: Group) -> Result<()> {
        if group.variant.is_virtual() {
            self.stage.engine.restart()?;
            for number in 1..=group.count {
                self.stage.engine.command(["vdb", "delete", &format!("copy-{number}")])?;
            }
            self.stage.engine.stop()?;
        }
        for directory in &group.directories {
            match self.volumes.get(&group.variant) {
                Some((volume, _)) => volume.remove(directory)?,
                None => std::fs::remove_dir_all(directory)?,
            }
        }
        Ok(())
    }

    /// What the engine's cache did so far, while VDBs run.
    ///
    /// # Errors
    /// What the command says.
    pub fn cache(&self, group: &Group) -> Result<Option<CacheStatus>> {
        let vdb = group.variant.is_virtual();
        if vdb { Ok(Some(self.stage.pool()?.cache)) } else { Ok(None) }
    }

    /// What a running group takes on disk: copies, or the whole pool, or all of a volume.
    ///
    /// # Errors
    /// What the command says.
    pub fn space_bytes(&self, group: &Group) -> Result<u64> {
        if group.variant.is_virtual() {
            return Ok(self.stage.pool()?.used_bytes);
        }
        Ok(match self.volumes.get(&group.variant) {
            Some((volume, _)) => volume.used_bytes(),
            None => group.directories.iter().map(|directory| bytes_below(directory)).sum(),
        })
    }
}

impl Group {
    /// How its copies were made.
    pub fn variant(&self) -> Variant {
        self.variant
    }
}

/// The device to limit for what lies at a path.
fn whole_device(path: &Path) -> Option<String> {
    let device = filesystem_of(path)?.device;
    // Some filesystems have no device that could be limited.
    (!device.starts_with("0:")).then_some(device)
}

/// Drops what the kernel keeps of a file or of all files below a directory, without touching other
/// files: dropping the whole page cache would affect them too.
pub fn forget(path: &Path) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                forget(&entry.path());
            }
        }
    } else if let Ok(file) = std::fs::File::open(path) {
        // Only what is written back can be dropped. A file that cannot be dropped stays warm: the
        // reads of the device in the result show it.
        let _ = rustix::fs::fdatasync(&file);
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

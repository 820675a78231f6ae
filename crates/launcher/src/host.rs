//! Plain processes of this host.

use crate::launcher::{Ended, Found, Launch, Launcher, Mark, Process};
use crate::record::{self, Record};
use offshoot_os::cgroup::Group;
use offshoot_os::process::{Child, ProcessId, Signal, User};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, Share};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long processes may take to notice that their server is gone.
const NOTICE: Duration = Duration::from_millis(200);
/// How long a killed process may take to end.
const KILLED: Duration = Duration::from_secs(10);

/// This host. Servers get their own session, so that they outlive the engine.
#[derive(Debug, Clone, Default)]
pub struct ThisHost {
    user: Option<User>,
}

impl ThisHost {
    /// Servers run as the engine's own user.
    pub fn as_ourselves() -> ThisHost {
        ThisHost::default()
    }

    /// If this process is root, servers run as the user of that name; otherwise as the engine's
    /// own.
    ///
    /// # Errors
    /// `HostUnprepared` as root without such a user; it says how to make one.
    pub fn with_user(name: &str) -> Result<ThisHost, Failure> {
        if !User::own_is_root() {
            return Ok(ThisHost::as_ourselves());
        }
        match User::lookup(name) {
            Ok(Some(user)) => Ok(ThisHost { user: Some(user) }),
            Ok(None) => Err(Failure::new(
                ErrorKind::HostUnprepared,
                format!("servers do not run as root and this host has no user named {name}"),
                format!("install the server's package, or run: useradd --system {name}"),
            )),
            Err(error) => {
                Err(Failure::internal(format!("cannot look up the user {name}: {error}")))
            }
        }
    }
}

impl Launcher for ThisHost {
    fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    fn launch(&self, launch: Launch) -> Result<Option<Box<dyn Process>>, Failure> {
        let user = self.user_of(&launch.data_dir)?;
        let started = launch.command.user(user).spawn();
        let child = started.map_err(|error| {
            Failure::new(
                ErrorKind::HostUnprepared,
                error.to_string(),
                "install the server programs of this version of the database",
            )
        })?;
        let id = if launch.ends { child.former_process_id() } else { child.process_id() };
        let Some(id) = id else { return Ok(None) };
        let mut process =
            HostProcess { id, child: Some(child), runtime_dir: launch.runtime_dir.clone() };
        let record = Record::new(id, launch.data_dir, launch.port);
        if let Err(failure) = record.write(&launch.runtime_dir) {
            let _ = process.end(Signal::Quit, Signal::Kill, KILLED);
            return Err(failure);
        }
        process.limit(&launch.name, (launch.memory_bytes, launch.processes_max), launch.share);
        Ok(Some(Box::new(process)))
    }

    fn find(&self, runtime_dir: &Path, mark: &Mark) -> Option<Found> {
        let found = |id, record: Option<Record>| Found {
            process: Box::new(HostProcess { id, child: None, runtime_dir: runtime_dir.to_owned() }),
            port: record.as_ref().map(|record| record.port),
            data_dir: record.map(|record| record.data_dir),
        };
        match Record::read(runtime_dir) {
            Some(record) => {
                let recorded = record.process().filter(|process| mark.is_on(process));
                if let Some(process) = recorded {
                    return Some(found(process, Some(record)));
                }
            }
            None if !runtime_dir.is_dir() => return None,
            None => {}
        }
        // The engine may have been killed right after it started the server, before the record.
        ProcessId::all().find(|process| mark.is_on(process)).map(|process| found(process, None))
    }

    fn end_orphans(&self, data_dir: &Path, program: &str) -> Result<(), Failure> {
        // By its name: the path of its program is gone as soon as it begins to end, and what it shares
        // with others may be held for some time after that.
        let is_of_server = |process: &ProcessId| {
            process.cwd().is_some_and(|dir| dir == data_dir)
                && process.name().is_some_and(|name| name == program)
        };
        for orphan in ProcessId::all().filter(is_of_server) {
            if orphan.wait_end(NOTICE) {
                continue;
            }
            let _ = orphan.signal(Signal::Kill);
            if !orphan.wait_end(KILLED) {
                let (pid, dir) = (orphan.pid, data_dir.display());
                return Err(Failure::internal(format!(
                    "a process (pid {pid}) of an earlier server on {dir} does not end, not even when \
                     killed"
                )));
            }
        }
        Ok(())
    }
}

/// The name of the control group of a server with this key; the engine's process id tells engines apart.
fn group_name(engine: u32, key: &str) -> String {
    format!("offshoot-{engine}-{key}")
}

/// The control group that an engine made for a server, as one of its processes shows it.
pub fn group_of(process: ProcessId) -> Option<Group> {
    Group::holding(process.pid, |name| {
        let engine = name.strip_prefix("offshoot-").and_then(|rest| rest.split_once('-'));
        engine.is_some_and(|(engine, key)| {
            engine.parse().is_ok_and(|engine| group_name(engine, key) == name)
        })
    })
}

/// Removes the control group of a server that has ended. Processes that are not in it any more may hold it
/// for a moment.
pub fn remove_group(group: &Group) {
    let deadline = SystemClock.elapsed() + NOTICE;
    while let Err(error) = group.remove() {
        if SystemClock.elapsed() >= deadline {
            tracing::debug!(%error, "a control group stays");
            return;
        }
        SystemClock.sleep(Duration::from_millis(5));
    }
}

/// Lets nothing in the control group of a process start more processes: what is to be ended must not grow
/// meanwhile. Without effect where there are no control groups.
pub fn forbid_children(process: ProcessId) {
    if let Some(group) = group_of(process) {
        let _ = group.limit_processes(0);
    }
}

impl Mark {
    /// Whether a process is a server's first one. Its children carry titles instead of arguments, so
    /// they never match.
    fn is_on(&self, process: &ProcessId) -> bool {
        let arguments = process.arguments();
        let program = arguments.first().map(|path| path.rsplit('/').next().unwrap_or(path));
        program.is_some_and(|program| program.starts_with(self.program))
            && arguments.contains(&self.argument)
    }
}

/// Dropping it leaves the server running.
#[derive(Debug)]
struct HostProcess {
    id: ProcessId,
    /// Not there for a server that an earlier engine process started.
    child: Option<Child>,
    runtime_dir: PathBuf,
}

impl HostProcess {
    /// Puts the server under limits, as far as this host allows that. Otherwise only the sizes of its
    /// buffers follow the limit of memory, and nothing that of processes.
    fn limit(&self, name: &str, (memory_bytes, processes_max): (Option<u64>, u64), share: Share) {
        let unlimited = |error: io::Error| match memory_bytes {
            Some(_) => {
                tracing::warn!(server = name, %error, "its memory is not limited by a control group")
            }
            None => tracing::debug!(server = name, %error, "it is in no control group"),
        };
        let group = match Group::create(&self.group_name()) {
            Ok(group) => group,
            Err(error) => return unlimited(error),
        };
        // Before it is in. Either counts without the other.
        if let Err(error) = group.limit_processes(processes_max) {
            tracing::debug!(server = name, %error, "its processes are not limited");
        }
        if let Err(error) = group.weigh_processors(share.percent()) {
            tracing::debug!(server = name, %error, "it may take more than its share of the processors");
        }
        let limited = memory_bytes.map_or(Ok(()), |max| group.limit_memory(max));
        if let Err(error) = limited.and(group.add(self.id.pid)) {
            unlimited(error);
        }
    }

    fn group_name(&self) -> String {
        // Directories of the same name are of different servers.
        let mut hasher = DefaultHasher::new();
        self.runtime_dir.hash(&mut hasher);
        let key = self.runtime_dir.file_name().unwrap_or_default().to_string_lossy();
        group_name(std::process::id(), &format!("{:08x}-{key}", hasher.finish() as u32))
    }

    /// Its control group, also of an earlier engine's making, or when it has ended.
    fn group(&self) -> Option<Group> {
        group_of(self.id).or_else(|| Group::find(&self.group_name()))
    }

    /// Ends every process of it; returns whether the first signal was enough. `None` when one still
    /// runs.
    fn end_all(&self, first: Signal, then: Signal, deadline: Duration) -> Option<bool> {
        let end = SystemClock.elapsed() + deadline;
        let group = self.group();
        let children = self.id.children();
        let _ = self.id.signal(first);
        let gently = self.id.wait_end(deadline * 2 / 3);
        if !gently {
            let _ = self.id.signal(then);
            if !self.id.wait_end(deadline / 6) {
                let _ = self.id.signal(Signal::Kill);
            }
        }
        let left = || end.saturating_sub(SystemClock.elapsed()).max(Duration::from_millis(500));
        let mut ended = self.id.wait_end(left());
        // What is left may start more of itself as fast as it is killed.
        if let Some(group) = &group {
            let _ = group.limit_processes(0);
        }
        // Children notice that the first process is gone, except those stuck in a system call.
        for child in children {
            if child.alive() && !child.wait_end(NOTICE) {
                let _ = child.signal(Signal::Kill);
                ended &= child.wait_end(left());
            }
        }
        ended.then_some(gently)
    }
}

impl Process for HostProcess {
    fn id(&self) -> ProcessId {
        self.id
    }

    fn running(&mut self) -> bool {
        match &mut self.child {
            // Asking reaps it when it has ended.
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => self.id.alive(),
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<bool> {
        self.id.signal(signal)
    }

    fn titles(&self) -> Vec<String> {
        self.id.children().into_iter().map(|child| child.arguments().join(" ")).collect()
    }

    fn end(&mut self, first: Signal, then: Signal, deadline: Duration) -> Option<Ended> {
        let group = self.group();
        let gently = self.end_all(first, then, deadline)?;
        let child = self.child.as_mut();
        let ended = child.map(|child| child.wait_timeout(Duration::from_secs(1)).ok().flatten());
        record::forget(&self.runtime_dir);
        if let Some(group) = group {
            remove_group(&group);
        }
        let success = ended.map(|status| status.is_some_and(|status| status.success()));
        Some(Ended { gently, success, status: ended.flatten() })
    }
}

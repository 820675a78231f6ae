//! A launcher whose servers are in cells.

use crate::residents;
use crate::spec::{CellSpec, CellUser, HEAP};
use offshoot_launcher::{
    Ended, Found, Launch, Launcher, Mark, Process, ThisHost, group_of, remove_group,
};
use offshoot_os::kernel_version;
use offshoot_os::process::{ProcessId, Signal, Sink, Spec, User, run};
use offshoot_types::{ErrorKind, Failure, Remote};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Linux counts processes by user namespace from here on.
const COUNTS_BY_NAMESPACE: (u32, u32) = (5, 14);
/// How long a cell for a try may take.
const TRY: Duration = Duration::from_secs(20);

/// Servers of this host, each in a cell.
#[derive(Debug)]
pub struct Cells {
    /// Starts the program that builds a cell, as ourselves.
    host: ThisHost,
    /// That program: its subcommand `cell` calls [`enter`](crate::enter).
    builder: PathBuf,
    user: Option<User>,
}

impl Cells {
    /// Cells that `builder` builds, for servers that run as the user of `host`.
    ///
    /// # Errors
    /// `HostUnprepared` when this host cannot confine programs; it says what is missing.
    pub fn new(host: &ThisHost, builder: PathBuf) -> Result<Cells, Failure> {
        let cells = Cells { host: ThisHost::as_ourselves(), builder, user: host.user().cloned() };
        cells.try_one().map(|()| cells)
    }

    fn try_one(&self) -> Result<(), Failure> {
        let nothing = Spec::new("/bin/true").stdout(Sink::Null).stderr(Sink::Pipe).clear_env();
        let output =
            run(&self.confined(nothing, spec(self.user.clone(), Vec::new(), Vec::new()))?, TRY)
                .map_err(|error| Failure::internal(format!("a cell cannot be tried: {error}")))?;
        if output.success() {
            return Ok(());
        }
        let words = output.stderr_text();
        Err(Failure::new(
            ErrorKind::HostUnprepared,
            format!("servers cannot be confined on this host: {}", words.trim()),
            "allow namespaces, Landlock and seccomp (Linux 6.12), or run: offshoot serve --unconfined",
        ))
    }

    fn confined(&self, command: Spec, cell: CellSpec) -> Result<Spec, Failure> {
        let cell = serde_json::to_string(&cell)
            .map_err(|error| Failure::internal(format!("a cell cannot be written: {error}")))?;
        Ok(command.behind(&self.builder, ["cell", &cell, "--"]).env(HEAP.0, HEAP.1))
    }
}

/// Where hosts are now. One that is nowhere does not keep a server from starting.
fn addresses_of(reaches: &[Remote]) -> Vec<(&Remote, SocketAddr)> {
    let found = |remote| match remote_addresses(remote) {
        Ok(addresses) => addresses.into_iter().map(|address| (remote, address)).collect(),
        Err(error) => {
            tracing::warn!(%remote, %error, "a host that may be reached is not found");
            Vec::new()
        }
    };
    reaches.iter().flat_map(found).collect()
}

fn remote_addresses(remote: &Remote) -> io::Result<Vec<SocketAddr>> {
    Ok((remote.host.as_str(), remote.port).to_socket_addrs()?.collect())
}

/// A line for the cell's file of hosts, but for what is no name.
fn named((remote, address): (&Remote, SocketAddr)) -> Option<(IpAddr, String)> {
    let is_address = remote.host.parse::<IpAddr>().is_ok();
    (!is_address).then(|| (address.ip(), remote.host.clone()))
}

/// A cell without network.
fn spec(user: Option<User>, read_only: Vec<PathBuf>, own: Vec<PathBuf>) -> CellSpec {
    let user = user.map(|user| CellUser { name: user.name, uid: user.uid, gid: user.gid });
    CellSpec {
        user,
        read_only,
        own,
        port: None,
        connects: Vec::new(),
        processes_max: None,
        reaches: Vec::new(),
        hosts: Vec::new(),
        udp: false,
    }
}

impl Launcher for Cells {
    fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    fn confines(&self) -> bool {
        true
    }

    fn launch(&self, mut launch: Launch) -> Result<Option<Box<dyn Process>>, Failure> {
        let data_dir = launch.data_dir.clone();
        let (read, own) = match launch.ends {
            true => (Some(&data_dir), None),
            false => (None, Some(&data_dir)),
        };
        let own = own.into_iter().chain(&launch.own_dirs).cloned().collect();
        let read_only = launch.program_dirs.iter().chain(read).cloned().collect();
        let user = self.user_of(&data_dir)?;
        // Root has control groups. A user of its own is no better: it has dead processes until they are reaped.
        let counts_alone = user.is_none() && kernel_version() >= COUNTS_BY_NAMESPACE;
        let addresses = addresses_of(&launch.reaches);
        let cell = CellSpec {
            processes_max: counts_alone.then_some(launch.processes_max),
            port: launch.tcp.then_some(launch.port),
            connects: launch.connects.clone(),
            reaches: addresses.iter().map(|(_, address)| *address).collect(),
            hosts: addresses.into_iter().filter_map(named).collect(),
            udp: launch.udp,
            ..spec(user, read_only, own)
        };
        launch.command = self.confined(launch.command, cell)?;
        let server = self.host.launch(launch)?;
        Ok(server.map(|server| Inhabited::with(server, Some(data_dir))))
    }

    fn find(&self, runtime_dir: &Path, mark: &Mark) -> Option<Found> {
        let found = self.host.find(runtime_dir, mark)?;
        let process = Inhabited::with(found.process, found.data_dir.clone());
        Some(Found { process, ..found })
    }

    /// Whatever is in a cell goes with its server, programs that its users started included.
    fn end_orphans(&self, data_dir: &Path, program: &str) -> Result<(), Failure> {
        self.host.end_orphans(data_dir, program)?;
        if residents::end(data_dir) {
            return Ok(());
        }
        let dir = data_dir.display();
        Err(Failure::internal(format!("a program in the cell of {dir} does not end")))
    }
}

/// A server with all that is in its cell: programs that its users started may have left its tree of
/// processes, and would hold its files and its port.
#[derive(Debug)]
struct Inhabited {
    server: Box<dyn Process>,
    /// By what the cell is known; not there for one whose record is lost.
    data_dir: Option<PathBuf>,
}

impl Inhabited {
    fn with(server: Box<dyn Process>, data_dir: Option<PathBuf>) -> Box<dyn Process> {
        Box::new(Inhabited { server, data_dir })
    }
}

impl Process for Inhabited {
    fn id(&self) -> ProcessId {
        self.server.id()
    }

    fn running(&mut self) -> bool {
        self.server.running()
    }

    fn signal(&self, signal: Signal) -> io::Result<bool> {
        self.server.signal(signal)
    }

    fn titles(&self) -> Vec<String> {
        self.server.titles()
    }

    fn end(&mut self, first: Signal, then: Signal, deadline: Duration) -> Option<Ended> {
        let group = group_of(self.server.id());
        let ended = self.server.end(first, then, deadline);
        let empty = self.data_dir.as_ref().is_none_or(|dir| residents::end(dir));
        // It was not empty before.
        if let Some(group) = group.filter(|_| empty) {
            remove_group(&group);
        }
        ended.filter(|_| empty)
    }
}

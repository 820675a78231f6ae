//! A launcher whose servers are in cells.

use crate::spec::{CellSpec, CellUser, HEAP};
use offshoot_launcher::{Found, Launch, Launcher, Mark, Process, ThisHost};
use offshoot_os::process::{Sink, Spec, User, run};
use offshoot_types::{ErrorKind, Failure};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
            run(&self.confined(nothing, self.spec(Vec::new(), Vec::new(), None, false))?, TRY)
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

    fn spec(
        &self,
        read_only: Vec<PathBuf>,
        own: Vec<PathBuf>,
        port: Option<u16>,
        udp: bool,
    ) -> CellSpec {
        let user = self.user.as_ref().map(|user| CellUser {
            name: user.name.clone(),
            uid: user.uid,
            gid: user.gid,
        });
        CellSpec { user, read_only, own, port, udp }
    }

    fn confined(&self, command: Spec, cell: CellSpec) -> Result<Spec, Failure> {
        let cell = serde_json::to_string(&cell)
            .map_err(|error| Failure::internal(format!("a cell cannot be written: {error}")))?;
        Ok(command.behind(&self.builder, ["cell", &cell, "--"]).env(HEAP.0, HEAP.1))
    }
}

impl Launcher for Cells {
    fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    fn launch(&self, mut launch: Launch) -> Result<Option<Box<dyn Process>>, Failure> {
        let mut own = vec![launch.data_dir.clone()];
        own.extend(launch.own_dirs.iter().cloned());
        let cell = self.spec(
            launch.program_dirs.clone(),
            own,
            launch.tcp.then_some(launch.port),
            launch.udp,
        );
        launch.command = self.confined(launch.command, cell)?;
        self.host.launch(launch)
    }

    fn find(&self, runtime_dir: &Path, mark: &Mark) -> Option<Found> {
        self.host.find(runtime_dir, mark)
    }

    fn end_orphans(&self, data_dir: &Path, program: &str) -> Result<(), Failure> {
        self.host.end_orphans(data_dir, program)
    }
}

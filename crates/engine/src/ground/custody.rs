//! The engine's side of the keeper: what it holds, and whether it is alive.

use crate::ground::paths::{Paths, keeper_socket};
use offshoot_keeper::{Held, Keeper};
use offshoot_os::process::Spec;
use offshoot_types::DatasetId;
use parking_lot::Mutex;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

/// The first kernel that can resend requests.
const KERNEL: (u32, u32) = (6, 9);

/// Whether running VDBs outlive this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// They do.
    Ready,
    /// There is no keeper.
    NoKeeper,
    /// The kernel cannot send requests again.
    OldKernel,
}

/// How a keeper is started, and the connection to it.
pub struct Custody {
    /// The program with the subcommand `keeper`; `None`: mounts end with this process.
    program: Option<PathBuf>,
    pool: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    keeper: Mutex<Option<Keeper>>,
}

impl Custody {
    /// Connects to the keeper of a pool if there is one: it holds what outlived an earlier engine.
    pub fn connect(program: Option<PathBuf>, paths: &Paths) -> Custody {
        let program = program.filter(|_| kernel_resends());
        let socket = keeper_socket(paths.runtime());
        let there = program.as_ref().and_then(|_| Keeper::connect(&socket).ok());
        Custody {
            program,
            pool: paths.pool().to_owned(),
            socket,
            log: paths.log("keeper"),
            keeper: Mutex::new(there.filter(Keeper::alive)),
        }
    }

    /// Starts a keeper if there is none. The pool is ours.
    pub fn start(&self) {
        let mut keeper = self.keeper.lock();
        if keeper.is_none() {
            *keeper = self.started();
        }
    }

    fn started(&self) -> Option<Keeper> {
        let command = Spec::new(self.program.as_ref()?).arg("keeper").arg("--pool");
        let started = Keeper::start(command.arg(&self.pool), &self.socket, &self.log);
        started
            .inspect_err(|error| tracing::warn!(%error, "no keeper: VDBs end with the engine"))
            .ok()
    }

    /// Releases the keeper, which no longer holds anything, and waits for its end.
    pub fn end(&self) {
        if let Some(keeper) = self.keeper.lock().take() {
            keeper.end(&self.socket);
        }
    }

    /// What an earlier engine left.
    pub fn held(&self) -> Vec<Held> {
        let keeper = self.keeper.lock();
        let held = keeper.as_ref().map(Keeper::list).transpose();
        held.unwrap_or_else(|error| {
            tracing::warn!(%error, "the keeper does not answer");
            None
        })
        .unwrap_or_default()
    }

    /// Whether a keeper is there.
    pub fn possible(&self) -> bool {
        self.keeper.lock().is_some()
    }

    /// Whether running VDBs outlive this process.
    pub fn survival(&self) -> Survival {
        match self.possible() {
            true => Survival::Ready,
            false if kernel_resends() => Survival::NoKeeper,
            false => Survival::OldKernel,
        }
    }

    /// Has what serves a dataset held.
    pub fn hold(&self, dataset: DatasetId, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let keeper = self.keeper.lock();
        let keeper = keeper.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        keeper.hold(dataset.0, fds)
    }

    /// Has a mount held no longer.
    pub fn drop_held(&self, dataset: DatasetId) {
        if let Some(keeper) = &*self.keeper.lock()
            && let Err(error) = keeper.drop_held(dataset.0)
        {
            tracing::warn!(%dataset, %error, "the keeper does not answer");
        }
    }

    /// If the keeper has ended, starts another and calls `refill`.
    pub fn renew(&self, refill: impl FnOnce(&Keeper) -> io::Result<()>) {
        let mut keeper = self.keeper.lock();
        if self.program.is_none() || keeper.as_ref().is_some_and(Keeper::alive) {
            return;
        }
        tracing::warn!("the keeper has ended; starting another");
        *keeper = self.started().filter(|new| {
            let refilled = refill(new);
            refilled.inspect_err(|error| tracing::warn!(%error, "the keeper holds nothing")).is_ok()
        });
    }
}

/// Whether the kernel can resend unanswered requests. Mounts check this again.
fn kernel_resends() -> bool {
    offshoot_os::kernel_version() >= KERNEL
}

//! How a dataset reaches the server that works in it: the interface that every protocol implements.
//!
//! A [`Delivery`] is a protocol on this host: the kernel's FUSE today, where a dataset is mounted; with NFS it would be
//! exported and another host would mount it. For each dataset a delivery gives a [`Delivered`], which serves until it
//! ends. The engine knows only these two, and `tests/filesystem` is the suite that each of them must pass.
//!
//! # What a delivery promises
//! 1. What a client writes is in the dataset before it is acknowledged. An aligned write of a block is whole or absent,
//!    for concurrent readers and after a crash, unless the [`Spec`] allows writes to be gathered.
//! 2. What a client synced is durable: the dataset was synced after the write arrived and before the
//!    answer.
//! 3. No client sees stale content, neither of another dataset at the same location nor from before a change by
//!    path: a client's caches end with the delivery, or are invalidated through a [`Watcher`].
//! 4. A change that is requested twice is done once ([`Session::ask`]).
//! 5. If it survives ([`Delivered::survive`]), its clients only wait when the engine is killed, and continue
//!    with the next one. Otherwise they get errors. They never wait for ever.
//! 6. After it has ended, nothing is left: no thread, no process, no mount.
//!
//! # Outliving the engine
//! What the next engine needs is in two parts. The log of what clients were told belongs to the dataset
//! ([`VolatileLog`]) and is the same for all deliveries. The protocol's own part is in descriptors that must stay
//! open: a mount's connection to the kernel, a listening socket, or nothing if clients reconnect on their own. The
//! keeper holds both; [`Delivery::resume`] gets them back.
//!
//! [`Watcher`]: offshoot_fs::Watcher
//! [`Session::ask`]: offshoot_fs::Session::ask

mod latencies;

pub use latencies::{Latencies, RequestCounts};

use offshoot_fs::{FileSystem, VolatileLog};
use offshoot_types::Failure;
use std::fmt::Debug;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A user and a group of this host, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// Whose all files of a delivery are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Whose they are for clients, whatever the dataset says.
    pub shown: Ids,
    /// Whose a file is in the dataset that a client makes or gives away.
    pub kept: Ids,
}

/// How one dataset is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// A directory of this host that is the dataset's alone: where it is mounted, or what an export is known by.
    /// It exists and is empty.
    pub path: PathBuf,
    /// Allows users other than the one who runs the engine. File modes still apply.
    pub other_users: bool,
    /// Shows all files as one user's: servers that run as users of their own can have clones of the same
    /// files. None: as the dataset says.
    pub owner: Option<Owner>,
    /// Refuses every change.
    pub read_only: bool,
    /// Allows writes to be gathered on the way, so that a crash may tear them: only for data that reveals where
    /// it is torn, and that does not count before it is synced.
    pub gather_writes: bool,
    /// Whether files have extended attributes. Some protocols pay for them with a request before each write.
    pub xattrs: bool,
}

impl Spec {
    /// For a database: its pages must not be torn, and it has no extended attributes.
    pub fn database(path: PathBuf) -> Spec {
        Spec {
            path,
            other_users: false,
            owner: None,
            read_only: false,
            gather_writes: false,
            xattrs: false,
        }
    }
}

/// Where a server finds the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a directory of this host.
    Directory(PathBuf),
    /// By a name at an address, which the server's host mounts first.
    Export {
        /// Host and port.
        address: String,
        /// What to ask for there.
        name: String,
    },
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Nobody used it any more.
    Clean,
    /// Programs still used it; what they have open fails from now on.
    Forced,
}

/// A protocol by which datasets are delivered.
pub trait Delivery: Debug + Send + Sync {
    /// Finds what this host lacks.
    ///
    /// # Errors
    /// `HostUnprepared`, with what to do about it.
    fn check_host(&self) -> Result<(), Failure>;

    /// Delivers a dataset; when this returns its files are there.
    ///
    /// # Errors
    /// `HostUnprepared`; what the protocol says.
    fn deliver(&self, files: Arc<FileSystem>, spec: &Spec) -> Result<Box<dyn Delivered>, Failure>;

    /// Resumes a delivery that outlived the engine that made it: `descriptors` are those of its
    /// [`Delivered::handover`], in that order, and the dataset has its volatile log. Clients that wait get
    /// their answers now. They see the files as the same user's as before, whatever the [`Spec`] says.
    ///
    /// # Errors
    /// If these descriptors are useless; the delivery ends when nobody else holds them.
    fn resume(
        &self,
        files: Arc<FileSystem>,
        spec: &Spec,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Box<dyn Delivered>, Failure>;

    /// Removes what engines that ended without ending their deliveries left under a directory, except the paths in
    /// `kept`. Returns the removed paths. To be called when the pool is ours and before anything is delivered.
    ///
    /// # Errors
    /// What could not be removed; a missing directory is no error.
    fn clean_stale(&self, dir: &Path, kept: &[PathBuf]) -> Result<Vec<PathBuf>, Failure>;

    /// Lets every request fail that waits at deliveries under a directory, and every later one, except the paths in `kept`.
    /// Returns the paths. An engine that was killed ends only then, if one of its threads waits for an answer that it would
    /// have given itself.
    ///
    /// # Errors
    /// When the deliveries cannot be listed.
    fn fail_waiting(&self, dir: &Path, kept: &[PathBuf]) -> Result<Vec<PathBuf>, Failure>;
}

/// Puts what clients have written into the dataset. They MUST have closed what they wrote: it waits for that a while, and
/// then refuses. It waits for the delivery's own answers, so nothing that those need may be held meanwhile.
pub type Flusher = Box<dyn FnOnce() -> std::io::Result<()> + Send>;

/// A dataset that is delivered. Dropping it ends it, by force after a moment; call [`Delivered::end`] to see
/// errors.
pub trait Delivered: Debug + Send + Sync {
    /// Where its files are.
    fn location(&self) -> Location;

    /// Whether it still serves: `false` once somebody ended it from outside.
    fn is_serving(&self) -> bool;

    /// How long its clients have waited since it began in this process.
    fn latencies(&self) -> RequestCounts;

    /// What puts writes that were gathered on the way into the dataset; `None` where each arrives before it is
    /// acknowledged.
    fn flusher(&self) -> Option<Flusher>;

    /// From now on the dataset and what its clients have open outlive this process, once the next commit is done and
    /// as long as somebody holds the log and what [`Delivered::handover`] returns.
    fn survive(&self, volatile: Arc<VolatileLog>);

    /// What must be held so that the next engine can resume it: up to three descriptors. `None` where it cannot outlive
    /// this process.
    fn handover(&self) -> Option<Vec<BorrowedFd<'_>>>;

    /// Ends it. Programs that still use it get that long to finish. Then their requests fail and it ends
    /// anyway.
    ///
    /// # Errors
    /// What is left, and what to do about it.
    fn end(self: Box<Self>, grace: Duration) -> Result<Ended, Failure>;
}

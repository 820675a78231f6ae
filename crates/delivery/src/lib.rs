//! How a dataset reaches the server that works in it: the interface that every protocol implements.
//!
//! A [`Delivery`] is a protocol on this host: the kernel's FUSE today, where a dataset is mounted; with NFS it is
//! exported and another host mounts it. What a delivery gives for one dataset is a [`Delivered`], which serves until it
//! ends. The engine knows only these two, and `tests/filesystem` is the suite that each of them must pass.
//!
//! # What a delivery promises
//! 1. What a client writes is in the dataset before it is told so. An aligned write of a block is whole or absent, for a
//!    reader at the same time and after a crash, unless the [`Spec`] lets its writes be gathered.
//! 2. What a client synced is durable: the dataset was synced after the write came, before the answer.
//! 3. No client sees another dataset's content at a location that it was used to, nor what the engine has changed by
//!    path since: whatever a client caches ends with the delivery, or is called back through a [`Watcher`].
//! 4. A change that is asked for twice is done once ([`Session::ask`]).
//! 5. Where it survives ([`Delivered::survive`]), its clients only wait when the engine is killed, and go on with
//!    the next one. Otherwise they get errors. They never wait for ever.
//! 6. When it has ended nothing is left: no thread, no process, no mount.
//!
//! # Outliving the engine
//! What the next engine needs is in two parts. The log of what clients were told belongs to the dataset
//! ([`VolatileLog`]) and is the same for all deliveries. The protocol's own part is in descriptors that must stay
//! open: a mount's connection to the kernel, a listening socket; none where clients come again by themselves. Somebody
//! (the keeper) holds both; [`Delivery::resume`] gets them back.
//!
//! [`Watcher`]: offshoot_fs::Watcher
//! [`Session::ask`]: offshoot_fs::Session::ask

use offshoot_fs::{FileSystem, VolatileLog};
use offshoot_types::Failure;
use std::fmt::Debug;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How one dataset is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// A directory of this host that is the dataset's alone: where it is mounted, or what an export is known by.
    /// It exists and is empty.
    pub path: PathBuf,
    /// Lets users in other than the one who runs the engine. The modes of files still apply.
    pub other_users: bool,
    /// Refuses every change.
    pub read_only: bool,
    /// Lets writes be gathered on their way, and so be torn by a crash: only for data that shows by itself where
    /// it is torn, and that counts for nothing before it is synced.
    pub gather_writes: bool,
    /// Whether files have extended attributes. Asking for them costs some protocols a request before each write.
    pub xattrs: bool,
}

impl Spec {
    /// For a database: its pages must not be torn, and it has no extended attributes.
    pub fn database(path: PathBuf) -> Spec {
        Spec { path, other_users: false, read_only: false, gather_writes: false, xattrs: false }
    }
}

/// Where a server finds the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a directory of this host.
    Directory(PathBuf),
    /// Under a name at an address, which the server's host mounts first.
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

    /// Goes on with a delivery that outlived the engine which made it: `descriptors` are those of its
    /// [`Delivered::handover`], in that order, and the dataset has its volatile log. Clients that wait get
    /// their answers now.
    ///
    /// # Errors
    /// That these descriptors are of no use; the delivery ends when nobody else holds them.
    fn resume(
        &self,
        files: Arc<FileSystem>,
        spec: &Spec,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Box<dyn Delivered>, Failure>;

    /// Takes away what engines that ended without ending their deliveries left under a directory, but for the paths
    /// in `kept`, and answers the paths. To be called when the pool is ours and before anything is delivered.
    ///
    /// # Errors
    /// What could not be taken away; a missing directory is no error.
    fn clean_stale(&self, dir: &Path, kept: &[PathBuf]) -> Result<Vec<PathBuf>, Failure>;
}

/// A dataset that is delivered. Dropping it ends it, by force after a moment; call [`Delivered::end`] to see
/// errors.
pub trait Delivered: Debug + Send + Sync {
    /// Where its files are.
    fn location(&self) -> Location;

    /// Whether it still serves: `false` once somebody ended it from outside.
    fn is_serving(&self) -> bool;

    /// From now on the dataset and what its clients have open outlive this process, once the next commit is done and
    /// as long as somebody holds the log and what [`Delivered::handover`] answers.
    fn survive(&self, volatile: Arc<VolatileLog>);

    /// What must be held so that the next engine can resume it: up to three descriptors. `None` where it cannot outlive
    /// this process.
    fn handover(&self) -> Option<Vec<BorrowedFd<'_>>>;

    /// Ends it. Programs that still use it get that long to let go; then their requests fail, and it has
    /// ended all the same.
    ///
    /// # Errors
    /// What is left, and what to do about it.
    fn end(self: Box<Self>, grace: Duration) -> Result<Ended, Failure>;
}

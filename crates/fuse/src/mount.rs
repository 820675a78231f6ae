//! Mounts and unmounts, and checks what this host needs for it.

use crate::adapter::Adapter;
use crate::attach::attach;
use crate::connection::Connection;
use crate::error::MountError;
use crate::handshake::{ask_again, begin_session, resume_session};
use crate::kernel::KernelCaches;
use crate::mount_table::{self, Attempt};
use crate::options::MountOptions;
use fuser::{Config, SessionACL};
use offshoot_delivery::{Ended, Flusher, Latencies, Owner, RequestCounts};
use offshoot_fs::{FileSystem, Session, VolatileLog, Watch};
use offshoot_os::files::sync_file_system;
use offshoot_os::{Clock, SystemClock, process};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long dropping a [`Mount`] waits for them.
const DROP_GRACE: Duration = Duration::from_secs(1);
/// How long the serving threads may take to end once the mount is gone: milliseconds, or seconds where many more threads
/// are ready to run than there are processors.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the kernel may take to release the handles of programs that have ended, with the writes of their files.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(60);
const RELEASE_PAUSE: Duration = Duration::from_millis(1);
/// Pause between two attempts to unmount.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Fewest and most threads that read requests by default.
const THREADS_MIN: usize = 4;
const THREADS_MAX: usize = 16;

/// The sessions of this process by mount point, which is not reused before the one there has ended: what is mounted
/// there is its own until then.
static SESSIONS: Mutex<BTreeMap<PathBuf, Arc<End>>> = Mutex::new(BTreeMap::new());

/// Whether a session's threads have ended and its files are closed.
#[derive(Default)]
struct End {
    over: Mutex<bool>,
    changed: Condvar,
}

impl End {
    fn is_over(&self) -> bool {
        *self.over.lock()
    }

    /// Waits; answers whether it is over.
    fn wait(&self, timeout: Duration) -> bool {
        let mut over = self.over.lock();
        self.changed.wait_while_for(&mut over, |over| !*over, timeout);
        *over
    }
}

/// Announces the end when dropped, even by a panic.
struct AnnounceEnd(Arc<End>);

impl Drop for AnnounceEnd {
    fn drop(&mut self) {
        *self.0.over.lock() = true;
        self.0.changed.notify_all();
    }
}

/// A mounted dataset. Dropping it unmounts (by force after a second); call
/// [`Mount::unmount_within`] to see errors.
pub(crate) struct Mount {
    path: PathBuf,
    end: Arc<End>,
    watch: Option<Watch>,
    unmounted: bool,
    session: Weak<Session>,
    latencies: Arc<Latencies>,
    /// The connection to the kernel, until it should end.
    device: Option<OwnedFd>,
    resends: Arc<AtomicBool>,
    /// Where the kernel keeps writes for a while: the handles that programs can write with.
    gathers: Option<Arc<AtomicUsize>>,
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mount").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Mount {
    /// Mounts `fs` on an existing directory; when it returns, the directory shows the dataset.
    ///
    /// # Errors
    /// [`MountError::HostUnprepared`], [`MountError::MountPoint`], [`MountError::Refused`].
    pub(crate) fn new(
        fs: Arc<FileSystem>,
        mountpoint: impl AsRef<Path>,
        options: &MountOptions,
    ) -> Result<Mount, MountError> {
        let path = usable(mountpoint.as_ref())?;
        check_host()?;
        if let Some(earlier) = SESSIONS.lock().get(&path).cloned()
            && !earlier.wait(END_TIMEOUT)
        {
            let source = io::Error::new(io::ErrorKind::ResourceBusy, "a dataset is mounted there");
            return Err(MountError::MountPoint { path, source });
        }
        let refused = |source| explain(&path, options, source);
        let session = Arc::new(Session::new(&fs));
        let adapter = Adapter::new(session.clone(), options);
        let (resends, latencies) = (adapter.resends(), adapter.latencies());
        let gathers = options.write_back.then(|| adapter.writers());
        let device = attach(&path, options).map_err(refused)?;
        let begun = begin_session(adapter, device.as_fd(), config(options))
            .and_then(|kernel| Self::run(&fs, path.clone(), kernel, &session, resends, latencies));
        let mut mount = begun.map_err(|source| {
            let _ = mount_table::detach(&path);
            refused(source)
        })?;
        mount.gathers = gathers;
        mount.set_read_ahead(options.fuse.read_ahead_bytes);
        Ok(mount)
    }

    /// Resumes serving a mount that outlived the engine that made it: `device` is its connection to
    /// the kernel, the dataset has its volatile log. Programs that wait for an answer get it now.
    ///
    /// # Errors
    /// [`MountError::Refused`] if the connection is useless; it ends if `device` was its last
    /// descriptor.
    pub(crate) fn take_over(
        fs: Arc<FileSystem>,
        mountpoint: impl AsRef<Path>,
        device: OwnedFd,
        options: &MountOptions,
    ) -> Result<Mount, MountError> {
        // Resolve the directory above it and append the name: asking about the mount itself would
        // wait for ourselves.
        let path = mount_table::canonical_beside(mountpoint.as_ref());
        // Servers continue as the user that they are.
        let shown = mount_table::find(&path)?.and_then(|entry| entry.shown());
        let owner = options.owner.zip(shown).map(|(owner, shown)| Owner { shown, ..owner });
        let options = &MountOptions { owner, ..options.clone() };
        let refused = |source| MountError::Refused { path: path.clone(), source };
        let session = Arc::new(Session::taken_over(&fs));
        let adapter = Adapter::new(session.clone(), options);
        let (resends, latencies) = (adapter.resends(), adapter.latencies());
        let kernel = resume_session(adapter, device.as_fd(), config(options)).map_err(refused)?;
        ask_again(device.as_fd()).map_err(refused)?;
        Self::run(&fs, path.clone(), kernel, &session, resends, latencies).map_err(refused)
    }

    fn run(
        fs: &FileSystem,
        path: PathBuf,
        kernel: fuser::Session<Adapter>,
        session: &Arc<Session>,
        resends: Arc<AtomicBool>,
        latencies: Arc<Latencies>,
    ) -> io::Result<Mount> {
        let device = kernel.as_fd().try_clone_to_owned()?;
        let watch = fs.watch(Arc::new(KernelCaches::new(kernel.notifier())));
        let end = Arc::new(End::default());
        let announce = AnnounceEnd(end.clone());
        std::thread::Builder::new().name("fuse-session".to_owned()).spawn(move || {
            let _announce = announce;
            if let Err(error) = kernel.run() {
                tracing::warn!(%error, "a mount's session ended badly");
            }
        })?;
        SESSIONS.lock().insert(path.clone(), end.clone());
        Ok(Mount {
            path,
            end,
            watch: Some(watch),
            unmounted: false,
            session: Arc::downgrade(session),
            latencies,
            device: Some(device),
            resends,
            gathers: None,
        })
    }

    /// The connection to the kernel, to be kept for the engine after this one. `None` if the kernel
    /// cannot resend unanswered requests.
    pub(crate) fn device(&self) -> Option<BorrowedFd<'_>> {
        let device = self.device.as_ref().filter(|_| self.resends.load(Ordering::Acquire));
        device.map(AsFd::as_fd)
    }

    /// From now on the dataset and the files that programs have open here outlive this process, once
    /// the next commit is done.
    pub(crate) fn survive(&self, volatile: Arc<VolatileLog>) {
        if let Some(session) = self.session.upgrade() {
            session.survive(volatile);
        }
    }

    /// What puts writes that the kernel still keeps into the dataset; `None` where it keeps none.
    ///
    /// INVARIANT: after it, the dataset has every write of every program. `syncfs` alone begins those writes and waits
    /// for none of them (FUSE promises nothing there). What waits is the close of a handle: the kernel releases it
    /// after the writes of its file were answered. So this waits until nobody has a handle to write with.
    pub(crate) fn flusher(&self) -> Option<Flusher> {
        let (path, writers) = (self.path.clone(), self.gathers.clone()?);
        Some(Box::new(move || {
            let deadline = SystemClock.elapsed() + RELEASE_TIMEOUT;
            while writers.load(Ordering::Acquire) > 0 {
                if SystemClock.elapsed() > deadline {
                    let message = "a program still has a file open for writing";
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
                }
                SystemClock.sleep(RELEASE_PAUSE);
            }
            sync_file_system(&path)
        }))
    }

    /// How long the kernel's requests took since this process serves them.
    pub(crate) fn latencies(&self) -> RequestCounts {
        self.latencies.counts()
    }

    /// The mount point, absolute and without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the kernel still sends us requests. `false` after somebody unmounted from outside.
    pub(crate) fn is_serving(&self) -> bool {
        !self.unmounted && !self.end.is_over()
    }

    /// Unmounts. Programs that still use the mount get that long to finish. Then their requests
    /// fail and the mount is removed anyway.
    ///
    /// # Errors
    /// [`MountError::Unmount`], [`MountError::MountTable`].
    pub(crate) fn unmount_within(mut self, grace: Duration) -> Result<Ended, MountError> {
        self.end(grace)
    }

    fn end(&mut self, grace: Duration) -> Result<Ended, MountError> {
        if self.unmounted {
            return Ok(Ended::Clean);
        }
        self.unmounted = true;
        // Its copy of the device must be closed before the kernel considers the connection dead.
        self.watch = None;
        self.device = None;
        let connection = self.connection();
        let deadline = SystemClock.elapsed() + grace;
        let how = loop {
            if self.end.is_over() {
                // Unmounted from outside; another mount may be at this path by now.
                break Ended::Clean;
            }
            match mount_table::try_unmount(&self.path) {
                Ok(Attempt::Gone) => break Ended::Clean,
                Ok(Attempt::Busy) if SystemClock.elapsed() < deadline => {
                    SystemClock.sleep(RETRY_PAUSE);
                    continue;
                }
                Ok(Attempt::Busy) => {}
                Err(error) => tracing::warn!(%error, "unmounting by force"),
            }
            self.force()?;
            break Ended::Forced;
        };
        // Namespaces that began with a copy of this host's mounts (services, containers, `unshare --mount`) have the file
        // system still. Nothing of it is in the kernel alone: each program here has closed its files, which writes them.
        connection.map(Connection::abort);
        if !self.end.wait(END_TIMEOUT) {
            // A program keeps files open, or a copy of the mount, and the connection could not be aborted (without
            // /sys/fs/fuse/connections): the session ends with that program.
            let reason = "programs still use files of it".to_owned();
            return Err(MountError::Unmount { path: self.path.clone(), reason });
        }
        let mut sessions = SESSIONS.lock();
        if sessions.get(&self.path).is_some_and(|end| Arc::ptr_eq(end, &self.end)) {
            sessions.remove(&self.path);
        }
        Ok(how)
    }

    /// INVARIANT: ours, never that of the next mount at this path, which is not made before our session is over.
    fn connection(&self) -> Option<Connection> {
        let entry = mount_table::find(&self.path).ok().flatten()?;
        Connection::of(entry.minor).filter(|_| !self.end.is_over())
    }

    fn force(&self) -> Result<(), MountError> {
        if let Some(entry) = mount_table::find(&self.path)? {
            tracing::warn!(path = %self.path.display(), "programs still use the mount; aborting it");
            mount_table::abort(&entry);
        }
        mount_table::detach(&self.path)
    }

    /// Best effort: without it the kernel's limit of 128 KiB applies.
    fn set_read_ahead(&self, bytes: usize) {
        let Ok(Some(entry)) = mount_table::find(&self.path) else { return };
        let control = format!("/sys/class/bdi/{}:{}/read_ahead_kb", entry.major, entry.minor);
        if let Err(error) = std::fs::write(&control, format!("{}", bytes / 1024)) {
            tracing::debug!(%error, control, "read-ahead stays as it is");
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.end(DROP_GRACE) {
            tracing::warn!(%error, "unmounting failed");
        }
    }
}

/// The absolute path of a directory to mount on. A dead mount that is in the way (its server was
/// killed, or its connection aborted) is detached.
fn usable(mountpoint: &Path) -> Result<PathBuf, MountError> {
    let refused = |source| MountError::MountPoint { path: mountpoint.to_owned(), source };
    let path = mountpoint.canonicalize().map_err(refused)?;
    let mut meta = std::fs::metadata(&path);
    let dead = |error: &io::Error| {
        matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED))
    };
    if meta.as_ref().is_err_and(dead) {
        mount_table::detach(&path)?;
        meta = std::fs::metadata(&path);
    }
    if !meta.map_err(refused)?.is_dir() {
        return Err(refused(io::Error::from_raw_os_error(libc::ENOTDIR)));
    }
    Ok(path)
}

fn config(options: &MountOptions) -> Config {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut config = Config::default();
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(match options.fuse.threads {
        0 => (2 * processors).clamp(THREADS_MIN, THREADS_MAX),
        threads => threads,
    });
    // One descriptor for all threads: closing a cloned one loses the requests read from it, and
    // only fuser could hold it.
    config.clone_fd = false;
    config
}

/// Finds what this host lacks for mounting: the device, permission to use it, `fusermount3` and
/// what that needs.
///
/// # Errors
/// [`MountError::HostUnprepared`], with how to fix it.
pub(crate) fn check_host() -> Result<(), MountError> {
    let unprepared = |reason: String, mend: &str| {
        Err(MountError::HostUnprepared { reason, mend: mend.to_owned() })
    };
    match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return unprepared(
                "/dev/fuse may not be opened by this user".to_owned(),
                "run 'chmod 666 /dev/fuse' as root, or run the engine as root",
            );
        }
        Err(error) => {
            return unprepared(
                format!("/dev/fuse cannot be opened ({error})"),
                "install the package 'fuse3' and run 'modprobe fuse' as root; in a container pass \
                 '--device /dev/fuse --cap-add SYS_ADMIN'",
            );
        }
    }
    if process::User::own_is_root() {
        return Ok(());
    }
    if !Path::new("/etc/mtab").exists() {
        return unprepared(
            "/etc/mtab is missing, without which fusermount3 unmounts nothing".to_owned(),
            "run 'ln -s /proc/self/mounts /etc/mtab' as root, or run the engine as root",
        );
    }
    let spec = process::Spec::new("fusermount3").arg("--version");
    match process::run(&spec, Duration::from_secs(5)) {
        Ok(_) => Ok(()),
        Err(error) => unprepared(
            format!("fusermount3, which ordinary users need for mounting, does not run ({error})"),
            "install the package 'fuse3', or run the engine as root",
        ),
    }
}

/// Says what a refusal by the kernel or by fusermount3 means.
fn explain(path: &Path, options: &MountOptions, source: io::Error) -> MountError {
    let text = source.to_string();
    if options.allow_other && text.contains("user_allow_other") {
        return MountError::HostUnprepared {
            reason: "/etc/fuse.conf does not let ordinary users open mounts to other users".into(),
            mend: "add the line 'user_allow_other' to /etc/fuse.conf".into(),
        };
    }
    if text.contains("EPERM") || text.contains("Operation not permitted") {
        return MountError::HostUnprepared {
            reason: format!("mounting is not permitted ({})", text.trim()),
            mend: "run the engine as root or install the package 'fuse3'; in a container pass \
                   '--device /dev/fuse --cap-add SYS_ADMIN'"
                .into(),
        };
    }
    MountError::Refused { path: path.to_owned(), source }
}

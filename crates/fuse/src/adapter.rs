//! Answers the kernel's requests from a [`Session`].

use crate::attributes::{file_attr, file_attr_of_gone, file_type, new_kind, time};
use crate::heap::HELD_DATA_LEN;
use crate::options::MountOptions;
use crate::sync_queue::{SyncQueue, Waiter};
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use offshoot_delivery::{Ids, Latencies, Owner};
use offshoot_fs::{
    ANSWER, ASK, AllocateMode, Asked, Attr, Error, NewInode, NewKind, RenameMode, RequestId,
    SeekTarget, Session, SetAttr, XattrMode,
};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::Ino;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// How long the kernel may trust names and attributes: changes behind its back are announced (see
/// [`crate::kernel`]).
const TTL: Duration = Duration::from_secs(24 * 3600);
/// Inode numbers are never reused in a dataset, and each mount is a connection of its own.
const GENERATION: Generation = Generation(0);
/// Largest write the kernel passes on in one request, in bytes. Larger ones come in several: they take as long.
const WRITE_MAX: u32 = 128 << 10;
const _: () = assert!(WRITE_MAX as usize <= HELD_DATA_LEN, "requests have memory that is there");
/// Largest read the kernel asks for in one request, in bytes.
pub(crate) const READ_MAX: u32 = 1 << 20;
/// Requests the kernel may have in flight in the background (read-ahead and the like).
const BACKGROUND_MAX: u16 = 64;
/// Names fetched for one `readdir` at a time.
const NAMES_MAX: usize = 128;
/// Longest name in a directory, in bytes.
const NAME_MAX: u32 = 255;
/// Unit in which `statfs` counts, in bytes.
const SPACE_UNIT: u32 = 4096;
/// Set in the number of a request that the kernel resends (`FUSE_UNIQUE_RESEND`).
const RESENT: u64 = 1 << 63;
/// Set in the handle of a file whose reads and writes bypass the kernel's page cache. Not a bit of
/// any inode number.
const DIRECT: u64 = 1 << 63;
/// Most bytes copied for one request, so that it can be interrupted between requests.
const COPY_MAX: u64 = 1 << 30;

thread_local! {
    /// Where reads are gathered; as large as the largest read of this thread so far.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One mount's view of a file system.
pub(crate) struct Adapter {
    session: Arc<Session>,
    latencies: Arc<Latencies>,
    syncs: SyncQueue,
    direct_io: bool,
    write_back: bool,
    xattrs: bool,
    owner: Option<Owner>,
    /// Whether the kernel can resend requests.
    resends: Arc<AtomicBool>,
    /// The handles that programs can write with; counted where the kernel gathers writes.
    writers: Arc<AtomicUsize>,
}

impl Adapter {
    pub(crate) fn new(session: Arc<Session>, options: &MountOptions) -> Self {
        let latencies: Arc<Latencies> = Arc::default();
        let syncs = SyncQueue::new(session.clone(), latencies.clone());
        let MountOptions { write_back, xattrs, owner, .. } = *options;
        let direct_io = options.fuse.direct_io;
        let (resends, writers) = Default::default();
        Adapter {
            session,
            latencies,
            syncs,
            direct_io,
            write_back,
            xattrs,
            owner,
            resends,
            writers,
        }
    }

    /// How long the kernel's requests take. Other requests than reads, writes and syncs are not counted.
    pub(crate) fn latencies(&self) -> Arc<Latencies> {
        self.latencies.clone()
    }

    /// How many handles to write with there are. A kernel that gathers writes sends those of a file before it
    /// releases a handle.
    pub(crate) fn writers(&self) -> Arc<AtomicUsize> {
        self.writers.clone()
    }

    /// The kernel's first request sets this if it can resend requests.
    pub(crate) fn resends(&self) -> Arc<AtomicBool> {
        self.resends.clone()
    }

    /// Begins a request whose second run would fail or do something else. Hold it until it is answered.
    fn ask(&self, request: &Request) -> Asked<'_> {
        let number = request.unique().0;
        match RequestId::new(number & !RESENT) {
            Some(id) => self.session.ask(id, number & RESENT != 0),
            // The kernel gives no such number.
            None => Asked::Once,
        }
    }

    /// A repeated request may already be counted, but a count must never be too low.
    fn close(&self, request: &Request, ino: INodeNo) -> Result<(), Errno> {
        if request.unique().0 & RESENT == 0 {
            return attempt(|| {
                self.session.close(Ino(ino.0));
                Ok(())
            });
        }
        Ok(())
    }

    /// Extended attributes other than these mean something to the kernel (capabilities, access lists)
    /// that a dataset does not keep up. After `ENOSYS` the kernel asks no more.
    fn supported_xattr<'a>(&self, name: &'a OsStr) -> Result<&'a [u8], Errno> {
        let name = name.as_bytes();
        if !self.xattrs {
            Err(Errno::ENOSYS)
        } else if name.starts_with(b"user.") || name.starts_with(b"trusted.") {
            Ok(name)
        } else {
            Err(Errno::EOPNOTSUPP)
        }
    }

    /// Opens a file, and decides whether the kernel caches what is read and written through this handle.
    ///
    /// Synchronous writes bypass its cache: each is one request, answered when it is durable, whereas a
    /// cached one is followed by a second request, `fsync`. Then nobody else may read that file through the
    /// cache either: a page read during a write could stay in the cache with old content.
    fn open_file(&self, ino: Ino, flags: i32) -> Result<(FileHandle, FopenFlags), Errno> {
        let synchronous = flags & libc::O_DSYNC != 0;
        let shared = attempt(|| self.session.open(ino, synchronous))?;
        if self.write_back && writes(flags) {
            self.writers.fetch_add(1, Ordering::AcqRel);
        }
        // Nothing is left to do at close(2): like other file systems we sync at fsync(2) only.
        let flags = FopenFlags::FOPEN_NOFLUSH;
        if shared || self.direct_io {
            // Writers that wait for the device together share its flush.
            let parallel = FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
            Ok((FileHandle(ino.0 | DIRECT), flags | FopenFlags::FOPEN_DIRECT_IO | parallel))
        } else {
            Ok((FileHandle(ino.0), flags | FopenFlags::FOPEN_KEEP_CACHE))
        }
    }

    fn make(
        &self,
        request: &Request,
        asked: &Asked<'_>,
        (parent, name): (INodeNo, &OsStr),
        kind: NewKind,
        (mode, rdev): (u32, u32),
    ) -> Result<Attr, Errno> {
        let caller = Ids { uid: request.uid(), gid: request.gid() };
        let Ids { uid, gid } = self.owner.map_or(caller, |owner| owner.kept);
        let new = NewInode { kind, mode: mode & 0o7777, uid, gid, rdev };
        attempt(|| self.session.create(asked, Ino(parent.0), name.as_bytes(), new))
    }

    fn reply_entry(&self, reply: ReplyEntry, result: Result<Attr, Errno>) {
        match result {
            Ok(attr) => reply.entry(&TTL, &file_attr(&attr, self.owner), GENERATION),
            Err(errno) => reply.error(errno),
        }
    }

    fn session_set(
        &self,
        request: &Request,
        ino: INodeNo,
        change: &SetAttr,
    ) -> Result<Attr, Errno> {
        attempt(|| self.session.set_attributes(request.uid(), Ino(ino.0), change))
    }

    fn reply_attr(&self, reply: ReplyAttr, result: Result<Attr, Errno>) {
        match result {
            Ok(attr) => reply.attr(&TTL, &file_attr(&attr, self.owner)),
            Err(errno) => reply.error(errno),
        }
    }
}

/// Whether a handle opened so can be written with.
fn writes(flags: i32) -> bool {
    flags & libc::O_ACCMODE != libc::O_RDONLY
}

/// How long ago something came.
fn since(came: Duration) -> Duration {
    SystemClock.elapsed().saturating_sub(came)
}

fn is_gone(errno: Errno) -> bool {
    [libc::ENOENT, libc::ESTALE].contains(&errno.code())
}

fn errno(error: Error) -> Errno {
    match &error {
        Error::Damaged(_) | Error::Corrupt(_) | Error::Io(_) | Error::Unusable(_) => {
            tracing::error!(%error, "a request of the kernel failed");
        }
        _ => {}
    }
    Errno::from_i32(error.errno())
}

/// Runs one request. A panic (a defect of ours) fails this request with EIO; let through, it would
/// end the thread, and with the last thread every program on the mount would hang.
fn attempt<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Errno> {
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(errno),
        Err(_) => {
            tracing::error!("a request of the kernel panicked");
            Err(Errno::EIO)
        }
    }
}

fn reply_empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// Answers with a value, or with its size if the caller asks for that with a size of 0.
fn reply_xattr(reply: ReplyXattr, size: u32, result: Result<Vec<u8>, Errno>) {
    match result {
        Err(errno) => reply.error(errno),
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
    }
}

fn allocate_mode(mode: i32) -> Option<AllocateMode> {
    const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
    const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
    const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;
    const ZERO_KEEP: i32 = ZERO | KEEP;
    match mode {
        0 => Some(AllocateMode::Extend),
        KEEP => Some(AllocateMode::KeepSize),
        PUNCH => Some(AllocateMode::PunchHole),
        ZERO => Some(AllocateMode::ZeroRange),
        ZERO_KEEP => Some(AllocateMode::ZeroRangeKeepSize),
        _ => None,
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let known = config.capabilities();
        self.resends.store(known.contains(InitFlags::FUSE_HAS_RESEND), Ordering::Release);
        let mut wanted = InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_EXPLICIT_INVAL_DATA
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP
            // Without it the kernel asks for a file's capabilities before every single write.
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        if self.write_back {
            wanted |= InitFlags::FUSE_WRITEBACK_CACHE;
        }
        for flag in wanted.iter() {
            if config.add_capabilities(flag).is_err() {
                tracing::debug!(?flag, "the kernel does not know this");
            }
        }
        let _ = config.set_max_write(WRITE_MAX);
        // The kernel offers what it can do; `Mount` raises the limit of the device afterwards, and
        // the kernel takes the smaller of the two.
        if let Err(most) = config.set_max_readahead(READ_MAX) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.reply_entry(reply, attempt(|| self.session.lookup(Ino(parent.0), name.as_bytes())));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.reply_attr(reply, attempt(|| self.session.attributes(Ino(ino.0))));
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = SetAttr {
            size,
            mode: mode.map(|mode| mode & 0o7777),
            uid: uid.map(|uid| self.owner.map_or(uid, |owner| owner.kept.uid)),
            gid: gid.map(|gid| self.owner.map_or(gid, |owner| owner.kept.gid)),
            atime: atime.map(time),
            mtime: mtime.map(time),
        };
        let only_times = SetAttr { atime: None, mtime: None, ..change } == SetAttr::default();
        match self.session_set(request, ino, &change) {
            // A kernel that gathers writes tells the times of a file after its last name has gone: nobody will
            // ask for them, but an error would be that of everything that is flushed with it.
            Err(errno) if self.write_back && only_times && is_gone(errno) => {
                reply.attr(&TTL, &file_attr_of_gone(ino));
            }
            result => self.reply_attr(reply, result),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        match attempt(|| self.session.read_link(Ino(ino.0))) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let Some(kind) = new_kind(mode) else { return reply.error(Errno::EINVAL) };
        let asked = self.ask(request);
        let made = self.make(request, &asked, (parent, name), kind, (mode, rdev));
        self.reply_entry(reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let asked = self.ask(request);
        let made = self.make(request, &asked, (parent, name), NewKind::Directory, (mode, 0));
        self.reply_entry(reply, made);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let kind = NewKind::Symlink(target.as_os_str().as_bytes().to_vec());
        let asked = self.ask(request);
        let made = self.make(request, &asked, (parent, name), kind, (0o777, 0));
        self.reply_entry(reply, made);
    }

    fn link(
        &self,
        request: &Request,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let asked = self.ask(request);
        let link = || self.session.link(&asked, Ino(ino.0), Ino(parent.0), name.as_bytes());
        self.reply_entry(reply, attempt(link));
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let asked = self.ask(request);
        let unlink = || self.session.unlink(&asked, Ino(parent.0), name.as_bytes());
        reply_empty(reply, attempt(unlink));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let asked = self.ask(request);
        let rmdir = || self.session.rmdir(&asked, Ino(parent.0), name.as_bytes());
        reply_empty(reply, attempt(rmdir));
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mode = if flags.is_empty() {
            RenameMode::Replace
        } else if flags == RenameFlags::RENAME_NOREPLACE {
            RenameMode::NoReplace
        } else if flags == RenameFlags::RENAME_EXCHANGE {
            RenameMode::Exchange
        } else {
            return reply.error(Errno::EINVAL);
        };
        let from = (Ino(parent.0), name.as_bytes());
        let to = (Ino(new_parent.0), new_name.as_bytes());
        let asked = self.ask(request);
        reply_empty(reply, attempt(|| self.session.rename(&asked, from, to, mode)));
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(Ino(ino.0), flags.0) {
            Ok((handle, flags)) => reply.opened(handle, flags),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let asked = self.ask(request);
        let created = self.make(request, &asked, (parent, name), NewKind::File, (mode, 0));
        let opened = created.and_then(|attr| Ok((attr, self.open_file(attr.ino, flags)?)));
        match opened {
            Ok((attr, (handle, flags))) => {
                reply.created(&TTL, &file_attr(&attr, self.owner), GENERATION, handle, flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let (came, size) = (SystemClock.elapsed(), size as usize);
        READ_BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            let read = attempt(|| self.session.read_into(Ino(ino.0), offset, &mut buffer[..size]));
            // Before the answer, which wakes the client: that may take this thread's processor.
            self.latencies.reads.record(since(came));
            match read {
                Ok(read) => reply.data(&buffer[..read.min(size)]),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let came = SystemClock.elapsed();
        let drop_privileges = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let written = attempt(|| self.session.write(Ino(ino.0), offset, data, drop_privileges));
        // If the kernel caches, it sends its own fsync after a write with O_DSYNC.
        let durable = handle.0 & DIRECT != 0 && flags.0 & libc::O_DSYNC != 0;
        if durable && written.is_ok() {
            return self.syncs.push(came, Waiter::Write(reply, data.len() as u32));
        }
        self.latencies.writes.record(since(came));
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if self.write_back && writes(flags.0) && request.unique().0 & RESENT == 0 {
            self.writers.fetch_sub(1, Ordering::AcqRel);
        }
        reply_empty(reply, self.close(request, ino));
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.syncs.push(SystemClock.elapsed(), Waiter::Sync(reply));
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.syncs.push(SystemClock.elapsed(), Waiter::Sync(reply));
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match attempt(|| self.session.open(Ino(ino.0), false)) {
            Ok(_) => reply.opened(FileHandle(ino.0), FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn releasedir(
        &self,
        request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        reply_empty(reply, self.close(request, ino));
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut cookie = offset;
        loop {
            let entries =
                match attempt(|| self.session.read_directory(Ino(ino.0), cookie, NAMES_MAX)) {
                    Ok(entries) => entries,
                    // What is already gathered is answered; the next call reports the error.
                    Err(_) if cookie != offset => return reply.ok(),
                    Err(errno) => return reply.error(errno),
                };
            let Some(last) = entries.last() else { return reply.ok() };
            cookie = last.cookie;
            for entry in &entries {
                let name = OsStr::from_bytes(&entry.name);
                let kind = file_type(entry.kind);
                if reply.add(INodeNo(entry.ino.0), entry.cookie, kind, name) {
                    return reply.ok();
                }
            }
        }
    }

    fn readdirplus(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut cookie = offset;
        loop {
            let entries =
                match attempt(|| self.session.read_directory(Ino(ino.0), cookie, NAMES_MAX)) {
                    Ok(entries) => entries,
                    Err(_) if cookie != offset => return reply.ok(),
                    Err(errno) => return reply.error(errno),
                };
            let Some(last) = entries.last() else { return reply.ok() };
            cookie = last.cookie;
            for entry in &entries {
                // Removed since it was listed: leave it out.
                let Ok(attr) = attempt(|| self.session.attributes(entry.ino)) else { continue };
                let (name, attr) = (OsStr::from_bytes(&entry.name), file_attr(&attr, self.owner));
                if reply.add(INodeNo(entry.ino.0), entry.cookie, name, &TTL, &attr, GENERATION) {
                    return reply.ok();
                }
            }
        }
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match attempt(|| self.session.space()) {
            Ok(space) => {
                let unit = u64::from(SPACE_UNIT);
                let free = space.free / unit;
                // Inodes take room like data: there can be as many as there is room for.
                let files = space.inodes + free;
                reply.statfs(
                    space.capacity / unit,
                    free,
                    free,
                    files,
                    free,
                    SPACE_UNIT,
                    NAME_MAX,
                    SPACE_UNIT,
                );
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            0 => XattrMode::Set,
            libc::XATTR_CREATE => XattrMode::Create,
            libc::XATTR_REPLACE => XattrMode::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let asked = self.ask(request);
        let set = self.supported_xattr(name).and_then(|name| {
            attempt(|| self.session.set_xattr(&asked, Ino(ino.0), name, value, mode))
        });
        reply_empty(reply, set);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = self
            .supported_xattr(name)
            .and_then(|name| attempt(|| self.session.xattr(Ino(ino.0), name)));
        reply_xattr(reply, size, value);
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        if !self.xattrs {
            return reply.error(Errno::ENOSYS);
        }
        let names = attempt(|| self.session.xattr_names(Ino(ino.0))).map(|names| {
            // As listxattr(2) wants them: each ended by a zero byte.
            names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect()
        });
        reply_xattr(reply, size, names);
    }

    fn removexattr(&self, request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let asked = self.ask(request);
        let removed = self
            .supported_xattr(name)
            .and_then(|name| attempt(|| self.session.remove_xattr(&asked, Ino(ino.0), name)));
        reply_empty(reply, removed);
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(mode) = allocate_mode(mode) else { return reply.error(Errno::EOPNOTSUPP) };
        let done = attempt(|| self.session.allocate(Ino(ino.0), offset, length, mode));
        reply_empty(reply, done);
    }

    // Databases try some and go on without: a default of `fuser` would log each.
    fn ioctl(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        command: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        // Where writes are gathered, the file is not what the kernel says it is.
        match command == ASK && !self.write_back && self.session.read_directly(Ino(ino.0)) {
            true => reply.ioctl(0, &ANSWER.to_ne_bytes()),
            false => reply.error(Errno::ENOTTY),
        }
    }

    fn lseek(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let target = match whence {
            libc::SEEK_DATA => SeekTarget::Data,
            libc::SEEK_HOLE => SeekTarget::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        match attempt(|| self.session.seek(Ino(ino.0), offset, target)) {
            Ok(found) => reply.offset(found as i64),
            Err(errno) => reply.error(errno),
        }
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        source: INodeNo,
        _source_fh: FileHandle,
        source_offset: u64,
        target: INodeNo,
        _target_fh: FileHandle,
        target_offset: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let from = (Ino(source.0), source_offset);
        let to = (Ino(target.0), target_offset);
        let copied = attempt(|| self.session.copy_range(from, to, len.min(COPY_MAX)));
        match copied {
            Ok(copied) => reply.written(copied as u32),
            Err(errno) => reply.error(errno),
        }
    }
}

//! Attributes in the kernel's terms, and back.

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use offshoot_delivery::{Ids, Owner};
use offshoot_fs::{Attr, FileKind, NewKind};
use offshoot_os::{Clock, SystemClock};
use std::time::SystemTime;

/// What `stat` recommends for I/O, in bytes: the size of a data block.
const IO_SIZE: u32 = 8192;
/// Unit of [`FileAttr::blocks`], in bytes.
const SECTOR: u64 = 512;

/// The kernel's form of a kind.
pub(crate) fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
    }
}

/// The kernel's form of attributes, of a file that may be shown as another's.
pub(crate) fn file_attr(attr: &Attr, owner: Option<Owner>) -> FileAttr {
    let Ids { uid, gid } = owner.map_or(Ids { uid: attr.uid, gid: attr.gid }, |owner| owner.shown);
    FileAttr {
        ino: INodeNo(attr.ino.0),
        size: attr.size,
        blocks: attr.allocated.div_ceil(SECTOR),
        atime: attr.atime,
        mtime: attr.mtime,
        ctime: attr.ctime,
        crtime: attr.ctime,
        kind: file_type(attr.kind),
        perm: (attr.mode & 0o7777) as u16,
        nlink: attr.nlink,
        uid,
        gid,
        rdev: attr.rdev,
        blksize: IO_SIZE,
        flags: 0,
    }
}

/// Those of a file that has no name any more, as far as anybody can still ask for them.
pub(crate) fn file_attr_of_gone(ino: INodeNo) -> FileAttr {
    FileAttr {
        ino,
        size: 0,
        blocks: 0,
        atime: SystemTime::UNIX_EPOCH,
        mtime: SystemTime::UNIX_EPOCH,
        ctime: SystemTime::UNIX_EPOCH,
        crtime: SystemTime::UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: IO_SIZE,
        flags: 0,
    }
}

/// The moment that `utimensat` asks for.
pub(crate) fn time(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemClock.now(),
    }
}

/// What `mknod` with this mode makes; `None` for a type it cannot make.
pub(crate) fn new_kind(mode: u32) -> Option<NewKind> {
    match mode & libc::S_IFMT {
        0 | libc::S_IFREG => Some(NewKind::File),
        libc::S_IFIFO => Some(NewKind::Fifo),
        libc::S_IFSOCK => Some(NewKind::Socket),
        libc::S_IFCHR => Some(NewKind::CharDevice),
        libc::S_IFBLK => Some(NewKind::BlockDevice),
        _ => None,
    }
}

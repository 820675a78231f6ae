//! What a dataset reports about its inodes, and what callers ask of it.

use offshoot_types::Ino;
use std::time::SystemTime;

/// The kinds of inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

/// The attributes of an inode, as `stat` shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr {
    /// The inode number.
    pub ino: Ino,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits including set-uid, set-gid and sticky (`0o7777`); no type bits.
    pub mode: u32,
    /// Number of names. For directories 2 + number of subdirectories.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node, as the caller gave it.
    pub rdev: u32,
    /// Length in bytes (of a symbolic link: of its target; of a directory: an estimate).
    pub size: u64,
    /// Bytes allocated (holes take none), before compression and sharing; a multiple of 512.
    pub allocated: u64,
    /// Last access as set by `setattr`; reads do not change it.
    pub atime: SystemTime,
    /// Last change of the content.
    pub mtime: SystemTime,
    /// Last change of the inode.
    pub ctime: SystemTime,
}

/// What to change of an inode; `None` leaves a field as it is. `ctime` is set by every change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// New length of a regular file: cuts it or extends it by a hole. Sets `mtime` as well.
    pub size: Option<u64>,
    /// New permission bits (`0o7777`).
    pub mode: Option<u32>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New time of last access.
    pub atime: Option<SystemTime>,
    /// New time of last change of the content.
    pub mtime: Option<SystemTime>,
}

/// What [`crate::Dataset::create`] makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewKind {
    /// An empty regular file.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link with this target (1 to 4095 bytes).
    Symlink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device with [`NewInode::rdev`].
    CharDevice,
    /// A block device with [`NewInode::rdev`].
    BlockDevice,
}

/// An inode to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInode {
    /// What it is.
    pub kind: NewKind,
    /// Permission bits (`0o7777`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node; 0 otherwise.
    pub rdev: u32,
}

impl NewInode {
    /// A regular file of this mode that belongs to root.
    pub fn file(mode: u32) -> NewInode {
        NewInode { kind: NewKind::File, mode, uid: 0, gid: 0, rdev: 0 }
    }

    /// A directory of this mode that belongs to root.
    pub fn directory(mode: u32) -> NewInode {
        NewInode { kind: NewKind::Directory, mode, uid: 0, gid: 0, rdev: 0 }
    }

    /// A symbolic link that belongs to root.
    pub fn symlink(target: &[u8]) -> NewInode {
        let kind = NewKind::Symlink(target.to_vec());
        NewInode { kind, mode: 0o777, uid: 0, gid: 0, rdev: 0 }
    }

    /// The same with another owner and group.
    pub fn owned_by(mut self, uid: u32, gid: u32) -> NewInode {
        (self.uid, self.gid) = (uid, gid);
        self
    }
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name; without `/` and NUL, 1 to 255 bytes.
    pub name: Vec<u8>,
    /// What it names.
    pub ino: Ino,
    /// The kind of inode it names.
    pub kind: FileKind,
    /// Pass this to `readdir` to continue after this entry. Stays valid whatever is created or
    /// removed in the meantime; between 16 and 2^63 - 1, ascending in the order of `readdir`, so
    /// that callers can use 1 and 2 for `.` and `..`, which are not listed.
    pub cookie: u64,
}

/// What a rename does where the new name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RenameMode {
    /// Replaces it atomically.
    #[default]
    Replace,
    /// Fails with [`crate::Error::Exists`].
    NoReplace,
    /// Exchanges the two names; both must exist.
    Exchange,
}

/// What an xattr is set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XattrMode {
    /// Creates or replaces.
    #[default]
    Set,
    /// Fails with [`crate::Error::Exists`] if it exists.
    Create,
    /// Fails with [`crate::Error::NoAttribute`] if it does not exist.
    Replace,
}

/// The modes of `fallocate` that are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocateMode {
    /// Makes sure there is room; extends the file.
    Extend,
    /// Makes sure there is room; leaves the length.
    KeepSize,
    /// Turns the range into a hole; leaves the length.
    PunchHole,
    /// Zeroes the range; extends the file.
    ZeroRange,
    /// Zeroes the range; leaves the length.
    ZeroRangeKeepSize,
}

/// What `seek` looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekTarget {
    /// The next byte that may be data.
    Data,
    /// The next byte of a hole; the end of the file counts as one.
    Hole,
}

/// Room and use, for `statfs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceUse {
    /// Bytes of the whole pool.
    pub capacity: u64,
    /// Bytes that can still be written.
    pub free: u64,
    /// Inodes of this dataset.
    pub inodes: u64,
    /// Bytes allocated by files of this dataset, before compression and sharing.
    pub logical: u64,
}

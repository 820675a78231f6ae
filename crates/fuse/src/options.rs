//! How a dataset is mounted.

use offshoot_delivery::Owner;

/// Settings that only FUSE has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuseOptions {
    /// Threads that read requests of one mount; 0 means twice the processors, between 4 and 16.
    pub threads: usize,
    /// Keeps file contents out of the kernel's page cache: one copy in the engine's cache only,
    /// each read costs a request.
    pub direct_io: bool,
    /// How far the kernel reads ahead of a sequential reader, in bytes (only root can set it).
    pub read_ahead_bytes: usize,
}

impl Default for FuseOptions {
    fn default() -> Self {
        FuseOptions { threads: 0, direct_io: false, read_ahead_bytes: 8 << 20 }
    }
}

/// Everything about one mount.
#[derive(Debug, Clone)]
pub(crate) struct MountOptions {
    pub(crate) fuse: FuseOptions,
    /// Allows users other than the one who mounts (file modes still apply). Needed when root mounts
    /// and the database runs as `postgres`; an ordinary user needs `user_allow_other` in
    /// `/etc/fuse.conf` for it.
    pub(crate) allow_other: bool,
    /// Whose all files are; otherwise as the dataset says.
    pub(crate) owner: Option<Owner>,
    /// Refuses every change.
    pub(crate) read_only: bool,
    /// Lets the kernel gather writes. Not for a database with `full_page_writes=off`: a page may be
    /// torn by a crash (see the crate's documentation).
    pub(crate) write_back: bool,
    /// Whether files have extended attributes. If they do, the kernel asks for one of them, the file's
    /// capabilities, before a write whenever it has looked at the file's length.
    pub(crate) xattrs: bool,
}

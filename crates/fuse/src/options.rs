//! How a dataset is mounted.

/// How a dataset is mounted.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// Lets users other than the one who mounts in (files' modes still apply). Needed when root
    /// mounts and the database runs as `postgres`; an ordinary user needs `user_allow_other` in
    /// `/etc/fuse.conf` for it.
    pub allow_other: bool,
    /// Threads that read requests; 0 means twice the processors, between 4 and 16.
    pub threads: usize,
    /// Keeps file contents out of the kernel's page cache: one copy in the engine's cache only,
    /// each read costs a request.
    pub direct_io: bool,
    /// Refuses every change.
    pub read_only: bool,
    /// Lets the kernel gather writes. Not for a database with `full_page_writes=off`: a page may be
    /// torn by a crash (see the crate's documentation).
    pub write_back: bool,
    /// Whether files have extended attributes. Where they have, the kernel asks for a file's
    /// capabilities, which is one of them, before a write whenever it has looked at the file's length.
    pub xattrs: bool,
    /// How far the kernel reads ahead of a sequential reader, in bytes (only root can set it).
    pub read_ahead_bytes: usize,
}

impl Default for MountOptions {
    fn default() -> Self {
        MountOptions {
            allow_other: false,
            threads: 0,
            direct_io: false,
            read_only: false,
            write_back: false,
            xattrs: true,
            read_ahead_bytes: 8 << 20,
        }
    }
}

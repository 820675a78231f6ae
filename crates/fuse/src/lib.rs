//! Serves a dataset to this host's programs as a mounted directory, through the kernel's FUSE.
//!
//! [`Fuse`] implements [`offshoot_delivery::Delivery`]. A process that serves mounts that outlive it has [`Heap`] around
//! its heap. Nothing else of this crate is seen from outside.
//!
//! # Caching, and why it is never stale
//! The kernel caches names, attributes and file contents of a mount for long. That is safe because
//! only the kernel and the engine itself write to a dataset, and the engine's changes by path
//! ([`offshoot_fs::FileSystem::write_file`] and so on) are announced to the kernel. Each mount is a
//! new connection with caches of its own, so that after a rewind nothing of the old state is left.
//! A file that somebody opened for synchronous writes is not cached for those who open it after
//! that (`docs/decisions/2026-11-22-synchronous-writes-past-the-page-cache.md`).
//!
//! # Outliving the process
//! A mount can continue in another process because the keeper holds its connection to the kernel:
//! `Mount::device`, `Mount::survive`, `Mount::take_over`.
//!
//! # Why the kernel's write-back cache is off
//! With it, the kernel gathers dirty memory pages of 4 KiB and sends them whenever and in whatever
//! groups it likes: the halves of an 8 KiB database page may reach the engine in two requests, and
//! a crash between them leaves a page half written. Databases here run with
//! `full_page_writes=off` and rely on an aligned page being written as a whole, so each `write(2)`
//! is passed on as it was made, in requests of up to 128 KiB, whose ends no aligned page crosses.
//! `MountOptions::write_back` turns the cache on for data that tolerates torn pages.
//!
//! # Threads
//! Several threads read requests from the device. The one that gets an `fsync` flushes, and answers
//! every `fsync` that arrives during that with the next flush: at most one thread waits for the
//! device, so a reader never does. No thread of the engine may use the mount through system calls: a
//! request of the engine to itself could wait for ever, even for SIGKILL.

mod adapter;
mod attach;
mod attributes;
mod connection;
mod delivery;
mod error;
mod handshake;
mod heap;
mod kernel;
mod mount;
mod mount_table;
mod options;
mod sync_queue;

pub use delivery::Fuse;
pub use heap::Heap;
pub use options::FuseOptions;

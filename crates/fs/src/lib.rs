//! Files of a dataset, for protocol adapters and for the engine itself; no protocol here. Everything above this crate
//! uses datasets only through it.
//!
//! - A [`Session`] is what an adapter calls for one client, by inode number. It adds to a dataset what POSIX expects of
//!   a file system but a tree of files does not know: inherited groups, dropped set-uid bits, users of open files; and
//!   that a repeated request is done once ([`Session::ask`]). Permission bits are *not* checked here: the kernel does
//!   that before it asks.
//! - The methods of a [`FileSystem`] by path ([`FileSystem::write_file`], [`FileSystem::share_file`] …) are how the
//!   engine works in a dataset, mounted or not. The engine MUST NOT use `std::fs` on a mount it
//!   serves itself: it would wait for its own answer, unkillable.
//! - A [`Watcher`] is notified of changes made by path, so that an adapter can invalidate its
//!   clients' caches.

mod error;
mod file;
mod filesystem;
mod open_files;
mod path;
mod session;
#[cfg(test)]
mod tests;
mod tree;
mod watch;

pub use error::{PathError, Result};
pub use file::File;
pub use filesystem::FileSystem;
pub use offshoot_dataset::{
    AllocateMode, Attr, Caching, DirEntry, Error, FileKind, NewInode, NewKind, RenameMode, Request,
    RequestId, SeekTarget, SetAttr, SpaceUse, VolatileLog, XattrMode,
};
/// What a server asks an adapter for a file to be read directly, and is answered; see `crates/direct`.
pub use offshoot_direct::{ANSWER, ASK};
pub use session::{Asked, Session};
pub use tree::{NewFile, TreeEntry};
pub use watch::{Watch, Watcher};

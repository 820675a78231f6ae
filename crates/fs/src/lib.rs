//! Files of a dataset, for protocol adapters and for the engine itself; no protocol here.
//!
//! - [`FileSystem`] adds to a dataset what POSIX expects of a file system but a tree of files does
//!   not know: inherited groups, dropped set-uid bits ([`FileSystem::create`],
//!   [`FileSystem::set_attr`], [`FileSystem::write`]), users of open files ([`OpenFiles`]).
//!   Permission bits are *not* checked here: the kernel does it, before it asks.
//! - Its methods by path ([`FileSystem::write_file`], [`FileSystem::share_file`] …) are how the
//!   engine works in a dataset, mounted or not. The engine MUST NOT use `std::fs` on a mount it
//!   serves itself: it would wait for its own answer, unkillable.
//! - A [`Watcher`] hears of changes made by path, so that an adapter can tell its clients' caches.

mod error;
mod file;
mod filesystem;
mod open_files;
mod path;
mod tree;
mod watch;

pub use error::{PathError, Result};
pub use file::File;
pub use filesystem::{Caller, FileSystem};
pub use offshoot_dataset::{
    AllocateMode, Attr, Dataset, DirEntry, Error, FileKind, NewInode, NewKind, RenameMode,
    SeekTarget, SetAttr, SpaceUse, VolatileLog, XattrMode,
};
pub use open_files::OpenFiles;
pub use tree::{NewFile, TreeEntry};
pub use watch::{Watch, Watcher};

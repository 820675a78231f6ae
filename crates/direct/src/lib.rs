//! Blocks in memory that servers read without a system call.
//!
//! A server's reads go through the kernel to the engine and back: two switches of processes for 8 KiB. Here blocks that
//! were read lie in memory that the servers of a *trust group* map for reading, and a library that is loaded into them
//! (`client/`) copies a block from there. Where it finds none it makes the usual call: a miss needs no
//! protocol, and a server without the library, or with one of another version, is only slower.
//!
//! - [`Group`]: the frames of a trust group, found by the name of the block, so that clones share them. Whoever is in a group
//!   can read all that the group holds.
//! - [`Budget`]: how much memory all groups together use.
//! - [`Table`]: one mount's view: for each block of a file, the frame it is in.
//! - [`File`]: one file of a table; what the dataset holds for an inode that a server has asked for.
//!
//! Rules:
//! - D1: an entry leads to a block's present content or nowhere. It is emptied *before* the content changes in the engine,
//!   under the lock by which the engine changes the file, and filled only under the same lock.
//! - D2: only the engine writes frames and entries, and gives a frame to another block only after every entry that led to
//!   it has changed (`protocol.rs`).
//! - D3: nothing that a client can write is believed, but for marks, which say at most that a frame is in use.
//! - D4: an engine that takes over empties every entry, of every table, before it answers any request and so before it uses
//!   a frame. Until then nobody changes a file or a frame, so what the entries say is still true.

mod budget;
mod frames;
mod group;
mod layout;
mod memory;
mod protocol;
mod reader;
mod reading;

mod table;
mod table_memory;

pub use budget::Budget;
pub use group::{Group, GroupStats};
pub use reader::Reader;
pub use table::{File, Table};

/// The library that servers load, an ELF shared object for this machine.
pub const CLIENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/liboffshoot_direct.so"));

/// The variable that tells a program which descriptors to map: tables, then frames, as `5,6`.
pub const VARIABLE: &str = "OFFSHOOT_DIRECT";

/// The number of the `ioctl` that asks for a file to be read directly; its answer is [`ANSWER`].
pub const ASK: u32 = layout::ASK;

/// What tells the engine's answer from that of any other file system.
pub const ANSWER: u64 = layout::ANSWER;

#[cfg(test)]
mod tests;

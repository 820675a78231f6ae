//! Cells: servers confined to what is theirs.
//!
//! Who is given a database can run programs in its server. A cell sees to it that these reach nothing
//! but the database: no other file, no other process, no network.
//!
//! ```text
//!   Cells (a Launcher) ──▶ offshoot cell SPEC -- postgres …     still as root, or as the engine's user
//!                             │ rooms.rs     a root of its own: programs read-only, its data, /tmp, /dev/shm
//!                             │ rights.rs    the server's user; no capability, no way to get one again
//!                             │ doorman.rs   a process beside it, where ports of other hosts may be reached
//!                             │ network.rs   Landlock: its own port; nobody else's sockets, no signals
//!                             │ calls.rs     seccomp: no namespaces, mounts, tracing, other networks
//!                             ▼ execve
//!                          postgres …                           the same process
//! ```
//! The program that builds the cell *becomes* the server: no process stands between the launcher and it,
//! so that what holds for a plain process holds in a cell (its id, its children, its end).
//!
//! # What a cell promises
//! 1. Of files it sees: programs and libraries, read-only; its data and socket directories; a private
//!    `/tmp` and `/dev/shm` that end with it. No `/proc`, `/sys`, `/home`, `/var`, no other server.
//! 2. No TCP but its own port, and the ports of other hosts that were named; no UDP, no raw or netlink sockets, no abstract Unix sockets of others.
//! 3. No signal and no tracing of a process outside, whoever owns it.
//! 4. Nothing in it outlives its server.
//! 5. No setuid program gains rights; no user or mount namespace can be made in it.
//!
//! Sources: `landlock(7)`, `seccomp(2)`, `mount_setattr(2)`, `pivot_root(2)`, `user_namespaces(7)`.

mod calls;
mod cells;
mod doorman;
mod entrance;
mod network;
mod residents;
mod rights;
mod rooms;
mod spec;

pub use cells::Cells;
pub use entrance::enter;
pub use spec::CellSpec;

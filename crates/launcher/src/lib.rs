//! Where and as whom servers run.
//!
//! ```text
//!   connector ──▶ Launcher ─┬─ launch(Launch)       ──▶ Box<dyn Process>   running · signal · titles · end
//!                           ├─ find(runtime_dir)    ──▶ the same, after the engine that started it was killed
//!                           └─ end_orphans(data_dir)    what a killed server left
//! ```
//! A connector says *what* runs: a program, its arguments, the directories it works in. The launcher
//! decides as which user, under which limits and on which host. [`ThisHost`] starts plain processes
//! of this host.
//!
//! # Rules of every launcher
//! 1. What identifies a server is on disk, in its runtime directory, before `launch` returns: an engine
//!    that is killed right after finds it again.
//! 2. A process is signalled only if it certainly is that server: pid *and* start time *and* its mark.
//! 3. A server that has ended leaves no process, no control group and no record.

mod host;
mod launcher;
mod program;
mod record;
#[cfg(test)]
mod tests;

pub use host::{ThisHost, forbid_children, group_of, remove_group};
pub use launcher::{Ended, Found, Launch, Launcher, Mark, OWN_ACCOUNT, Process};
pub use program::{Ran, run_to_end};

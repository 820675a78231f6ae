//! The only crate that touches the clock, randomness, files of the pool and child processes.
//!
//! Everything above takes the traits of this crate, so that a simulation can replace them.

pub mod bounded_log;
pub mod cgroup;
mod clock;
pub mod descriptors;
pub mod disk;
mod exec;
pub mod files;
mod kernel;
pub mod limits;
pub mod local_socket;
mod port;
pub mod pressure;
mod priority;
pub mod process;
mod random;
mod scoped;
mod shared_memory;

pub use clock::{Clock, SystemClock};
pub use exec::replace_process;
pub use kernel::kernel_version;
pub use port::unused_port;
pub use priority::{
    Hurry, OWN_GROUP, OwnShare, hurry, leave_share, lower_thread_priority, own_share,
    processor_wait,
};
pub use random::random_bytes;
pub use scoped::spawn_or_run;
pub use shared_memory::{SharedMemory, redirect};

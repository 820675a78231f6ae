//! Black-box tests: a real source, a real engine process, and nothing but the command line between.
//!
//! A [`Testbed`] is one scratch directory with a source and an engine on a fresh pool. Every call has
//! a deadline; dropping it removes processes, mounts and files, even after a failed test.
//!
//! The binary is `OFFSHOOT_BIN`, or `target/debug/offshoot`. Servers of other major versions than the
//! distribution's are those in `OFFSHOOT_TEST_PG_BINS` (see `scripts/test-postgres.sh`).

mod damage;
mod document;
mod intent_log;
mod kills;
mod metrics;
mod outcome;
mod own_network;
mod small_disk;
mod testbed;
mod troubled_link;
mod two_engines;

pub use damage::{FLIPPED, flip};
pub use document::{code_blocks, in_repository, text_of};
pub use intent_log::{damage_record, logged_records};
pub use kills::{Kills, check_pages, kill_under_load};
pub use metrics::{metrics, sample};
pub use outcome::{Outcome, Step, final_job, steps_of};
pub use own_network::enter_own_network;
pub use small_disk::SmallDisk;
pub use testbed::{
    PATIENCE, Testbed, binary, check_refusal, in_database, other_server, wait_until, with_log,
};
pub use troubled_link::TroubledLink;
pub use two_engines::{
    Two, introduce, load, make_noise, moment, open_vdb, received_moment, stop_and_check, sums,
    synced_after, third, wait_synced,
};

//! The intent log: makes synchronous writes durable before the next commit of the pool's root.
//!
//! Preallocated files, each used again once its records are trimmed, hold records in one sequence. [`IntentLog::append`] only puts a
//! record into memory; [`IntentLog::sync`] writes what is pending and flushes once for everyone who
//! waits. Records before [`IntentLog::trim`]'s sequence are forgotten, file by file.
//!
//! Rules, each kept at the place that names it:
//! - R1: a record counts only if its checksums are right, its sequence follows the one before, and
//!   its generation is not older: nothing after a torn record, nothing of an older pass or opening.
//!   What may have been synced and is neither there nor torn is reported as damage (`scan.rs`).
//! - R2: a generation is durable before its first record can be, so that two openings never share one.
//! - R3: a file is flushed before a later file is begun, so that records survive as a prefix.
//! - R4: a file is overwritten only when all its records are trimmed.
//! - R5: after a failed flush nothing is appended any more, because what is on disk is unknown. R7
//!   covers a flush that failed for lack of room.
//! - R6: the header of a reused file, which says where replay now begins, is durable before the file's
//!   old records are overwritten: otherwise replay would look for those, and end.
//! - R7: what the device had no room to flush is rewritten before it is flushed again: a later flush
//!   would not report what was lost.
//! - R8: a file is as long as the others, filled with zeros and durable, before it gets its name, and its name is
//!   durable before its first record.

mod error;
mod files;
mod log;
mod replay;
mod requests;
mod scan;
pub mod volatile;

pub use error::{Error, Result};
pub use log::{IntentLog, LogUse};
pub use replay::{Damage, LastRun, Record, Replay};
pub use requests::{Request, RequestId, Slots};
pub use volatile::VolatileLog;

//! A staging server: applies what appears in its journal.

use crate::database::Database;
use offshoot_os::{Clock, SystemClock};
use parking_lot::Mutex;
use std::io;
use std::time::Duration;

/// How often it looks for more.
const PAUSE: Duration = Duration::from_millis(3);
/// Records applied while others wait.
const RECORDS: usize = 500;
/// Bytes of journal between its checkpoints.
const CHECKPOINT_BYTES: u64 = 32 << 10;

/// Follows for ever.
///
/// # Errors
/// When the data directory cannot be read or written any more.
pub(crate) fn run(database: &Mutex<Database>) -> io::Result<()> {
    loop {
        let more = {
            let mut database = database.lock();
            let more = database.replay(RECORDS)?;
            database.checkpoint_if_far(CHECKPOINT_BYTES)?;
            more
        };
        if !more {
            SystemClock.sleep(PAUSE);
        }
    }
}

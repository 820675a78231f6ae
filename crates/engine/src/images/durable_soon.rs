//! What is written into a copy that somebody waits for becomes durable while it is written, so that little is left when it
//! is handed out.

use crate::parts::Parts;
use offshoot_types::DatasetId;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How much is made durable at a time. Each time costs the pool a flush.
const BYTES_MIN: u64 = 8 << 20;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Works on it as long as it lives.
pub struct DurableSoon {
    /// Its end is the thread's.
    alive: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl DurableSoon {
    /// Begins. Whatever fails here, or becomes of the thread, all is durable only after
    /// [`Volumes::make_durable`](crate::serving::volumes::Volumes::make_durable).
    pub fn begin(parts: &Arc<Parts>, dataset: DatasetId) -> DurableSoon {
        let (alive, ended) = channel();
        let parts = parts.clone();
        let work = move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let files = parts.volumes.files(dataset);
                if files.is_ok_and(|files| files.dirty_bytes() >= BYTES_MIN) {
                    let _ = parts.volumes.make_durable(dataset);
                }
            }
        };
        let thread = Builder::new().name("durable-soon".into()).spawn(work).ok();
        DurableSoon { alive: Some(alive), thread }
    }
}

impl Drop for DurableSoon {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

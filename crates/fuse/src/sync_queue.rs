//! Answers `fsync` by one thread, so that no thread that serves reads ever waits for the device.
//!
//! A request is put into the queue after all writes it covers were applied to the dataset, and a
//! flush begins after the requests it answers were taken out of the queue: so each answer comes
//! after a flush that covers its writes. Requests that arrive during a flush share the next one.

use fuser::{Errno, ReplyEmpty, ReplyWrite};
use offshoot_fs::FileSystem;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

/// Most requests answered by one flush; bounds the memory of a batch, not correctness.
const BATCH_MAX: usize = 1024;

/// A request that waits for what was written to be durable.
pub(crate) enum Waiter {
    /// `fsync`, `fdatasync`, `fsync` of a directory.
    Sync(ReplyEmpty),
    /// A direct write through a descriptor opened with `O_DSYNC`, and how many bytes it wrote.
    Write(ReplyWrite, u32),
}

impl Waiter {
    fn answer(self, result: Result<(), Errno>) {
        match (self, result) {
            (Waiter::Sync(reply), Ok(())) => reply.ok(),
            (Waiter::Sync(reply), Err(errno)) => reply.error(errno),
            (Waiter::Write(reply, written), Ok(())) => reply.written(written),
            (Waiter::Write(reply, _), Err(errno)) => reply.error(errno),
        }
    }
}

/// The queue and its thread. Dropping it answers what is queued, then ends the thread.
pub(crate) struct SyncQueue {
    sender: Option<Sender<Waiter>>,
    thread: Option<JoinHandle<()>>,
}

impl SyncQueue {
    pub(crate) fn start(fs: Arc<FileSystem>) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("fuse-sync".to_owned())
            .spawn(move || serve(&fs, &receiver))?;
        Ok(SyncQueue { sender: Some(sender), thread: Some(thread) })
    }

    /// Queues a request. A queue that is gone fails it with EIO (by the reply's own drop).
    pub(crate) fn push(&self, waiter: Waiter) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(waiter);
        }
    }
}

impl Drop for SyncQueue {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(fs: &FileSystem, receiver: &Receiver<Waiter>) {
    while let Ok(first) = receiver.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            match receiver.try_recv() {
                Ok(waiter) => batch.push(waiter),
                Err(_) => break,
            }
        }
        // A defect that panics must fail these requests, not hang all later ones.
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| fs.sync()));
        let result = match result {
            Ok(result) => result.map_err(|error| Errno::from_i32(error.errno())),
            Err(_) => Err(Errno::EIO),
        };
        for waiter in batch {
            waiter.answer(result);
        }
    }
}

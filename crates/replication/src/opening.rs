//! Blocks that came are opened by several threads: to decompress and to name one takes longer than all else about it.
//!
//! Threads begin when there is enough for them, and end with the transfer. Whoever reads the connection opens what they
//! cannot take.

use offshoot_dataset::{OpenedBlock, PassingBlock};
use parking_lot::Mutex;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, available_parallelism};

/// Blocks that a thread gets at a time: with fewer, handing them over takes longer than it saves.
const BATCH: usize = 32;
/// Batches that wait for a thread, for each.
const WAITING: usize = 2;
/// The most threads of one connection, besides the one that reads it.
const THREADS_MAX: usize = 4;

/// A block that was opened; none: it was not to be opened.
pub(crate) type Opened = Option<OpenedBlock>;

/// Blocks that are being opened.
pub(crate) struct Opening<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    threads: Option<Threads>,
    batch: Vec<PassingBlock>,
    /// Opened by who reads the connection.
    opened: Vec<Opened>,
    /// Blocks that came and were not [taken](Opening::take).
    pending: usize,
}

struct Threads {
    batches: SyncSender<Vec<PassingBlock>>,
    opened: Receiver<Vec<Opened>>,
    /// Batches that have not come back.
    out: usize,
}

impl<'scope, 'env> Opening<'scope, 'env> {
    pub(crate) fn new(scope: &'scope Scope<'scope, 'env>) -> Opening<'scope, 'env> {
        let (threads, batch, opened) = (None, Vec::with_capacity(BATCH), Vec::new());
        Opening { scope, threads, batch, opened, pending: 0 }
    }

    /// How many came and were not taken.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// A block that came.
    pub(crate) fn add(&mut self, block: PassingBlock) {
        self.pending += 1;
        self.batch.push(block);
        if self.batch.len() < BATCH {
            return;
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let threads = self.threads.get_or_insert_with(|| Threads::begin(self.scope));
        if let Err(batch) = threads.offer(batch) {
            self.opened.extend(open(batch));
        }
    }

    /// What was opened meanwhile, in no particular order. If nothing else is to come, it waits for some of it.
    pub(crate) fn take(&mut self, waits: bool) -> Vec<Opened> {
        if waits {
            self.opened.extend(open(std::mem::take(&mut self.batch)));
        }
        let mut taken = std::mem::take(&mut self.opened);
        if let Some(threads) = &mut self.threads {
            taken.extend(threads.take(waits && taken.is_empty()));
        }
        self.pending -= taken.len();
        taken
    }
}

impl Threads {
    fn begin<'scope>(scope: &'scope Scope<'scope, '_>) -> Threads {
        let processors = available_parallelism().map_or(1, usize::from);
        let number = (processors - 1).clamp(1, THREADS_MAX);
        let (batches, waiting) = sync_channel(number * WAITING);
        let (done, opened) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..number {
            let (waiting, done) = (Arc::clone(&waiting), done.clone());
            scope.spawn(move || serve(&waiting, &done));
        }
        Threads { batches, opened, out: 0 }
    }

    /// Gives a batch to a thread, or back if all of them have enough.
    fn offer(&mut self, batch: Vec<PassingBlock>) -> Result<(), Vec<PassingBlock>> {
        use std::sync::mpsc::TrySendError::{Disconnected, Full};
        match self.batches.try_send(batch) {
            Ok(()) => {
                self.out += 1;
                Ok(())
            }
            Err(Full(batch) | Disconnected(batch)) => Err(batch),
        }
    }

    fn take(&mut self, waits: bool) -> Vec<Opened> {
        let first = match waits && self.out > 0 {
            true => self.opened.recv().ok(),
            false => None,
        };
        let batches: Vec<_> = first.into_iter().chain(self.opened.try_iter()).collect();
        self.out -= batches.len();
        batches.into_iter().flatten().collect()
    }
}

/// A thread, until nobody offers anything any more.
fn serve(waiting: &Mutex<Receiver<Vec<PassingBlock>>>, done: &Sender<Vec<Opened>>) {
    loop {
        let batch = waiting.lock().recv();
        let Ok(batch) = batch else { return };
        // A mistake there ends the transfer, and nothing else.
        let opened = catch_unwind(|| open(batch).collect()).unwrap_or_else(|_| vec![None]);
        if done.send(opened).is_err() {
            return;
        }
    }
}

fn open(batch: Vec<PassingBlock>) -> impl Iterator<Item = Opened> {
    batch.into_iter().map(|block| block.open().ok())
}

#[cfg(test)]
mod tests;

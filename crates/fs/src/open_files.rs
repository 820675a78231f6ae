//! Which inodes the clients of one adapter hold open.

use offshoot_dataset::{Dataset, Error, VolatileLog};
use offshoot_types::Ino;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Counts the users of inodes for one adapter session.
///
/// A client that vanishes (a mount that is torn down) never says goodbye: dropping this closes all
/// that is still open, so that unlinked files do not stay for ever.
pub struct OpenFiles {
    dataset: Arc<Dataset>,
    counts: Mutex<HashMap<Ino, u64>>,
}

impl OpenFiles {
    /// Nothing open.
    pub fn new(dataset: Arc<Dataset>) -> Self {
        OpenFiles { dataset, counts: Mutex::new(HashMap::new()) }
    }

    /// As an earlier engine left them, by the dataset's volatile log.
    pub fn taken_over(dataset: Arc<Dataset>) -> Self {
        let counts = dataset.volatile().and_then(|volatile| volatile.open_files());
        let mut open = OpenFiles::new(dataset);
        for (ino, count) in counts.unwrap_or_default() {
            let opened = (0..count).take_while(|_| open.dataset.open(Ino(ino)).is_ok()).count();
            if opened > 0 {
                open.counts.get_mut().insert(Ino(ino), opened as u64);
            }
        }
        open.dataset.let_go();
        open
    }

    /// From now on the dataset and its users outlive this process ([`Dataset::survive`]).
    pub fn survive(&self, volatile: Arc<VolatileLog>) {
        let counts = self.counts.lock();
        self.dataset.survive(Arc::clone(&volatile));
        for (ino, count) in &*counts {
            (0..*count).for_each(|_| volatile.opened(ino.0));
        }
    }

    /// Counts one more user: the inode now outlives its last name.
    ///
    /// # Errors
    /// Where the inode is gone.
    pub fn open(&self, ino: Ino) -> Result<(), Error> {
        self.dataset.open(ino)?;
        let mut counts = self.counts.lock();
        *counts.entry(ino).or_insert(0) += 1;
        if let Some(volatile) = self.dataset.volatile() {
            volatile.opened(ino.0);
        }
        Ok(())
    }

    /// Gives back one [`OpenFiles::open`]. One too many is ignored: it comes from outside.
    pub fn close(&self, ino: Ino) {
        let mut counts = self.counts.lock();
        let Some(count) = counts.get_mut(&ino) else { return };
        *count -= 1;
        if *count == 0 {
            counts.remove(&ino);
        }
        if let Some(volatile) = self.dataset.volatile() {
            volatile.closed(ino.0);
        }
        drop(counts);
        self.dataset.close(ino);
    }

    /// How many inodes are open.
    pub fn len(&self) -> usize {
        self.counts.lock().len()
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        for (ino, count) in self.counts.get_mut().drain() {
            for _ in 0..count {
                self.dataset.close(ino);
            }
        }
    }
}

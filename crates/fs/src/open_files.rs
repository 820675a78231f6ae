//! Which inodes the clients of one adapter hold open.

use offshoot_dataset::{Dataset, Error};
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

    /// Counts one more user: the inode now outlives its last name.
    ///
    /// # Errors
    /// Where the inode is gone.
    pub fn open(&self, ino: Ino) -> Result<(), Error> {
        self.dataset.open(ino)?;
        *self.counts.lock().entry(ino).or_insert(0) += 1;
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

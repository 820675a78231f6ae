//! Which inodes the clients of one adapter hold open.

use offshoot_dataset::{Dataset, Error, VolatileLog};
use offshoot_types::Ino;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Counts the users of inodes for one adapter session.
///
/// A client that vanishes (a mount that is torn down) does not close its files: dropping this
/// closes all that are still open, so that unlinked files do not stay for ever.
pub(crate) struct OpenFiles {
    dataset: Arc<Dataset>,
    users: Mutex<HashMap<Ino, Users>>,
}

/// Who has one inode open.
#[derive(Debug, Default)]
struct Users {
    count: u64,
    /// One of them opened it for synchronous writes.
    synchronous: bool,
}

impl OpenFiles {
    /// Nothing open.
    pub(crate) fn new(dataset: Arc<Dataset>) -> Self {
        OpenFiles { dataset, users: Mutex::default() }
    }

    /// As an earlier engine left them, by the dataset's volatile log.
    pub(crate) fn taken_over(dataset: Arc<Dataset>) -> Self {
        let files = dataset.volatile().and_then(|volatile| volatile.open_files());
        let mut open = OpenFiles::new(dataset);
        for file in files.unwrap_or_default() {
            let ino = Ino(file.ino);
            let opened = (0..file.count).take_while(|_| open.dataset.open(ino).is_ok()).count();
            if opened > 0 {
                let users = Users { count: opened as u64, synchronous: file.synchronous };
                open.users.get_mut().insert(ino, users);
            }
        }
        open.dataset.let_go();
        open
    }

    /// From now on the dataset and its users outlive this process ([`Dataset::survive`]).
    pub(crate) fn survive(&self, volatile: Arc<VolatileLog>) {
        let users = self.users.lock();
        self.dataset.survive(Arc::clone(&volatile));
        for (ino, users) in &*users {
            (0..users.count).for_each(|_| volatile.opened(ino.0, users.synchronous));
        }
    }

    /// Counts one more user: the inode now outlives its last name. Returns whether a user has
    /// opened it for synchronous writes since it was last closed by all.
    ///
    /// # Errors
    /// Where the inode is gone.
    pub(crate) fn open(&self, ino: Ino, synchronous: bool) -> Result<bool, Error> {
        self.dataset.open(ino)?;
        let mut users = self.users.lock();
        let users = users.entry(ino).or_default();
        users.count += 1;
        users.synchronous |= synchronous;
        if let Some(volatile) = self.dataset.volatile() {
            volatile.opened(ino.0, synchronous);
        }
        Ok(users.synchronous)
    }

    /// Ends one [`OpenFiles::open`]. An extra call is ignored, as calls come from outside.
    pub(crate) fn close(&self, ino: Ino) {
        let mut users = self.users.lock();
        let Some(of_inode) = users.get_mut(&ino) else { return };
        of_inode.count -= 1;
        if of_inode.count == 0 {
            users.remove(&ino);
        }
        if let Some(volatile) = self.dataset.volatile() {
            volatile.closed(ino.0);
        }
        drop(users);
        self.dataset.close(ino);
    }

    /// How many inodes are open.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.users.lock().len()
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        for (ino, users) in self.users.get_mut().drain() {
            for _ in 0..users.count {
                self.dataset.close(ino);
            }
        }
    }
}

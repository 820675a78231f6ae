//! The files of one dataset, and the engine's decisions about all of them.

use crate::watch::{Watch, Watchers};
use crate::{Caching, Error, PathError, Result, VolatileLog, Watcher};
use offshoot_dataset::Dataset;
use offshoot_direct::Table;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The files of one dataset. Make one per dataset and share it: watchers only learn of changes made
/// through the same value.
pub struct FileSystem {
    dataset: Arc<Dataset>,
    pub(crate) watchers: Watchers,
    /// Makes names of temporary files distinct.
    pub(crate) temporary: AtomicU64,
}

impl FileSystem {
    /// The files of `dataset`.
    pub fn new(dataset: Arc<Dataset>) -> Arc<FileSystem> {
        Arc::new(FileSystem {
            dataset,
            watchers: Watchers::default(),
            temporary: AtomicU64::new(0),
        })
    }

    pub(crate) fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// Notifies a watcher of changes by path until the returned value is dropped.
    pub fn watch(&self, watcher: Arc<dyn Watcher>) -> Watch {
        self.watchers.add(watcher)
    }

    /// Makes everything done so far durable.
    ///
    /// # Errors
    /// As [`Dataset::sync`].
    pub fn sync(&self) -> Result<(), Error> {
        self.dataset.sync()
    }

    /// Blocks of files' content that commits have written since the dataset was opened.
    pub fn written_blocks(&self) -> u64 {
        self.dataset.written_blocks()
    }

    /// Memory of what has changed and no commit has written yet, in bytes.
    pub fn dirty_bytes(&self) -> u64 {
        self.dataset.dirty_bytes()
    }

    /// The log by which the dataset outlives this process, if it does.
    pub fn volatile(&self) -> Option<Arc<VolatileLog>> {
        self.dataset.volatile()
    }

    /// Nobody will take over any more: ends what [`Session::survive`](crate::Session::survive) began.
    pub fn survive_no_longer(&self) {
        self.dataset.survive_no_longer();
    }

    /// From now on servers read files by this table, or (none) no longer: see [`Dataset::serve_directly`].
    pub fn serve_directly(&self, table: Option<Arc<Table>>) {
        self.dataset.serve_directly(table);
    }

    /// Marks the files as fed by a stream that must not stop when room is short: see [`Dataset::mark_stream`].
    pub fn mark_stream(&self) {
        self.dataset.mark_stream();
    }

    /// What becomes in the cache of what is committed from now on: see [`Dataset::cache_commits`].
    pub fn cache_commits(&self, caching: Caching) {
        self.dataset.cache_commits(caching);
    }

    /// Marks a directory's files as what matters most when room is short: see
    /// [`Dataset::favour_directory`].
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn favour_directory(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.resolve(path)
            .and_then(|attr| self.dataset.favour_directory(attr.ino))
            .map_err(PathError::at("favour", path))
    }
}

//! The datasets in memory.

use crate::ground::{Ground, Writers};
use crate::{Dataset, Error, Result};
use offshoot_types::DatasetId;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Every dataset that is in use, once.
pub(crate) struct Loaded {
    ground: Arc<Ground>,
    datasets: RwLock<BTreeMap<DatasetId, Arc<Dataset>>>,
    /// Held while a dataset is loaded or deleted.
    loading: Mutex<()>,
}

impl Loaded {
    /// None yet; from now on they are asked when room is needed.
    pub(crate) fn new(ground: &Arc<Ground>) -> Arc<Loaded> {
        let (datasets, loading) = (RwLock::default(), Mutex::default());
        let loaded = Arc::new(Loaded { ground: Arc::clone(ground), datasets, loading });
        let writers: Arc<dyn Writers> = loaded.clone();
        ground.set_writers(Arc::downgrade(&writers));
        loaded
    }

    /// One that is in memory.
    pub(crate) fn get(&self, id: DatasetId) -> Option<Arc<Dataset>> {
        self.datasets.read().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Dataset>> {
        self.datasets.read().values().cloned().collect()
    }

    /// Takes one out.
    pub(crate) fn remove(&self, id: DatasetId) -> Option<Arc<Dataset>> {
        self.datasets.write().remove(&id)
    }

    /// Takes all out; users may hold some longer.
    pub(crate) fn clear(&self) {
        self.datasets.write().clear();
    }

    /// Keeps others from being loaded meanwhile.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.loading.lock()
    }

    /// The files of a dataset, loaded when they are not.
    pub(crate) fn dataset(&self, id: DatasetId, replaying: bool) -> Result<Arc<Dataset>> {
        if let Some(dataset) = self.get(id) {
            return Ok(dataset);
        }
        let _loading = self.loading.lock();
        if let Some(dataset) = self.get(id) {
            return Ok(dataset);
        }
        if self.ground.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let record = self.ground.directory.read().datasets.get(&id).cloned();
        let record = record.ok_or(Error::NoDataset(id))?;
        if record.lost && !replaying {
            return Err(Error::Lost(id));
        }
        let dataset = Dataset::from_record(id, Arc::clone(&self.ground), &record, replaying);
        if !replaying {
            dataset.free_orphans()?;
        }
        self.datasets.write().insert(id, Arc::clone(&dataset));
        Ok(dataset)
    }
}

impl Writers for Loaded {
    fn write_all(&self) {
        for dataset in self.all() {
            if dataset.dirty_bytes() > 0 {
                let _ = dataset.commit();
            }
        }
    }
}

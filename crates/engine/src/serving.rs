//! Datasets as directories that servers use, and the servers.

pub mod arrivals;
pub mod data_files;
pub mod direct;
pub mod exposure;
pub mod gateways;
pub mod owners;
pub mod results;
pub mod servers;
pub mod vdb;
pub mod volumes;

use crate::space::Space;
use gateways::Gateways;
use offshoot_types::{DatasetId, Failure};
use servers::Servers;
use std::ops::Deref;
use std::sync::Arc;
use volumes::Volumes;

/// What is delivered and what runs on it, on top of the space.
pub struct Serving {
    space: Arc<Space>,
    pub volumes: Volumes,
    pub servers: Servers,
    pub gateways: Gateways,
}

impl Serving {
    /// Nothing runs yet.
    pub fn new(space: Arc<Space>, volumes: Volumes) -> Serving {
        let (servers, gateways) = (Servers::default(), Gateways::default());
        Serving { space, volumes, servers, gateways }
    }

    /// Ends a dataset's delivery and deletes it; one that is gone is no error.
    pub fn delete_dataset(&self, dataset: DatasetId) -> Result<(), Failure> {
        self.volumes.unmount(dataset)?;
        match self.store.delete_dataset(dataset) {
            Ok(()) | Err(offshoot_dataset::Error::NoDataset(_)) => Ok(()),
            Err(error) => Err(error.failure()),
        }
    }
}

impl Deref for Serving {
    type Target = Space;

    fn deref(&self) -> &Space {
        &self.space
    }
}

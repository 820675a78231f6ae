//! The copy in which recovery points of a dSource are made.
//!
//! A round leaves its copy exactly as the image that was made of it: its server has stopped, and nothing uses the mount.
//! So the next round goes on in it instead of in a clone of that image, and the kernel still has the pages that it replays
//! into. What is lost with it (at a restart, after an error) is only time: a clone of the image takes its place.

use crate::serving::Serving;
use offshoot_types::{DatasetId, Failure, SnapshotId};
use parking_lot::Mutex;
use std::time::Duration;

/// How long it is kept for another round. It keeps what retention may have given up.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The copy between two rounds; a round that runs has it for itself.
#[derive(Default)]
pub struct WorkingCopy {
    held: Mutex<Option<Held>>,
    /// Images in which rounds have failed since the last that did not.
    passed_over: Mutex<Vec<SnapshotId>>,
}

struct Held {
    dataset: DatasetId,
    /// What it is exactly as.
    image: SnapshotId,
    since: Duration,
}

impl Held {
    fn delete(self, serving: &Serving) -> Result<(), Failure> {
        serving.delete_dataset(self.dataset)
    }
}

impl WorkingCopy {
    /// Leaves a copy that is exactly as an image; nobody writes to it until it is taken.
    pub fn leave(
        &self,
        serving: &Serving,
        dataset: DatasetId,
        image: SnapshotId,
    ) -> Result<(), Failure> {
        let held = Held { dataset, image, since: serving.clock.elapsed() };
        let before = self.held.lock().replace(held);
        before.map_or(Ok(()), |before| before.delete(serving))
    }

    /// Takes it, if it is as this image; otherwise it is deleted.
    pub fn take(&self, serving: &Serving, image: SnapshotId) -> Result<Option<DatasetId>, Failure> {
        let Some(held) = self.held.lock().take() else { return Ok(None) };
        // What a restart found without an owner is gone.
        if held.image == image && serving.store.dataset(held.dataset).is_ok() {
            return Ok(Some(held.dataset));
        }
        held.delete(serving).map(|()| None)
    }

    /// Has the next rounds go on from another image.
    pub fn pass_over(&self, image: SnapshotId) {
        self.passed_over.lock().push(image);
    }

    /// From which they do not go on.
    pub fn passed_over(&self) -> Vec<SnapshotId> {
        self.passed_over.lock().clone()
    }

    /// The same, once one has gone on from another.
    pub fn take_passed_over(&self) -> Vec<SnapshotId> {
        std::mem::take(&mut *self.passed_over.lock())
    }

    /// Deletes one that no round has taken for long.
    pub fn expire(&self, serving: &Serving) -> Result<(), Failure> {
        let now = serving.clock.elapsed();
        self.delete_if(serving, |held| now.saturating_sub(held.since) > KEPT_FOR)
    }

    /// Deletes it.
    pub fn delete(&self, serving: &Serving) -> Result<(), Failure> {
        self.delete_if(serving, |_| true)
    }

    fn delete_if(
        &self,
        serving: &Serving,
        wanted: impl FnOnce(&mut Held) -> bool,
    ) -> Result<(), Failure> {
        let held = self.held.lock().take_if(wanted);
        held.map_or(Ok(()), |held| held.delete(serving))
    }
}

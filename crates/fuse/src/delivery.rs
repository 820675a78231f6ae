//! FUSE as a way to deliver datasets.

use crate::mount::{Mount, check_host};
use crate::mount_table::{abort_mounts, clean_stale_mounts};
use crate::options::{FuseOptions, MountOptions};
use offshoot_delivery::{Delivered, Delivery, Ended, Flusher, Location, RequestCounts, Spec};
use offshoot_fs::{FileSystem, VolatileLog};
use offshoot_types::Failure;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Mounts datasets on this host. A mount is handed over by one descriptor, its connection to the kernel.
#[derive(Debug, Clone, Default)]
pub struct Fuse {
    options: FuseOptions,
}

impl Fuse {
    /// With other settings than the usual ones.
    pub fn with(options: FuseOptions) -> Fuse {
        Fuse { options }
    }

    fn mount_options(&self, spec: &Spec) -> MountOptions {
        MountOptions {
            fuse: self.options.clone(),
            allow_other: spec.other_users,
            owner: spec.owner,
            read_only: spec.read_only,
            write_back: spec.gather_writes,
            xattrs: spec.xattrs,
        }
    }
}

impl Delivery for Fuse {
    fn check_host(&self) -> Result<(), Failure> {
        Ok(check_host()?)
    }

    fn deliver(&self, files: Arc<FileSystem>, spec: &Spec) -> Result<Box<dyn Delivered>, Failure> {
        let mount = Mount::new(files, &spec.path, &self.mount_options(spec))?;
        Ok(Box::new(mount))
    }

    fn resume(
        &self,
        files: Arc<FileSystem>,
        spec: &Spec,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Box<dyn Delivered>, Failure> {
        let [device] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|descriptors| {
            let count = descriptors.len();
            Failure::internal(format!("a mount is handed over by 1 descriptor, not {count}"))
        })?;
        let mount = Mount::take_over(files, &spec.path, device, &self.mount_options(spec))?;
        Ok(Box::new(mount))
    }

    fn clean_stale(&self, dir: &Path, kept: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
        Ok(clean_stale_mounts(dir, kept)?)
    }

    fn fail_waiting(&self, dir: &Path, kept: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
        Ok(abort_mounts(dir, kept)?)
    }
}

impl Delivered for Mount {
    fn location(&self) -> Location {
        Location::Directory(self.path().to_owned())
    }

    fn is_serving(&self) -> bool {
        Mount::is_serving(self)
    }

    fn latencies(&self) -> RequestCounts {
        Mount::latencies(self)
    }

    fn flusher(&self) -> Option<Flusher> {
        Mount::flusher(self)
    }

    fn survive(&self, volatile: Arc<VolatileLog>) {
        Mount::survive(self, volatile);
    }

    fn handover(&self) -> Option<Vec<BorrowedFd<'_>>> {
        Some(vec![self.device()?])
    }

    fn end(self: Box<Self>, grace: Duration) -> Result<Ended, Failure> {
        Ok(self.unmount_within(grace)?)
    }
}

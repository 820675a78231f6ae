//! Volumes: datasets as directories of this host, with one file system, and at most one mount, for each.

use crate::ground::keeping::Keeping;
use crate::ground::paths::Paths;
use offshoot_dataset::Store;
use offshoot_fs::{FileSystem, VolatileLog};
use offshoot_fuse::{Mount, MountOptions};
use offshoot_types::{DatasetId, ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// The datasets in use. All users of a dataset share one [`FileSystem`], so that what the engine
/// changes by path reaches the kernel's caches of the mount.
pub struct Volumes {
    store: Arc<Store>,
    paths: Paths,
    allow_other: bool,
    keeping: Keeping,
    open: Mutex<HashMap<DatasetId, Volume>>,
}

struct Volume {
    files: Arc<FileSystem>,
    mount: Option<Mount>,
}

impl Volumes {
    /// No volumes yet. With `allow_other`, users other than ours may use the mounts.
    pub fn new(store: Arc<Store>, paths: Paths, allow_other: bool, keeping: Keeping) -> Self {
        Volumes { store, paths, allow_other, keeping, open: Mutex::default() }
    }

    /// Whether what is mounted can outlive this process.
    pub fn keeping(&self) -> &Keeping {
        &self.keeping
    }

    fn options(&self) -> MountOptions {
        // A database's files have no extended attributes.
        MountOptions { allow_other: self.allow_other, xattrs: false, ..MountOptions::default() }
    }

    /// For received log: the kernel gathers its writes. Nothing of a log counts before it is synced, and
    /// its records, unlike pages, show by themselves where they are torn.
    fn log_options(&self) -> MountOptions {
        MountOptions { write_back: true, ..self.options() }
    }

    /// The files of a dataset, mounted or not.
    pub fn files(&self, dataset: DatasetId) -> Result<Arc<FileSystem>, Failure> {
        let mut open = self.open.lock();
        if let Some(volume) = open.get(&dataset) {
            return Ok(volume.files.clone());
        }
        let files = FileSystem::new(self.store.dataset(dataset).map_err(|e| e.failure())?);
        open.insert(dataset, Volume { files: files.clone(), mount: None });
        Ok(files)
    }

    /// Mounts a database's dataset, where it is not mounted yet; where it is then.
    pub fn mount(&self, dataset: DatasetId) -> Result<PathBuf, Failure> {
        self.mount_with(dataset, &self.options())
    }

    /// The same for a dataset of received log.
    pub fn mount_log(&self, dataset: DatasetId) -> Result<PathBuf, Failure> {
        self.mount_with(dataset, &self.log_options())
    }

    fn mount_with(&self, dataset: DatasetId, options: &MountOptions) -> Result<PathBuf, Failure> {
        let files = self.files(dataset)?;
        let path = self.paths.mount(dataset);
        let mut open = self.open.lock();
        let served = |volume: &Volume| volume.mount.as_ref().is_some_and(Mount::is_serving);
        if open.get(&dataset).is_some_and(served) {
            return Ok(path);
        }
        // As `remove_dir` below, this asks only the directory above, never what is mounted here.
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                let message = format!("cannot make the mount point {}: {error}", path.display());
                let hint = "check the pool directory's rights";
                let failure = Failure::new(ErrorKind::HostUnprepared, message, hint);
                return Err(failure.or_pool_full(&error));
            }
            _ => {}
        }
        let mount = Mount::new(files.clone(), &path, options)?;
        open.insert(dataset, Volume { files, mount: Some(mount) });
        Ok(path)
    }

    /// Has a mount, and what its programs are told is written, outlive this process from the next
    /// commit on. Without it they end with this process, as where there is no keeper.
    pub fn keep(&self, dataset: DatasetId) {
        let open = self.open.lock();
        let Some(Volume { files, mount: Some(mount) }) = open.get(&dataset) else { return };
        let Some(device) = mount.device().filter(|_| self.keeping.possible()) else { return };
        if files.volatile().is_some() {
            return;
        }
        let kept = VolatileLog::create().map(Arc::new).and_then(|volatile| {
            // First the log, which counts as incomplete at first: what is held can be taken over.
            mount.survive(volatile.clone());
            self.keeping.hold(dataset, &[device, volatile.as_fd()])
        });
        if let Err(error) = kept {
            tracing::warn!(%dataset, %error, "the mount will not outlive the engine");
            files.survive_no_longer();
        }
    }

    /// Goes on with a mount that outlived an earlier engine; its dataset has its volatile log.
    pub fn take_over(&self, dataset: DatasetId, device: OwnedFd) -> Result<(), Failure> {
        let files = self.files(dataset)?;
        let path = self.paths.mount(dataset);
        let mount = Mount::take_over(files.clone(), path, device, &self.options())?;
        self.open.lock().insert(dataset, Volume { files, mount: Some(mount) });
        Ok(())
    }

    /// Starts another keeper where it has ended, and has it hold everything again.
    pub fn tend_keeper(&self) {
        let open = self.open.lock();
        let held = open.iter().filter_map(|(dataset, volume)| {
            let volatile = volume.files.volatile()?;
            Some((*dataset, volume.mount.as_ref()?.device()?, volatile))
        });
        self.keeping.renew(|keeper| {
            for (dataset, device, volatile) in held {
                keeper.hold(dataset.0, &[device, volatile.as_fd()])?;
            }
            Ok(())
        });
    }

    /// Unmounts a dataset and forgets its file system; not being mounted is no error.
    pub fn unmount(&self, dataset: DatasetId) -> Result<(), Failure> {
        let volume = self.open.lock().remove(&dataset);
        if let Some(Volume { files, mount }) = volume {
            let unmounted = mount.map(Mount::unmount).transpose();
            if files.volatile().is_some() {
                files.survive_no_longer();
                self.keeping.drop_held(dataset);
            }
            unmounted?;
        }
        match std::fs::remove_dir(self.paths.mount(dataset)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%dataset, %error, "the mount point stays");
            }
            _ => {}
        }
        Ok(())
    }

    /// Unmounts everything; problems are logged.
    pub fn unmount_all(&self) {
        let datasets: Vec<DatasetId> = self.open.lock().keys().copied().collect();
        for dataset in datasets {
            if let Err(error) = self.unmount(dataset) {
                tracing::error!(%dataset, %error, "unmounting failed");
            }
        }
    }
}

//! Volumes: datasets as directories of this host, with one file system, and at most one delivery, for each.

use crate::ground::custody::Custody;
use crate::ground::paths::Paths;
use crate::serving::direct::{Direct, Left};
use crate::serving::owners::Owners;
use offshoot_dataset::Store;
use offshoot_delivery::{Delivered, Delivery, Location, RequestCounts, Spec};
use offshoot_direct::Table;
use offshoot_fs::{FileSystem, VolatileLog};
use offshoot_os::process::Preload;
use offshoot_types::{DatasetId, ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long programs that still use a dataset get to finish when its delivery ends.
const GRACE: Duration = Duration::from_secs(5);

/// The datasets in use. All users of a dataset share one [`FileSystem`], so that what the engine
/// changes by path reaches the caches of its clients.
pub struct Volumes {
    store: Arc<Store>,
    paths: Paths,
    delivery: Arc<dyn Delivery>,
    owners: Owners,
    custody: Custody,
    direct: Direct,
    open: Mutex<HashMap<DatasetId, Volume>>,
}

struct Volume {
    files: Arc<FileSystem>,
    delivered: Option<Box<dyn Delivered>>,
    /// Whether what is delivered gathers writes.
    gathers: bool,
    /// By which its server reads without asking.
    table: Option<Arc<Table>>,
}

impl Volumes {
    /// Without volumes yet.
    pub fn new(
        store: Arc<Store>,
        paths: Paths,
        delivery: Arc<dyn Delivery>,
        owners: Owners,
        custody: Custody,
        direct: Direct,
    ) -> Self {
        Volumes { store, paths, delivery, owners, custody, direct, open: Mutex::default() }
    }

    /// How datasets are delivered.
    pub fn delivery(&self) -> &dyn Delivery {
        &*self.delivery
    }

    /// Whether what is mounted can outlive this process.
    pub fn custody(&self) -> &Custody {
        &self.custody
    }

    /// Whose the files of mounted datasets are.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    fn spec(&self, dataset: DatasetId) -> Spec {
        Spec {
            other_users: self.owners.others(),
            owner: self.owners.owner_of(dataset),
            ..Spec::database(self.paths.mount(dataset))
        }
    }

    /// The files of a dataset, mounted or not.
    pub fn files(&self, dataset: DatasetId) -> Result<Arc<FileSystem>, Failure> {
        let mut open = self.open.lock();
        if let Some(volume) = open.get(&dataset) {
            return Ok(volume.files.clone());
        }
        let files = FileSystem::new(self.store.dataset(dataset).map_err(|e| e.failure())?);
        let table = None;
        let volume = Volume { files: files.clone(), delivered: None, gathers: false, table };
        open.insert(dataset, volume);
        Ok(files)
    }

    /// Mounts a database's dataset unless it is mounted already; returns its mount point. A mount that gathers writes
    /// is replaced.
    pub fn mount(&self, dataset: DatasetId) -> Result<PathBuf, Failure> {
        if self.open.lock().get(&dataset).is_some_and(|volume| volume.gathers) {
            self.flush(dataset)?;
            self.unmount(dataset)?;
        }
        self.deliver(dataset, &self.spec(dataset))
    }

    /// The same, but writes are gathered on the way, as they come in far fewer requests then. Only for what does not
    /// count before it is synced: received log, whose records reveal where they are torn, and copies that nobody has
    /// yet and that are thrown away after a crash. Before a copy's files are read or changed by path, or an image is
    /// made of them, they MUST be [flushed](Volumes::flush).
    pub fn mount_gathering(&self, dataset: DatasetId) -> Result<PathBuf, Failure> {
        self.deliver(dataset, &Spec { gather_writes: true, ..self.spec(dataset) })
    }

    /// Puts what programs have written into the dataset; they have closed their files.
    ///
    /// # Errors
    /// That of a write that failed on the way.
    pub fn flush(&self, dataset: DatasetId) -> Result<(), Failure> {
        let flusher = {
            let open = self.open.lock();
            open.get(&dataset).and_then(|volume| volume.delivered.as_ref()?.flusher())
        };
        let Some(flusher) = flusher else { return Ok(()) };
        flusher().map_err(|error| {
            let message = format!("what was written to {dataset} is not all there: {error}");
            Failure::internal(message).or_pool_full(&error)
        })
    }

    /// Makes all of a dataset durable that has reached it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn make_durable(&self, dataset: DatasetId) -> Result<(), Failure> {
        self.files(dataset)?.sync().map_err(|error| error.failure())
    }

    /// How long those who use a dataset's mount have waited; `None` where it is not mounted.
    pub fn latencies(&self, dataset: DatasetId) -> Option<RequestCounts> {
        let open = self.open.lock();
        Some(open.get(&dataset)?.delivered.as_ref()?.latencies())
    }

    fn deliver(&self, dataset: DatasetId, spec: &Spec) -> Result<PathBuf, Failure> {
        let files = self.files(dataset)?;
        let path = spec.path.clone();
        let mut open = self.open.lock();
        let served = |volume: &Volume| volume.delivered.as_ref().is_some_and(|it| it.is_serving());
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
        let delivered = self.delivery.deliver(files.clone(), spec)?;
        let Location::Directory(path) = delivered.location() else {
            return Err(Failure::internal("servers run on this host: they need a directory of it"));
        };
        let gathers = spec.gather_writes;
        let table = None;
        open.insert(dataset, Volume { files, delivered: Some(delivered), gathers, table });
        Ok(path)
    }

    /// Lets the server of a mounted dataset read without asking, from the memory of a trust group, where servers can;
    /// it does without where that fails.
    pub fn read_directly(&self, dataset: DatasetId, group: &str) {
        let mut open = self.open.lock();
        let Some(volume) = open.get_mut(&dataset).filter(|_| self.owners.separate()) else {
            return;
        };
        if volume.table.is_some() || volume.gathers {
            return;
        }
        match self.direct.table(group) {
            Ok(table) => {
                volume.files.serve_directly(table.clone());
                volume.table = table;
            }
            Err(error) => tracing::warn!(%dataset, %error, "its server does not read directly"),
        }
    }

    /// What the server of a dataset loads to read without asking.
    pub fn preload(&self, dataset: DatasetId) -> Option<Preload> {
        let open = self.open.lock();
        let preload = self.direct.preload(open.get(&dataset)?.table.as_ref()?);
        preload.inspect_err(|error| tracing::warn!(%dataset, %error, "nothing to load")).ok()
    }

    /// The table by which a dataset's server reads without asking, if it does.
    pub fn table(&self, dataset: DatasetId) -> Option<Arc<Table>> {
        self.open.lock().get(&dataset)?.table.clone()
    }

    /// Makes a mount, and what its programs were told is written, outlive this process from the
    /// next commit on. Otherwise, or without a keeper, they end with this process.
    pub fn give_into_custody(&self, dataset: DatasetId) {
        let open = self.open.lock();
        let Some(Volume { files, delivered: Some(delivered), table, .. }) = open.get(&dataset)
        else {
            return;
        };
        let handover = delivered.handover().filter(|_| self.custody.possible());
        let Some(handover) = handover else { return };
        if files.volatile().is_some() {
            return;
        }
        let held = VolatileLog::create().map(Arc::new).and_then(|volatile| {
            // First the log, which counts as incomplete at first, so whatever is held can be taken
            // over.
            delivered.survive(volatile.clone());
            self.custody.hold(dataset, &to_hold(handover, table.as_deref(), &volatile))
        });
        if let Err(error) = held {
            tracing::warn!(%dataset, %error, "the mount will not outlive the engine");
            files.survive_no_longer();
        }
    }

    /// Takes the tables by which servers of an earlier engine read directly out of what it handed over, and empties them: of all,
    /// also of those that do not go on. `group_of` tells the trust group of a dataset, where it is known.
    pub fn adopt_tables(
        &self,
        handovers: &mut BTreeMap<DatasetId, Vec<OwnedFd>>,
        group_of: impl Fn(DatasetId) -> Option<String>,
    ) -> BTreeMap<DatasetId, io::Result<Arc<Table>>> {
        let mut left = Vec::new();
        for (dataset, handover) in handovers {
            let rest = handover.len().checked_sub(TABLE_AND_FRAMES).filter(|rest| *rest > 0);
            let Some(rest) = rest else { continue };
            let mut memory = handover.split_off(rest).into_iter();
            if let (Some(table), Some(frames)) = (memory.next(), memory.next()) {
                let (dataset, group) = (*dataset, group_of(*dataset));
                left.push(Left { dataset, group, table, frames });
            }
        }
        self.direct.adopt(left)
    }

    /// Resumes a mount that outlived an earlier engine; its dataset has its volatile log. By `table` its server reads directly.
    pub fn take_over(
        &self,
        dataset: DatasetId,
        handover: Vec<OwnedFd>,
        table: Option<Arc<Table>>,
    ) -> Result<(), Failure> {
        let files = self.files(dataset)?;
        files.serve_directly(table.clone());
        let delivered = self.delivery.resume(files.clone(), &self.spec(dataset), handover)?;
        let volume = Volume { files, delivered: Some(delivered), gathers: false, table };
        self.open.lock().insert(dataset, volume);
        Ok(())
    }

    /// If the keeper has ended, starts another one and makes it hold everything again.
    pub fn tend_keeper(&self) {
        let open = self.open.lock();
        let held = open.iter().filter_map(|(dataset, volume)| {
            let volatile = volume.files.volatile()?;
            let handover = volume.delivered.as_ref()?.handover()?;
            Some((*dataset, handover, volume.table.as_deref(), volatile))
        });
        self.custody.renew(|keeper| {
            for (dataset, handover, table, volatile) in held {
                keeper.hold(dataset.0, &to_hold(handover, table, &volatile))?;
            }
            Ok(())
        });
    }

    /// Unmounts a dataset and drops its file system; it is no error if it is not mounted.
    pub fn unmount(&self, dataset: DatasetId) -> Result<(), Failure> {
        let volume = self.open.lock().remove(&dataset);
        if let Some(Volume { files, delivered, .. }) = volume {
            let ended = delivered.map(|delivered| delivered.end(GRACE)).transpose();
            files.serve_directly(None);
            if files.volatile().is_some() {
                files.survive_no_longer();
                self.custody.drop_held(dataset);
            }
            ended?;
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

/// Descriptors of what a server reads directly by.
const TABLE_AND_FRAMES: usize = 2;

/// What the keeper holds of a dataset: what its delivery hands over (one descriptor, where there is a table), the table by
/// which its server reads directly with the frames, and last the log of what its programs were told.
fn to_hold<'a>(
    mut handover: Vec<BorrowedFd<'a>>,
    table: Option<&'a Table>,
    log: &'a VolatileLog,
) -> Vec<BorrowedFd<'a>> {
    handover.extend(table.into_iter().flat_map(|table| [table.as_fd(), table.group().as_fd()]));
    handover.push(log.as_fd());
    handover
}

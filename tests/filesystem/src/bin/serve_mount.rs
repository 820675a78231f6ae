//! Serves datasets of a pool until told to stop: what the tests mount, in a process of its own.
//!
//! `serve_mount POOL MOUNTPOINT [OPTION…]` makes the pool if it is new, mounts its oldest dataset,
//! prints `ready` and waits for SIGTERM, or with `--commands` for the end of stdin. To mount is to deliver by
//! the delivery that `--delivery=NAME` names, FUSE where it is missing.
//! Options: `--allow-other --direct-io --write-back --no-xattrs --read-only --snapshots --commands`
//! `--cache-mib=N --capacity-mib=N --threads=N`, `--ask-itself=N`: so many threads of this process use its mount, and
//! `--keeper=SOCKET`: the oldest dataset's mount outlives this process and is taken over from the one before.
//!
//! Commands, one a line, each answered by one line `ok …` or `error …`:
//! `snapshot MOUNTPOINT`, `flush MOUNTPOINT`, `clone SNAPSHOT`, `mount DATASET MOUNTPOINT`, `unmount MOUNTPOINT`,
//! `delete DATASET`, `commit`, `write MOUNTPOINT PATH TEXT`, `remove MOUNTPOINT PATH`,
//! `share MOUNTPOINT PATH MOUNTPOINT PATH`, `chmod MOUNTPOINT PATH OCTAL`, `stream MOUNTPOINT`.

use offshoot_dataset::{DatasetId, SnapshotId, Store, StoreOptions};
use offshoot_delivery::{Delivered, Delivery, Ids, Owner, Spec};
use offshoot_filesystem_tests::delivery;
use offshoot_fs::{FileSystem, NewFile, VolatileLog};
use offshoot_fuse::{FuseOptions, Heap};
use offshoot_keeper::{Held, Keeper};
use offshoot_os::SystemClock;
use offshoot_os::disk::{Disk, LinuxDisk};
use std::alloc::System;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::BufRead;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[global_allocator]
static HEAP: Heap<System> = Heap(System);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Mounted {
    dataset: DatasetId,
    fs: Arc<FileSystem>,
    delivered: Box<dyn Delivered>,
}

struct Server {
    keeper: Option<Keeper>,
    store: Arc<Store>,
    delivery: Arc<dyn Delivery>,
    spec: Spec,
    mounts: BTreeMap<String, Mounted>,
}

impl Server {
    fn spec(&self, at: &str) -> Spec {
        Spec { path: at.into(), ..self.spec.clone() }
    }

    fn mount(&mut self, dataset: DatasetId, at: &str) -> Result<()> {
        let fs = FileSystem::new(self.store.dataset(dataset)?);
        let delivered = self.delivery.deliver(fs.clone(), &self.spec(at))?;
        self.mounts.insert(at.to_owned(), Mounted { dataset, fs, delivered });
        Ok(())
    }

    /// As [`Server::mount`], so that it outlives this process, or continues with what was handed
    /// over.
    fn mount_kept(
        &mut self,
        dataset: DatasetId,
        at: &str,
        handover: Option<Vec<OwnedFd>>,
    ) -> Result<()> {
        let Some(handover) = handover else {
            self.mount(dataset, at)?;
            let Some(keeper) = &self.keeper else { return Ok(()) };
            let delivered = &self.at(at)?.delivered;
            let volatile = Arc::new(VolatileLog::create()?);
            delivered.survive(volatile.clone());
            self.store.commit_all()?;
            let mut handover = delivered.handover().ok_or("it cannot outlive this process")?;
            handover.push(volatile.as_fd());
            keeper.hold(dataset.0, &handover)?;
            return Ok(());
        };
        let fs = FileSystem::new(self.store.dataset(dataset)?);
        let delivered = self.delivery.resume(fs.clone(), &self.spec(at), handover)?;
        self.mounts.insert(at.to_owned(), Mounted { dataset, fs, delivered });
        Ok(())
    }

    fn at(&self, mountpoint: &str) -> Result<&Mounted> {
        self.mounts.get(mountpoint).ok_or_else(|| format!("{mountpoint} is not mounted").into())
    }

    fn command(&mut self, line: &str) -> Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["snapshot", mountpoint] => {
                Ok(self.store.snapshot(self.at(mountpoint)?.dataset)?.to_string())
            }
            ["clone", snapshot] => {
                let snapshot: SnapshotId = snapshot.parse()?;
                Ok(self.store.clone_snapshot(snapshot)?.to_string())
            }
            ["mount", dataset, mountpoint] => {
                self.mount(dataset.parse()?, mountpoint)?;
                Ok(String::new())
            }
            ["unmount", mountpoint] => {
                let mounted = self.mounts.remove(mountpoint).ok_or("there is no such mount")?;
                let how = mounted.delivered.end(Duration::from_millis(500))?;
                Ok(format!("{how:?}"))
            }
            ["flush", mountpoint] => {
                let flusher = self.at(mountpoint)?.delivered.flusher();
                flusher.ok_or("it gathers nothing")?()?;
                Ok(String::new())
            }
            ["delete", dataset] => {
                self.store.delete_dataset(dataset.parse()?)?;
                Ok(String::new())
            }
            ["commit"] => {
                self.store.commit_all()?;
                Ok(String::new())
            }
            ["write", mountpoint, path, text] => {
                let new = NewFile { mode: 0o644, uid: 0, gid: 0 };
                self.at(mountpoint)?.fs.write_file(path, text.as_bytes(), new)?;
                Ok(String::new())
            }
            ["remove", mountpoint, path] => {
                self.at(mountpoint)?.fs.remove_tree(path)?;
                Ok(String::new())
            }
            ["chmod", mountpoint, path, mode] => {
                let mode = u32::from_str_radix(mode, 8)?;
                self.at(mountpoint)?.fs.set_mode(path, mode)?;
                Ok(String::new())
            }
            ["stream", mountpoint] => {
                self.at(mountpoint)?.fs.mark_stream();
                Ok(String::new())
            }
            ["share", from, source, to, target] => {
                let (from, to) = (self.at(from)?, self.at(to)?);
                let length = to.fs.share_file(&from.fs, source, target)?;
                to.fs.sync()?;
                Ok(length.to_string())
            }
            _ => Err(format!("unknown command: {line}").into()),
        }
    }
}

/// Takes, clones and deletes snapshots all the time, so that commits meet the tests' writes.
fn churn(store: &Store, dataset: DatasetId, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let round = || -> Result<()> {
            let snapshot = store.snapshot(dataset)?;
            let clone = store.clone_snapshot(snapshot)?;
            store.delete_snapshot(snapshot)?;
            store.delete_dataset(clone)?;
            Ok(())
        };
        if let Err(error) = round() {
            eprintln!("snapshots: {error}");
            std::process::exit(1);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The user that all files are shown as, if one is given.
fn owner(args: &[String]) -> Result<Option<Owner>> {
    let Some(id) = args.iter().find_map(|arg| arg.strip_prefix("--owner=")) else {
        return Ok(None);
    };
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let shown = Ids { uid: id.parse()?, gid: id.parse()? };
    Ok(Some(Owner { shown, kept: Ids { uid, gid } }))
}

/// Blocks the signals that end the server in this thread and all it starts.
fn block_signals() -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each command")]
fn serve(args: &[String]) -> Result<()> {
    let signals = block_signals();
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let (Some(pool), Some(mountpoint)) = (args.first(), args.get(1)) else {
        return Err("usage: serve_mount POOL MOUNTPOINT [OPTION…]".into());
    };
    let number = |name: &str, default: u64| match args.iter().find_map(|a| a.strip_prefix(name)) {
        Some(text) => text.parse::<u64>(),
        None => Ok(default),
    };
    let cache_mib = number("--cache-mib=", 64)?;
    let mut options = StoreOptions::default();
    options.pool.cache_size = cache_mib << 20;
    match number("--capacity-mib=", 0)? {
        0 => {}
        capacity => options.pool.capacity = Some(capacity << 20),
    }
    let new = std::fs::read_dir(Path::new(pool))?.next().is_none();
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(pool)?);
    if new {
        Store::create(&disk, &options)?;
    }
    let keeper = args.iter().find_map(|arg| arg.strip_prefix("--keeper=")).map(PathBuf::from);
    let keeper = keeper.map(|socket| Keeper::connect(&socket)).transpose()?;
    let mut handover = None;
    let mut survivors = Vec::new();
    for held in keeper.as_ref().map(Keeper::list).transpose()?.unwrap_or_default() {
        let Held { key, mut descriptors } = held;
        let memory = descriptors.pop().ok_or("the keeper holds nothing")?;
        survivors.push((DatasetId(key), Arc::new(VolatileLog::open(memory)?)));
        handover = Some(descriptors);
    }
    let store = Store::take_over(disk, &options, Arc::new(SystemClock), &survivors)?;
    let dataset = match store.datasets().first() {
        Some(info) => info.id,
        None => {
            // It belongs to root, who need not be the user who serves.
            let dataset = store.create_dataset()?;
            let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
            let fs = FileSystem::new(store.dataset(dataset)?);
            fs.set_owner("", uid.as_raw(), gid.as_raw())?;
            fs.sync()?;
            dataset
        }
    };
    let named = args.iter().find_map(|arg| arg.strip_prefix("--delivery="));
    let options = FuseOptions {
        direct_io: has("--direct-io"),
        threads: number("--threads=", 0)? as usize,
        ..FuseOptions::default()
    };
    let delivery = delivery(named.unwrap_or("fuse"), options)?;
    delivery.check_host()?;
    let mut server = Server {
        keeper,
        store: store.clone(),
        delivery: delivery.clone(),
        spec: Spec {
            path: mountpoint.into(),
            other_users: has("--allow-other"),
            owner: owner(args)?,
            gather_writes: has("--write-back"),
            xattrs: !has("--no-xattrs"),
            read_only: has("--read-only"),
        },
        mounts: BTreeMap::new(),
    };
    if handover.is_some() && store.dataset(dataset)?.volatile().is_none() {
        return Err("the volatile log is incomplete".into());
    }
    let kept: Vec<PathBuf> = handover.iter().map(|_| mountpoint.into()).collect();
    delivery.clean_stale(Path::new(mountpoint), &kept)?;
    server.mount_kept(dataset, mountpoint, handover)?;
    let stop = Arc::new(AtomicBool::new(false));
    let churning = has("--snapshots").then(|| {
        let (store, stop) = (store.clone(), stop.clone());
        std::thread::spawn(move || churn(&store, dataset, &stop))
    });
    for _ in 0..number("--ask-itself=", 0)? {
        let mountpoint = mountpoint.clone();
        std::thread::spawn(move || while std::fs::read_dir(&mountpoint).is_ok() {});
    }
    println!("ready {dataset}");
    if has("--commands") {
        for line in std::io::stdin().lock().lines() {
            match server.command(&line?) {
                Ok(answer) => println!("ok {answer}"),
                Err(error) => println!("error {error}"),
            }
        }
    } else {
        let mut signal = 0;
        // SAFETY: the set was initialised by `block_signals`.
        unsafe { libc::sigwait(&signals, &mut signal) };
    }
    stop.store(true, Ordering::Relaxed);
    if let Some(thread) = churning {
        let _ = thread.join();
    }
    for (mountpoint, mounted) in std::mem::take(&mut server.mounts) {
        if let Err(error) = mounted.delivered.end(Duration::from_secs(1)) {
            eprintln!("{mountpoint}: {error}");
        }
        if let Some(keeper) = &server.keeper {
            keeper.drop_held(mounted.dataset.0)?;
        }
    }
    store.close()?;
    Ok(())
}

fn main() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = serve(&args) {
        eprintln!("serve_mount: {error}");
        std::process::exit(1);
    }
}

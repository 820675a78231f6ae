//! One limit for all processes of a group: memory with its page cache, and operations of a device.

use offshoot_os::cgroup::MemoryGroup;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where version 1 keeps the controller of block devices.
const BLKIO: &str = "/sys/fs/cgroup/blkio";
/// How often a group is tried to be removed, and the time between.
const REMOVALS_MAX: u32 = 100;
const REMOVAL_PAUSE: Duration = Duration::from_millis(100);

/// What a group may use.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Bytes of memory, page cache included.
    pub memory_bytes: Option<u64>,
    /// Reads a second and writes a second.
    pub iops: Option<u64>,
    /// The devices these hold for, as `major:minor`.
    pub devices: Vec<String>,
}

/// A group with limits. It is removed when dropped; its processes should have ended by then.
#[derive(Debug)]
pub struct Cage {
    memory: Option<MemoryGroup>,
    io: Option<PathBuf>,
}

impl Cage {
    /// Makes the group `name` with limits.
    ///
    /// # Errors
    /// What this machine cannot limit, in words that say which option asks for it.
    pub fn new(name: &str, limits: &Limits) -> anyhow::Result<Self> {
        let mut cage = Cage { memory: None, io: None };
        if let Some(bytes) = limits.memory_bytes {
            let group = MemoryGroup::create(name, bytes);
            let group = group.map_err(|error| {
                anyhow::anyhow!("this machine cannot limit memory (--memory-limit): {error}")
            })?;
            cage.memory = Some(group);
        }
        if let Some(iops) = limits.iops {
            let group = io_group(name, iops, &limits.devices, cage.memory.as_ref());
            let group = group.map_err(|error| {
                anyhow::anyhow!(
                    "this machine cannot limit operations of a device (--iops): {error}; it needs the \
                     controller blkio of cgroup version 1 or io of version 2, with throttling, and root"
                )
            })?;
            cage.io = Some(group);
        }
        Ok(cage)
    }

    /// Moves a process into the group; its later children are in it too.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn add(&self, pid: i32) -> io::Result<()> {
        if let Some(memory) = &self.memory {
            memory.add(pid)?;
        }
        if let Some(directory) = &self.io {
            std::fs::write(directory.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            remove_soon(|| memory.remove());
        }
        if let Some(directory) = &self.io {
            remove_soon(|| std::fs::remove_dir(directory));
        }
    }
}

/// Removes a group as soon as its processes have ended. What still runs after a while keeps it; the next
/// of the same name takes it over.
fn remove_soon(remove: impl Fn() -> io::Result<()>) {
    for _ in 0..REMOVALS_MAX {
        match remove() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(REMOVAL_PAUSE);
            }
            _ => return,
        }
    }
}

/// Where version 2 keeps its groups, beside version 1 and alone.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Makes a group in which operations of devices are limited; the group of the memory limit where both
/// are of version 2, as a process is in one group of that.
fn io_group(
    name: &str,
    iops: u64,
    devices: &[String],
    memory: Option<&MemoryGroup>,
) -> io::Result<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup")?;
    if let Some(own) = own_group(&own, "blkio") {
        let directory = make(Path::new(BLKIO).join(own).join(name))?;
        for (device, kind) in devices.iter().flat_map(|one| [(one, "read"), (one, "write")]) {
            let file = directory.join(format!("blkio.throttle.{kind}_iops_device"));
            std::fs::write(file, format!("{device} {iops}"))?;
        }
        return Ok(directory);
    }
    let parents: Vec<PathBuf> = match memory.and_then(MemoryGroup::unified) {
        Some(group) => group.parent().map(Path::to_path_buf).into_iter().collect(),
        None => {
            let root = UNIFIED.map(PathBuf::from).into_iter().find(|root| root.is_dir());
            // A group with processes hands no controller down, unless it is the root.
            let own = own_group(&own, "").zip(root.as_ref()).map(|(own, root)| root.join(own));
            own.into_iter().chain(root).collect()
        }
    };
    let parent = parents.into_iter().find(|parent| hands_down_io(parent));
    let parent = parent.ok_or_else(|| io::Error::other("there is no such controller"))?;
    let directory = make(parent.join(name))?;
    for device in devices {
        std::fs::write(directory.join("io.max"), format!("{device} riops={iops} wiops={iops}"))?;
    }
    Ok(directory)
}

/// This process's group of a controller of version 1, or with "" of version 2, below its root.
fn own_group(own: &str, controller: &str) -> Option<PathBuf> {
    own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let found = controllers.split(',').any(|one| one == controller);
        found.then(|| PathBuf::from(path.trim_start_matches('/')))
    })
}

/// Asks a group of version 2 to let those below it limit devices.
fn hands_down_io(group: &Path) -> bool {
    // Never creates the file where there is no such group.
    let control = OpenOptions::new().write(true).open(group.join("cgroup.subtree_control"));
    control.and_then(|mut control| control.write_all(b"+io")).is_ok()
}

fn make(directory: PathBuf) -> io::Result<PathBuf> {
    match std::fs::create_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(directory),
    }
}

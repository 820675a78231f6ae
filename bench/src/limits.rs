//! One limit for all processes of a group: memory with its page cache, and operations of a device.

use offshoot_os::cgroup::Group;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where version 1 keeps the controller of block devices.
const BLKIO: &str = "/sys/fs/cgroup/blkio";
/// How often to try to remove a group, and the time between attempts.
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
    memory: Option<Group>,
    blkio: Option<PathBuf>,
}

impl Cage {
    /// Makes the group `name` with limits.
    ///
    /// # Errors
    /// What this machine cannot limit, in words that say which option asks for it.
    pub fn new(name: &str, limits: &Limits) -> anyhow::Result<Self> {
        let mut cage = Cage { memory: None, blkio: None };
        if let Some(bytes) = limits.memory_bytes {
            let group =
                Group::create(name).and_then(|group| group.limit_memory(bytes).map(|()| group));
            let group = group.map_err(|error| {
                anyhow::anyhow!("this machine cannot limit memory (--memory-limit): {error}")
            })?;
            cage.memory = Some(group);
        }
        if let Some(iops) = limits.iops {
            let group = blkio_group(name, iops, &limits.devices);
            let group = group.map_err(|error| {
                anyhow::anyhow!(
                    "this machine cannot limit operations of a device (--iops): {error}; it needs the \
                     blkio controller of cgroup version 1 with throttling"
                )
            })?;
            cage.blkio = Some(group);
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
        if let Some(directory) = &self.blkio {
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
        if let Some(directory) = &self.blkio {
            remove_soon(|| std::fs::remove_dir(directory));
        }
    }
}

/// Removes a group as soon as its processes have ended. If something still runs after a while, the group
/// stays; the next one with the same name takes it over.
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

fn blkio_group(name: &str, iops: u64, devices: &[String]) -> io::Result<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup")?;
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|one| one == "blkio").then(|| path.trim_start_matches('/'))
    });
    let path = path.ok_or_else(|| io::Error::other("there is no such controller"))?;
    let directory = Path::new(BLKIO).join(path).join(name);
    match std::fs::create_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for device in devices {
        for kind in ["read", "write"] {
            let file = directory.join(format!("blkio.throttle.{kind}_iops_device"));
            std::fs::write(file, format!("{device} {iops}"))?;
        }
    }
    Ok(directory)
}

//! Memory limits for groups of processes, by control groups of either version.
//!
//! A group is made below this process's own, so that limits set on the engine from outside still hold.
//! See the kernel's `admin-guide/cgroup-v1/memory.rst` and `admin-guide/cgroup-v2.rst`.

use std::io;
use std::path::{Path, PathBuf};

/// Where version 1 keeps the memory controller.
const V1: &str = "/sys/fs/cgroup/memory";
/// Where version 2 keeps everything.
const V2: &str = "/sys/fs/cgroup";

/// A control group with a memory limit. Dropping it leaves it in place; see [`MemoryGroup::remove`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryGroup {
    dir: PathBuf,
}

impl MemoryGroup {
    /// Makes the group `name` (or takes it over) and limits its memory to `limit` bytes.
    ///
    /// # Errors
    /// `Unsupported` where this host has no memory controller that this process may use, otherwise
    /// the operating system's error.
    pub fn create(name: &str, limit: u64) -> io::Result<MemoryGroup> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let (parent, limit_file) = parent_of(&own, Path::new(V1).is_dir()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::Unsupported, "there is no memory controller")
        })?;
        if limit_file == "memory.max" {
            // Version 2 delegates a controller only if asked.
            std::fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
        }
        let dir = parent.join(name);
        match std::fs::create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let group = MemoryGroup { dir };
        if let Err(error) = std::fs::write(group.dir.join(limit_file), limit.to_string()) {
            let _ = group.remove();
            return Err(error);
        }
        Ok(group)
    }

    /// The group `name` as [`MemoryGroup::create`] would make it, without making it.
    pub fn find(name: &str) -> Option<MemoryGroup> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let (parent, _) = parent_of(&own, Path::new(V1).is_dir())?;
        let dir = parent.join(name);
        dir.is_dir().then_some(MemoryGroup { dir })
    }

    /// Moves a process into the group; its later children are in it too.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn add(&self, pid: i32) -> io::Result<()> {
        std::fs::write(self.dir.join("cgroup.procs"), pid.to_string())
    }

    /// Makes the kernel end a process of the group instead of moving its memory to swap space.
    ///
    /// # Errors
    /// The operating system's error; `NotFound` if it has no swap space.
    pub fn forbid_swap(&self) -> io::Result<()> {
        let set = |file: &str| std::fs::write(self.dir.join(file), "0");
        // Version 1 has a file for it only with swap accounting; with a swappiness of 0 it does not
        // swap.
        set("memory.swap.max").or_else(|_| set("memory.swappiness"))
    }

    /// Processes that the kernel has ended in the group for lack of memory.
    ///
    /// # Errors
    /// The operating system's error; `NotFound` if it does not count them.
    pub fn killed(&self) -> io::Result<u64> {
        let v2 = std::fs::read_to_string(self.dir.join("memory.events"));
        let text = v2.or_else(|_| std::fs::read_to_string(self.dir.join("memory.oom_control")))?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).ok_or(io::ErrorKind::NotFound.into())
    }

    /// Removes the group, which must be empty; being gone is no error.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Removes the empty groups with this prefix, which a killed process left.
pub fn remove_empty(prefix: &str) {
    let Ok(own) = std::fs::read_to_string("/proc/self/cgroup") else { return };
    let Some((parent, _)) = parent_of(&own, Path::new(V1).is_dir()) else { return };
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            // The kernel refuses where processes are.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// This process's own group, and the name of the file with a limit in it.
fn parent_of(own: &str, has_v1: bool) -> Option<(PathBuf, &'static str)> {
    let mut unified = None;
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        if has_v1 && controllers.split(',').any(|one| one == "memory") {
            return Some((Path::new(V1).join(path), "memory.limit_in_bytes"));
        }
        if controllers.is_empty() {
            unified = Some((Path::new(V2).join(path), "memory.max"));
        }
    }
    unified.filter(|_| !has_v1)
}

#[cfg(test)]
mod tests;

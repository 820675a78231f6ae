//! A directory; when it is dropped, its processes, mounts and files go with it.

use anyhow::{Context, Result};
use offshoot_os::process::{self, ProcessId, Signal, Spec};
use offshoot_os::{Clock, SystemClock, random_bytes};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The scratch directories of this process, for [`clean_on_signal`].
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From now on SIGINT and SIGTERM remove every [`Scratch`] of this process, with its processes and
/// mounts, and end the process with exit code 130. For programs that need no other clean-up.
pub fn clean_on_signal() {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let kinds = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
            let (Ok(mut interrupt), Ok(mut terminate)) = kinds else { return };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        let live = std::mem::take(&mut *LIVE.lock().unwrap_or_else(PoisonError::into_inner));
        for path in live {
            drop(Scratch { path });
        }
        std::process::exit(130);
    });
}

/// A fresh directory below `OFFSHOOT_SCRATCH_DIR`, or `/var/tmp` where that is not set.
///
/// When it is dropped, even after a failure, processes that work in it or name it in their
/// arguments are killed, mounts below it are detached, and it is removed.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one. The name begins with `offshoot-` and `purpose`.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn new(purpose: &str) -> Result<Self> {
        let under =
            std::env::var_os("OFFSHOOT_SCRATCH_DIR").map_or("/var/tmp".into(), PathBuf::from);
        std::fs::create_dir_all(&under).with_context(|| format!("making {}", under.display()))?;
        let name: String = random_bytes::<4>().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = under.join(format!("offshoot-{purpose}-{name}"));
        std::fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        // The database's user must be able to traverse it.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
        LIVE.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Ok(Scratch { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Processes that work below it or name it in their arguments, without this one.
    pub fn processes(&self) -> Vec<ProcessId> {
        processes_at(&self.path)
    }

    /// Mount points below it, innermost first.
    pub fn mounts(&self) -> Vec<PathBuf> {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
        let mut points: Vec<PathBuf> =
            points.filter(|point| point.starts_with(&self.path)).collect();
        points.sort();
        points.reverse();
        points
    }

    /// Ends processes and mounts, but keeps the files.
    pub fn quiesce(&self) {
        for _ in 0..3 {
            let processes = self.processes();
            if processes.is_empty() {
                break;
            }
            // All together: some wait for answers that only others can give.
            for process in &processes {
                // Another user's process cannot be ours.
                let _ = process.signal(Signal::Kill);
            }
            for process in processes {
                process.wait_end(Duration::from_secs(5));
            }
        }
        for point in self.mounts() {
            // Benchmarks also mount other filesystems, which only root can.
            for spec in [
                Spec::new("fusermount3").args(["-u", "-z"]).arg(&point),
                Spec::new("umount").arg("-l").arg(&point),
            ] {
                let done = process::run(&spec, Duration::from_secs(10));
                if done.is_ok_and(|output| output.success()) {
                    break;
                }
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.quiesce();
        LIVE.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.path);
        for _ in 0..20 {
            match std::fs::remove_dir_all(&self.path) {
                Ok(()) => return,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
                Err(_) => SystemClock.sleep(Duration::from_millis(100)),
            }
        }
    }
}

/// Processes that work below a directory or name it in their arguments, without this one.
pub(crate) fn processes_at(path: &Path) -> Vec<ProcessId> {
    let own = std::process::id() as i32;
    let named = path.to_string_lossy();
    ProcessId::all()
        .filter(|process| process.pid != own)
        .filter(|process| {
            process.cwd().is_some_and(|cwd| cwd.starts_with(path))
                || process.arguments().iter().any(|argument| argument.contains(&*named))
        })
        .collect()
}

/// Space the files below a directory take on disk, in bytes, without crossing into mounts.
pub fn bytes_below(directory: &Path) -> u64 {
    let device = std::fs::symlink_metadata(directory).map_or(0, |meta| meta.dev());
    let mut total = 0;
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.dev() != device {
                continue;
            }
            total += meta.blocks() * 512;
            if meta.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    total
}

/// A path as the mount table writes it, with spaces and backslashes as octal escapes.
fn unescape(text: &str) -> PathBuf {
    let unescaped = text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    PathBuf::from(unescaped)
}

//! A small separate file system for a pool, which others can fill to the last byte.

use anyhow::{Result, ensure};
use offshoot_os::disk::{Disk, DiskFile, LinuxDisk};
use offshoot_os::process::{Spec, run};
use offshoot_rig::Scratch;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest one of the system's tools may take.
const TOOL_SECONDS_MAX: u64 = 60;
/// The file that takes the room.
const FILLER: &str = "filler";

/// An ext4 in a file, mounted through a loop device. Dropping it unmounts and removes it: first drop
/// what uses it.
#[derive(Debug)]
pub struct SmallDisk {
    scratch: Scratch,
}

fn tool(spec: &Spec) -> Result<()> {
    let output = run(spec, Duration::from_secs(TOOL_SECONDS_MAX))?;
    ensure!(output.success(), "{}: {}", spec.name(), output.stderr_text().trim());
    Ok(())
}

impl SmallDisk {
    /// Makes and mounts one of `bytes`.
    ///
    /// # Errors
    /// If this host does not allow that: it takes root and a loop device.
    pub fn new(bytes: u64) -> Result<SmallDisk> {
        let disk = SmallDisk { scratch: Scratch::new("disk")? };
        let (image, root) = (disk.scratch.path().join("image"), disk.root());
        File::create(&image)?.set_len(bytes)?;
        std::fs::create_dir(&root)?;
        tool(&Spec::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))?;
        tool(&Spec::new("mount").args(["-o", "loop"]).arg(&image).arg(&root))?;
        std::fs::set_permissions(&root, PermissionsExt::from_mode(0o755))?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn root(&self) -> PathBuf {
        self.scratch.path().join("root")
    }

    /// Bytes that are free.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn free(&self) -> Result<u64> {
        Ok(LinuxDisk::new(self.root())?.space()?.free)
    }

    /// Takes room until no more than `leave` bytes are free, as another user of the file system would.
    ///
    /// # Errors
    /// Any but that there is no more room.
    pub fn fill(&self, leave: u64) -> Result<()> {
        let disk = LinuxDisk::new(self.root())?;
        let file: Arc<dyn DiskFile> = disk.open(FILLER).or_else(|_| disk.create(FILLER))?;
        let mut piece = 64 << 20;
        loop {
            let free = disk.space()?.free.saturating_sub(leave);
            piece = piece.min(free / 4096 * 4096);
            if piece == 0 {
                return Ok(());
            }
            match file.allocate(file.len()?, piece) {
                Ok(()) => {}
                // Some of what is free is the file system's own.
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => piece /= 2,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives back what [`SmallDisk::fill`] took.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn empty(&self) -> Result<()> {
        Ok(LinuxDisk::new(self.root())?.remove(FILLER)?)
    }
}

//! A filesystem in a file: a bounded one, or what snapshots of XFS and btrfs would give a user.

use anyhow::{Context, Result, ensure};
use offshoot_os::process::{self, Spec};
use offshoot_rig::Scratch;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest a command that makes, copies or mounts may take.
const COMMAND_SECONDS_MAX: u64 = 3_600;

/// What a volume is made as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Filesystem {
    /// Copies do not share blocks.
    Ext4,
    /// They do by `cp --reflink`.
    Xfs,
    /// They do as snapshots.
    Btrfs,
}

impl Filesystem {
    /// Whether this machine lets us make such a filesystem.
    ///
    /// # Errors
    /// What is missing.
    pub fn possible(self) -> Result<()> {
        ensure!(rustix::process::geteuid().is_root(), "loop devices and mounts need root");
        let package = match self {
            Filesystem::Ext4 => "e2fsprogs",
            Filesystem::Xfs => "xfsprogs",
            Filesystem::Btrfs => "btrfs-progs",
        };
        let missing = format!("mkfs.{} is missing (Debian: {package})", self.name());
        run(Spec::new(format!("mkfs.{}", self.name())).arg("-V")).map(drop).context(missing)
    }

    fn name(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "ext4",
            Filesystem::Xfs => "xfs",
            Filesystem::Btrfs => "btrfs",
        }
    }
}

/// A filesystem on a loop device. It is unmounted when dropped; the device goes with the mount.
#[derive(Debug)]
pub struct Volume {
    /// Where it is mounted.
    pub mount: PathBuf,
    image: PathBuf,
    filesystem: Filesystem,
}

impl Volume {
    /// Makes and mounts one of at most `bytes` below `scratch`; the file takes what is written.
    ///
    /// # Errors
    /// What a command says: the tools are missing, or loop devices are not allowed here.
    pub fn make(scratch: &Scratch, filesystem: Filesystem, bytes: u64) -> Result<Self> {
        filesystem.possible()?;
        let name = filesystem.name();
        let image = scratch.path().join(format!("{name}.image"));
        let mount = scratch.path().join(name);
        File::create(&image)?.set_len(bytes)?;
        std::fs::create_dir(&mount)?;
        run(Spec::new(format!("mkfs.{name}")).arg("-q").arg(&image))?;
        // The loop device is freed with the mount, and keeps no second copy in the page cache.
        let device =
            run(Spec::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(&image))?;
        let device = device.trim();
        let mounted = run(Spec::new("mount").arg(device).arg(&mount));
        // Detached now, a device lives until its last user has gone: until the unmount.
        run(Spec::new("losetup").arg("--detach").arg(device))?;
        mounted.context("mounting a loop device")?;
        Ok(Volume { mount, image, filesystem })
    }

    /// Makes the directory that copies are made of.
    ///
    /// # Errors
    /// What the command says.
    pub fn make_template(&self) -> Result<PathBuf> {
        let template = self.mount.join("template");
        match self.filesystem {
            Filesystem::Ext4 | Filesystem::Xfs => std::fs::create_dir(&template)?,
            Filesystem::Btrfs => {
                run(Spec::new("btrfs").args(["subvolume", "create"]).arg(&template))?;
            }
        }
        Ok(template)
    }

    /// Makes a copy that shares all blocks.
    ///
    /// # Errors
    /// What the command says.
    pub fn share(&self, from: &Path, to: &Path) -> Result<()> {
        match self.filesystem {
            Filesystem::Ext4 | Filesystem::Xfs => {
                run(Spec::new("cp").args(["-a", "--reflink=always"]).arg(from).arg(to))?;
            }
            Filesystem::Btrfs => {
                run(Spec::new("btrfs").args(["subvolume", "snapshot"]).arg(from).arg(to))?;
            }
        }
        Ok(())
    }

    /// Removes a copy.
    ///
    /// # Errors
    /// What the command says.
    pub fn remove(&self, copy: &Path) -> Result<()> {
        match self.filesystem {
            Filesystem::Ext4 | Filesystem::Xfs => std::fs::remove_dir_all(copy)?,
            Filesystem::Btrfs => {
                run(Spec::new("btrfs").args(["subvolume", "delete"]).arg(copy))?;
            }
        }
        Ok(())
    }

    /// What it takes of the filesystem below, in bytes.
    pub fn used_bytes(&self) -> u64 {
        rustix::fs::statvfs(&self.mount)
            .map(|seen| (seen.f_blocks - seen.f_bfree) * seen.f_frsize)
            .unwrap_or(0)
    }

    /// The file that it lies in.
    pub fn image(&self) -> &Path {
        &self.image
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // A remaining mount is removed with the scratch directory.
        let _ = run(Spec::new("umount").arg(&self.mount));
        let _ = std::fs::remove_file(&self.image);
    }
}

/// Runs a command; what it says when it fails is the error.
pub fn run(spec: Spec) -> Result<String> {
    let output = process::run(&spec, Duration::from_secs(COMMAND_SECONDS_MAX))?;
    ensure!(output.success(), "{}: {}", spec.name(), output.stderr_text());
    Ok(output.stdout_text())
}

//! What the host reports about itself while a benchmark runs: processors, block devices, the
//! machine.

use crate::figures::megabytes;
use offshoot_os::process::{self, Spec};
use offshoot_rig::find_newest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The machine and what runs on it, for comparing results.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Environment {
    /// The processor's name.
    pub cpu: String,
    /// Processors.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel.
    pub kernel: String,
    /// PostgreSQL's programs that the benchmark starts.
    pub postgresql: String,
    /// This program.
    pub offshoot: String,
    /// `release` or `debug`: a debug build measures nothing.
    pub build: String,
    /// What else ran, at the begin: the load averages of 1, 5 and 15 minutes.
    pub load_average: String,
    /// The filesystem below the scratch directory.
    pub scratch_filesystem: String,
}

impl Environment {
    /// Of this machine, with what lies at `scratch`.
    pub fn here(scratch: &Path) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let after_colon = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let cpuinfo = read("/proc/cpuinfo");
        let memory = after_colon(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: u64 = memory.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let load: Vec<String> =
            read("/proc/loadavg").split(' ').take(3).map(str::to_owned).collect();
        Environment {
            cpu: after_colon(&cpuinfo, "model name").unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: kib * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            postgresql: postgres_version(),
            offshoot: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            load_average: load.join(" "),
            scratch_filesystem: filesystem_of(scratch).map_or_else(String::new, |found| found.kind),
        }
    }
}

fn postgres_version() -> String {
    let Ok(directory) = find_newest() else { return String::new() };
    let spec = Spec::new(directory.join("postgres")).arg("--version");
    let output = process::run(&spec, Duration::from_secs(10));
    output.map(|output| output.stdout_text().trim().to_owned()).unwrap_or_default()
}

/// A mounted filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    /// As `ext4`.
    pub kind: String,
    /// `major:minor` of its device; `0:…` where it has none.
    pub device: String,
}

/// The filesystem that holds a path.
pub fn filesystem_of(path: &Path) -> Option<Filesystem> {
    let path = path.canonicalize().ok()?;
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounts = table.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let point = left.get(4)?.replace("\\040", " ");
        let device = (*left.get(2)?).to_owned();
        path.starts_with(&point).then(|| {
            let kind = right.split(' ').next().unwrap_or_default().to_owned();
            (point.len(), Filesystem { kind, device })
        })
    });
    // Of two mounts on one point the later one covers the earlier.
    mounts.max_by_key(|(length, _)| *length).map(|(_, filesystem)| filesystem)
}

/// Memory of a process in bytes, shared memory included.
pub fn resident_bytes(pid: i32) -> Option<u64> {
    status_bytes(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

/// Memory of a process in bytes, with only its part of what it shares.
pub fn proportional_bytes(pid: i32) -> Option<u64> {
    status_bytes(&std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:")
}

/// A line as `VmRSS:   1234 kB`.
fn status_bytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1_024)
}

/// Ticks of all processors since the machine began, and reads and writes of each block device.
#[derive(Debug, Clone, Default)]
pub struct HostCounters {
    cpu: [u64; 8],
    devices: BTreeMap<String, [u64; 8]>,
}

/// How processors spent their time, as shares of all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CpuShares {
    /// In programs.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Idle while something waited for a device.
    pub iowait: f64,
    /// Taken by the host of this virtual machine.
    pub steal: f64,
    /// Idle.
    pub idle: f64,
}

/// What a block device did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceWork {
    /// Its name, as `sda`.
    pub device: String,
    /// Reads done.
    pub reads: u64,
    /// In units of 1,000,000 bytes.
    pub read_mb: f64,
    /// Milliseconds a read took.
    pub read_mean_ms: f64,
    /// Writes done.
    pub writes: u64,
    /// In units of 1,000,000 bytes.
    pub written_mb: f64,
    /// Milliseconds a write took.
    pub write_mean_ms: f64,
}

impl HostCounters {
    /// As they stand now.
    pub fn now() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        HostCounters {
            cpu: parse_cpu(&read("/proc/stat")),
            devices: parse_devices(&read("/proc/diskstats")),
        }
    }

    /// How processors spent the time since `before`.
    pub fn cpu_since(&self, before: &HostCounters) -> CpuShares {
        let spent: Vec<f64> =
            self.cpu.iter().zip(before.cpu).map(|(n, b)| n.saturating_sub(b) as f64).collect();
        let total = spent.iter().sum::<f64>().max(1.0);
        // user nice system idle iowait irq softirq steal, as proc(5) lists them
        CpuShares {
            user: (spent[0] + spent[1]) / total,
            system: (spent[2] + spent[5] + spent[6]) / total,
            idle: spent[3] / total,
            iowait: spent[4] / total,
            steal: spent[7] / total,
        }
    }

    /// What devices did since `before`; those that did nothing are left out.
    pub fn devices_since(&self, before: &HostCounters) -> Vec<DeviceWork> {
        let mut all = Vec::new();
        for (name, now) in &self.devices {
            let zero = [0; 8];
            let before = before.devices.get(name).unwrap_or(&zero);
            let spent: Vec<u64> =
                now.iter().zip(before).map(|(n, b)| n.saturating_sub(*b)).collect();
            if spent[0] + spent[4] == 0 {
                continue;
            }
            let each = |ms: u64, count: u64| ms as f64 / count.max(1) as f64;
            all.push(DeviceWork {
                device: name.clone(),
                reads: spent[0],
                read_mb: megabytes(spent[2] * 512),
                read_mean_ms: each(spent[3], spent[0]),
                writes: spent[4],
                written_mb: megabytes(spent[6] * 512),
                write_mean_ms: each(spent[7], spent[4]),
            });
        }
        all
    }
}

fn parse_cpu(stat: &str) -> [u64; 8] {
    let mut ticks = [0; 8];
    let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    for (tick, word) in ticks.iter_mut().zip(words) {
        *tick = word.parse().unwrap_or(0);
    }
    ticks
}

/// Whole devices only: partitions would count what their device counts.
fn parse_devices(diskstats: &str) -> BTreeMap<String, [u64; 8]> {
    let mut devices = BTreeMap::new();
    for line in diskstats.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(name), Some(counts)) = (words.get(2), words.get(3..11)) else { continue };
        if Path::new("/sys/block").join(name).exists() {
            let mut values = [0; 8];
            for (value, word) in values.iter_mut().zip(counts) {
                *value = word.parse().unwrap_or(0);
            }
            devices.insert((*name).to_owned(), values);
        }
    }
    devices
}

#[cfg(test)]
mod tests;

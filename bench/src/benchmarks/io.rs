//! fio over a VDB's files and over a plain directory: what a database's reads and writes cost.

use super::engine_options;
use crate::group::forget;
use crate::host::HostCounters;
use crate::record::{Chart, Line, Record};
use crate::setting::Setting;
use crate::stage::Stage;
use crate::statistics::{interleaved, median};
use anyhow::{Context, Result, bail, ensure};
use offshoot_os::process::{self, Spec};
use offshoot_rig::Database;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the file that are checked for zeros.
const LOOKED_AT_BYTES: usize = 4 << 20;
/// If a place reads less than this share of what fio got from a device, a cache answered.
const DEVICE_SHARE_MIN: f64 = 0.5;

/// Drive fio over the files of a VDB and over a plain directory
///
/// Random read of 8 KiB, sequential read of 1 MiB, sequential synchronous write of 1, 8 and 128 KiB. The
/// file is written once with random data of the wanted compressibility and, before each read, dropped
/// from the kernel's memory; the engine's cache stays.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench io --size 256MiB --users 1,8 --seconds 5")]
pub struct Arguments {
    /// Size of the file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = super::size)]
    size: u64,
    /// Users at a time
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,8,16,64",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    users: Vec<u32>,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u32,
    /// How often, in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    /// How much of the data compresses away, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    compressible: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// A kind of access.
struct Access {
    name: &'static str,
    flags: &'static [&'static str],
    reads: bool,
}

const ACCESSES: &[Access] = &[
    Access { name: "random_read_8k", flags: &["--rw=randread", "--bs=8k"], reads: true },
    // Bypassing the kernel's memory: a device on the host's filesystem, the engine's cache in a
    // VDB.
    Access {
        name: "random_read_8k_direct",
        flags: &["--rw=randread", "--bs=8k", "--direct=1"],
        reads: true,
    },
    Access { name: "sequential_read_1m", flags: &["--rw=read", "--bs=1m"], reads: true },
    Access {
        name: "sync_write_1k",
        flags: &["--rw=write", "--bs=1k", "--sync=dsync"],
        reads: false,
    },
    Access {
        name: "sync_write_8k",
        flags: &["--rw=write", "--bs=8k", "--sync=dsync"],
        reads: false,
    },
    Access {
        name: "sync_write_128k",
        flags: &["--rw=write", "--bs=128k", "--sync=dsync"],
        reads: false,
    },
];

/// What fio saw.
struct Seen {
    mb_per_s: f64,
    iops: f64,
    mean_us: f64,
    p99_ms: f64,
    bytes: f64,
}

/// What fio saw in all runs, by access, users and place.
type Samples = BTreeMap<(&'static str, u32, &'static str), Vec<Seen>>;

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let stage = Stage::start(&engine_options(&arguments.setting)?, 1, &[])?;
    let mut record = Record::begin("io", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let vdb = stage.provision("files", "prod", &[])?;
    let files = Database::connect(&vdb.uri)?.text("SHOW data_directory")?;
    stage.engine.command(["dsource", "pause", "prod"])?;
    let plain = stage.scratch.path().join("plain");
    std::fs::create_dir(&plain)?;
    let places = [("plain", plain), ("vdb", PathBuf::from(files))];
    if arguments.size < record.environment.memory_bytes {
        record.note("the file is smaller than this machine's memory: caches answer much of it");
    }
    for (place, directory) in &places {
        lay_out(directory, arguments).with_context(|| format!("writing the file of {place}"))?;
        let zeros = zero_share(&directory.join("data"))?;
        if zeros > 0.5 {
            let percent = zeros * 100.0;
            record.note(format!(
                "{percent:.0} % of the data of {place} is zero blocks: they take no space and no time"
            ));
        }
    }
    let mut samples = Samples::new();
    for (_, place) in interleaved(places.len(), arguments.repeats) {
        let (name, directory) = &places[place];
        for access in ACCESSES {
            for users in &arguments.users {
                let seen = measure(directory, access, *users, arguments, name, &mut record)?;
                eprintln!(
                    "  {name} {} users={users}: {:.1} MB/s, {:.0} IOPS, mean {:.1} µs, p99 {:.2} ms",
                    access.name, seen.mb_per_s, seen.iops, seen.mean_us, seen.p99_ms
                );
                let key = (access.name, *users, *name);
                samples.entry(key).or_default().push(seen);
            }
        }
    }
    add_figures(&mut record, &samples);
    Ok(record)
}

fn fio(directory: &Path, arguments: &Arguments) -> Spec {
    Spec::new("fio")
        .args(["--name=offshoot", "--output-format=json", "--ioengine=psync", "--thread"])
        .args(["--group_reporting", "--randrepeat=1", "--refill_buffers", "--end_fsync=1"])
        .arg(format!("--filename={}", directory.join("data").display()))
        .arg(format!("--size={}", arguments.size))
        .arg(format!("--randseed={}", arguments.setting.seed))
        .arg(format!("--buffer_compress_percentage={}", arguments.compressible))
        .arg("--buffer_compress_chunk=8k")
        .cwd(directory)
}

fn lay_out(directory: &Path, arguments: &Arguments) -> Result<()> {
    let spec = fio(directory, arguments).args(["--rw=write", "--bs=128k"]);
    run_fio(&spec, Duration::from_secs(3_600)).map(drop)
}

fn measure(
    directory: &Path,
    access: &Access,
    users: u32,
    arguments: &Arguments,
    place: &str,
    record: &mut Record,
) -> Result<Seen> {
    forget(&directory.join("data"));
    let mut spec = fio(directory, arguments)
        .args(access.flags)
        .args(["--time_based", "--invalidate=0"])
        .arg(format!("--runtime={}", arguments.seconds))
        .arg(format!("--numjobs={users}"));
    if access.name.starts_with("sequential") || !access.reads {
        // Each user has a stretch of its own.
        spec = spec.arg(format!("--offset_increment={}", arguments.size / u64::from(users)));
    }
    let before = HostCounters::now();
    let document = run_fio(&spec, Duration::from_secs(u64::from(arguments.seconds) + 300))?;
    let devices = HostCounters::now().devices_since(&before);
    let seen = read_result(&document, access.reads)?;
    let from_devices: f64 = devices.iter().map(|device| device.read_mb).sum();
    let got = seen.bytes / 1e6;
    if access.reads && from_devices < got * DEVICE_SHARE_MIN {
        record.note(format!(
            "{place} {} with {users} users: fio got {got:.0} MB, devices gave {from_devices:.0} MB: \
             the figure is that of a cache",
            access.name
        ));
    }
    Ok(seen)
}

pub(super) fn run_fio(spec: &Spec, limit: Duration) -> Result<Value> {
    let output = process::run(spec, limit).context("running fio (Debian package fio)")?;
    ensure!(output.success(), "fio: {} {}", output.stderr_text(), output.stdout_text());
    let text = output.stdout_text();
    let from = text.find('{').context("fio printed no result")?;
    serde_json::from_str(&text[from..]).context("reading fio's result")
}

fn read_result(document: &Value, reads: bool) -> Result<Seen> {
    let job = &document["jobs"][0];
    if job["error"].as_i64() != Some(0) {
        bail!("fio failed with error {}", job["error"]);
    }
    let part = &job[if reads { "read" } else { "write" }];
    let number = |value: &Value| value.as_f64().context("a number in fio's result");
    // What the user waits for is `lat` without synchronous flags, and includes them with these.
    let p99 = &part["clat_ns"]["percentile"]["99.000000"];
    Ok(Seen {
        mb_per_s: number(&part["bw_bytes"])? / 1e6,
        iops: number(&part["iops"])?,
        mean_us: number(&part["clat_ns"]["mean"])? / 1e3,
        p99_ms: number(p99)? / 1e6,
        bytes: number(&part["io_bytes"])?,
    })
}

/// The share of 8 KiB blocks at the file's begin that hold nothing but zeros.
fn zero_share(path: &Path) -> Result<f64> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LOOKED_AT_BYTES as u64).read_to_end(&mut bytes)?;
    let blocks = bytes.chunks(8_192);
    let count = blocks.len().max(1);
    let zeros = blocks.filter(|block| block.iter().all(|byte| *byte == 0)).count();
    Ok(zeros as f64 / count as f64)
}

fn add_figures(record: &mut Record, samples: &Samples) {
    let all =
        |seen: &[Seen], pick: fn(&Seen) -> f64| -> Vec<f64> { seen.iter().map(pick).collect() };
    for access in ACCESSES {
        let mut lines: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, users, place), seen) in
            samples.iter().filter(|((name, ..), _)| *name == access.name)
        {
            let label = format!("{place} {name} users={users}");
            let rates = all(seen, |one| one.mb_per_s);
            let rate = median(&rates);
            record.figures.note(format!("{label} mb_per_s"), rates);
            record.figures.note(format!("{label} iops"), all(seen, |one| one.iops));
            record.figures.note(format!("{label} mean_us"), all(seen, |one| one.mean_us));
            record.figures.note(format!("{label} p99_ms"), all(seen, |one| one.p99_ms));
            lines.entry(place).or_default().push((f64::from(*users), rate));
            if let Some(plain) = samples.get(&(*name, *users, "plain"))
                && *place == "vdb"
            {
                let ratio = rate / median(&all(plain, |one| one.mb_per_s));
                record.figures.note(format!("vdb to plain, {name} users={users}"), ratio);
            }
        }
        let line = |(name, points): (&str, _)| Line { name: name.to_owned(), points };
        record.charts.push(Chart {
            title: format!("{} by users", access.name.replace('_', " ")),
            x: "users".into(),
            y: "MB/s, median".into(),
            lines: lines.into_iter().map(line).collect(),
        });
    }
}

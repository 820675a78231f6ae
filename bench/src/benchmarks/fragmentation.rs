//! Random overwrites of a pool that is filled to a share of its size.
//!
//! The pool has its own filesystem in a file, which bounds it as a disk would.

use super::engine_options;
use super::io::run_fio;
use crate::block_trace::{BlockTrace, Sizes};
use crate::host::filesystem_of;
use crate::record::{Chart, Line, Record};
use crate::setting::Setting;
use crate::stage::{Stage, source_options};
use crate::statistics::{mean, median};
use crate::volume::{Filesystem, Volume};
use anyhow::{Context, Result, ensure};
use offshoot_os::process::Spec;
use offshoot_rig::{Database, Engine, Scratch, Source};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Samples, one a second, whose mean is the steady state.
const STEADY_SAMPLES: usize = 50;
/// Writers at a time.
const WRITERS: u32 = 8;

/// Overwrite a pool at random while it is filled to 10, 25, 50, 75 and 90 %
///
/// Eight writers, 8 KiB, random data. Each level begins on a fresh pool of a bounded size. The steady
/// state is the mean of the last 50 seconds. Needs root and fio.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench fragmentation --pool-size 4GiB --seconds 120")]
pub struct Arguments {
    /// Size of the filesystem that the pool is alone on
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = super::size)]
    pool_size: u64,
    /// What that filesystem is
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Filesystem::Ext4)]
    filesystem: Filesystem,
    /// How full the pool is made, in percent
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "10,25,50,75,90",
          value_parser = clap::value_parser!(u32).range(1..=95))]
    fill: Vec<u32>,
    /// Seconds of overwriting at each level
    #[arg(long, value_name = "N", default_value_t = 300)]
    seconds: u32,
    /// How often, levels in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// A fresh pool on a volume of its own, with a VDB whose directory takes the file. The order of the
/// fields is the order in which they end.
struct Bounded {
    stage: Stage,
    volume: Volume,
    file: PathBuf,
}

/// What one level showed.
struct Level {
    mb_per_s: Vec<f64>,
    maps: [Line; 2],
    sizes: Option<Sizes>,
    live_share: [f64; 2],
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let mut record = Record::begin("fragmentation", arguments, Path::new("/var/tmp"))?;
    let mut steady: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let order = crate::statistics::interleaved(arguments.fill.len(), arguments.repeats);
    let mut throughput = Vec::new();
    for (round, index) in order {
        let percent = arguments.fill[index];
        let seen = level(arguments, percent, &mut record)
            .with_context(|| format!("at {percent} % full"))?;
        let last = &seen.mb_per_s[seen.mb_per_s.len().saturating_sub(STEADY_SAMPLES)..];
        eprintln!("  {percent} %: {:.1} MB/s steady", mean(last));
        steady.entry(percent).or_default().push(mean(last));
        if round == 0 {
            add_level_charts(&mut record, percent, &seen);
            throughput.push(Line::counted(format!("{percent} %"), seen.mb_per_s));
        }
    }
    record.charts.insert(0, chart("Throughput over time", "second", "MB/s", throughput));
    for (percent, samples) in &steady {
        record.figures.note(format!("steady at {percent} % mb_per_s"), samples.as_slice());
    }
    if let (Some(empty), Some(full)) = (steady.first_key_value(), steady.last_key_value())
        && empty.0 != full.0
    {
        let name = format!("steady at {} % to {} %", full.0, empty.0);
        record.figures.at_least(name, median(full.1) / median(empty.1), 0.7);
    }
    Ok(record)
}

fn chart(title: &str, x: &str, y: &str, lines: Vec<Line>) -> Chart {
    Chart { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), lines }
}

fn add_level_charts(record: &mut Record, percent: u32, seen: &Level) {
    let title = format!("Segments at {percent} %: bytes on disk, before and after");
    record.charts.push(chart(&title, "segment file", "MB", seen.maps.to_vec()));
    let [before, after] = seen.live_share;
    record.figures.note(format!("live share of used space at {percent} %, before"), before);
    record.figures.note(format!("live share of used space at {percent} %, after"), after);
    if let Some(sizes) = &seen.sizes {
        let points = sizes.iter().map(|(bytes, count)| (*bytes as f64 / 1024.0, *count as f64));
        let line = Line { name: "writes".into(), points: points.collect() };
        let title = format!("Sizes of writes that reached the device at {percent} %");
        record.charts.push(chart(&title, "KiB", "requests", vec![line]));
    }
}

fn level(arguments: &Arguments, percent: u32, record: &mut Record) -> Result<Level> {
    let bounded = Bounded::make(arguments)?;
    bounded.fill(arguments, percent)?;
    let before = bounded.map("before")?;
    let device = filesystem_of(&bounded.volume.mount).context("the volume is mounted")?.device;
    let trace = match BlockTrace::begin(&device) {
        Ok(trace) => Some(trace),
        Err(error) => {
            record.note(format!("no histogram of request sizes: {error:#}"));
            None
        }
    };
    let mb_per_s = bounded.overwrite(arguments)?;
    let sizes = trace.map(BlockTrace::end).transpose()?.map(|requests| requests.writes);
    let after = bounded.map("after")?;
    Ok(Level { mb_per_s, maps: [before.0, after.0], sizes, live_share: [before.1, after.1] })
}

impl Bounded {
    fn make(arguments: &Arguments) -> Result<Self> {
        let scratch = Scratch::new("bench")?;
        let volume = Volume::make(&scratch, arguments.filesystem, arguments.pool_size)?;
        let source = Source::start(&scratch, source_options(1, &[])?)?;
        let options = engine_options(&arguments.setting)?;
        let mut engine = Engine::prepare(volume.mount.join("pool"), options);
        engine.restart()?;
        let stage = Stage { engine, source, scratch };
        stage.link("prod")?;
        let vdb = stage.provision("full", "prod", &[])?;
        stage.engine.command(["dsource", "pause", "prod"])?;
        let directory = Database::connect(&vdb.uri)?.text("SHOW data_directory")?;
        Ok(Bounded { stage, volume, file: Path::new(&directory).join("data") })
    }

    /// Writes random data until the pool is filled to a share of what it can hold.
    fn fill(&self, arguments: &Arguments, percent: u32) -> Result<()> {
        let pool = self.stage.pool()?;
        let total = pool.used_bytes + pool.free_bytes;
        let wanted = (total / 100 * u64::from(percent)).saturating_sub(pool.used_bytes);
        ensure!(wanted >= 64 << 20, "a pool of this size is more than {percent} % full when empty");
        let spec = self.fio(arguments).args(["--rw=write", "--bs=128k", "--fdatasync=64"]);
        let spec = spec.arg(format!("--size={}", wanted / 8_192 * 8_192));
        run_fio(&spec, Duration::from_secs(7_200)).map(drop)
    }

    /// Megabytes written in each second.
    fn overwrite(&self, arguments: &Arguments) -> Result<Vec<f64>> {
        let log = self.stage.scratch.path().join("overwrite");
        let spec = self
            .fio(arguments)
            .args(["--rw=randwrite", "--bs=8k", "--time_based", "--fdatasync=32"])
            .arg(format!("--numjobs={WRITERS}"))
            .arg(format!("--runtime={}", arguments.seconds))
            .arg(format!("--write_bw_log={}", log.display()))
            .args(["--log_avg_msec=1000", "--per_job_logs=0"]);
        run_fio(&spec, Duration::from_secs(u64::from(arguments.seconds) * 2 + 300))?;
        let text = std::fs::read_to_string(log.with_file_name("overwrite_bw.log"))?;
        Ok(per_second(&text, arguments.seconds))
    }

    fn fio(&self, arguments: &Arguments) -> Spec {
        Spec::new("fio")
            .args(["--name=offshoot", "--output-format=json", "--ioengine=psync", "--thread"])
            .args(["--group_reporting", "--refill_buffers", "--norandommap"])
            .arg(format!("--filename={}", self.file.display()))
            .arg(format!("--randseed={}", arguments.setting.seed))
    }

    /// What each segment file takes on disk, and how much of what the pool takes is live.
    fn map(&self, name: &str) -> Result<(Line, f64)> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.stage.engine.pool().join("segments"))?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        files.sort();
        // A file that has been reclaimed in between takes nothing.
        let bytes = files.iter().map(|file| file.metadata().map_or(0, |meta| meta.blocks() * 512));
        let line = Line::counted(name, bytes.map(|bytes| bytes as f64 / 1e6));
        let pool = self.stage.pool()?;
        Ok((line, pool.live_bytes as f64 / pool.used_bytes.max(1) as f64))
    }
}

/// Sums the writers' lines `milliseconds, KiB/s, …` of each second, in MB/s.
fn per_second(log: &str, seconds: u32) -> Vec<f64> {
    let mut sums = vec![0.0; seconds as usize];
    for line in log.lines() {
        let mut fields = line.split(',').map(str::trim);
        let at = fields.next().and_then(|text| text.parse::<u64>().ok());
        let rate = fields.next().and_then(|text| text.parse::<f64>().ok());
        // A line is for the second that ends with it.
        if let (Some(at), Some(rate)) = (at, rate)
            && let Some(sum) = sums.get_mut((at.saturating_sub(1) / 1_000) as usize)
        {
            *sum += rate * 1_024.0 / 1e6;
        }
    }
    sums
}

#[cfg(test)]
mod tests;

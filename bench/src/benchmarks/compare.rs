//! The same load on copies of the same database that were made in different ways.

use super::load::{LoadArguments, add_load_figures, observe_blocking};
use super::{engine_options, size};
use crate::group::{Group, Origin, Variant};
use crate::limits::{Cage, Limits};
use crate::order_entry::Mix;
use crate::record::{EngineCache, Measurement, Record};
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::{interleaved, median};
use anyhow::Result;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use std::collections::BTreeMap;

/// Reads every page of the largest table, in one process.
const SCAN: &str = "SET max_parallel_workers_per_gather = 0; \
    SELECT count(*), sum(quantity) FROM order_items";

/// Compare virtual databases with plain, reflink and snapshot copies under the same load
///
/// Every repeat makes new copies. Cold: neither the servers, the kernel nor the engine holds
/// anything of the files. Warm: the same load once more.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Examples:\n  offshoot bench compare --scale 0.5 --mix read\n  \
                        offshoot bench compare --variants plain,vdb --databases 12 --users 12 \
                        --scale 0.7 \\\n      --mix read --memory-limit 4GiB --iops 3000")]
pub struct Arguments {
    /// How copies are made
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "plain,xfs,btrfs,vdb"
    )]
    variants: Vec<Variant>,
    /// How many databases at a time
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,2,6,12",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    databases: Vec<u32>,
    /// Users over all databases; fewer than databases count as one each
    #[arg(long = "users", value_delimiter = ',', value_name = "LIST", default_value = "1,10,60")]
    all_users: Vec<u32>,
    /// Size of the order entry data, about 1 GB each
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    scale: f64,
    /// What users do and how often
    #[arg(long, value_enum, default_value_t = Mix::Oltp)]
    mix: Mix,
    /// Seconds of each load, cold and warm
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
    /// How often, in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    /// Memory for servers, page cache and engine together
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<u64>,
    /// Reads per second and writes per second of the device, for all together
    #[arg(long, value_name = "N")]
    iops: Option<u64>,
    /// shared_buffers of every server
    #[arg(long, value_name = "SIZE", default_value = "100MB")]
    shared_buffers: String,
    /// Leave out the scans of a whole table, cold and warm, in one database and in a second
    #[arg(long)]
    no_scans: bool,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let stage = Stage::start(&engine_options(&arguments.setting)?, 0, &[])?;
    let mut record = Record::begin("compare", arguments, stage.scratch.path())?;
    let filled = stage.fill(arguments.scale, arguments.setting.seed)?;
    record.figures.note("database_mb", filled.database_bytes as f64 / 1e6);
    let mut settings = vec![("shared_buffers".to_owned(), arguments.shared_buffers.clone())];
    settings.extend(CHECKPOINTS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let limits = possible_limits(arguments, &mut record);
    let mut origin = Origin::new(stage, settings, limits)?;
    let most = arguments.databases.iter().max().copied().unwrap_or(1) as usize;
    let mut variants = Vec::new();
    for variant in &arguments.variants {
        match origin.prepare(*variant, most.max(2)) {
            Ok(()) => variants.push(*variant),
            Err(error) => record.note(format!("{} left out: {error:#}", variant.name())),
        }
    }
    let mut scans: BTreeMap<(Variant, usize), Vec<f64>> = BTreeMap::new();
    for (round, index) in interleaved(variants.len(), arguments.repeats) {
        let variant = variants[index];
        for count in &arguments.databases {
            let mut group = origin.make(variant, *count as usize)?;
            let loaded =
                loads(arguments, &mut origin, &mut group, (round + 1, *count), &mut record);
            origin.stop(&mut group)?;
            loaded?;
            origin.remove(group)?;
        }
        if !arguments.no_scans {
            for (number, seconds) in scan_two(&mut origin, variant)?.into_iter().enumerate() {
                scans.entry((variant, number)).or_default().push(seconds);
            }
        }
    }
    add_load_figures(&mut record);
    add_ratios(&mut record);
    add_scans(&mut record, &scans);
    Ok(record)
}

/// The requested limits, without those this machine cannot set, which the report lists.
fn possible_limits(arguments: &Arguments, record: &mut Record) -> Limits {
    let mut limits =
        Limits { memory_bytes: arguments.memory_limit, iops: arguments.iops, devices: Vec::new() };
    let memory = Limits { iops: None, ..limits.clone() };
    if let Err(error) = Cage::new("bench-probe", &memory) {
        record.note(format!("no limit of memory: {error}"));
        limits.memory_bytes = None;
    }
    let iops = Limits { memory_bytes: None, ..limits.clone() };
    if let Err(error) = Cage::new("bench-probe", &iops) {
        record.note(format!("no limit of operations: {error}"));
        limits.iops = None;
    }
    limits
}

/// Cold and warm loads of one group, for each number of users.
fn loads(
    arguments: &Arguments,
    origin: &mut Origin,
    group: &mut Group,
    (repeat, databases): (u32, u32),
    record: &mut Record,
) -> Result<()> {
    for users in &arguments.all_users {
        origin.stop(group)?;
        let uris = origin.start_cold(group)?;
        let load = LoadArguments {
            mix: arguments.mix,
            seconds: arguments.seconds,
            users: *users,
            think: (0, 0),
            rate: None,
        };
        for state in ["cold", "warm"] {
            let before = origin.cache(group)?;
            let observed = observe_blocking(&uris, &load.plan(arguments.setting.seed))?;
            let after = origin.cache(group)?;
            let conditions = BTreeMap::from([
                ("databases".to_owned(), databases.to_string()),
                ("users".to_owned(), users.to_string()),
                ("state".to_owned(), state.to_owned()),
            ]);
            record.measured(Measurement {
                variant: group.variant().name().to_owned(),
                conditions,
                repeat,
                observed,
                engine_cache: before.zip(after).map(|(b, a)| EngineCache::between(&b, &a)),
                space_bytes: origin.space_bytes(group)?,
            });
        }
    }
    Ok(())
}

/// Seconds of four scans: the first database cold and warm, the second of the same group then.
fn scan_two(origin: &mut Origin, variant: Variant) -> Result<[f64; 4]> {
    let mut group = origin.make(variant, 2)?;
    let uris = origin.start_cold(&mut group)?;
    let mut seconds = [0.0; 4];
    for (number, slot) in seconds.iter_mut().enumerate() {
        let db = Database::connect(&uris[number / 2])?;
        let began = SystemClock.elapsed();
        db.execute(SCAN)?;
        *slot = (SystemClock.elapsed() - began).as_secs_f64();
    }
    origin.stop(&mut group)?;
    origin.remove(group)?;
    Ok(seconds)
}

/// Every variant over `plain` in the same conditions, and warm over cold.
fn add_ratios(record: &mut Record) {
    let mut groups: BTreeMap<(BTreeMap<String, String>, String), Vec<f64>> = BTreeMap::new();
    for one in &record.measurements {
        let key = (one.conditions.clone(), one.variant.clone());
        groups.entry(key).or_default().push(one.observed.load.tpm);
    }
    let of = |conditions: &BTreeMap<String, String>, variant: &str| {
        groups.get(&(conditions.clone(), variant.to_owned())).map(|tpm| median(tpm))
    };
    for ((conditions, variant), tpm) in &groups {
        let words: Vec<String> =
            conditions.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let words = words.join(" ");
        if let Some(plain) = of(conditions, "plain")
            && variant != "plain"
        {
            record.figures.note(format!("{variant} to plain, {words}"), median(tpm) / plain);
        }
        let mut cold = conditions.clone();
        if cold.insert("state".into(), "cold".into()).as_deref() == Some("warm")
            && let Some(cold) = of(&cold, variant)
        {
            record.figures.note(format!("{variant} warm to cold, {words}"), median(tpm) / cold);
        }
    }
}

fn add_scans(record: &mut Record, scans: &BTreeMap<(Variant, usize), Vec<f64>>) {
    let names = ["first cold", "first warm", "second cold", "second warm"];
    for ((variant, number), seconds) in scans {
        let name = format!("{} scan, {}, s", variant.name(), names[*number]);
        record.figures.note(name, seconds.as_slice());
    }
    let of = |variant, number| scans.get(&(variant, number)).map(|seconds| median(seconds));
    if let (Some(first), Some(second)) = (of(Variant::Vdb, 0), of(Variant::Vdb, 2)) {
        record.figures.at_most("vdb scan, second cold to first cold", second / first, 0.4);
    }
    for (number, state, goal) in [(1, "warm", 0.8), (0, "cold", 0.8)] {
        if let (Some(vdb), Some(plain)) = (of(Variant::Vdb, number), of(Variant::Plain, number)) {
            let name = format!("scan rate {state}, vdb to plain");
            record.figures.at_least(name, plain / vdb, goal);
        }
    }
}

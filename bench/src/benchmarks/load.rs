//! Order entry on existing databases.

use crate::connection::runtime;
use crate::driver::LoadPlan;
use crate::observer::{Observed, observe};
use crate::order_entry::Mix;
use crate::record::{Measurement, Record};
use crate::setting::Setting;
use anyhow::Result;
use clap::Args;
use std::collections::BTreeMap;
use std::path::Path;

/// Run order entry on any PostgreSQL that was filled with it
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(after_help = "Examples:\n  offshoot bench run \
                        --target postgresql://postgres@127.0.0.1:5432/shop --users 10\n  \
                        offshoot bench run --target \"$(offshoot vdb show dev --json | jq -r .uri)\" \
                        --mix read --rate 200")]
pub struct Arguments {
    /// A database; several share the users
    #[arg(long, value_name = "URI", required = true)]
    #[serde(skip)]
    target: Vec<String>,
    #[command(flatten)]
    load: LoadArguments,
    /// How often
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// What users do.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct LoadArguments {
    /// What users do and how often
    #[arg(long, value_enum, default_value_t = Mix::Oltp)]
    pub mix: Mix,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u32,
    /// Users over all databases
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub users: u32,
    /// Milliseconds a user thinks after each transaction, as 5 or 5-20
    #[arg(long, value_name = "MS", default_value = "0", value_parser = think)]
    pub think: (u64, u64),
    /// Begin this many transactions a second, finished or not; by default as fast as they finish
    #[arg(long, value_name = "TPS", value_parser = rate)]
    pub rate: Option<f64>,
}

impl LoadArguments {
    /// The plan of one run. Repeats draw alike, so that they do the same work.
    pub fn plan(&self, seed: u64) -> LoadPlan {
        LoadPlan {
            mix: self.mix,
            users: self.users,
            seconds: self.seconds,
            think_ms: self.think,
            rate: self.rate,
            seed,
        }
    }
}

/// Runs the load and records it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let mut record = Record::begin("run", arguments, Path::new("."))?;
    let plan = arguments.load.plan(arguments.setting.seed);
    for repeat in 1..=arguments.repeats {
        record.measured(Measurement {
            variant: "target".into(),
            conditions: BTreeMap::from([("mix".into(), plan.mix.name().into())]),
            repeat,
            observed: observe_blocking(&arguments.target, &plan)?,
            engine_cache: None,
            space_bytes: 0,
        });
    }
    add_load_figures(&mut record);
    Ok(record)
}

/// Runs a load from a thread without a runtime.
pub fn observe_blocking(uris: &[String], plan: &LoadPlan) -> Result<Observed> {
    runtime()?.block_on(observe(uris, plan))
}

/// TPM, p95 and errors of each group of measurements as figures.
pub fn add_load_figures(record: &mut Record) {
    let mut labels: Vec<String> = Vec::new();
    for label in record.measurements.iter().map(Measurement::label) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    for label in labels {
        let members: Vec<_> =
            record.measurements.iter().filter(|one| one.label() == label).collect();
        let all = |pick: fn(&Measurement) -> f64| -> Vec<f64> {
            members.iter().map(|member| pick(member)).collect()
        };
        let tpm = all(|one| one.observed.load.tpm);
        let p95 = all(|one| one.observed.load.latency.p95_ms);
        let errors = all(|one| one.observed.load.errors as f64);
        record.figures.note(format!("{label} tpm"), tpm);
        record.figures.note(format!("{label} p95_ms"), p95);
        if errors.iter().any(|count| *count > 0.0) {
            record.figures.note(format!("{label} errors"), errors);
        }
    }
}

fn think(text: &str) -> Result<(u64, u64), String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u64>().map_err(|error| error.to_string());
    let (low, high) = (number(low)?, number(high)?);
    if low > high { Err("the first is larger than the second".into()) } else { Ok((low, high)) }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate > 0.0 && rate.is_finite() { Ok(rate) } else { Err("not above 0".into()) }
}

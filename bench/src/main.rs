//! `offshoot-bench`: measures what Offshoot promises, against what a user would do without it.
//!
//! Every benchmark makes its own source and engine in a scratch directory, interleaves and repeats
//! what it compares, prints a table on stderr and one JSON document on stdout, and removes everything.
//! The exit code is 0 only if every goal was reached. Figures of note stand in
//! `docs/performance.md`.

mod clone_size;
mod crash;
mod figures;
mod link;
mod load;
mod moments;
mod provision;

use anyhow::Result;
use clap::{Parser, Subcommand};
use figures::Figures;
use offshoot_demo::{EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::Testbed;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures Offshoot.
#[derive(Debug, Parser)]
#[command(name = "offshoot-bench")]
struct Arguments {
    /// The binary to measure; a release build.
    #[arg(long, global = true, default_value = "target/release/offshoot")]
    offshoot: PathBuf,
    /// What the shared block cache may hold.
    #[arg(long, global = true, default_value = "2GiB")]
    cache_size: String,
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Time from a request to the first answered query, small and large source, idle and under load.
    Provision(provision::Arguments),
    /// Random seconds of a stretch of load: does each open, is it right, how long does it take.
    Moments(moments::Arguments),
    /// The rate of a link against pg_basebackup, and what the pool then holds.
    Link(link::Arguments),
    /// pgbench in a VDB against the same server on the host filesystem.
    Load(load::Arguments),
    /// What a clone adds to the pool before it is written to.
    CloneSize(clone_size::Arguments),
    /// kill -9 of the engine under load, again and again.
    Crash(crash::Arguments),
    /// All of them with their default arguments.
    All,
}

/// What every benchmark starts from.
#[derive(Debug, Clone)]
struct Setting {
    engine: EngineOptions,
}

impl Setting {
    /// A source of a pgbench scale on the distribution's server, and an engine.
    fn testbed(&self, scale: u32, settings: &[(&str, &str)]) -> Result<Testbed> {
        Testbed::with_engine(self.source(scale, settings)?, self.engine.clone())
    }

    fn source(&self, scale: u32, settings: &[(&str, &str)]) -> Result<SourceOptions> {
        let settings = settings.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        Ok(SourceOptions { bin_dir: find_newest()?, scale, settings: settings.collect() })
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    offshoot_demo::clean_on_signal();
    match run(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("offshoot-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<bool> {
    let binary = std::path::absolute(&arguments.offshoot)?;
    anyhow::ensure!(
        binary.exists(),
        "{} is missing: cargo build --release -p offshoot-cli",
        binary.display()
    );
    let mut engine = EngineOptions::new(binary);
    engine.cache_size = arguments.cache_size;
    let setting = Setting { engine };
    let all = match arguments.benchmark {
        Benchmark::Provision(arguments) => vec![provision::run(&setting, &arguments)?],
        Benchmark::Moments(arguments) => vec![moments::run(&setting, &arguments)?],
        Benchmark::Link(arguments) => vec![link::run(&setting, &arguments)?],
        Benchmark::Load(arguments) => vec![load::run(&setting, &arguments)?],
        Benchmark::CloneSize(arguments) => vec![clone_size::run(&setting, &arguments)?],
        Benchmark::Crash(arguments) => vec![crash::run(&setting, &arguments)?],
        Benchmark::All => return run_all(&setting),
    };
    println!("{}", serde_json::to_string_pretty(&all)?);
    Ok(all.iter().all(Figures::reached))
}

/// Every benchmark with its default arguments, also after one that broke off.
fn run_all(setting: &Setting) -> Result<bool> {
    let benchmarks: [(&str, &dyn Fn() -> Result<Figures>); 6] = [
        ("clone-size", &|| clone_size::run(setting, &Default::default())),
        ("link", &|| link::run(setting, &Default::default())),
        ("load", &|| load::run(setting, &Default::default())),
        ("provision", &|| provision::run(setting, &Default::default())),
        ("moments", &|| moments::run(setting, &Default::default())),
        ("crash", &|| crash::run(setting, &Default::default())),
    ];
    let mut all = Vec::new();
    for (name, benchmark) in benchmarks {
        match benchmark() {
            Ok(figures) => all.push(figures),
            Err(error) => eprintln!("offshoot-bench: {name} broke off: {error:#}"),
        }
    }
    println!("{}", serde_json::to_string_pretty(&all)?);
    Ok(all.len() == benchmarks.len() && all.iter().all(Figures::reached))
}

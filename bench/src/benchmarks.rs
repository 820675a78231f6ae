//! The benchmarks, and how they are begun and ended.

pub mod clone_size;
pub mod compare;
pub mod confinement;
pub mod encryption;
pub mod fill;
pub mod fragmentation;
pub mod gateway;
pub mod io;
pub mod link;
pub mod load;
pub mod many;
pub mod mask;
pub mod moments;
pub mod neighbours;
pub mod pgbench;
pub mod provision;
pub mod quick;
pub mod replay;
pub mod replication;
pub mod restart;
pub mod scripts;
pub mod suite;

use crate::arguments::BenchCommand;
use crate::record::Record;
use crate::report;
use crate::setting::Setting;
use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use offshoot_rig::EngineOptions;
use std::path::PathBuf;

/// Runs a benchmark; 0 when it ran, and with `--require-goals` only if every goal was reached.
///
/// Figures go to stdout as a table, or as the whole record with `json`; progress goes to stderr.
pub fn run(command: &BenchCommand, json: bool) -> i32 {
    offshoot_rig::clean_on_signal();
    match dispatch(command, json) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            let message = format!("{error:#}");
            if json {
                let hint = "see --help of the benchmark";
                let error =
                    serde_json::json!({ "code": "failed", "message": message, "hint": hint });
                println!("{}", serde_json::json!({ "error": error }));
            } else {
                eprintln!("error: {message}");
            }
            1
        }
    }
}

fn dispatch(command: &BenchCommand, json: bool) -> Result<bool> {
    match command {
        BenchCommand::Fill(arguments) => fill::run(arguments, json),
        BenchCommand::Scripts(arguments) => scripts::run(arguments, json),
        BenchCommand::Run(a) => finish(command, &a.setting, json),
        BenchCommand::Quick(a) => finish(command, &a.setting, json),
        BenchCommand::Compare(a) => finish(command, &a.setting, json),
        BenchCommand::Suite(a) => finish(command, &a.setting, json),
        BenchCommand::Fragmentation(a) => finish(command, &a.setting, json),
        BenchCommand::Io(a) => finish(command, &a.setting, json),
        BenchCommand::Provision(a) => finish(command, &a.setting, json),
        BenchCommand::Link(a) => finish(command, &a.setting, json),
        BenchCommand::Replay(a) => finish(command, &a.setting, json),
        BenchCommand::Pgbench(a) => finish(command, &a.setting, json),
        BenchCommand::CloneSize(a) => finish(command, &a.setting, json),
        BenchCommand::Many(a) => finish(command, &a.setting, json),
        BenchCommand::Mask(a) => finish(command, &a.setting, json),
        BenchCommand::Moments(a) => finish(command, &a.setting, json),
        BenchCommand::Neighbours(a) => finish(command, &a.setting, json),
        BenchCommand::Confinement(a) => finish(command, &a.setting, json),
        BenchCommand::Gateway(a) => finish(command, &a.setting, json),
        BenchCommand::Encryption(a) => finish(command, &a.setting, json),
        BenchCommand::Restart(a) => finish(command, &a.setting, json),
        BenchCommand::Replication(a) => finish(command, &a.setting, json),
    }
}

/// Runs what makes a record.
fn measure(command: &BenchCommand) -> Result<Record> {
    match command {
        BenchCommand::Run(arguments) => load::run(arguments),
        BenchCommand::Quick(arguments) => quick::run(arguments, &measure_line),
        BenchCommand::Compare(arguments) => compare::run(arguments),
        BenchCommand::Suite(arguments) => suite::run(arguments),
        BenchCommand::Fragmentation(arguments) => fragmentation::run(arguments),
        BenchCommand::Io(arguments) => io::run(arguments),
        BenchCommand::Provision(arguments) => provision::run(arguments),
        BenchCommand::Link(arguments) => link::run(arguments),
        BenchCommand::Replay(arguments) => replay::run(arguments),
        BenchCommand::Pgbench(arguments) => pgbench::run(arguments),
        BenchCommand::CloneSize(arguments) => clone_size::run(arguments),
        BenchCommand::Many(arguments) => many::run(arguments),
        BenchCommand::Mask(arguments) => mask::run(arguments),
        BenchCommand::Moments(arguments) => moments::run(arguments),
        BenchCommand::Neighbours(arguments) => neighbours::run(arguments),
        BenchCommand::Confinement(arguments) => confinement::run(arguments),
        BenchCommand::Gateway(arguments) => gateway::run(arguments),
        BenchCommand::Encryption(arguments) => encryption::run(arguments),
        BenchCommand::Restart(arguments) => restart::run(arguments),
        BenchCommand::Replication(arguments) => replication::run(arguments),
        BenchCommand::Fill(_) | BenchCommand::Scripts(_) => bail!("this measures nothing"),
    }
}

/// A command line of a benchmark.
#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

/// Runs a command line, given as the words one would type after `offshoot`.
fn measure_line(words: Vec<String>) -> Result<Record> {
    measure(&parse(words)?)
}

fn parse(words: Vec<String>) -> Result<BenchCommand> {
    let line = Line::try_parse_from(words);
    line.map(|line| line.command).context("this is not what the grammar says")
}

/// Runs a benchmark, writes its record and prints its figures; whether that is a success.
fn finish(command: &BenchCommand, setting: &Setting, json: bool) -> Result<bool> {
    let mut record = measure(command)?;
    let directory = setting.out.clone().unwrap_or_else(|| record.default_directory());
    let page = report::write(&mut record, &directory)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        println!("{}\n{}", record.benchmark, record.figures.table());
    }
    eprintln!("report: {}", page.display());
    Ok(record.complete && (!setting.require_goals || record.figures.reached()))
}

/// How the engine of a benchmark runs.
fn engine_options(setting: &Setting) -> Result<EngineOptions> {
    let own = || std::env::current_exe().context("where this program is");
    let binary: PathBuf = setting.binary.clone().map_or_else(own, Ok)?;
    let binary = std::path::absolute(binary)?;
    ensure!(binary.exists(), "{} is missing", binary.display());
    let mut engine = EngineOptions::new(binary);
    engine.cache_size.clone_from(&setting.cache_size);
    engine.arguments.extend(setting.direct_size.iter().map(|size| format!("--direct-size={size}")));
    Ok(engine)
}

/// The first word of a command line.
fn name_of(words: &str) -> &str {
    words.split(' ').next().unwrap_or(words)
}

/// A size as an option takes it, in bytes.
fn size(text: &str) -> Result<u64, String> {
    offshoot_domain::parse_size(text).map_err(|failure| failure.message)
}

//! A selection of the others in about ten minutes.

use super::name_of;
use crate::record::Record;
use crate::setting::Setting;
use crate::volume::Filesystem;
use anyhow::Result;
use offshoot_os::{Clock, SystemClock};
use std::path::Path;

/// What is run, as one would type it after `offshoot bench`. Sizes are small: ratios are what counts.
const SELECTION: &[&str] = &[
    "link --scale 0.1",
    "pgbench --scale 50 --seconds 8",
    "compare --variants plain,vdb --databases 1 --users 10 --scale 0.1 --seconds 8",
    "compare --variants plain,vdb --databases 6 --users 12 --scale 0.1 --seconds 8 --mix read \
     --no-scans --iops 3000 --cache-size 256MiB",
    "provision --small-scale 13 --large-scale 130 --repeats 10",
    "many --defined 20 --running 12 --scale 1",
    "replay --scale 0.1 --seconds 15 --repeats 1",
    "fragmentation --pool-size 6GiB --fill 10,90 --seconds 20 --repeats 1",
];

/// Run a selection of the benchmarks in about ten minutes and print one table
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench quick")]
pub struct Arguments {
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs all of them with `measure`, which gets each as its words; one that fails is recorded and does not stop
/// the rest.
pub fn run(
    arguments: &Arguments,
    measure: &dyn Fn(Vec<String>) -> Result<Record>,
) -> Result<Record> {
    let mut all = Record::begin("quick", &SELECTION, Path::new("/var/tmp"))?;
    for words in SELECTION {
        if name_of(words) == "fragmentation"
            && let Err(error) = Filesystem::Ext4.possible()
        {
            all.note(format!("{words} left out: {error:#}"));
            continue;
        }
        eprintln!("offshoot bench {words}");
        let began = SystemClock.elapsed();
        match measure(line(words, &arguments.setting)) {
            Ok(record) => {
                for note in record.notes {
                    all.note(format!("{words}: {note}"));
                }
                all.figures.append_ratios(name_of(words), record.figures);
                all.measurements.extend(record.measurements);
                all.charts.extend(record.charts);
            }
            Err(error) => {
                all.complete = false;
                all.note(format!("{words} broke off: {error:#}"));
            }
        }
        eprintln!("  {:.0} s", (SystemClock.elapsed() - began).as_secs_f64());
    }
    Ok(all)
}

/// The whole command line of a part of the selection.
fn line(words: &str, setting: &Setting) -> Vec<String> {
    let mut line = vec!["bench".to_owned()];
    line.extend(words.split_whitespace().map(str::to_owned));
    if !words.contains("--cache-size") {
        line.push(format!("--cache-size={}", setting.cache_size));
    }
    line.push(format!("--seed={}", setting.seed));
    if let Some(binary) = &setting.binary {
        line.push(format!("--binary={}", binary.display()));
    }
    line
}

#[cfg(test)]
mod tests;

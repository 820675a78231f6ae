//! The record of a run: `result.json` for programs, `report.html` for people.

use crate::figures::Figures;
use crate::host::Environment;
use crate::observer::Observed;
use anyhow::{Context, Result};
use jiff::Timestamp;
use offshoot_api::CacheStatus;
use offshoot_os::{Clock, SystemClock};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Version of the shape of `result.json`; fields are added, not renamed.
const RESULT_VERSION: u32 = 1;

/// One run of one benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// Version of this document's shape.
    pub version: u32,
    /// The benchmark.
    pub benchmark: String,
    /// When it began.
    pub began_at: Timestamp,
    /// How long it took.
    pub seconds: f64,
    /// Where it ran.
    pub environment: Environment,
    /// How it was asked for, defaults included.
    pub settings: Value,
    /// Medians with their spread, and goals.
    pub figures: Figures,
    /// Loads, in the order in which they ran.
    pub measurements: Vec<Measurement>,
    /// Further charts.
    pub charts: Vec<Chart>,
    /// Whether all of it ran to its end.
    pub complete: bool,
    /// What a reader must know to judge the figures: what could not be done here, what looks odd.
    pub notes: Vec<String>,
    #[serde(skip)]
    began: std::time::Duration,
}

/// One load on one variant.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// What was loaded: `vdb`, `plain` …
    pub variant: String,
    /// What else tells it from the others: databases, users, `cold` or `warm` …
    pub conditions: BTreeMap<String, String>,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// What was seen.
    #[serde(flatten)]
    pub observed: Observed,
    /// What the engine's cache did during that, if there is an engine.
    pub engine_cache: Option<EngineCache>,
    /// Space that the variant takes at the end.
    pub space_bytes: u64,
}

/// What the engine's shared cache did during a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EngineCache {
    /// Blocks found.
    pub hits: u64,
    /// Blocks read from the pool.
    pub misses: u64,
    /// `hits` of both; 1 where nothing was asked for.
    pub hit_ratio: f64,
    /// What it holds at the end.
    pub used_bytes: u64,
}

impl EngineCache {
    /// The work between two looks.
    pub fn between(before: &CacheStatus, after: &CacheStatus) -> Self {
        let hits = after.hits.saturating_sub(before.hits);
        let misses = after.misses.saturating_sub(before.misses);
        let asked = hits + misses;
        let hit_ratio = if asked == 0 { 1.0 } else { hits as f64 / asked as f64 };
        EngineCache { hits, misses, hit_ratio, used_bytes: after.used_bytes }
    }
}

/// Lines over a common axis.
#[derive(Debug, Clone, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What the horizontal axis counts.
    pub x: String,
    /// What the vertical axis counts.
    pub y: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points: horizontal, vertical.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// Values at 1, 2, 3 …
    pub fn counted(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let points = values.into_iter().enumerate().map(|(at, value)| (at as f64 + 1.0, value));
        Line { name: name.into(), points: points.collect() }
    }
}

impl Record {
    /// Begins the record of a benchmark with its settings.
    ///
    /// # Errors
    /// When the settings are no JSON document.
    pub fn begin(benchmark: &str, settings: &impl Serialize, scratch: &Path) -> Result<Self> {
        let clock = SystemClock;
        let environment = Environment::here(scratch);
        let mut notes = Vec::new();
        if environment.build == "debug" {
            notes.push("a debug build: the figures say nothing about speed".to_owned());
        }
        Ok(Record {
            version: RESULT_VERSION,
            benchmark: benchmark.to_owned(),
            began_at: Timestamp::try_from(clock.now()).unwrap_or(Timestamp::UNIX_EPOCH),
            seconds: 0.0,
            environment,
            settings: serde_json::to_value(settings).context("the settings")?,
            figures: Figures::default(),
            measurements: Vec::new(),
            charts: Vec::new(),
            complete: true,
            notes,
            began: clock.elapsed(),
        })
    }

    /// Adds something a reader must know, here and in the report.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            eprintln!("note: {text}");
            self.notes.push(text);
        }
    }

    /// Stores a measurement and records what went wrong in it.
    pub fn measured(&mut self, measurement: Measurement) {
        let load = &measurement.observed.load;
        eprintln!(
            "  {} {}: {:.0} TPS, p95 {:.2} ms, {} errors",
            measurement.label(),
            measurement.repeat,
            load.tps,
            load.latency.p95_ms,
            load.errors
        );
        if let Some((text, times)) = load.error_texts.iter().max_by_key(|(_, times)| **times) {
            let label = measurement.label();
            self.note(format!("{label}: {} failed, {times} with: {text}", load.errors));
        }
        self.measurements.push(measurement);
    }

    /// Notes that the run has ended.
    pub fn end(&mut self) {
        self.seconds = (SystemClock.elapsed() - self.began).as_secs_f64();
    }

    /// Where results go by default.
    pub fn default_directory(&self) -> PathBuf {
        let at = self.began_at.strftime("%Y%m%d-%H%M%S");
        Path::new("bench-results").join(format!("{}-{at}", self.benchmark))
    }
}

impl Measurement {
    /// Variant and conditions: the same for all repeats.
    pub fn label(&self) -> String {
        let mut label = self.variant.clone();
        for (name, value) in &self.conditions {
            label.push_str(&format!(" {name}={value}"));
        }
        label
    }
}

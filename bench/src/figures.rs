//! Figures: samples, their spread, and the goal they should reach.

use crate::statistics::Spread;
use serde::Serialize;
use std::time::Duration;

/// A measured figure beside what it should reach.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured, its unit last.
    pub name: String,
    /// Median and ends of the samples.
    #[serde(flatten)]
    pub spread: Spread,
    /// In the order they were taken.
    pub samples: Vec<f64>,
    /// The goal in words: `≤ 600`; empty where there is none.
    pub goal: String,
    /// Whether the median reached the goal; true where there is none.
    pub reached: bool,
}

/// All figures of one benchmark.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// A figure without a goal.
    pub fn note(&mut self, name: impl Into<String>, samples: impl Samples) {
        self.push(name.into(), samples.all(), String::new(), |_| true);
    }

    /// A figure whose median should be at most `goal`.
    pub fn at_most(&mut self, name: impl Into<String>, samples: impl Samples, goal: f64) {
        self.push(name.into(), samples.all(), format!("≤ {goal}"), |median| median <= goal);
    }

    /// A figure whose median should be at least `goal`.
    pub fn at_least(&mut self, name: impl Into<String>, samples: impl Samples, goal: f64) {
        self.push(name.into(), samples.all(), format!("≥ {goal}"), |median| median >= goal);
    }

    /// What another benchmark compares or has a goal for, after its name.
    pub fn append_ratios(&mut self, benchmark: &str, others: Figures) {
        let wanted = others.0.into_iter().filter(|figure| figure.has_goal() || figure.compares());
        let named = wanted.map(|f| Figure { name: format!("{benchmark}: {}", f.name), ..f });
        self.0.extend(named);
    }

    /// Whether every goal was reached.
    pub fn reached(&self) -> bool {
        self.0.iter().all(|figure| figure.reached)
    }

    /// In the order they were added.
    pub fn all(&self) -> &[Figure] {
        &self.0
    }

    /// The table, as people read it: median, the ends, the goal.
    pub fn table(&self) -> String {
        let width = self.0.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for figure in &self.0 {
            let ends = match figure.samples.len() {
                0 | 1 => String::new(),
                _ => format!("{} – {}", short(figure.spread.min), short(figure.spread.max)),
            };
            let line = format!(
                "  {:<width$}  {:>12}  {ends:>23}  {:>10}  {}",
                figure.name,
                short(figure.spread.median),
                figure.goal,
                figure.mark()
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn push(&mut self, name: String, samples: Vec<f64>, goal: String, holds: impl Fn(f64) -> bool) {
        let spread = Spread::of(&samples);
        // What was not measured reaches nothing.
        let reached = goal.is_empty() || (!samples.is_empty() && holds(spread.median));
        self.0.push(Figure { name, spread, samples, goal, reached });
    }
}

impl Figure {
    /// `ok`, `MISSED`, or nothing where there is no goal.
    pub fn mark(&self) -> &'static str {
        match (self.has_goal(), self.reached) {
            (false, _) => "",
            (true, true) => "ok",
            (true, false) => "MISSED",
        }
    }

    fn has_goal(&self) -> bool {
        !self.goal.is_empty()
    }

    /// Whether it is one thing over another, by its name: `vdb to plain`, `large_to_small`.
    fn compares(&self) -> bool {
        self.name.contains(" to ") || self.name.contains("_to_")
    }
}

/// One sample or several.
pub trait Samples {
    /// All of them.
    fn all(self) -> Vec<f64>;
}

impl Samples for f64 {
    fn all(self) -> Vec<f64> {
        vec![self]
    }
}

impl Samples for Vec<f64> {
    fn all(self) -> Vec<f64> {
        self
    }
}

impl Samples for &[f64] {
    fn all(self) -> Vec<f64> {
        self.to_vec()
    }
}

/// A number with its significant digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A duration in milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Bytes in units of 1,000,000.
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests;

//! Figures, their goals, and how they are printed.

use serde::Serialize;
use std::time::Duration;

/// A measured figure beside what it should reach.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured, its unit last.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// The goal in words: `≤ 600`; empty where there is none.
    pub goal: String,
    /// Whether the goal was reached; true where there is none.
    pub reached: bool,
}

/// All figures of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The benchmark.
    pub benchmark: String,
    /// In the order they were measured.
    pub figures: Vec<Figure>,
}

impl Figures {
    /// None yet.
    pub fn new(benchmark: &str) -> Self {
        Figures { benchmark: benchmark.to_owned(), figures: Vec::new() }
    }

    /// A figure without a goal.
    pub fn note(&mut self, name: impl Into<String>, value: f64) {
        self.push(name.into(), value, String::new(), true);
    }

    /// A figure that should be at most `goal`.
    pub fn at_most(&mut self, name: impl Into<String>, value: f64, goal: f64) {
        self.push(name.into(), value, format!("≤ {goal}"), value <= goal);
    }

    /// A figure that should be at least `goal`.
    pub fn at_least(&mut self, name: impl Into<String>, value: f64, goal: f64) {
        self.push(name.into(), value, format!("≥ {goal}"), value >= goal);
    }

    /// Whether every goal was reached.
    pub fn reached(&self) -> bool {
        self.figures.iter().all(|figure| figure.reached)
    }

    /// The table, as people read it.
    pub fn table(&self) -> String {
        let width = self.figures.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
        let mut text = format!("\n{}\n", self.benchmark);
        for figure in &self.figures {
            let mark = match (figure.goal.is_empty(), figure.reached) {
                (true, _) => "",
                (false, true) => "ok",
                (false, false) => "MISSED",
            };
            let line = format!(
                "  {:<width$}  {:>12.3}  {:>10}  {mark}",
                figure.name, figure.value, figure.goal
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Prints the table on stderr and hands the figures on.
    pub fn printed(self) -> Self {
        eprint!("{}", self.table());
        self
    }

    fn push(&mut self, name: String, value: f64, goal: String, reached: bool) {
        self.figures.push(Figure { name, value, goal, reached });
    }
}

/// The value below which a share of the samples lies, by the nearest rank; 0 without samples.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).or(sorted.last()).copied().unwrap_or(0.0)
}

/// The middle sample.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
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

//! Numbers from samples, always with their spread.

use serde::Serialize;

/// The middle of samples and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle sample.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of samples; all 0 where there are none.
    pub fn of(samples: &[f64]) -> Self {
        Spread { median: median(samples), min: quantile(samples, 0.0), max: quantile(samples, 1.0) }
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

/// The median ratio of samples that were taken in turn: what changes on the host from round to round hits both sides of each.
pub fn paired_ratio(of: &[f64], to: &[f64]) -> f64 {
    let ratios: Vec<f64> = of.iter().zip(to).map(|(of, to)| of / to).collect();
    median(&ratios)
}

/// The mean; 0 without samples.
pub fn mean(samples: &[f64]) -> f64 {
    if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / samples.len() as f64 }
}

/// The order in which variants take turns: each once a round, every second round backwards, so that
/// neither drift of the machine nor what runs before favours one.
pub fn interleaved(variants: usize, rounds: u32) -> Vec<(u32, usize)> {
    let mut order = Vec::new();
    for round in 0..rounds {
        let turn = (0..variants).map(|variant| (round, variant));
        if round % 2 == 0 { order.extend(turn) } else { order.extend(turn.rev()) }
    }
    order
}

#[cfg(test)]
mod tests;

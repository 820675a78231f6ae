//! Histograms that were counted elsewhere, as `prometheus-client` writes them.

use crate::endpoints::monitoring::Labels;
use offshoot_types::LatencyCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Histograms of one name, in seconds, each with its labels.
#[derive(Debug)]
pub(super) struct Histograms {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) counts: Vec<(Labels, LatencyCounts)>,
}

impl Collector for Histograms {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let unit = Some(&Unit::Seconds);
        let mut metric =
            encoder.encode_descriptor(self.name, self.help, unit, MetricType::Histogram)?;
        for (labels, counts) in &self.counts {
            histogram(&mut metric.encode_family(labels)?, counts)?;
        }
        Ok(())
    }
}

fn histogram(
    encoder: &mut MetricEncoder<'_>,
    counts: &LatencyCounts,
) -> Result<(), std::fmt::Error> {
    let buckets = counts.buckets();
    let buckets: Vec<(f64, u64)> = buckets
        .map(|(bound, count)| (bound.map_or(f64::INFINITY, |it| it.as_secs_f64()), count))
        .collect();
    let sum = counts.sum().as_secs_f64();
    encoder.encode_histogram::<NoLabelSet>(sum, counts.count(), &buckets, None)
}

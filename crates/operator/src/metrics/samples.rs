//! Values that are read at a scrape, in the order of the table. It refuses a series with other labels than the table says.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

use spanwire_api::metrics::{self as table, Kind, Metric};

use super::Labels;

/// One series with its value now.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    name: &'static str,
    labels: Labels,
    value: Value,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// A measure.
    Real(f64),
}

impl Sample {
    /// The values of the labels are in the order of the table.
    pub(crate) fn new<const N: usize>(metric: &Metric, values: [String; N], value: Value) -> Self {
        Self { name: metric.name, labels: labels(metric, values), value }
    }
}

/// The labels of a series.
pub(super) fn labels<const N: usize>(metric: &Metric, values: [String; N]) -> Labels {
    assert_eq!(metric.labels.len(), N, "{} has other labels", metric.name);
    metric.labels.iter().copied().zip(values).collect()
}

/// The name without what the encoder puts behind it.
pub(super) fn stem(metric: &Metric) -> &'static str {
    match metric.kind {
        Kind::Counter => metric.name.strip_suffix("_total").unwrap_or(metric.name),
        Kind::Gauge | Kind::Histogram => metric.name,
    }
}

/// Writes samples out, a metric at a time.
#[derive(Debug)]
pub(super) struct Samples(pub(super) Vec<Sample>);

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in table::ALL {
            let of_it: Vec<&Sample> = self.0.iter().filter(|sample| sample.name == metric.name).collect();
            if !of_it.is_empty() {
                encode(metric, &of_it, &mut encoder)?;
            }
        }
        Ok(())
    }
}

fn encode(metric: &Metric, samples: &[&Sample], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let kind = match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        // What is read at a scrape has no distribution.
        Kind::Histogram => return Ok(()),
    };
    let help = format!("{}.", metric.help);
    let mut descriptor = encoder.encode_descriptor(stem(metric), &help, None, kind)?;
    for Sample { name: _, labels, value } in samples {
        let mut series = descriptor.encode_family(labels)?;
        match (metric.kind, *value) {
            (Kind::Counter, Value::Whole(number)) => {
                series.encode_counter::<NoLabelSet, _, u64>(&number, None)?
            }
            (Kind::Counter, Value::Real(number)) => {
                series.encode_counter::<NoLabelSet, _, u64>(&number, None)?
            }
            (Kind::Gauge | Kind::Histogram, Value::Whole(number)) => {
                series.encode_gauge(&i64::try_from(number).unwrap_or(i64::MAX))?;
            }
            (Kind::Gauge | Kind::Histogram, Value::Real(number)) => series.encode_gauge(&number)?,
        }
    }
    Ok(())
}

//! What a process counts and shows at /metrics. It refuses a metric that is not in the table, and keys and addresses in
//! labels: a link is named by its network, role and peer.

pub mod changes;
pub mod links;
pub mod pass;
mod samples;
pub mod taken;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use prometheus_client::{
    encoding::{prometheus_text, text},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use spanwire_api::metrics::{self as table, Metric};
use spanwire_dataplane::process::{Figures, Held};
use spanwire_store::cluster::{Asked, Requests};
use tokio::time::timeout;

pub use samples::{Sample, Value};

use crate::{driver::Outcome, stores::Site};

/// How long what is read at a scrape may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Bounds of the durations of passes, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;

/// How the text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Format {
    /// As an HTTP header names it.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Where values are read when somebody scrapes.
pub trait Source: Send + Sync {
    /// The values now. What can't be read is left out.
    fn read(&self) -> BoxFuture<'_, Vec<Sample>>;
}

/// What one process counts. Clones count together.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    process: &'static str,
    passes: Counters,
    durations: Histogram,
    errors: Counters,
    writes: Counters,
    steps: Counters,
    sources: Mutex<Vec<Arc<dyn Source>>>,
}

impl Metrics {
    /// Of a controller.
    pub fn of_controller() -> Self {
        Self::of(table::CONTROLLER)
    }

    /// Of a worker.
    pub fn of_worker() -> Self {
        Self::of(table::WORKER)
    }

    /// Of a dataplane.
    pub fn of_dataplane() -> Self {
        Self::of(table::DATAPLANE)
    }

    fn of(process: &'static str) -> Self {
        Self(Arc::new(Inner {
            process,
            passes: Family::default(),
            durations: Histogram::new(BOUNDS),
            errors: Family::default(),
            writes: Family::default(),
            steps: Family::default(),
            sources: Mutex::default(),
        }))
    }

    /// Notes what a pass came to and how long it took.
    pub fn note_pass(&self, outcome: &Outcome, duration: Duration) {
        let Outcome { ledger, waits, faults, due: _ } = outcome;
        let word = match (faults.is_empty(), waits.is_empty()) {
            (false, _) => "failed",
            (true, false) => "waiting",
            (true, true) => "done",
        };
        count(&self.0.passes, &table::PASSES, [word.to_owned()], 1);
        self.0.durations.observe(duration.as_secs_f64());
        for fault in faults {
            count(&self.0.errors, &table::ERRORS, [fault.class.as_str().to_owned()], 1);
        }
        for entry in ledger.entries() {
            count(&self.0.writes, &table::WRITES, [entry.target.to_string()], 1);
        }
    }

    /// Notes the steps of a plan.
    pub fn note_steps(&self, taken: &taken::Taken) {
        for ((kind, fate), number) in taken.counts() {
            let values = [(*kind).to_owned(), fate.as_str().to_owned()];
            count(&self.0.steps, &table::STEPS, values, *number);
        }
    }

    /// Shows what `source` reads as well.
    pub fn show(&self, source: impl Source + 'static) {
        self.sources().push(Arc::new(source));
    }

    /// Shows the requests to a store, where it is on an API server. `side`: control or local.
    pub fn show_requests(&self, side: &'static str, site: &Site) {
        match site {
            Site::Folder(_) => {}
            Site::Cluster(connection) => {
                self.show(RequestsOf { side, requests: connection.requests().clone() })
            }
        }
    }

    /// Shows what a dataplane holds.
    pub fn show_held(&self, figures: Figures) {
        self.show(HeldBy(figures));
    }

    /// The text of a scrape.
    pub async fn render(&self, format: Format) -> String {
        let registry = self.registry(self.read().await);
        let mut page = String::new();
        let written = match format {
            Format::OpenMetrics => text::encode(&mut page, &registry),
            Format::Prometheus => prometheus_text::encode(&mut page, &registry),
        };
        written.expect("a string takes all text");
        page
    }

    /// What the sources read now. One that takes too long is left out.
    async fn read(&self) -> Vec<Sample> {
        let sources = self.sources().clone();
        let reads = sources.iter().map(|source| async move {
            let read = timeout(LIMIT, source.read()).await;
            read.unwrap_or_else(|_| {
                tracing::warn!("part of /metrics is left out: it could not be read in time");
                Vec::new()
            })
        });
        let version = [env!("CARGO_PKG_VERSION").to_owned()];
        let mut samples = vec![Sample::new(&table::BUILD_INFO, version, Value::Whole(1))];
        samples.extend(join_all(reads).await.into_iter().flatten());
        samples
    }

    /// Everything that this process shows.
    fn registry(&self, samples: Vec<Sample>) -> Registry {
        let Inner { process, passes, durations, errors, writes, steps, sources: _ } = &*self.0;
        let mut registry = Registry::default();
        let mut add = |metric: &Metric, counters: &Counters| {
            if metric.of.contains(process) {
                registry.register(samples::stem(metric), metric.help, counters.clone());
            }
        };
        add(&table::PASSES, passes);
        add(&table::ERRORS, errors);
        add(&table::WRITES, writes);
        add(&table::STEPS, steps);
        if table::PASS_DURATION.of.contains(process) {
            let metric = &table::PASS_DURATION;
            registry.register(metric.name, metric.help, durations.clone());
        }
        registry.register_collector(Box::new(samples::Samples(samples)));
        registry
    }

    fn sources(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn Source>>> {
        self.0.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count<const N: usize>(counters: &Counters, metric: &Metric, values: [String; N], by: u64) {
    counters.get_or_create(&samples::labels(metric, values)).inc_by(by);
}

struct RequestsOf {
    side: &'static str,
    requests: Requests,
}

impl Source for RequestsOf {
    fn read(&self) -> BoxFuture<'_, Vec<Sample>> {
        let sample = |(asked, number): (Asked, u64)| {
            let Asked { verb, resource, answer } = asked;
            let values = [self.side.to_owned(), verb.to_owned(), resource, answer.as_str().to_owned()];
            Sample::new(&table::API_REQUESTS, values, Value::Whole(number))
        };
        Box::pin(async move { self.requests.counts().into_iter().map(sample).collect() })
    }
}

struct HeldBy(Figures);

impl Source for HeldBy {
    fn read(&self) -> BoxFuture<'_, Vec<Sample>> {
        Box::pin(async {
            let Held { devices, probing_peers, changes } = self.0.held().await;
            vec![
                Sample::new(&table::DATAPLANE_DEVICES, [], Value::Whole(devices)),
                Sample::new(&table::DATAPLANE_CHANGES, [], Value::Whole(changes)),
                Sample::new(&table::DATAPLANE_PROBING_PEERS, [], Value::Whole(probing_peers)),
            ]
        })
    }
}

#[cfg(test)]
mod tests;

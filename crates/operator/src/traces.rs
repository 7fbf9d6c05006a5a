//! Spans for a collector: those of passes and of the API calls in them, and which traces they are linked to. It refuses to
//! send anything where no collector is named, and to hold up a pass: a thread of its own sends, and what it can't is dropped.

use std::{
    collections::{BTreeSet, HashMap},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry::{
    Context,
    propagation::TextMapPropagator as _,
    trace::{SpanContext, TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    propagation::TraceContextPropagator,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use tracing::{Level, Metadata, Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::FilterFn, registry::LookupSpan};

/// How long a collector may take to answer.
const LIMIT: Duration = Duration::from_secs(5);
/// How long the last spans may hold up the end of a process.
const LEAVE: Duration = Duration::from_secs(1);

/// Why there is no way to a collector.
#[derive(Debug, thiserror::Error)]
#[error("no spans can be sent to {url}: check --otlp-endpoint and OTEL_EXPORTER_OTLP_ENDPOINT")]
pub struct Error {
    url: String,
    #[source]
    cause: opentelemetry_otlp::ExporterBuildError,
}

/// The way to a collector.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// To the collector at `endpoint`, the address before `/v1/traces`, from a process called `service`. Call it outside
    /// of a runtime. Headers and batches are set by the variables of OpenTelemetry.
    ///
    /// # Errors
    /// The address can't be understood.
    pub fn to(endpoint: &str, service: &'static str) -> Result<Self, Error> {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&url)
            .with_timeout(LIMIT)
            .build()
            .map_err(|cause| Error { url: url.clone(), cause })?;
        let exporter = Heard { exporter, url, failed: AtomicBool::new(false) };
        let resource = Resource::builder().with_service_name(service).build();
        Ok(Self::of(
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build(),
        ))
    }

    /// By a provider that is there already.
    pub fn of(provider: SdkTracerProvider) -> Self {
        Self(provider)
    }

    /// What hears the spans of a process.
    pub fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> + use<S> {
        let filter = FilterFn::new(is_told).with_max_level_hint(LevelFilter::DEBUG);
        let tracer = self.0.tracer("spanwire");
        tracing_opentelemetry::layer().with_tracer(tracer).with_threads(false).with_filter(filter)
    }

    /// Sends what is left, for a second at most.
    pub fn finish(self) {
        if let Err(fault) = self.0.shutdown_with_timeout(LEAVE) {
            tracing::debug!(%fault, "the last spans were not sent");
        }
    }
}

/// Passes, their calls, and what was logged of them. The span of a process is none: it lasts as long as the process, and
/// each pass is a trace of its own.
fn is_told(metadata: &Metadata<'_>) -> bool {
    let ours = metadata.target().starts_with("spanwire");
    let told = if metadata.is_span() {
        matches!(metadata.name(), "pass" | "call")
    } else {
        *metadata.level() <= Level::INFO
    };
    ours && told
}

/// Links the span of the running pass to the traces that objects name. A value that names none is left out.
pub fn link(traces: &BTreeSet<String>) {
    let span = Span::current();
    for text in traces {
        match named(text) {
            Some(context) => span.add_link(context),
            None => tracing::debug!(%text, "the annotation is no traceparent of W3C and is left out"),
        }
    }
}

/// The place in a trace that a `traceparent` names. The propagator does not look at lengths.
fn named(text: &str) -> Option<SpanContext> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths.get(..4).filter(|lengths| **lengths == [2, 32, 16, 2])?;
    let carrier = HashMap::from([("traceparent".to_owned(), text.to_owned())]);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    let span = context.span().span_context().clone();
    span.is_valid().then_some(span)
}

/// An exporter that says when it begins to fail and when it works again, and nothing in between.
#[derive(Debug)]
struct Heard {
    exporter: opentelemetry_otlp::SpanExporter,
    url: String,
    failed: AtomicBool,
}

impl SpanExporter for Heard {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let result = self.exporter.export(batch).await;
        match (&result, self.failed.swap(result.is_err(), Ordering::Relaxed)) {
            (Err(fault), false) => {
                tracing::warn!(url = self.url, %fault, "spans can't be sent and are dropped")
            }
            (Ok(()), true) => tracing::info!(url = self.url, "spans are sent again"),
            (Ok(()), false) | (Err(_), true) => {}
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_of_w3c_names_a_trace_and_anything_else_none() {
        let context = named("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        let zeros = format!("00-{}-{}-01", "0".repeat(32), "0".repeat(16));
        for wrong in ["", "00", "hello", "00-4bf92f35-00f067aa0ba902b7-01", zeros.as_str()] {
            assert!(named(wrong).is_none(), "{wrong:?}");
        }
    }
}

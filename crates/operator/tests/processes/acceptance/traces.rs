//! Traces: what a collector is sent of passes, against the ledgers of requests of real API servers.

use std::net::TcpListener;

use opentelemetry_proto::tonic::trace::v1::Span;
use spanwire_api::{GatewayNetworkSpec, TRACEPARENT, WorkerSliceConfigSpec};
use spanwire_testkit::control_plane::Request;

use super::second_pass::NETWORK;
use crate::{
    collector::{Collector, field},
    site::Site,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn traced(value: &str) -> String {
    NETWORK.replace("  name: demo\n", &format!("  name: demo\n  annotations:\n    {TRACEPARENT}: {value}\n"))
}

fn here() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn passes(spans: &[Span]) -> Vec<&Span> {
    spans.iter().filter(|span| span.name == "pass").collect()
}

/// The calls that stand directly under a pass, as the audit log would show them.
fn calls(spans: &[Span]) -> Vec<(String, String, String)> {
    let passes = passes(spans);
    let under = |span: &&Span| {
        let is_its = |pass: &&&Span| pass.span_id == span.parent_span_id && pass.trace_id == span.trace_id;
        passes.iter().any(|pass| is_its(&pass))
    };
    let mut calls: Vec<_> = spans.iter().filter(under).map(call).collect();
    calls.sort();
    calls
}

fn call(span: &Span) -> (String, String, String) {
    let (kind, name) = (field(span, "kind"), field(span, "name"));
    match field(span, "verb").as_str() {
        "apply" => ("patch".to_owned(), kind, name),
        "apply status" => ("patch".to_owned(), format!("{kind}/status"), name),
        verb => (verb.to_owned(), kind, name),
    }
}

/// What one user asked for in the passes of a process: no leases, no key that is made before the first one.
fn asked(requests: Vec<Request>, user: &str) -> Vec<(String, String, String)> {
    let of_passes = |request: &Request| {
        request.user.ends_with(user) && !["secrets", "events"].contains(&request.resource.as_str())
    };
    let requests = requests.into_iter().filter(of_passes);
    let mut asked: Vec<_> =
        requests.map(|request| (request.verb.clone(), request.target(), request.name)).collect();
    asked.sort();
    asked
}

#[test]
fn traces_show_every_call_of_a_pass_under_it_and_link_it_to_the_trace_of_the_object() {
    let Some(site) = Site::new("traces", &["hub-a", "spoke-1"], &[]) else { return };
    let hub = &site.members[0];
    let value = format!("00-{TRACE}-00f067aa0ba902b7-01");
    site.apply(&traced(&value));
    let collector = Collector::on(here());
    let marks = site.marks();
    let run = site.controller_with(&["--otlp-endpoint", &collector.url]);
    let spans = collector.take();
    let expected = asked(site.writes_since(marks), "spanwire-controller");
    assert!(expected.len() >= 5, "a status, two intents, two gateways: {expected:?}");
    assert_eq!(calls(&spans), expected, "{run:#?}");
    all_are_linked(&spans);
    let carried = || site.field::<WorkerSliceConfigSpec>("demo.hub-a", "/metadata/annotations");
    assert_eq!(carried()[TRACEPARENT], value.as_str(), "the intent carries it on");

    let collector = Collector::on(hub.host.tcp_listener(([127, 0, 0, 1], 0).into()).unwrap());
    let marks = site.marks();
    let run = hub.worker(&["--once", "--otlp-endpoint", &collector.url]);
    let spans = collector.take();
    let expected = asked(site.writes_since(marks), "spanwire-worker-hub-a");
    assert!(expected.len() >= 3, "facts, an intent's status, records: {expected:?}");
    assert_eq!(calls(&spans), expected, "{run:#?}");
    all_are_linked(&spans);
    let told = format!("{spans:?}");
    assert!(!told.contains("privateKey") && !told.contains("token"), "{told}");
}

fn all_are_linked(spans: &[Span]) {
    let passes = passes(spans);
    assert!(!passes.is_empty());
    for pass in passes {
        assert!(pass.parent_span_id.is_empty(), "each pass is a trace of its own: {pass:?}");
        let linked: Vec<String> = pass.links.iter().map(|link| hex(&link.trace_id)).collect();
        assert_eq!(linked, [TRACE]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn traces_another_annotation_writes_nothing_and_a_wrong_one_is_left_out() {
    let Some(site) = Site::new("untraced", &["hub-a", "spoke-1"], &[]) else { return };
    site.apply(NETWORK);
    let collector = Collector::on(here());
    site.controller();
    assert!(collector.is_empty(), "nothing is sent where no collector is named");
    for value in ["hello", &format!("00-{TRACE}-00f067aa0ba902b7-01")] {
        site.apply(&traced(value));
        let marks = site.marks();
        let run = site.controller_with(&["--otlp-endpoint", &collector.url]);
        assert_eq!((run.writes(), site.writes_since(marks)), (vec![], vec![]), "{value}: {run:#?}");
        let spans = collector.take();
        let links: usize = passes(&spans).iter().map(|pass| pass.links.len()).sum();
        assert_eq!((passes(&spans).len(), links), (1, usize::from(value != "hello")), "{value}");
    }
}

#[test]
fn traces_a_collector_that_hangs_or_is_gone_holds_up_no_pass() {
    for (name, answers) in [("hangs", true), ("gone", false)] {
        let Some(site) = Site::new(&format!("traces-{name}"), &["hub-a", "spoke-1"], &[]) else { return };
        site.apply(NETWORK);
        let url = if answers {
            Collector::mute(here()).url
        } else {
            format!("http://{}", here().local_addr().unwrap())
        };
        let run = site.controller_with(&["--otlp-endpoint", &url]);
        assert_eq!(run.code, 0, "{name}: {run:#?}");
        assert!(run.writes().len() >= 5, "{name}: {run:#?}");
        assert_eq!(site.field::<GatewayNetworkSpec>("demo", "/status/state"), "Valid", "{name}");
    }
}

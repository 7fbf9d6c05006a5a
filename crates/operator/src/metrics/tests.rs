//! What is counted, and the table. The tests refuse a name that breaks the conventions of Prometheus.

use std::collections::BTreeSet;

use spanwire_engine::{Class, port::Written};

use super::{taken::Fate, *};
use crate::{fault::Noted, ledger::Target};

/// Names that must not be in labels: what they could hold is a key or an address.
const NEVER: [&str; 6] = ["key", "public_key", "address", "endpoint", "ip", "instance"];

fn fault(class: Class) -> Noted {
    Noted { class, message: "the key at 192.0.2.1 is wrong".into(), late: false }
}

fn lines(page: &str) -> Vec<&str> {
    page.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn names_follow_the_conventions_and_labels_are_described() {
    let mut names = BTreeSet::new();
    for metric in table::ALL {
        let Metric { name, kind, labels: own, of, help } = metric;
        assert!(names.insert(*name), "{name} twice");
        assert!(name.starts_with("spanwire_"), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == table::Kind::Counter, "{name}");
        assert!(!of.is_empty() && !help.is_empty() && !help.ends_with('.'), "{name}");
        for unit in ["age", "duration"].iter().filter(|unit| name.contains(**unit)) {
            assert!(name.ends_with("_seconds"), "{name} is of {unit} and has no unit");
        }
        for label in *own {
            assert!(table::LABELS.iter().any(|(described, _)| described == label), "{name}: {label}");
            assert!(!NEVER.contains(label), "{name}: {label}");
        }
    }
}

#[tokio::test]
async fn a_pass_is_counted_by_its_outcome_its_faults_by_class_and_its_writes_by_target() {
    let metrics = Metrics::of_controller();
    let moment = Duration::from_millis(30);
    metrics.note_pass(&Outcome::default(), moment);
    metrics.note_pass(&Outcome::waiting("a hub at 192.0.2.1".into()), moment);
    let mut failed = Outcome { faults: vec![fault(Class::Retry), fault(Class::Retry)], ..Outcome::default() };
    failed.faults.push(fault(Class::NeedsHuman));
    failed.ledger.note(Target::Intent, Written::Changed, || "intent of 192.0.2.1".into());
    failed.ledger.note(Target::Intent, Written::Same, || "intent".into());
    metrics.note_pass(&failed, Duration::from_secs(2));
    let page = metrics.render(Format::Prometheus).await;
    for line in [
        r#"spanwire_passes_total{outcome="done"} 1"#,
        r#"spanwire_passes_total{outcome="waiting"} 1"#,
        r#"spanwire_passes_total{outcome="failed"} 1"#,
        r#"spanwire_errors_total{class="Retry"} 2"#,
        r#"spanwire_errors_total{class="NeedsHuman"} 1"#,
        r#"spanwire_writes_total{target="intent"} 1"#,
        r#"spanwire_pass_duration_seconds_bucket{le="0.05"} 2"#,
        r#"spanwire_pass_duration_seconds_bucket{le="+Inf"} 3"#,
        "spanwire_pass_duration_seconds_count 3",
    ] {
        assert!(lines(&page).contains(&line), "{line}\n{page}");
    }
    assert!(!page.contains("192.0.2.1"), "no words of faults and writes:\n{page}");
}

#[tokio::test]
async fn steps_are_counted_by_kind_and_fate() {
    let metrics = Metrics::of_worker();
    let mut taken = taken::Taken::default();
    taken.note("peer", Fate::Changed);
    taken.note("peer", Fate::Changed);
    taken.note("remove_device", Fate::Left);
    metrics.note_steps(&taken);
    metrics.note_steps(&taken);
    let page = metrics.render(Format::OpenMetrics).await;
    for line in [
        r#"spanwire_steps_total{kind="peer",outcome="changed"} 4"#,
        r#"spanwire_steps_total{kind="remove_device",outcome="left"} 2"#,
    ] {
        assert!(lines(&page).contains(&line), "{line}\n{page}");
    }
}

#[tokio::test]
async fn a_process_shows_the_metrics_that_the_table_gives_it() {
    for metrics in [Metrics::of_controller(), Metrics::of_worker(), Metrics::of_dataplane()] {
        metrics.note_pass(&Outcome::failed(fault(Class::Retry)), Duration::ZERO);
        let page = metrics.render(Format::Prometheus).await;
        let shown = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let shown: BTreeSet<&str> = shown.collect();
        assert!(shown.contains("spanwire_build_info"), "{page}");
        for name in &shown {
            let metric = table::ALL.iter().find(|metric| metric.name == *name).expect("it is in the table");
            assert!(metric.of.contains(&metrics.0.process), "{name} of {}", metrics.0.process);
        }
        let passes = metrics.0.process != table::DATAPLANE;
        assert_eq!(shown.contains("spanwire_passes_total"), passes, "{page}");
    }
}

#[tokio::test]
async fn a_source_that_hangs_leaves_the_rest() {
    struct Hangs;
    impl Source for Hangs {
        fn read(&self) -> BoxFuture<'_, Vec<Sample>> {
            Box::pin(std::future::pending())
        }
    }
    tokio::time::pause();
    let metrics = Metrics::of_worker();
    metrics.show(Hangs);
    let page = metrics.render(Format::Prometheus).await;
    assert!(page.contains("spanwire_build_info"), "{page}");
}

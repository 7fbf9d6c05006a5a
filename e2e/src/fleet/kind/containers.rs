//! What the product's containers take of a node, as its container runtime counts it. It refuses to count anything but
//! the product's own.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{NAMESPACE, cluster::Cluster};

/// One container at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    /// Time on a processor since it began, in nanoseconds.
    processor: u64,
    /// Memory that can't be taken away, in bytes.
    memory: u64,
}

/// All containers of the product on a node, by name.
pub(super) fn look(cluster: &Cluster) -> Result<BTreeMap<String, Used>> {
    let text = cluster.on_node(&["crictl", "stats", "--output", "json"])?;
    parse(&text).with_context(|| format!("reading the statistics of the cluster {}", cluster.name))
}

fn parse(text: &str) -> Result<BTreeMap<String, Used>> {
    let all: Value = serde_json::from_str(text)?;
    let number =
        |value: &Value| value.as_str().and_then(|text| text.parse().ok()).or(value.as_u64()).unwrap_or(0);
    let own = all["stats"].as_array().into_iter().flatten().filter(|entry| {
        entry["attributes"]["labels"]["io.kubernetes.pod.namespace"].as_str() == Some(NAMESPACE)
    });
    let used = own.filter_map(|entry| {
        let name = entry["attributes"]["metadata"]["name"].as_str()?.to_owned();
        let processor = number(&entry["cpu"]["usageCoreNanoSeconds"]["value"]);
        let memory = number(&entry["memory"]["workingSetBytes"]["value"]);
        Some((name, Used { processor, memory }))
    });
    Ok(used.collect())
}

/// `worker 9.1 MiB and 0.4 % of a core, …`
pub(super) fn words(
    before: &BTreeMap<String, Used>,
    after: &BTreeMap<String, Used>,
    time: Duration,
) -> String {
    let told = after.iter().map(|(name, now)| {
        let earlier = before.get(name).map_or(now.processor, |used| used.processor);
        let ran = Duration::from_nanos(now.processor.saturating_sub(earlier));
        let share = 100.0 * ran.as_secs_f64() / time.as_secs_f64().max(f64::EPSILON);
        let memory = now.memory as f64 / f64::from(1 << 20);
        format!("{name} {memory:.1} MiB and {share:.1} % of a core")
    });
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_products_containers_are_told() {
        let entry = |namespace: &str, name: &str, ran: u64| {
            format!(
                r#"{{"attributes":{{"metadata":{{"name":"{name}"}},"labels":{{"io.kubernetes.pod.namespace":"{namespace}"}}}},
                "cpu":{{"usageCoreNanoSeconds":{{"value":"{ran}"}}}},"memory":{{"workingSetBytes":{{"value":"2097152"}}}}}}"#
            )
        };
        let stats = |ran| {
            let text = format!(
                r#"{{"stats":[{},{}]}}"#,
                entry("kube-system", "etcd", ran),
                entry("spanwire", "worker", ran)
            );
            parse(&text).unwrap()
        };
        let told = words(&stats(0), &stats(50_000_000), Duration::from_secs(10));
        assert_eq!(told, "worker 2.0 MiB and 0.5 % of a core");
    }
}

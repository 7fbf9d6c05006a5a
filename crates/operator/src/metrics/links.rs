//! The links of a worker as they are when somebody scrapes: states as the last pass recorded them, counters and ages as
//! the devices show them. It refuses to show a link that is no longer recorded, and any while another worker acts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use spanwire_api::metrics as table;
use spanwire_dataplane::{
    local::{Error, LocalDevices, Writes},
    traffic::{PeerTraffic, Traffic},
};
use spanwire_engine::{
    DeviceName, LinkId, LinkState, PublicKey,
    worker::{LinkStatus, Recorded, RecordedLink},
};
use tokio::time::timeout;

use super::{Metrics, Sample, Source, Value};
use crate::{health::Health, worker::apply::Applied};

/// How long a device may take to show its counters.
const LIMIT: Duration = Duration::from_secs(3);
const STATES: [LinkState; 3] = [LinkState::Connected, LinkState::NotConnected, LinkState::Pending];

/// What a worker's passes are told to, for its metrics and probes.
#[derive(Clone)]
pub struct Measures {
    /// What is counted.
    pub metrics: Metrics,
    /// Whether the process is well.
    pub health: Health,
    links: Links,
}

type Links = Arc<Mutex<Vec<Shown>>>;

/// A link and where its counters are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    id: LinkId,
    state: LinkState,
    device: DeviceName,
    key: PublicKey,
}

impl Default for Measures {
    fn default() -> Self {
        Self { metrics: Metrics::of_worker(), health: Health::of_worker(), links: Links::default() }
    }
}

impl Measures {
    /// Takes over what a pass left.
    pub fn note(&self, applied: &Applied) {
        let Applied { validated, report: _, ledger: _, failed: _, faults: _, taken } = applied;
        let Recorded { intents: _, links, unreadable: _ } = &validated.fetched.recorded;
        self.metrics.note_steps(taken);
        let shown = links.values().map(shown).collect();
        *self.links.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        self.health.looked();
    }

    /// Shows what the devices of this host say.
    ///
    /// # Errors
    /// Their counters can't be reached.
    pub fn watch(&self, devices: &LocalDevices) -> Result<(), Error> {
        self.metrics.show(OnHost {
            links: Arc::clone(&self.links),
            health: self.health.clone(),
            traffic: devices.traffic()?,
            writes: devices.counted_writes(),
        });
        Ok(())
    }
}

fn shown(link: &RecordedLink) -> Shown {
    let RecordedLink {
        id,
        peer_uid: _,
        device,
        listen_port: _,
        public_key,
        key_generation: _,
        allowed_ips: _,
        prefixes: _,
        probe: _,
        endpoint: _,
        keepalive: _,
        intent_generation: _,
        status,
    } = link;
    let LinkStatus { state, reason: _, message: _, last_transition: _, connected_once: _, unwanted_since: _ } =
        status;
    Shown { id: id.clone(), state: *state, device: device.clone(), key: *public_key }
}

struct OnHost {
    links: Links,
    health: Health,
    traffic: Traffic,
    writes: Writes,
}

impl Source for OnHost {
    fn read(&self) -> BoxFuture<'_, Vec<Sample>> {
        Box::pin(async {
            let mut samples = vec![Sample::new(&table::DEVICE_WRITES, [], Value::Whole(self.writes.count()))];
            if self.health.acts_now() {
                let links = self.links.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let traffic = self.traffic_of(&links).await;
                samples.extend(links.iter().flat_map(|link| {
                    let peers = traffic.get(&link.device);
                    of_link(link, peers.and_then(|peers| peers.get(&link.key)))
                }));
            }
            samples
        })
    }
}

impl OnHost {
    /// What the devices of `links` show; one that can't be read is left out.
    async fn traffic_of(&self, links: &[Shown]) -> BTreeMap<DeviceName, BTreeMap<PublicKey, PeerTraffic>> {
        let devices: BTreeSet<&DeviceName> = links.iter().map(|link| &link.device).collect();
        let reads = devices.into_iter().map(|device| async move {
            let read = timeout(LIMIT, self.traffic.of(device)).await;
            Some((device.clone(), read.ok()?.ok()?))
        });
        join_all(reads).await.into_iter().flatten().collect()
    }
}

/// All series of a link.
fn of_link(link: &Shown, traffic: Option<&PeerTraffic>) -> Vec<Sample> {
    let Shown { id: LinkId { network, peer, role }, state, device: _, key: _ } = link;
    let name = || [network.to_string(), role.to_string(), peer.to_string()];
    let mut samples = Vec::new();
    for known in STATES {
        let [network, role, peer] = name();
        let values = [network, role, peer, known.as_str().to_owned()];
        samples.push(Sample::new(&table::LINK_STATE, values, Value::Whole(u64::from(known == *state))));
    }
    let Some(PeerTraffic { handshake, received, sent }) = traffic else { return samples };
    samples.push(Sample::new(&table::LINK_RECEIVED, name(), Value::Whole(*received)));
    samples.push(Sample::new(&table::LINK_SENT, name(), Value::Whole(*sent)));
    samples.extend(
        handshake.map(|age| Sample::new(&table::LINK_HANDSHAKE_AGE, name(), Value::Real(age.as_secs_f64()))),
    );
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Format;

    struct Fixed(Vec<Sample>);

    impl Source for Fixed {
        fn read(&self) -> BoxFuture<'_, Vec<Sample>> {
            Box::pin(async { self.0.clone() })
        }
    }

    #[tokio::test]
    async fn a_link_is_named_by_network_role_and_peer_and_by_nothing_else() {
        let id = LinkId {
            network: "demo".parse().unwrap(),
            peer: "hub-a".parse().unwrap(),
            role: spanwire_engine::LinkRole::Uplink,
        };
        let device = "swu-0123456789".parse().unwrap();
        let link = Shown { id, state: LinkState::NotConnected, device, key: PublicKey([7; 32]) };
        let traffic =
            PeerTraffic { handshake: Some(Duration::from_millis(1_500)), received: 7, sent: u64::MAX };
        let metrics = Metrics::of_worker();
        metrics.show(Fixed(of_link(&link, Some(&traffic))));
        let page = metrics.render(Format::OpenMetrics).await;
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("spanwire_link")).collect();
        let expected = [
            r#"spanwire_link_state{network="demo",role="uplink",peer="hub-a",state="Connected"} 0"#,
            r#"spanwire_link_state{network="demo",role="uplink",peer="hub-a",state="NotConnected"} 1"#,
            r#"spanwire_link_state{network="demo",role="uplink",peer="hub-a",state="Pending"} 0"#,
            r#"spanwire_link_handshake_age_seconds{network="demo",role="uplink",peer="hub-a"} 1.5"#,
            r#"spanwire_link_received_bytes_total{network="demo",role="uplink",peer="hub-a"} 7"#,
            r#"spanwire_link_sent_bytes_total{network="demo",role="uplink",peer="hub-a"} 18446744073709551615"#,
        ];
        assert_eq!(lines, expected);
        let silent = PeerTraffic { handshake: None, ..traffic };
        let series = of_link(&link, Some(&silent));
        assert_eq!(series.len(), 5, "without a handshake there is no age: {series:?}");
        assert_eq!(
            of_link(&link, None).len(),
            3,
            "a device that can't be read leaves the states: {series:?}"
        );
    }
}

//! The networks of a controller as they are when somebody scrapes: links, and how far a change came. It refuses to show a
//! network that is gone, and any while another controller acts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use jiff::Timestamp;
use spanwire_api::metrics as table;
use spanwire_engine::{Change, NetworkName, NetworkStatus, Now, Phase, network::Edges};

use super::{Sample, Source, Value};
use crate::{clock::Clock, controller::apply::Applied, health::Health};

/// What is shown of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    edges: Edges,
    change: Option<Change>,
}

impl Standing {
    /// The part of a status that is shown.
    pub fn of(status: &NetworkStatus) -> Self {
        let NetworkStatus {
            observed_generation: _,
            state: _,
            active_hub: _,
            published: _,
            change,
            edges,
            members: _,
            conditions: _,
        } = status;
        Self { edges: *edges, change: change.clone() }
    }
}

/// The networks as the last pass left them. Clones show the same ones.
#[derive(Debug, Clone, Default)]
pub struct Networks(Arc<Mutex<BTreeMap<NetworkName, Standing>>>);

impl Networks {
    /// Takes over what a pass left.
    pub fn note(&self, applied: &Applied) {
        let Applied { reports: _, standing, ledger: _, faults: _ } = applied;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(standing);
    }
}

/// Shows networks to who scrapes.
pub struct Shown {
    /// The networks.
    pub networks: Networks,
    /// For ages.
    pub clock: Clock,
    /// Whether this controller acts.
    pub health: Health,
}

impl Source for Shown {
    fn read(&self) -> BoxFuture<'_, Vec<Sample>> {
        Box::pin(async {
            if !self.health.acts_now() {
                return Vec::new();
            }
            let now = self.clock.now().ok();
            let networks = self.networks.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
            networks.iter().flat_map(|(name, standing)| of_network(name, standing, now.as_ref())).collect()
        })
    }
}

/// All series of a network.
fn of_network(network: &NetworkName, standing: &Standing, now: Option<&Now>) -> Vec<Sample> {
    let Standing { edges: Edges { desired, ready, failing }, change } = standing;
    let mut samples = Vec::new();
    for (state, count) in [("desired", desired), ("ready", ready), ("failing", failing)] {
        let values = [network.to_string(), state.to_owned()];
        samples.push(Sample::new(&table::NETWORK_LINKS, values, Value::Whole(u64::from(*count))));
    }
    let Some(change) = change else { return samples };
    for phase in Phase::ALL {
        let values = [network.to_string(), phase.as_str().to_owned()];
        let runs = u64::from(phase == change.phase);
        samples.push(Sample::new(&table::CHANGE_PHASE, values, Value::Whole(runs)));
    }
    samples.extend(now.and_then(|now| age(change, now)).map(|age| {
        Sample::new(&table::CHANGE_PHASE_AGE, [network.to_string()], Value::Real(age.as_secs_f64()))
    }));
    samples
}

/// How long the phase has been running. Of one that began before this host booted, or on another one, only the wall
/// clock knows.
fn age(change: &Change, now: &Now) -> Option<Duration> {
    let Change { from: _, to: _, phase: _, started_at, started } = change;
    now.boot.since(started).or_else(|| {
        let (began, now) = (started_at.parse::<Timestamp>().ok()?, now.wall.parse::<Timestamp>().ok()?);
        Some(Duration::try_from(now.duration_since(began)).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Format, Metrics};
    use spanwire_engine::{BootTime, Published, Topology};

    fn moment(boot: &str, seconds: u64) -> BootTime {
        BootTime { boot_id: boot.to_owned(), since_boot: Duration::from_secs(seconds) }
    }

    fn change() -> Change {
        let mesh = Published { topology: Topology::Mesh, hubs: Vec::new() };
        Change {
            from: mesh.clone(),
            to: mesh,
            phase: Phase::Switching,
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            started: moment("first", 100),
        }
    }

    #[test]
    fn a_phase_ages_by_the_boot_clock_and_after_a_reboot_by_the_wall_clock() {
        let now =
            |boot, seconds| Now { boot: moment(boot, seconds), wall: "2026-01-01T00:01:00Z".to_owned() };
        assert_eq!(age(&change(), &now("first", 107)), Some(Duration::from_secs(7)));
        assert_eq!(age(&change(), &now("second", 7)), Some(Duration::from_secs(60)));
        let unknown = Change { started_at: "yesterday".to_owned(), ..change() };
        assert_eq!(age(&unknown, &now("second", 7)), None);
    }

    #[tokio::test]
    async fn a_running_phase_is_1_and_everything_goes_with_the_network_or_the_turn() {
        let networks = Networks::default();
        let health = Health::of_controller();
        let acting = health.acts(Duration::from_secs(300));
        let metrics = Metrics::of_controller();
        let clock = Clock::new().unwrap();
        metrics.show(Shown { networks: networks.clone(), clock: clock.clone(), health });
        let change = Change { started: clock.now().unwrap().boot, ..change() };
        let edges = Edges { desired: 3, ready: 2, failing: 1 };
        let demo = ("demo".parse().unwrap(), Standing { edges, change: Some(change) });
        networks.0.lock().unwrap().extend([demo]);
        let page = metrics.render(Format::OpenMetrics).await;
        for line in [
            r#"spanwire_network_links{network="demo",state="ready"} 2"#,
            r#"spanwire_change_phase{network="demo",phase="Adding"} 0"#,
            r#"spanwire_change_phase{network="demo",phase="Switching"} 1"#,
            r#"spanwire_change_phase_age_seconds{network="demo"} 0."#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        drop(acting);
        let page = metrics.render(Format::OpenMetrics).await;
        assert!(!page.contains("demo"), "another controller acts:\n{page}");
    }
}

//! What a person writes: gateways and the network. It refuses to know where.

use std::fmt::Write as _;

use anyhow::Result;
use spanwire_api::{ConditionStatus, GatewayNetworkSpec, GatewayNetworkStatus, GatewaySpec};

use super::{Member, NETWORK, control::Control, names};
use crate::{Mode, Scenario, Setup, Topology, Transit};

/// The network as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its shape.
    pub topology: Topology,
    /// The active hub, for hub-spoke.
    pub hub: Option<String>,
    /// Hubs that are kept connected.
    pub standby: Vec<String>,
    /// Whether spokes reach each other.
    pub transit: Transit,
    /// Which WireGuard carries the tunnels.
    pub mode: Mode,
    /// Who takes part, in order.
    pub members: Vec<String>,
}

impl Declared {
    /// What a scenario begins with.
    pub(crate) fn new(setup: &Setup) -> Self {
        let hub = (setup.topology == Topology::HubSpoke).then(|| "hub-a".to_owned());
        let standby =
            if setup.scenario == Scenario::Failover { vec!["hub-b".to_owned()] } else { Vec::new() };
        let joiners = u8::from(setup.scenario == Scenario::Members);
        let members = names(setup.members - joiners);
        Self { topology: setup.topology, hub, standby, transit: setup.transit, mode: setup.mode, members }
    }

    /// Hubs in order: the active one, then those that stand by.
    pub fn hubs(&self) -> Vec<&str> {
        self.hub.iter().chain(&self.standby).map(String::as_str).collect()
    }

    /// Whether a status says that all of it is done and every link works.
    pub fn is_reached(&self, status: &GatewayNetworkStatus) -> bool {
        let hubs = if self.topology == Topology::Mesh { Vec::new() } else { self.hubs() };
        let published = status.published.as_ref().is_some_and(|published| {
            published.topology == self.topology.to_string() && published.hubs == hubs
        });
        let ready = status
            .conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == ConditionStatus::True);
        let members: Vec<&str> = status.members.iter().map(|member| member.gateway.as_str()).collect();
        published && status.change.is_none() && ready && members == self.members
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: {NETWORK}\nspec:\n  topology: {}\n",
            self.topology
        );
        if let Some(hub) = &self.hub {
            let _ = writeln!(text, "  hub: {hub}");
        }
        if !self.standby.is_empty() {
            let _ = writeln!(text, "  standbyHubs: [{}]", self.standby.join(", "));
        }
        let _ = write!(
            text,
            "  members: [{}]\n  cidr: 100.80.0.0/24\n  transit: {}\n  tunnel:\n    mode: {}\n",
            self.members.join(", "),
            self.transit,
            self.mode
        );
        text
    }

    pub(crate) fn write(&self, control: &Control) -> Result<()> {
        control.apply::<GatewayNetworkSpec>(NETWORK, &self.text())
    }
}

/// Writes one file a gateway.
pub(crate) fn write_gateways(control: &Control, members: &[Member]) -> Result<()> {
    for member in members {
        let text = format!(
            "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: {}\nspec:\n  subnets: [{}]\n  advertise:\n    host: {}\n",
            member.name(),
            member.subnet(),
            member.host().address()
        );
        control.apply::<GatewaySpec>(member.name(), &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanwire_api::Object;

    #[test]
    fn what_is_written_is_what_the_product_reads() {
        for setup in [Scenario::HubChange, Scenario::Failover, Scenario::MeshToHub].map(Setup::for_scenario) {
            let text = Declared::new(&setup).text();
            let object: Object<GatewayNetworkSpec> = serde_saphyr::from_str(&text).unwrap();
            let spec = object.spec.unwrap();
            assert_eq!(spec.topology, setup.topology.to_string());
            assert_eq!(spec.members.len(), 4);
            assert_eq!(spec.standby_hubs.len(), usize::from(setup.scenario == Scenario::Failover));
        }
    }
}

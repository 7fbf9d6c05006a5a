//! A control store as a value, with a controller that writes everything it plans. It refuses to fail.

use std::{collections::BTreeMap, time::Duration};

use spanwire_engine::{
    BootTime, Gateway, GatewayName, Intent, Meta, NetworkName, NetworkSpec, NetworkStatus, Now, PublicKey,
    Uid,
    controller::{self, Plan},
    port::{ControlView, IntentView, NetworkView},
    topology,
};

pub(crate) fn name(text: &str) -> GatewayName {
    text.parse().unwrap()
}

pub(crate) fn net() -> NetworkName {
    "net".parse().unwrap()
}

pub(crate) fn gateway(index: u8) -> Gateway {
    let meta = Meta { uid: Uid(format!("uid-{index}")), generation: 1, resource_version: "1".to_owned() };
    let mut gateway = Gateway { meta, ..Gateway::default() };
    gateway.subnets = vec![format!("10.{index}.0.0/16")];
    gateway.facts.public_key = Some(PublicKey([index; 32]).to_string());
    gateway.facts.endpoint = Some(format!("192.0.2.{index}"));
    gateway
}

pub(crate) fn spec(topology: &str, hub: &[&str], members: &[&str]) -> NetworkSpec {
    let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    NetworkSpec {
        topology: topology.to_owned(),
        hub: hub.first().map(ToString::to_string),
        standby_hubs: strings(hub.get(1..).unwrap_or_default()),
        members: strings(members),
        cidr: "100.64.0.0/24".to_owned(),
        ..NetworkSpec::default()
    }
}

pub(crate) struct Store(pub(crate) ControlView);

impl Store {
    pub(crate) fn new(gateways: &[&str], spec: NetworkSpec) -> Self {
        let mut view = ControlView::default();
        for (index, gateway_name) in gateways.iter().enumerate() {
            view.gateways.insert(name(gateway_name), gateway(u8::try_from(index).unwrap() + 1));
        }
        let meta = Meta { uid: Uid("net".to_owned()), generation: 1, resource_version: "1".to_owned() };
        view.networks.insert(net(), NetworkView { meta, spec, status: NetworkStatus::default() });
        Self(view)
    }

    pub(crate) fn declare(&mut self, spec: NetworkSpec) {
        self.0.networks.get_mut(&net()).unwrap().spec = spec;
    }

    pub(crate) fn gateway(&mut self, gateway: &str) -> &mut Gateway {
        self.0.gateways.get_mut(&name(gateway)).unwrap()
    }

    pub(crate) fn plan(&self) -> Plan {
        controller::plan(&self.0, &Now::default()).networks.remove(&net()).unwrap_or_default()
    }

    /// One pass with everything written; what it waits for.
    pub(crate) fn pass(&mut self) -> Vec<String> {
        self.pass_after(Duration::ZERO)
    }

    /// The same, so long after the boot.
    pub(crate) fn pass_after(&mut self, since_boot: Duration) -> Vec<String> {
        let boot = BootTime { since_boot, ..BootTime::default() };
        let plans = controller::plan(&self.0, &Now { boot, ..Now::default() });
        for (gateway, networks) in &plans.gateways {
            self.0.gateways.get_mut(gateway).unwrap().networks = networks.clone();
        }
        let plan = plans.networks.get(&net()).cloned().unwrap_or_default();
        if let Some((status, _)) = &plan.status {
            self.0.networks.get_mut(&net()).unwrap().status = status.clone();
        }
        for write in &plan.intents {
            let generation = write.expected.as_ref().map_or(1, |meta| meta.generation + 1);
            let meta = Meta { uid: Uid("i".to_owned()), generation, resource_version: String::new() };
            let key = (net(), write.intent.gateway.clone());
            let status = self.0.intents.get(&key).map(|view| view.status.clone()).unwrap_or_default();
            self.0.intents.insert(
                key,
                IntentView { meta, intent: write.intent.clone(), status, managed: true, deleting: None },
            );
        }
        for delete in &plan.deletes {
            self.0.intents.remove(&(net(), delete.gateway.clone()));
        }
        plan.report.waits
    }

    pub(crate) fn status(&self) -> &NetworkStatus {
        &self.0.networks[&net()].status
    }

    pub(crate) fn state(&mut self) -> String {
        self.pass();
        self.status().state.clone()
    }

    pub(crate) fn intent(&self, gateway: &str) -> &Intent {
        &self.0.intents[&(net(), name(gateway))].intent
    }

    pub(crate) fn reason(&self, gateway: &str) -> (String, String) {
        let member = self.status().members.iter().find(|member| member.gateway == name(gateway)).unwrap();
        assert!(!member.accepted, "{gateway} is accepted");
        member.reason.clone().unwrap()
    }

    pub(crate) fn address(&self, gateway: &str) -> Option<String> {
        let member = self.status().members.iter().find(|member| member.gateway == name(gateway))?;
        member.tunnel_address.map(|address| address.to_string())
    }
}

/// Pairs of gateways that the intents connect, with the roles at both ends.
pub(crate) fn pairs(store: &Store) -> BTreeMap<(String, String), usize> {
    let mut pairs = BTreeMap::new();
    for view in store.0.intents.values() {
        let intent = &view.intent;
        for peer in intent.peers.iter().flatten() {
            let links = topology::roles(&intent.gateway, &name(peer), &intent.hubs, intent.mesh_links).len();
            let (a, b) =
                (intent.gateway.to_string().min(peer.clone()), intent.gateway.to_string().max(peer.clone()));
            *pairs.entry((a, b)).or_default() += links;
        }
    }
    pairs
}

pub(crate) fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

impl Store {
    pub(crate) fn pass_without_network(&mut self) {
        let plan = self.plan();
        for write in plan.intents {
            let view = self.0.intents.get_mut(&(net(), write.intent.gateway.clone())).unwrap();
            view.intent = write.intent;
            view.meta.generation += 1;
        }
        for delete in plan.deletes {
            self.0.intents.remove(&(net(), delete.gateway));
        }
    }
}

//! How a world is set up and edited, as people do. It refuses to know what follows from an edit.

use spanwire_engine::{
    Gateway, GatewayFacts, GatewayName, Intent, Meta, NetworkName, NetworkSpec, NetworkStatus, PublicKey,
    WorkerStatus,
    port::{IntentView, NetworkView},
};

use super::{Local, World};

/// The key of a gateway in tests: as good as random, the same every time.
pub(crate) fn key(gateway: &GatewayName, generation: i64) -> PublicKey {
    let mut bytes = [u8::try_from(generation).unwrap_or(u8::MAX); 32];
    for (byte, letter) in bytes.iter_mut().skip(1).zip(gateway.as_str().bytes()) {
        *byte = letter;
    }
    PublicKey(bytes)
}

impl World {
    /// A gateway whose worker runs and has published its key: the n-th one is found at 192.0.2.n and has 10.n.0.0/16.
    pub(crate) fn gateway(&mut self, gateway: &GatewayName) -> &mut Gateway {
        if !self.view.gateways.contains_key(gateway) {
            let number = self.view.gateways.len() + 1;
            let (high, low) = (number / 250, number % 250);
            let facts = GatewayFacts {
                public_key: Some(key(gateway, 1).to_string()),
                key_generation: 1,
                endpoint: Some(format!("192.0.{}.{low}", 2 + high)),
                ..GatewayFacts::default()
            };
            let meta = Meta { uid: self.uid(), generation: 1, resource_version: "1".to_owned() };
            let subnets = vec![format!("10.{}.{low}.0/24", high + 1)];
            let value = Gateway { meta, subnets, facts, ..Gateway::default() };
            self.view.gateways.insert(gateway.clone(), value);
            self.hosts.insert(gateway.clone(), Local::new(key(gateway, 1)));
        }
        self.view.gateways.entry(gateway.clone()).or_default()
    }

    /// Declares or edits a network.
    pub(crate) fn declare(&mut self, network: &NetworkName, spec: NetworkSpec) {
        let uid = self.uid();
        let standing = self.view.networks.entry(network.clone()).or_insert_with(|| NetworkView {
            meta: Meta { uid, generation: 0, resource_version: String::new() },
            spec: NetworkSpec::default(),
            status: NetworkStatus::default(),
        });
        if standing.spec != spec || standing.meta.generation == 0 {
            standing.meta.generation += 1;
            standing.spec = spec;
        }
    }

    /// Writes an intent, as the controller or somebody else does. Returns whether anything changed.
    pub(crate) fn write_intent(&mut self, intent: Intent, managed: bool) -> bool {
        let key = (intent.network.clone(), intent.gateway.clone());
        if let Some(standing) = self.view.intents.get_mut(&key) {
            if standing.intent == intent {
                return false;
            }
            standing.meta.generation += 1;
            standing.intent = intent;
        } else {
            let meta = Meta { uid: self.uid(), generation: 1, resource_version: String::new() };
            let view = IntentView { meta, intent, status: WorkerStatus::default(), managed, deleting: None };
            self.view.intents.insert(key, view);
        }
        self.writes += 1;
        true
    }
}

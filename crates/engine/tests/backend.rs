//! Case D14 in the engine: a network that asks for the kernel's WireGuard on a host without it. It refuses silence.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic")]

use std::collections::BTreeMap;

use spanwire_engine::{
    Gateway, GatewayFacts, GatewayName, Intent, Meta, NetworkName, Now, PublicKey, Reason, Stored,
    TunnelMode, WorkerStatus,
    port::WorkerView,
    worker::{self, Host, Recorded, Settings, Situation},
};

#[test]
fn d14_mode_kernel_without_it_says_so_and_makes_nothing() {
    let (me, peer): (GatewayName, GatewayName) = ("me".parse().unwrap(), "peer".parse().unwrap());
    let network: NetworkName = "net".parse().unwrap();
    let mut intent = Intent::bare(network.clone(), me.clone(), Some(vec![peer.to_string()]));
    intent.tunnel.mode = TunnelMode::Kernel;
    let facts = GatewayFacts { public_key: Some(PublicKey([2; 32]).to_string()), ..GatewayFacts::default() };
    let gateways = BTreeMap::from([
        (me.clone(), Gateway::default()),
        (peer, Gateway { facts, subnets: vec!["10.2.0.0/16".to_owned()], ..Gateway::default() }),
    ]);
    let stored =
        (Stored { meta: Meta { generation: 1, ..Meta::default() }, value: intent }, WorkerStatus::default());
    let view = WorkerView {
        gateways,
        intents: BTreeMap::from([(network.clone(), stored)]),
        ..WorkerView::default()
    };
    let (recorded, settings) = (Recorded::default(), Settings::default());
    for kernel_wireguard in [false, true] {
        let host = Host { kernel_wireguard, ..Host::default() };
        let desired = worker::desire(&Situation {
            me: &me,
            own_key: PublicKey([1; 32]),
            view: Some(&view),
            consistent: true,
            recorded: &recorded,
            host: &host,
            settings: &settings,
        });
        let notes: Vec<Reason> = desired.networks[&network].notes.iter().map(|note| note.reason).collect();
        assert_eq!(notes, if kernel_wireguard { vec![] } else { vec![Reason::BackendUnavailable] });
        let plan = worker::plan(&desired, &recorded, &host, &Now::default());
        assert_eq!(plan.steps.len() > 1, kernel_wireguard, "{:?}", plan.steps);
    }
}

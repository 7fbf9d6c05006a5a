//! Values in which every field holds something else than its default. It refuses `..`: a new field has to be placed.

use std::{collections::BTreeMap, time::Duration};

use spanwire_engine::{
    BootTime, Change, Condition, Gateway, GatewayFacts, HubChange, Intent, LinkId, LinkRole, LinkState,
    Listener, MemberStatus, NetworkStatus, OnTimeout, PeerStatus, Phase, PublicKey, Published, Reason, Role,
    RouteState, Topology, Transit, Tunnel, TunnelMode, Uid, WorkerStatus,
    network::Edges,
    status::{ConditionStatus, Summary},
    worker::{AppliedIntent, LinkStatus, RecordedLink},
};

pub(crate) fn name<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

pub(crate) fn gateway_yaml(name: &str, subnet: &str) -> String {
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata: {{name: {name}}}\nspec:\n  subnets: [{subnet}]\n"
    )
}

pub(crate) fn network_yaml(name: &str, hub: &str) -> String {
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata: {{name: {name}}}\nspec:\n  \
         topology: hub-spoke\n  hub: {hub}\n  members: [hub-a, spoke-1]\n  cidr: 10.9.0.0/24\n"
    )
}

pub(crate) fn intent_yaml(network: &str, gateway: &str, peers: &str) -> String {
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: WorkerSliceConfig\nmetadata: {{name: {network}.{gateway}}}\nspec:\n  \
         sliceName: {network}\n  gateway: {gateway}\n  peers: {peers}\n"
    )
}

fn moment() -> BootTime {
    BootTime { boot_id: "1b4e28ba".into(), since_boot: Duration::from_millis(123_456) }
}

fn condition() -> Condition {
    Condition {
        kind: "Ready".into(),
        status: ConditionStatus::Unknown,
        reason: "Waiting".into(),
        message: "no: \"quotes\", #comments or\nlines break it".into(),
        observed_generation: 7,
        last_transition: "2026-11-30T02:30:33Z".into(),
    }
}

pub(crate) fn network_status() -> NetworkStatus {
    let published =
        |topology, hubs: &[&str]| Published { topology, hubs: hubs.iter().map(|hub| name(hub)).collect() };
    NetworkStatus {
        observed_generation: 3,
        state: "Invalid: hub \"x\" does not exist".into(),
        active_hub: Some(name("hub-a")),
        published: Some(published(Topology::HubSpoke, &["hub-a"])),
        change: Some(Change {
            from: published(Topology::Mesh, &[]),
            to: published(Topology::HubSpoke, &["hub-b", "hub-a"]),
            phase: Phase::Switching,
            started_at: "2026-11-30T02:30:33Z".into(),
            started: moment(),
        }),
        edges: Edges { desired: 4, ready: 3, failing: 1 },
        members: vec![
            MemberStatus {
                gateway: name("hub-a"),
                tunnel_address: Some("10.9.0.1".parse().unwrap()),
                accepted: true,
                joining: true,
                leaving: true,
                leaving_since: Some(moment()),
                uid: Uid("u-1".into()),
                reason: Some(("PrefixOverlap".into(), "10.0.0.0/8 overlaps".into())),
            },
            MemberStatus {
                gateway: name("spoke-1"),
                tunnel_address: None,
                accepted: false,
                joining: false,
                leaving: false,
                leaving_since: None,
                uid: Uid::default(),
                reason: None,
            },
        ],
        conditions: vec![condition()],
    }
}

pub(crate) fn intent(peers: Option<Vec<String>>) -> Intent {
    Intent {
        network: name("demo"),
        gateway: name("spoke-1"),
        peers,
        topology: Some(Topology::HubSpoke),
        role: Some(Role::Spoke),
        hubs: vec![name("hub-b"), name("hub-a")],
        mesh_links: true,
        members: vec![name("hub-a"), name("hub-b"), name("spoke-1")],
        tunnel_address: Some("10.9.0.3".parse().unwrap()),
        wide_cidrs: vec!["10.9.0.0/24".parse().unwrap(), "fd00:1::/64".parse().unwrap()],
        transit: Transit::Routed,
        hub_change: HubChange { connect_timeout: Duration::from_millis(1500), on_timeout: OnTimeout::Hold },
        tunnel: Tunnel { mode: TunnelMode::Userspace, mtu: Some(1380), keepalive: Duration::from_secs(7) },
    }
}

pub(crate) fn worker_status(generation: i64) -> WorkerStatus {
    let row = |peer: &str, role, state, route, reason| PeerStatus {
        peer: peer.into(),
        role,
        state,
        route,
        reason,
        message: format!("about {peer}"),
        last_transition: "2026-11-30T02:30:33Z".into(),
    };
    let ghost = row("not a name!", None, LinkState::Pending, RouteState::None, Reason::UnknownPeer);
    let mut peers = vec![ghost];
    for (role, reason) in LinkRole::ALL.into_iter().cycle().zip(Reason::ALL) {
        peers.push(row("hub-a", Some(role), LinkState::Connected, RouteState::Active, *reason));
    }
    peers.push(row(
        "hub-b",
        Some(LinkRole::Trunk),
        LinkState::NotConnected,
        RouteState::Standby,
        Reason::OneWay,
    ));
    WorkerStatus {
        observed_generation: generation,
        role: Some(Role::Hub),
        peers,
        summary: Summary { desired: 3, ready: 2, failing: 1 },
        conditions: vec![condition()],
    }
}

pub(crate) fn facts() -> GatewayFacts {
    let listener =
        |role, peer: Option<&str>, port| Listener { network: name("demo"), role, peer: peer.map(name), port };
    GatewayFacts {
        public_key: Some(PublicKey([7; 32]).to_string()),
        key_generation: 2,
        endpoint: Some("192.0.2.1".into()),
        listeners: vec![
            listener(LinkRole::Downlink, None, 51820),
            listener(LinkRole::Trunk, Some("hub-b"), 51821),
        ],
        backend: Some("userspace".into()),
        conditions: vec![condition()],
    }
}

pub(crate) fn gateway_fields(gateway: &Gateway) -> (Vec<String>, GatewayFacts) {
    (gateway.subnets.clone(), gateway.facts.clone())
}

pub(crate) fn applied() -> AppliedIntent {
    AppliedIntent {
        intent: intent(None),
        uid: Uid("u-2".into()),
        generation: 4,
        own_subnets: vec!["10.1.0.0/24".parse().unwrap()],
        own_host: Some("gw.example".into()),
        wanted_since: BTreeMap::from([((name("hub-a"), LinkRole::Uplink), moment())]),
    }
}

pub(crate) fn link(peer: &str, role: LinkRole) -> RecordedLink {
    RecordedLink {
        id: LinkId { network: name("demo"), peer: name(peer), role },
        peer_uid: Uid("u-3".into()),
        device: name("swu-abcdefghij"),
        listen_port: 51820,
        public_key: PublicKey([9; 32]),
        key_generation: 1,
        allowed_ips: vec!["10.9.0.0/24".parse().unwrap(), "::/0".parse().unwrap()],
        prefixes: vec!["10.9.0.1/32".parse().unwrap()],
        probe: Some("10.9.0.1".parse().unwrap()),
        endpoint: Some("[2001:db8::1]:51820".parse().unwrap()),
        keepalive: Duration::from_secs(25),
        intent_generation: 4,
        status: LinkStatus {
            state: LinkState::Connected,
            reason: Reason::ProbeAnswered,
            message: "answered".into(),
            last_transition: "2026-11-30T02:30:33Z".into(),
            connected_once: true,
            unwanted_since: Some(moment()),
        },
    }
}

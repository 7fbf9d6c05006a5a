//! What the server refuses, and that its words name the fix. It refuses nothing itself that only the reconciler can
//! judge: those inputs are taken.

use spanwire_testkit::control_plane::ControlPlane;

use super::{apply, client, object};

const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

/// Kind, name, spec, and a part of the answer.
fn refused() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let long = "a".repeat(64);
    let many = |count: usize| (0..count).map(|n| format!("'g{n}'")).collect::<Vec<_>>().join(", ");
    let link = |change: &str| {
        let mut fields = vec![
            "network: demo".to_owned(),
            "peer: hub-a".into(),
            "role: uplink".into(),
            "device: sw0".into(),
            "listenPort: 51820".into(),
            format!("publicKey: {KEY}"),
            "keyGeneration: 1".into(),
            "keepalive: 25s".into(),
            "intentGeneration: 1".into(),
        ];
        let field = change.split(':').next().unwrap();
        fields.retain(|other| other.split(':').next().unwrap() != field);
        format!("{{{}, {change}}}", fields.join(", "))
    };
    let gateway = |text: &str| format!("{{subnets: [10.1.0.0/24], {text}}}");
    let network = |text: &str| format!("{{topology: mesh, {text}}}");
    let intent = |text: &str| format!("{{sliceName: demo, gateway: w1, {text}}}");
    vec![
        ("Gateway", "a.b", gateway(""), "the name of a Gateway is one label"),
        ("Gateway", Box::leak(long.into_boxed_str()), gateway(""), "the name of a Gateway is one label"),
        ("Gateway", "w1", "{subnets: []}".into(), "should have at least 1 items"),
        ("Gateway", "w1", "{}".into(), "spec.subnets: Required value"),
        ("Gateway", "w1", "{subnets: [10.1.0.1/24]}".into(), "the prefix has host bits: set them to zero"),
        ("Gateway", "w1", "{subnets: ['2001:db8::1/64']}".into(), "the prefix has host bits"),
        ("Gateway", "w1", "{subnets: [10.1.0.0/33]}".into(), "write a prefix, as in 10.0.0.0/24"),
        ("Gateway", "w1", "{subnets: [10.1.0.0]}".into(), "write a prefix, as in 10.0.0.0/24"),
        ("Gateway", "w1", "{subnets: [lan]}".into(), "spec.subnets[0]"),
        (
            "Gateway",
            "w1",
            gateway("advertise: {host: 'https://a.example'}"),
            "write a DNS name or an address",
        ),
        ("Gateway", "w1", gateway("advertise: {host: 'a.example:51820'}"), "ports stand in `ports`"),
        ("Gateway", "w1", gateway("advertise: {host: '[2001:db8::1]'}"), "without scheme, brackets or port"),
        (
            "Gateway",
            "w1",
            gateway("advertise: {ports: [{network: demo, role: uplink, port: 1}]}"),
            "supported values: \"downlink\", \"mesh\", \"trunk\"",
        ),
        (
            "Gateway",
            "w1",
            gateway("advertise: {ports: [{network: demo, role: mesh, port: 0}]}"),
            "should be greater than or equal to 1",
        ),
        ("Gateway", "w1", gateway("mainenance: true"), ".spec.mainenance: field not declared in schema"),
        ("GatewayNetwork", "a.b", network("cidr: 10.9.0.0/24"), "the name of a GatewayNetwork is one label"),
        ("GatewayNetwork", "demo", network("cidr: 10.9.0.7/24"), "cidr has host bits: set them to zero"),
        ("GatewayNetwork", "demo", network("cidr: ten"), "write a prefix, as in 10.0.0.0/24"),
        ("GatewayNetwork", "demo", network("members: [a, b, a]"), "duplicate entries"),
        (
            "GatewayNetwork",
            "demo",
            network("transit: Sometimes"),
            "supported values: \"Routed\", \"Isolated\"",
        ),
        (
            "GatewayNetwork",
            "demo",
            network("hubChange: {connectTimeout: '60'}"),
            "spec.hubChange.connectTimeout",
        ),
        (
            "GatewayNetwork",
            "demo",
            network("hubChange: {onTimeout: Wait}"),
            "supported values: \"Proceed\", \"Hold\"",
        ),
        ("GatewayNetwork", "demo", network("tunnel: {mtu: 100}"), "greater than or equal to 576"),
        ("GatewayNetwork", "demo", network("tunnel: {mode: fast}"), "\"auto\", \"kernel\", \"userspace\""),
        (
            "GatewayNetwork",
            "demo",
            network(&format!("members: [{}]", many(1025))),
            "must have at most 1024 items",
        ),
        (
            "WorkerSliceConfig",
            "demo.w2",
            intent(""),
            "the name of a WorkerSliceConfig is <sliceName>.<gateway>",
        ),
        ("WorkerSliceConfig", "demo.w1", intent("tunnelAddress: 10.9.0.1/24"), "without a prefix length"),
        ("WorkerSliceConfig", "demo.w1", intent("role: boss"), "supported values: \"hub\", \"spoke\""),
        ("WorkerSliceConfig", "demo.w1", intent("hubs: [a.b]"), "spec.hubs[0]"),
        ("WorkerSliceConfig", "demo.w1", "{sliceName: demo}".into(), "spec.gateway: Required value"),
        (
            "TunnelLink",
            "demo.hub-a.mesh",
            link("role: uplink"),
            "the name of a TunnelLink is <network>.<peer>.<role>",
        ),
        ("TunnelLink", "demo.hub-a.uplink", link("device: a-name-of-16-chr"), "spec.device"),
        ("TunnelLink", "demo.hub-a.uplink", link("publicKey: short"), "at least 44"),
        (
            "AppliedIntent",
            "other",
            "{generation: 1, intent: {sliceName: demo, gateway: w1}}".into(),
            "the name of an AppliedIntent is that of its network",
        ),
    ]
}

/// What only a reconciler can judge, or what is right although it looks odd.
fn taken() -> Vec<(&'static str, &'static str, String)> {
    let long = || "a".repeat(63);
    let numbers =
        |count: usize, text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<Vec<_>>().join(", ");
    let wide = numbers(20_000, &|n| format!("10.{}.{}.0/24", n / 256, n % 256));
    let subnets = numbers(64, &|n| format!("'2001:db8:{n:x}::/48'"));
    let members = numbers(1024, &|n| format!("{}{n}", &long()[..59]));
    vec![
        ("Gateway", Box::leak(long().into_boxed_str()), "{subnets: [0.0.0.0/0, '::/0']}".into()),
        ("Gateway", "many", format!("{{subnets: [{subnets}]}}")),
        ("Gateway", "named", "{subnets: [10.1.0.1/32], advertise: {host: w-1.example.com.}}".into()),
        ("Gateway", "addressed", "{subnets: [10.1.0.0/24], advertise: {host: '2001:db8::1'}}".into()),
        ("GatewayNetwork", "nothing", "{}".into()),
        ("GatewayNetwork", "unknown-topology", "{topology: ring, hub: nobody, cidr: 10.9.0.0/24}".into()),
        ("GatewayNetwork", "hub-is-missing", "{topology: hub-spoke, cidr: 10.9.0.0/24}".into()),
        ("GatewayNetwork", "standby-twice", "{standbyHubs: [a, a], hub: a}".into()),
        (
            "GatewayNetwork",
            "many",
            format!("{{topology: mesh, cidr: '2001:db8::/64', members: [{members}]}}"),
        ),
        (
            "WorkerSliceConfig",
            "demo.own-name",
            "{sliceName: demo, gateway: own-name, peers: [own-name, a, a]}".into(),
        ),
        (
            "WorkerSliceConfig",
            "demo.wide",
            format!("{{sliceName: demo, gateway: wide, wideCidrs: [{wide}]}}"),
        ),
        (
            "AppliedIntent",
            "from-a-directory",
            "{generation: 1, intent: {sliceName: from-a-directory, gateway: w1, wideCidrs: [10.0.0.1/8]}}"
                .into(),
        ),
    ]
}

#[tokio::test]
async fn wrong_inputs_are_refused_with_the_fix() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "refusals").await;
    let mut wrong = Vec::new();
    for (kind, name, spec, expected) in refused() {
        let answer = apply(&client, "refusals", &object(kind, name, &spec)).await;
        match answer {
            Err(words) if words.contains(expected) => {}
            Err(words) => wrong.push(format!("{kind} {name}: {words:.600}\n  lacks: {expected}")),
            Ok(_) => wrong.push(format!("{kind} {name}: was taken, instead of: {expected}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_the_reconciler_judges_is_taken() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "taken").await;
    for (kind, name, spec) in taken() {
        let answer = apply(&client, "taken", &object(kind, name, &spec)).await;
        answer.unwrap_or_else(|words| panic!("{kind} {name}: {words:.600}"));
    }
}

#[tokio::test]
async fn a_cidr_can_be_given_once() {
    let Some(control) = ControlPlane::shared() else { return };
    let client = client(control, "cidr").await;
    let network = |spec: &str| object("GatewayNetwork", "demo", spec);
    apply(&client, "cidr", &network("{topology: mesh}")).await.unwrap();
    apply(&client, "cidr", &network("{topology: mesh, cidr: 10.9.0.0/24}")).await.unwrap();
    apply(&client, "cidr", &network("{topology: hub-spoke, cidr: 10.9.0.0/24}")).await.unwrap();
    for spec in ["{topology: mesh, cidr: 10.8.0.0/24}", "{topology: mesh}"] {
        let words = apply(&client, "cidr", &network(spec)).await.unwrap_err();
        assert!(words.contains("make a new GatewayNetwork with the other cidr"), "{spec}: {words}");
    }
}

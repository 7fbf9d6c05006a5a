//! What the server refuses, and that its words name the fix. It refuses nothing itself that only the reconciler can
//! judge: those inputs are taken.

use spanwire_testkit::control_plane::ControlPlane;

use super::{apply, client, object};

const LONG: &str = "a-name-of-64-characters-and-that-is-one-more-than-a-label-can-be";
const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

/// Kind, name, spec, and a part of the answer.
type Row = (&'static str, &'static str, String, &'static str);

fn gateways() -> Vec<Row> {
    let row = |spec: &str, words| ("Gateway", "w1", spec.to_owned(), words);
    let more = |text: &str, words| ("Gateway", "w1", format!("{{subnets: [10.1.0.0/24], {text}}}"), words);
    let named = |name, words| ("Gateway", name, "{subnets: [10.1.0.0/24]}".to_owned(), words);
    vec![
        named("a.b", "the name of a Gateway is one label"),
        named(LONG, "the name of a Gateway is one label"),
        row("{subnets: []}", "should have at least 1 items"),
        row("{}", "spec.subnets: Required value"),
        row("{subnets: [10.1.0.1/24]}", "the prefix has host bits: set them to zero"),
        row("{subnets: ['2001:db8::1/64']}", "the prefix has host bits"),
        row("{subnets: [10.1.0.0/33]}", "write a prefix, as in 10.0.0.0/24"),
        row("{subnets: [10.1.0.0]}", "write a prefix, as in 10.0.0.0/24"),
        row("{subnets: [lan]}", "spec.subnets[0]"),
        more("advertise: {host: 'https://a.example'}", "write a DNS name or an address"),
        more("advertise: {host: 'a.example:51820'}", "ports stand in `ports`"),
        more("advertise: {host: '[2001:db8::1]'}", "without scheme, brackets or port"),
        more(
            "advertise: {ports: [{network: demo, role: uplink, port: 1}]}",
            "supported values: \"downlink\", \"mesh\", \"trunk\"",
        ),
        more("advertise: {ports: [{network: demo, role: mesh, port: 0}]}", "greater than or equal to 1"),
        more("mainenance: true", ".spec.mainenance: field not declared in schema"),
    ]
}

fn networks() -> Vec<Row> {
    let row = |text: &str, words| ("GatewayNetwork", "demo", format!("{{topology: mesh, {text}}}"), words);
    let many: Vec<_> = (0..1025).map(|n| format!("g{n}")).collect();
    vec![
        ("GatewayNetwork", "a.b", "{}".to_owned(), "the name of a GatewayNetwork is one label"),
        row("cidr: 10.9.0.7/24", "cidr has host bits: set them to zero"),
        row("cidr: ten", "write a prefix, as in 10.0.0.0/24"),
        row("members: [a, b, a]", "duplicate entries"),
        row(&format!("members: [{}]", many.join(", ")), "must have at most 1024 items"),
        row("transit: Sometimes", "supported values: \"Routed\", \"Isolated\""),
        row("hubChange: {connectTimeout: '60'}", "spec.hubChange.connectTimeout"),
        row("hubChange: {onTimeout: Wait}", "supported values: \"Proceed\", \"Hold\""),
        row("tunnel: {mtu: 100}", "greater than or equal to 576"),
        row("tunnel: {mode: fast}", "\"auto\", \"kernel\", \"userspace\""),
    ]
}

fn intents() -> Vec<Row> {
    let row = |text: &str, words| {
        ("WorkerSliceConfig", "demo.w1", format!("{{sliceName: demo, gateway: w1, {text}}}"), words)
    };
    vec![
        (
            "WorkerSliceConfig",
            "demo.w2",
            "{sliceName: demo, gateway: w1}".to_owned(),
            "the name of a WorkerSliceConfig is <sliceName>.<gateway>",
        ),
        ("WorkerSliceConfig", "demo.w1", "{sliceName: demo}".to_owned(), "spec.gateway: Required value"),
        row("tunnelAddress: 10.9.0.1/24", "without a prefix length"),
        row("role: boss", "supported values: \"hub\", \"spoke\""),
        row("hubs: [a.b]", "spec.hubs[0]"),
    ]
}

fn records() -> Vec<Row> {
    let link = |device: &str, key: &str| {
        format!(
            "{{network: demo, peer: hub-a, role: uplink, device: {device}, listenPort: 51820, publicKey: {key}, \
             keyGeneration: 1, keepalive: 25s, intentGeneration: 1}}"
        )
    };
    let intent = "{generation: 1, intent: {sliceName: demo, gateway: w1}}".to_owned();
    vec![
        (
            "TunnelLink",
            "demo.hub-a.mesh",
            link("sw0", KEY),
            "the name of a TunnelLink is <network>.<peer>.<role>",
        ),
        ("TunnelLink", "demo.hub-a.uplink", link("a-name-of-16-chr", KEY), "spec.device"),
        ("TunnelLink", "demo.hub-a.uplink", link("sw0", "short"), "at least 44"),
        ("AppliedIntent", "other", intent, "the name of an AppliedIntent is that of its network"),
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
    let rows = [gateways(), networks(), intents(), records()].concat();
    for (kind, name, spec, expected) in rows {
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

//! Changes played through: what is told before they are applied. It refuses to name more of the text than a reader
//! relies on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail here")]

use spanwire_ctl::{
    Declared,
    plan::{Forecast, Network, forecast, settled},
};
use spanwire_engine::port::ControlView;

fn declared(kind: &str, name: &str, spec: &str) -> Declared {
    let text = format!(
        "{{apiVersion: spanwire.dev/v1alpha1, kind: {kind}, metadata: {{name: {name}}}, spec: {{{spec}}}}}"
    );
    Declared::parse("x.yaml".as_ref(), &text).unwrap_or_else(|fault| panic!("{fault}"))
}

fn gateway(name: &str, number: u8, more: &str) -> Declared {
    declared("Gateway", name, &format!("subnets: [10.{number}.0.0/24]{more}"))
}

fn network(spec: &str) -> Declared {
    declared("GatewayNetwork", "demo", &format!("cidr: 10.9.0.0/24, {spec}"))
}

const NAMES: [&str; 5] = ["hub-a", "hub-b", "hub-c", "spoke-1", "spoke-2"];

/// Five gateways, and a network that has come to rest.
fn running(spec: &str) -> ControlView {
    let gateways = (1u8..).zip(NAMES).map(|(number, name)| gateway(name, number, ""));
    let view = gateways.chain([network(spec)]).fold(ControlView::default(), |view, next| next.onto(&view));
    settled(&view)
}

fn change(before: &str, after: &str) -> Network {
    only(forecast(&running(before), &[network(after)]))
}

fn only(forecast: Forecast) -> Network {
    assert_eq!(forecast.unreadable, [""; 0]);
    let [network] = &forecast.networks[..] else { panic!("{forecast:?}") };
    network.clone()
}

fn phases(network: &Network) -> Vec<&str> {
    network.steps.iter().map(|step| step.phase.as_str()).collect()
}

fn lost(network: &Network) -> Vec<String> {
    network.lost.iter().map(|pair| format!("{}>{}", pair.from, pair.to)).collect()
}

fn assert_uncut(network: &Network) {
    for step in &network.steps {
        assert_eq!(step.cut, [], "{step:?}");
    }
}

const A: &str = "topology: hub-spoke, hub: hub-a, members: [hub-a, hub-b, hub-c, spoke-1, spoke-2]";
const ROUTED: &str = ", transit: Routed";

fn hub(name: &str) -> String {
    A.replace("hub: hub-a", &format!("hub: {name}"))
}

#[test]
fn a_hub_change_goes_through_four_phases() {
    let network = change(&format!("{A}{ROUTED}"), &format!("{}{ROUTED}", hub("hub-b")));
    assert_eq!(phases(&network), ["Adding", "Switching", "Demoting", "Removing"]);
    assert_eq!(lost(&network), [""; 0]);
    assert_uncut(&network);
    let links = |step: usize, change: &str| {
        let changes = network.steps[step].links.iter().filter(|link| link.change == change);
        changes
            .map(|link| format!("{} {} {}", link.link.role, link.link.from, link.link.to))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        links(0, "made"),
        [
            "trunk hub-a hub-b",
            "uplink hub-a hub-b",
            "uplink hub-c hub-b",
            "uplink spoke-1 hub-b",
            "uplink spoke-2 hub-b"
        ]
    );
    assert_eq!(links(0, "removed"), [""; 0], "add first");
    assert_eq!(
        links(3, "removed"),
        [
            "trunk hub-a hub-b",
            "uplink hub-b hub-a",
            "uplink hub-c hub-a",
            "uplink spoke-1 hub-a",
            "uplink spoke-2 hub-a"
        ]
    );
}

#[test]
fn h12_isolated_spokes_lose_the_old_hub_and_are_named_before() {
    let network = change(A, &hub("hub-b"));
    let expected =
        ["hub-a>hub-c", "hub-a>spoke-1", "hub-a>spoke-2", "hub-c>hub-a", "spoke-1>hub-a", "spoke-2>hub-a"];
    assert_eq!(lost(&network), expected);
    assert_uncut(&network);
    let gained: Vec<_> =
        network.gained.iter().filter(|pair| pair.from == "hub-b").map(|pair| &pair.to).collect();
    assert_eq!(gained, ["hub-c", "spoke-1", "spoke-2"]);
}

#[test]
fn h14_swapping_hub_and_standby_is_switching_alone() {
    let both = |hub: &str, standby: &str| format!("{}, standbyHubs: [{standby}]{ROUTED}", self::hub(hub));
    let network = change(&both("hub-a", "hub-b"), &both("hub-b", "hub-a"));
    assert_eq!(phases(&network), ["Switching"]);
    assert_eq!(network.steps[0].links, []);
    assert_uncut(&network);
    let added = change(&format!("{A}{ROUTED}"), &both("hub-a", "hub-b"));
    assert_eq!(phases(&added), ["Adding"]);
    assert!(added.steps[0].links.iter().all(|link| link.change == "made"));
}

#[test]
fn t7_mesh_and_back_lose_nothing() {
    let mesh = format!("{A}{ROUTED}").replace("hub-spoke", "mesh");
    for (before, after) in [(format!("{A}{ROUTED}"), mesh.clone()), (mesh, format!("{A}{ROUTED}"))] {
        let network = change(&before, &after);
        assert_eq!(phases(&network).first(), Some(&"Adding"), "{network:?}");
        assert_eq!((lost(&network), network.invalid.clone()), (Vec::new(), None));
        assert_uncut(&network);
    }
}

#[test]
fn h13_naming_a_hub_and_deleting_the_old_one_is_one_change() {
    let after = format!("{}{ROUTED}", hub("hub-b")).replace("[hub-a, ", "[");
    let network = change(&format!("{A}{ROUTED}"), &after);
    assert_eq!(&phases(&network)[..4], ["Adding", "Switching", "Demoting", "Removing"]);
    assert_eq!(lost(&network), [""; 0], "who leaves is not counted");
    assert_uncut(&network);
    let last = network.steps.iter().rev().find(|step| !step.links.is_empty()).unwrap();
    assert!(last.links.iter().all(|link| link.change == "removed"), "{last:?}");
}

#[test]
fn an_invalid_change_is_named_and_nothing_is_published() {
    for (after, said) in [
        (hub("ghost"), "ghost"),
        (A.replace("hub-spoke", "ring"), "ring"),
        (format!("{A}, standbyHubs: [hub-a]"), "hub-a"),
    ] {
        let network = change(A, &after);
        let reason = network.invalid.clone().unwrap();
        assert!(reason.contains(said), "{reason}");
        assert_eq!((network.steps.len(), network.lost.len()), (0, 0));
    }
}

#[test]
fn members_that_cannot_take_part_are_named() {
    let before = running(A);
    let changes = [gateway("late", 4, ""), network(&A.replace("spoke-2]", "spoke-2, late]"))];
    let network = only(forecast(&before, &changes));
    assert_eq!(network.left_out.len(), 1, "{network:?}");
    assert!(network.left_out[0].starts_with("late: "), "its subnet is spoke-1's: {:?}", network.left_out);
    assert_eq!((lost(&network), network.steps.len()), (Vec::new(), 0));
}

#[test]
fn a_gateway_in_maintenance_changes_the_networks_that_it_is_a_hub_of() {
    let before = running(&format!("{A}, standbyHubs: [hub-b]{ROUTED}"));
    let network = only(forecast(&before, &[gateway("hub-a", 1, ", maintenance: true")]));
    assert_eq!(phases(&network), ["Switching"]);
    assert!(network.steps[0].routes.iter().any(|route| {
        route.gateway == "spoke-1" && route.after.as_ref().is_some_and(|via| via.peer == "hub-b")
    }));
    let none = forecast(&before, &[gateway("nowhere", 77, "")]);
    assert_eq!(none.networks, []);
}

#[test]
fn what_changes_nothing_says_so() {
    let network = forecast(&running(A), &[network(A)]);
    assert_eq!(network.networks, [], "the same declaration");
    assert!(network.is_harmless());
}

#[test]
fn a_network_that_never_ran_is_published_at_once() {
    let gateways = (1u8..).zip(NAMES).map(|(number, name)| gateway(name, number, ""));
    let view = gateways.fold(ControlView::default(), |view, next| next.onto(&view));
    let network = only(forecast(&view, &[network(A)]));
    assert_eq!(phases(&network), ["At once"]);
    assert!(network.gained.iter().any(|pair| pair.from == "spoke-1" && pair.to == "hub-a"), "{network:?}");
    assert!(!network.gained.iter().any(|pair| pair.from == "spoke-1" && pair.to == "spoke-2"), "Isolated");
}

#[test]
fn a_hundred_members_are_forecast_in_seconds() {
    let names: Vec<String> = (0..100).map(|member| format!("member-{member}")).collect();
    let gateways = names
        .iter()
        .enumerate()
        .map(|(i, name)| declared("Gateway", name, &format!("subnets: [10.100.{i}.0/24]")));
    let spec = |hub: &str| {
        network(&format!("topology: hub-spoke, transit: Routed, hub: {hub}, members: [{}]", names.join(", ")))
    };
    let view = gateways.chain([spec("member-0")]).fold(ControlView::default(), |view, next| next.onto(&view));
    let start = std::time::Instant::now();
    let network = only(forecast(&settled(&view), &[spec("member-1")]));
    println!("{:?}", start.elapsed());
    assert_eq!(phases(&network), ["Adding", "Switching", "Demoting", "Removing"]);
    assert_uncut(&network);
    assert!(start.elapsed().as_secs() < 30);
}

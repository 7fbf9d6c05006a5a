//! The list of peers and the links that follow it (1), and how the list is read (5).

use spanwire_api::{TunnelLinkSpec, WorkerSliceConfigSpec};

use super::{admit, fake, is_applied, is_connected, key, recorded};
use crate::site::{Device, Gateway, Site, intent, wait_until};

/// A link's UID and resource version.
fn version(site: &Site, gateway: &Gateway, link: &str) -> (Option<String>, Option<String>) {
    let mut links = gateway.records::<TunnelLinkSpec>(site).into_iter();
    let link = links.find(|record| record.metadata.name.as_deref() == Some(link)).unwrap();
    (link.metadata.uid, link.metadata.resource_version)
}

#[test]
fn acceptance_1_listed_peers_get_links_others_lose_them_and_the_rest_is_kept() {
    let Some(site) = Site::new("listed", &["me", "c"], &["demo"]) else { return };
    let [me, c] = &site.members[..] else { panic!("two members") };
    fake(&site, "b", 8);
    fake(&site, "d", 9);
    admit(&site, "me", 1);
    admit(&site, "c", 2);
    site.apply(&intent("me", "peers: [b, c]\ntunnelAddress: 100.90.0.1"));
    site.apply(&intent("c", "peers: [me]\ntunnelAddress: 100.90.0.2"));
    let _workers = [me.start(), c.start()];
    wait_until("me and c are connected", || is_connected(&site, "me", &["c"]));
    assert_eq!(recorded(&site, me), ["demo.b.mesh", "demo.c.mesh"]);
    wait_until("c reaches me", || c.reaches(me));
    let (link, devices) = (version(&site, me, "demo.c.mesh"), me.devices());
    site.apply(&intent("me", "peers: [c, d]\ntunnelAddress: 100.90.0.1"));
    wait_until("the links are those of the list", || recorded(&site, me) == ["demo.c.mesh", "demo.d.mesh"]);
    wait_until("so are the devices", || me.keys().contains(&key(9)) && !me.keys().contains(&key(8)));
    assert_eq!(version(&site, me, "demo.c.mesh"), link, "the link that stays is not written");
    let session = |devices: &[Device]| {
        let [device] = devices else { panic!("one device: {devices:?}") };
        let others = [key(8), key(9)];
        let kept = device.peers.iter().filter(|(key, _)| !others.contains(key)).cloned().collect::<Vec<_>>();
        (device.name.clone(), device.index, kept)
    };
    assert_eq!(session(&me.devices()), session(&devices), "its device and its session stay");
    assert!(me.reaches(c));
}

/// Name of the case, lines of the intent, and the peers that are linked with it.
type Row = (&'static str, &'static str, &'static [&'static str]);

/// Rows of cases/intent.md; each follows on the one before.
const ROWS: &[Row] = &[
    ("P1: absent", "members: [me, a, b]", &["a", "b"]),
    ("P1: absent, with a topology", "members: [me, a, b]\ntopology: mesh", &["a", "b"]),
    ("P4: a list", "members: [me, a, b, c]\npeers: [a, c]\ntopology: mesh", &["a", "c"]),
    ("P4: a list, without a topology", "members: [me, a, b, c]\npeers: [a, b]", &["a", "b"]),
    ("P7: null", "members: [me, b, c]\npeers: null\ntopology: mesh", &["b", "c"]),
    ("P6: repeats, the own name, a stranger", "peers: [a, a, me, ghost, b]\ntopology: mesh", &["a", "b"]),
    ("P3: empty, with a topology", "members: [me, a, b]\npeers: []\ntopology: mesh", &[]),
    ("P2: empty, without one", "members: [me, a, c]\npeers: []", &["a", "c"]),
    ("absent, and no members: everybody", "", &["a", "b", "c"]),
];

#[test]
fn acceptance_5_the_field_alone_decides_and_absent_or_empty_is_the_full_mesh() {
    let Some(site) = Site::new("peers", &["me"], &["demo"]) else { return };
    let [me] = &site.members[..] else { panic!("one member") };
    for (number, name) in (8..).zip(["a", "b", "c"]) {
        fake(&site, name, number);
    }
    admit(&site, "me", 1);
    let _worker = me.start();
    for (case, lines, peers) in ROWS {
        site.apply(&intent("me", lines));
        let links: Vec<String> = peers.iter().map(|peer| format!("demo.{peer}.mesh")).collect();
        let what = format!("{case}: links to {peers:?}");
        wait_until(&what, || is_applied(&site, "me") && recorded(&site, me) == links);
        let mut keys: Vec<String> = peers.iter().map(|peer| key(8 + peer.as_bytes()[0] - b'a')).collect();
        keys.sort();
        wait_until(&what, || me.keys() == keys);
    }
    let rows = site.field::<WorkerSliceConfigSpec>("demo.me", "/status/peerStatuses").to_string();
    assert!(!rows.contains("ghost"), "{rows}");
}

#[test]
fn p5_and_p8_the_order_of_peers_and_what_stands_beside_the_list_write_no_link() {
    let Some(site) = Site::new("beside", &["me"], &["demo"]) else { return };
    let [me] = &site.members[..] else { panic!("one member") };
    fake(&site, "a", 8);
    fake(&site, "b", 9);
    admit(&site, "me", 1);
    let _worker = me.start();
    // With an address they are probed, and what nobody answers is judged within seconds.
    admit(&site, "a", 11);
    admit(&site, "b", 12);
    let base = "members: [me, a, b]\ntopology: mesh\n";
    site.apply(&intent("me", &format!("{base}peers: [a, b]")));
    wait_until("both links are there", || is_applied(&site, "me") && recorded(&site, me).len() == 2);
    wait_until("both are judged", || {
        let rows = site.field::<WorkerSliceConfigSpec>("demo.me", "/status/peerStatuses").to_string();
        !rows.contains("Pending")
    });
    let (links, devices) = (site.versions::<TunnelLinkSpec>(), me.devices());
    for change in [
        format!("{base}peers: [b, a]"),
        "members: [me, a, b]\ntopology: hub-spoke\npeers: [a, b]".to_owned(),
        "members: [me, a, b, ghost]\ntopology: mesh\npeers: [a, b]".to_owned(),
        format!("{base}transit: Routed\npeers: [a, b]"),
    ] {
        site.apply(&intent("me", &change));
        wait_until(&change, || is_applied(&site, "me"));
        assert_eq!(site.versions::<TunnelLinkSpec>(), links, "{change}");
        assert_eq!(me.devices(), devices, "{change}");
    }
    let labelled = intent("me", &format!("{base}peers: [a, b]")).replace(
        "  name: demo.me\n",
        "  name: demo.me\n  labels: {team: blue}\n  annotations: {note: hello}\n",
    );
    site.apply(&labelled);
    wait_until("W3: a label", || is_applied(&site, "me"));
    assert_eq!(site.versions::<TunnelLinkSpec>(), links);
}

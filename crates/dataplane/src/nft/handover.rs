//! Rules for the time in which one device takes the place of another at a port. It refuses to touch a packet that is not
//! from or for one of the two ports.
//!
//! Both devices have one private key, and peers know one port. While both stand ([`shared`]) the device that comes is given
//! first handshakes, and a copy of all else that arrives; what it sends leaves from the port, too. So no peer ever learns
//! of another port, and whichever device has the session of a packet finds it. Who has not, lets it fall. When the device
//! that goes has left the port and the other moves there ([`settling`]), what belongs to a session goes to both doors of
//! that one: to the new one as soon as it is open, to the old one as long as it is. What comes by both is a replay the
//! second time. A first handshake goes to one door, because it must not be answered twice.
//!
//! Ports are rewritten behind the filters of others on the way in and before connection tracking on the way out: a host's
//! own firewall and its flows see the port that they know.

use serde_json::{Value, json};

/// The name of the tables; they are there during a handover alone.
pub(super) const TABLE: &str = "spanwire-handover";
/// The families of the tables, with where copies are sent: to this host itself.
pub(super) const FAMILIES: [(&str, &str); 2] = [("ip", "127.0.0.1"), ("ip6", "::1")];

/// Behind the filters of others.
const LAST: i32 = 200;
/// Before connection tracking.
const FIRST: i32 = -310;
/// A handshake's first message: <https://www.wireguard.com/protocol/>.
const INITIATION: u8 = 1;

/// What takes the place of what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handover {
    /// Where the device that goes listens, and the other one is to listen.
    pub(crate) port: u16,
    /// Where the device that comes listens until then.
    pub(crate) beside: u16,
}

/// The rules while both devices listen.
pub(super) fn shared(handover: Handover) -> Value {
    let Handover { port, beside } = handover;
    let first = [
        ("arriving", json!([is_for(port), begins("=="), mangle("dport", beside)])),
        // A session that the old device begins now would outlive it.
        ("leaving", json!([is_from(port), begins("=="), { "drop": null }])),
    ];
    tables(|itself| first.iter().cloned().chain(both_doors(handover, itself)).collect())
}

/// The rules while the device that comes moves to the port that the other has left.
pub(super) fn settling(handover: Handover) -> Value {
    tables(|itself| both_doors(handover, itself).into())
}

/// What arrives at the port in a session arrives beside it, too; what leaves from beside it leaves from the port.
fn both_doors(Handover { port, beside }: Handover, itself: &str) -> [(&'static str, Value); 4] {
    let (comes_back, goes_back) = (is("iifname", "lo"), is("oifname", "lo"));
    [
        ("arriving", json!([is_for(port), comes_back, mangle("dport", beside)])),
        ("arriving", json!([is_for(port), begins("!="), { "dup": { "addr": itself } }])),
        ("leaving", json!([goes_back, is_for(port), { "notrack": null }, { "accept": null }])),
        ("leaving", json!([is_from(beside), mangle("sport", port)])),
    ]
}

/// The tables go, as a whole.
pub(super) fn removal() -> Value {
    json!({ "nftables": FAMILIES.into_iter().flat_map(|(family, _)| cleared(family)).collect::<Vec<_>>() })
}

/// No table, whether there was one or not.
fn cleared(family: &str) -> [Value; 2] {
    [json!({ "add": table(family) }), json!({ "delete": table(family) })]
}

/// The tables with these rules, after what clears them.
fn tables(rules: impl Fn(&str) -> Vec<(&'static str, Value)>) -> Value {
    let mut commands = Vec::new();
    for (family, itself) in FAMILIES {
        commands.extend(cleared(family));
        commands.push(json!({ "add": table(family) }));
        commands.push(chain(family, "arriving", "input", LAST));
        commands.push(chain(family, "leaving", "output", FIRST));
        commands.extend(rules(itself).into_iter().map(|(chain, words)| rule(family, chain, words)));
    }
    json!({ "nftables": commands })
}

fn table(family: &str) -> Value {
    json!({ "table": { "family": family, "name": TABLE } })
}

fn chain(family: &str, name: &str, hook: &str, priority: i32) -> Value {
    json!({ "add": { "chain": {
        "family": family, "table": TABLE, "name": name, "type": "filter", "hook": hook, "prio": priority, "policy": "accept"
    } } })
}

fn rule(family: &str, chain: &str, words: Value) -> Value {
    json!({ "add": { "rule": { "family": family, "table": TABLE, "chain": chain, "expr": words } } })
}

fn matches(operator: &str, left: Value, right: Value) -> Value {
    json!({ "match": { "op": operator, "left": left, "right": right } })
}

/// Whether it is a handshake's first message.
fn begins(operator: &str) -> Value {
    let first_byte = json!({ "payload": { "base": "th", "offset": 64, "len": 8 } });
    matches(operator, first_byte, json!(INITIATION))
}

fn is(key: &str, name: &str) -> Value {
    matches("==", json!({ "meta": { "key": key } }), json!(name))
}

fn port_of(field: &str) -> Value {
    json!({ "payload": { "protocol": "udp", "field": field } })
}

fn is_for(port: u16) -> Value {
    matches("==", port_of("dport"), json!(port))
}

fn is_from(port: u16) -> Value {
    matches("==", port_of("sport"), json!(port))
}

fn mangle(field: &str, port: u16) -> Value {
    json!({ "mangle": { "key": port_of(field), "value": port } })
}

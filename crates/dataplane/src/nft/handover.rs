//! Rules for the time in which one device takes the place of another at a port. It refuses to touch a packet that is not
//! for one of the two ports, or a probe by the device that goes.
//!
//! Both devices have one private key. First handshakes that arrive at the port go to the device that comes, which listens
//! beside it; sessions of the device that goes stay where they are. Later what is still sent to the port beside goes to the
//! port, from the moment at which nobody listens beside it any more: no packet meets a closed port.

use serde_json::{Value, json};

use crate::probe;

/// The name of the table; it is there during a handover alone.
pub(super) const TABLE: &str = "spanwire-handover";

/// Before connection tracking, and before our own rules.
const FIRST: i32 = -310;
/// A handshake's first message: <https://www.wireguard.com/protocol/>.
const INITIATION: u8 = 1;

/// What takes the place of what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handover<'a> {
    /// The device that goes.
    pub(crate) from: &'a str,
    /// Where that one listens, and the other one is to listen.
    pub(crate) port: u16,
    /// Where the device that comes listens until then.
    pub(crate) beside: u16,
}

/// The table, after what clears it.
pub(super) fn rules(handover: Handover<'_>) -> Value {
    let Handover { from, port, beside } = handover;
    let is_for = |port: u16| matches(payload("dport"), json!(port));
    let to = |port: u16| json!({ "mangle": { "key": payload("dport"), "value": port } });
    let first_byte = json!({ "payload": { "base": "th", "offset": 64, "len": 8 } });
    let someone_listens = matches(json!({ "socket": { "key": "wildcard" } }), json!(1));
    let leaves = matches(json!({ "meta": { "key": "oifname" } }), json!(from));
    let probes = |field| matches(payload(field), json!(probe::PORT));
    let accept = json!({ "accept": null });
    let drop = json!({ "drop": null });
    json!({ "nftables": [
        { "add": table() },
        { "delete": table() },
        { "add": table() },
        chain("arriving", "prerouting", FIRST),
        chain("leaving", "postrouting", 0),
        rule("arriving", json!([is_for(port), matches(first_byte, json!(INITIATION)), to(beside)])),
        rule("arriving", json!([is_for(beside), someone_listens, accept])),
        rule("arriving", json!([is_for(beside), to(port)])),
        // A probe by the device that goes would call its peer back to it.
        rule("leaving", json!([leaves.clone(), probes("dport"), drop.clone()])),
        rule("leaving", json!([leaves, probes("sport"), drop])),
    ] })
}

/// The table goes, as a whole.
pub(super) fn removal() -> Value {
    json!({ "nftables": [{ "delete": table() }] })
}

fn table() -> Value {
    json!({ "table": { "family": "inet", "name": TABLE } })
}

fn chain(name: &str, hook: &str, priority: i32) -> Value {
    json!({ "add": { "chain": {
        "family": "inet", "table": TABLE, "name": name, "type": "filter", "hook": hook, "prio": priority, "policy": "accept"
    } } })
}

fn rule(chain: &str, words: Value) -> Value {
    json!({ "add": { "rule": { "family": "inet", "table": TABLE, "chain": chain, "expr": words } } })
}

fn matches(left: Value, right: Value) -> Value {
    json!({ "match": { "op": "==", "left": left, "right": right } })
}

fn payload(field: &str) -> Value {
    json!({ "payload": { "protocol": "udp", "field": field } })
}

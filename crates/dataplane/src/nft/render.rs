//! The rules of the table: horizon, isolation, protection of the host, conntrack and NAT (design §6). It refuses to let
//! anything of one network into another.

use std::{borrow::Cow, collections::HashSet};

use ipnet::IpNet;
use nftables::{
    expr::Expression,
    schema::{
        Chain, FlushObject, NfCmd, NfListObject, NfObject, Nftables, Rule, Set, SetFlag, SetType,
        SetTypeValue, Table,
    },
    stmt::Statement,
    types::{NfChainPolicy, NfChainType, NfFamily, NfHook},
};
use serde_json::Value;
use spanwire_engine::{
    LinkRole, Transit,
    firewall::{Firewall, NetworkFirewall},
};

use crate::{netlink::rule::Family, probe::PORT};

use super::{
    TABLE,
    expression::{
        Side, accept, address_in, address_not_in, arrives_by, destination_is, element, established,
        first_destination_in, jump, keep_source, leaves_by, leaves_not_by, refuse, set_source, text,
        udp_port,
    },
};

/// All devices of all networks.
const OURS: &str = "ours";
/// Before connection tracking.
const RAW: i32 = -300;
/// Before the filters of others.
const BEFORE_FILTERS: i32 = -5;
/// Before the source NAT of others.
const BEFORE_NAT: i32 = 90;

/// Everything, after what clears the table: emptied in place if `standing` lists it as it was written, else deleted.
pub(super) fn table(firewall: &Firewall, standing: Option<&Value>) -> Nftables<'static> {
    let mut table = Rendered::default();
    table.add(NfListObject::Table(own_table()));
    table.base_chain("prerouting", NfChainType::Filter, NfHook::Prerouting, RAW);
    table.base_chain("forward", NfChainType::Filter, NfHook::Forward, BEFORE_FILTERS);
    table.base_chain("input", NfChainType::Filter, NfHook::Input, BEFORE_FILTERS);
    table.base_chain("postrouting", NfChainType::NAT, NfHook::Postrouting, BEFORE_NAT);
    let devices = |network: &NetworkFirewall| network.devices.clone();
    table.device_set(OURS, firewall.networks.iter().flat_map(devices).map(|(_, name)| name.to_string()));
    for network in &firewall.networks {
        table.network(network);
    }
    let mut commands = match standing {
        Some(listing) => clear(listing, &table.commands),
        None => [NfCmd::Add, NfCmd::Delete].map(|command| command(NfListObject::Table(own_table()))).into(),
    };
    commands.append(&mut table.commands);
    Rendered { commands }.finish()
}

/// Empties the table that was written by us. Sets that stay are emptied and filled in the same transaction, never deleted: a packet
/// that is half through the old rules when the new ones take over must still find its device and its prefix, else it
/// falls to a refusal.
fn clear(listing: &Value, coming: &[NfCmd<'static>]) -> Vec<NfCmd<'static>> {
    let stays = |name: &str| {
        coming.iter().any(|command| matches!(command, NfCmd::Add(NfListObject::Set(set)) if set.name == name))
    };
    let objects = || listing.get("nftables").and_then(Value::as_array).into_iter().flatten();
    let named = |kind: &'static str| {
        let of_kind = objects().filter_map(move |object| object.get(kind));
        of_kind.filter_map(|object| Some((object, object.get("name")?.as_str()?.to_owned())))
    };
    let mut commands = vec![NfCmd::Flush(FlushObject::Table(own_table()))];
    for (_, name) in named("chain").filter(|(chain, _)| chain.get("hook").is_none()) {
        let chain =
            Chain { family: NfFamily::INet, table: TABLE.into(), name: name.into(), ..Chain::default() };
        commands.push(NfCmd::Delete(NfListObject::Chain(chain)));
    }
    for (_, name) in named("set") {
        let kept = stays(&name);
        let set = Set { family: NfFamily::INet, table: TABLE.into(), name: name.into(), ..Set::default() };
        commands.push(if kept {
            NfCmd::Flush(FlushObject::Set(Box::new(set)))
        } else {
            NfCmd::Delete(NfListObject::Set(Box::new(set)))
        });
    }
    commands
}

/// The table goes, as a whole.
pub(super) fn removal() -> Nftables<'static> {
    let command = NfObject::CmdObject(NfCmd::Delete(NfListObject::Table(own_table())));
    Nftables { objects: Cow::Owned(vec![command]) }
}

fn own_table() -> Table<'static> {
    Table { family: NfFamily::INet, name: TABLE.into(), handle: None }
}

#[derive(Default)]
struct Rendered {
    commands: Vec<NfCmd<'static>>,
}

impl Rendered {
    fn finish(self) -> Nftables<'static> {
        Nftables { objects: self.commands.into_iter().map(NfObject::CmdObject).collect() }
    }

    fn add(&mut self, object: NfListObject<'static>) {
        self.commands.push(NfCmd::Add(object));
    }

    fn base_chain(&mut self, name: &'static str, kind: NfChainType, hook: NfHook, priority: i32) {
        self.add(NfListObject::Chain(Chain {
            family: NfFamily::INet,
            table: TABLE.into(),
            name: name.into(),
            _type: Some(kind),
            hook: Some(hook),
            prio: Some(priority),
            policy: Some(NfChainPolicy::Accept),
            ..Chain::default()
        }));
    }

    fn chain(&mut self, name: &str) {
        let name = Cow::Owned(name.to_owned());
        self.add(NfListObject::Chain(Chain {
            family: NfFamily::INet,
            table: TABLE.into(),
            name,
            ..Chain::default()
        }));
    }

    fn rule(&mut self, chain: &str, words: impl Into<Vec<Statement<'static>>>) {
        self.add(NfListObject::Rule(Rule {
            family: NfFamily::INet,
            table: TABLE.into(),
            chain: Cow::Owned(chain.to_owned()),
            expr: Cow::Owned(words.into()),
            ..Rule::default()
        }));
    }

    fn set(&mut self, name: &str, kind: SetType, interval: bool, elements: Vec<Expression<'static>>) {
        self.add(NfListObject::Set(Box::new(Set {
            family: NfFamily::INet,
            table: TABLE.into(),
            name: Cow::Owned(name.to_owned()),
            set_type: SetTypeValue::Single(kind),
            flags: interval.then(|| HashSet::from([SetFlag::Interval])),
            elem: (!elements.is_empty()).then(|| Cow::Owned(elements)),
            ..Set::default()
        })));
    }

    fn device_set(&mut self, name: &str, devices: impl Iterator<Item = String>) {
        let elements = devices.map(|device| text(&device)).collect();
        self.set(name, SetType::Ifname, false, elements);
    }

    /// One set a family, aggregated, because overlapping intervals are refused.
    fn prefix_sets(&mut self, name: &Names, kind: &str, prefixes: &[IpNet]) {
        let all = IpNet::aggregate(&prefixes.to_vec());
        for family in Family::BOTH {
            let fits = |prefix: &&IpNet| prefix.addr().is_ipv4() == (family == Family::V4);
            let elements = all.iter().filter(fits).map(element).collect();
            let kind_of_address = match family {
                Family::V4 => SetType::Ipv4Addr,
                Family::V6 => SetType::Ipv6Addr,
            };
            self.set(&name.prefixes(kind, family), kind_of_address, true, elements);
        }
    }

    fn network(&mut self, network: &NetworkFirewall) {
        let NetworkFirewall { network: _, devices, own, wide, tunnel_address: _, transit: _, hub_prefixes } =
            network;
        let name = Names(network);
        for (kind, roles) in KINDS {
            let fitting = devices.iter().filter(|(role, _)| roles.contains(role));
            self.device_set(&name.of(kind), fitting.map(|(_, device)| device.to_string()));
        }
        self.prefix_sets(&name, "own", own);
        self.prefix_sets(&name, "wide", wide);
        self.prefix_sets(&name, "hubs", hub_prefixes);
        self.forward(network, &name);
        self.input(network, &name);
        self.tracking_and_nat(network, &name);
    }

    /// The horizon (design §5, rule 3), isolation, and the way out to the host's own networks.
    fn forward(&mut self, network: &NetworkFirewall, name: &Names) {
        let chain = name.of("forward");
        self.chain(&chain);
        self.rule("forward", [arrives_by(&name.of("devices")), jump(&chain)]);
        let to_ours = || leaves_by(OURS);
        self.rule(&chain, [arrives_by(&name.of("dialled")), to_ours(), refuse()]);
        self.rule(
            &chain,
            [arrives_by(&name.of("trunks")), to_ours(), leaves_not_by(&name.of("listeners")), refuse()],
        );
        self.rule(&chain, [to_ours(), leaves_not_by(&name.of("devices")), refuse()]);
        match network.transit {
            Transit::Routed => self.rule(&chain, [to_ours(), accept()]),
            Transit::Isolated => {
                for family in Family::BOTH {
                    for side in [Side::Source, Side::Destination] {
                        let hub = address_in(family, side, &name.prefixes("hubs", family));
                        self.rule(&chain, [to_ours(), hub, accept()]);
                    }
                }
                self.rule(&chain, [to_ours(), refuse()]);
            }
        }
        self.own_only(&chain, name);
    }

    /// Only replies, and what was sent to own prefixes before anybody rewrote it.
    fn own_only(&mut self, chain: &str, name: &Names) {
        self.rule(chain, [established(), accept()]);
        for family in Family::BOTH {
            self.rule(chain, [first_destination_in(family, &name.prefixes("own", family)), accept()]);
        }
        self.rule(chain, [refuse()]);
    }

    fn input(&mut self, network: &NetworkFirewall, name: &Names) {
        let chain = name.of("input");
        self.chain(&chain);
        self.rule("input", [arrives_by(&name.of("devices")), jump(&chain)]);
        if let Some(address) = network.tunnel_address {
            let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
            self.rule(&chain, [destination_is(family, &address.to_string()), udp_port(PORT), accept()]);
        }
        self.own_only(&chain, name);
    }

    fn tracking_and_nat(&mut self, network: &NetworkFirewall, name: &Names) {
        let devices = name.of("devices");
        for family in Family::BOTH {
            let (own, wide) = (name.prefixes("own", family), name.prefixes("wide", family));
            let only_forwarded = [
                arrives_by(&devices),
                address_in(family, Side::Destination, &wide),
                address_not_in(family, Side::Destination, &own),
                Statement::Notrack,
            ];
            self.rule("prerouting", only_forwarded);
            let from_own = [leaves_by(&devices), address_in(family, Side::Source, &own), keep_source(family)];
            self.rule("postrouting", from_own);
        }
        if let Some(address) = network.tunnel_address {
            let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
            self.rule("postrouting", [leaves_by(&devices), set_source(family, &address.to_string())]);
        }
    }
}

/// Sets of devices by what the horizon says of them.
const KINDS: [(&str, &[LinkRole]); 4] = [
    ("devices", &LinkRole::ALL),
    ("dialled", &[LinkRole::Uplink, LinkRole::Mesh]),
    ("trunks", &[LinkRole::Trunk]),
    ("listeners", &[LinkRole::Downlink]),
];

/// Names of the sets and chains of one network.
struct Names<'a>(&'a NetworkFirewall);

impl Names<'_> {
    fn of(&self, kind: &str) -> String {
        format!("{kind}-{}", self.0.network)
    }

    fn prefixes(&self, kind: &str, family: Family) -> String {
        let digit = match family {
            Family::V4 => '4',
            Family::V6 => '6',
        };
        format!("{kind}{digit}-{}", self.0.network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(name: &str, transit: Transit) -> NetworkFirewall {
        NetworkFirewall {
            network: name.parse().unwrap(),
            devices: vec![
                (LinkRole::Uplink, "swu-a".parse().unwrap()),
                (LinkRole::Downlink, "swd-b".parse().unwrap()),
            ],
            own: vec!["10.7.1.0/24".parse().unwrap(), "10.7.1.1/32".parse().unwrap()],
            wide: vec!["10.7.0.0/16".parse().unwrap(), "fd00::/48".parse().unwrap()],
            tunnel_address: Some("10.7.1.1".parse().unwrap()),
            transit,
            hub_prefixes: vec!["10.7.3.0/24".parse().unwrap()],
        }
    }

    fn json(networks: Vec<NetworkFirewall>) -> String {
        serde_json::to_string(&table(&Firewall { networks }, None)).unwrap()
    }

    #[test]
    fn prefixes_are_aggregated_and_every_network_has_its_own_sets() {
        let text = json(vec![network("one", Transit::Routed), network("two", Transit::Isolated)]);
        assert!(!text.contains("10.7.1.1/32") && text.contains(r#""name":"own4-one""#));
        for name in ["devices-one", "devices-two", "forward-two", "wide6-two"] {
            assert!(text.contains(name), "{name}");
        }
    }

    #[test]
    fn d23_only_an_isolated_network_names_hubs_in_a_rule() {
        assert!(!json(vec![network("one", Transit::Routed)]).contains("@hubs4-one"));
        assert!(json(vec![network("one", Transit::Isolated)]).contains("@hubs4-one"));
    }

    #[test]
    fn sets_that_stay_are_emptied_and_others_go() {
        let listing = serde_json::json!({"nftables": [
            {"chain": {"name": "forward", "hook": "forward"}},
            {"chain": {"name": "forward-gone"}},
            {"set": {"name": "ours"}},
            {"set": {"name": "own4-gone"}},
        ]});
        let text = serde_json::to_string(&table(&Firewall::default(), Some(&listing))).unwrap();
        assert!(
            text.contains(r#"{"flush":{"set":{"family":"inet","table":"spanwire","name":"ours""#),
            "{text}"
        );
        assert!(!text.contains(r#"{"delete":{"table""#) && !text.contains(r#""name":"forward","handle""#));
        assert!(text.find("own4-gone").unwrap() > text.find("forward-gone").unwrap());
        assert!(
            text.contains(r#"{"delete":{"set":{"family":"inet","table":"spanwire","name":"own4-gone""#),
            "{text}"
        );
    }
}

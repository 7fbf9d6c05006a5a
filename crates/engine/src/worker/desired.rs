//! Which intent counts for each network of a host, and what it wants. It refuses to let an older intent win, and to
//! take a failed read for an answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    ops::RangeInclusive,
    time::Duration,
};

use ipnet::IpNet;

use crate::{
    Backend, Gateway, GatewayName, Intent, LinkRole, Meta, NetworkName, PublicKey, Role, Stored, Topology,
    WorkerStatus, port::WorkerView,
};

use super::{
    AppliedIntent, Host, Recorded,
    peers::{self, PeerNote, WantedLink},
};

/// Numbers that a host gives out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// UDP ports of devices.
    pub ports: RangeInclusive<u16>,
    /// Routing tables, one a network.
    pub tables: RangeInclusive<u32>,
    /// How long a link that others have replaced stays, for the packets that are still on their way over it.
    pub linger: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ports: 51820..=52819, tables: 7400..=8399, linger: Duration::from_secs(1) }
    }
}

/// Everything that [`desire`] looks at.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The gateway whose worker this is.
    pub me: &'a GatewayName,
    /// Its public key.
    pub own_key: PublicKey,
    /// The control store; `None`: it can't be read now.
    pub view: Option<&'a WorkerView>,
    /// Whether the view comes from consistent reads, so that a lower generation in it is a restored store.
    pub consistent: bool,
    /// The local store.
    pub recorded: &'a Recorded,
    /// The host.
    pub host: &'a Host,
    /// Ranges of numbers.
    pub settings: &'a Settings,
}

/// What is wanted on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    /// The gateway whose worker this is.
    pub me: GatewayName,
    /// Its public key.
    pub own_key: PublicKey,
    /// Every network that is wanted, recorded or on a device.
    pub networks: BTreeMap<NetworkName, DesiredNetwork>,
    /// Networks whose intent in the view is older than the applied one and not confirmed by a consistent read.
    pub stale: BTreeSet<NetworkName>,
    /// Ranges of numbers.
    pub settings: Settings,
    /// The own Gateway is not in the control store: nothing is removed.
    pub gateway_not_found: bool,
}

/// What is wanted for one network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredNetwork {
    /// The intent that counts; `None`: a device of this network exists and nothing is known of the network.
    pub applied: Option<AppliedIntent>,
    /// Whether `applied` is from the control store, not only from the record.
    pub current: bool,
    /// There is no intent any more: everything goes, at last the record.
    pub absent: bool,
    /// The intent has a lower generation than the one applied before, and a consistent read confirmed it.
    pub restored: bool,
    /// Why nothing of this network may be removed in this pass.
    pub keep: Option<String>,
    /// Records or devices of this network are there and could not be read: not even routes are taken away.
    pub incomplete: bool,
    /// Own prefixes: tunnel address and subnets.
    pub own: Vec<IpNet>,
    /// The source address of the host itself.
    pub tunnel_address: Option<IpAddr>,
    /// Wide prefixes, sorted.
    pub wide: Vec<IpNet>,
    /// Prefixes of the gateways in `hubs`, sorted.
    pub hub_prefixes: Vec<IpNet>,
    /// Peers in order of preference.
    pub order: Vec<GatewayName>,
    /// Links that can be made.
    pub links: BTreeMap<(GatewayName, LinkRole), WantedLink>,
    /// Links that are wanted and can't be made yet.
    pub waiting: BTreeSet<(GatewayName, LinkRole)>,
    /// What is said of peers that did not become links.
    pub notes: Vec<PeerNote>,
    /// Whether the underlay of this host is known to be IPv4.
    pub underlay_is_v4: bool,
    /// The implementation that devices are to be of.
    pub backend: Backend,
}

impl DesiredNetwork {
    /// The role that is asked for.
    pub fn role(&self) -> Role {
        self.applied.as_ref().map_or(Role::Spoke, |applied| applied.intent.role())
    }

    /// Whether mesh links carry exact routes: always, but while `topology` is already hub-spoke they only accept.
    pub fn mesh_routes(&self) -> bool {
        self.applied.as_ref().is_some_and(|applied| {
            applied.intent.topology != Some(Topology::HubSpoke) || applied.intent.hubs.is_empty()
        })
    }
}

/// Resolves what is wanted on a host.
pub fn desire(situation: &Situation<'_>) -> Desired {
    let Situation { me, own_key, view, consistent: _, recorded, host, settings } = *situation;
    let own = view.and_then(|view| view.gateways.get(me));
    let gateway_not_found =
        view.is_some_and(|view| own.is_none() && !is_unreadable(view, "gateways", me.as_str()));
    let names: BTreeSet<&NetworkName> = recorded
        .intents
        .keys()
        .chain(recorded.links.keys().map(|link| &link.network))
        .chain(host.devices.keys().chain(host.unreadable.keys()).map(|device| &device.network))
        .chain(view.filter(|_| own.is_some()).into_iter().flat_map(|view| view.intents.keys()))
        .collect();
    let mut stale = BTreeSet::new();
    let networks = names
        .into_iter()
        .map(|name| {
            let choice = choose(situation, name, own.is_some());
            if choice.stale {
                stale.insert(name.clone());
            }
            (name.clone(), resolve(situation, name, choice))
        })
        .collect();
    Desired { me: me.clone(), own_key, networks, stale, settings: settings.clone(), gateway_not_found }
}

pub(super) fn is_unreadable(view: &WorkerView, kind: &str, name: &str) -> bool {
    view.unreadable.iter().any(|object| object.kind == kind && object.name == name)
}

/// Networks whose intent in the view has a lower generation than the one applied before. Where that comes from a
/// consistent read, the control store was restored from a backup; otherwise it is a late answer.
pub fn older_intents(view: &WorkerView, recorded: &Recorded) -> BTreeSet<NetworkName> {
    let older = |(network, (stored, _)): &(&NetworkName, &(Stored<Intent>, WorkerStatus))| {
        is_older(&stored.meta, recorded.intents.get(*network))
    };
    view.intents.iter().filter(older).map(|(network, _)| network.clone()).collect()
}

fn is_older(stored: &Meta, recorded: Option<&AppliedIntent>) -> bool {
    recorded.is_some_and(|recorded| {
        !stored.uid.is_another_than(&recorded.uid) && stored.generation < recorded.generation
    })
}

#[derive(Default)]
struct Choice {
    applied: Option<AppliedIntent>,
    current: bool,
    absent: bool,
    restored: bool,
    stale: bool,
    unknown: Option<String>,
}

/// Which intent of a network counts: the one in the store, unless it can't be read or is older than the applied one.
fn choose(situation: &Situation<'_>, network: &NetworkName, own_found: bool) -> Choice {
    let recorded = situation.recorded.intents.get(network);
    let kept = || Choice { applied: recorded.cloned(), ..Choice::default() };
    let unknown = |why: &str| Choice { unknown: Some(why.to_owned()), ..kept() };
    let Some(view) = situation.view else { return unknown("the control store can't be read") };
    if !own_found {
        return unknown("GatewayNotFound: the own Gateway is not in the control store");
    }
    let object = format!("{network}.{}", situation.me);
    let Some((stored, _)) = view.intents.get(network) else {
        if is_unreadable(view, "workersliceconfigs", &object) {
            return unknown("the WorkerSliceConfig can't be read");
        }
        return Choice { absent: true, ..kept() };
    };
    let lower = is_older(&stored.meta, recorded);
    if lower && !situation.consistent {
        return Choice { stale: true, ..kept() };
    }
    let own = view.gateways.get(situation.me);
    let applied = AppliedIntent {
        intent: stored.value.clone(),
        uid: stored.meta.uid.clone(),
        generation: stored.meta.generation,
        own_subnets: own.map(|own| own.valid_subnets().collect()).unwrap_or_default(),
        own_host: own.and_then(Gateway::host).map(str::to_owned),
        wanted_since: recorded.map(|recorded| recorded.wanted_since.clone()).unwrap_or_default(),
    };
    Choice { applied: Some(applied), current: true, restored: lower, ..Choice::default() }
}

fn resolve(situation: &Situation<'_>, network: &NetworkName, choice: Choice) -> DesiredNetwork {
    let Choice { applied, current, absent, restored, stale: _, unknown } = choice;
    let unreadable = unreadable_part(situation, network);
    let mut desired = DesiredNetwork {
        current,
        absent,
        restored,
        incomplete: unreadable.is_some(),
        keep: unknown.or(unreadable),
        own: Vec::new(),
        tunnel_address: None,
        wide: Vec::new(),
        hub_prefixes: Vec::new(),
        order: Vec::new(),
        links: BTreeMap::new(),
        waiting: BTreeSet::new(),
        notes: Vec::new(),
        underlay_is_v4: false,
        backend: Backend::Userspace,
        applied: None,
    };
    if let Some(applied) = &applied {
        desired.backend = Backend::wanted(applied.intent.tunnel.mode, situation.host.kernel_wireguard);
        fill_addresses(situation, applied, &mut desired);
        if !absent {
            peers::fill(situation, network, &applied.intent, &mut desired);
        }
    }
    DesiredNetwork { applied, ..desired }
}

/// Why nothing of this network may be removed: a record or a device of it is there and could not be read.
fn unreadable_part(situation: &Situation<'_>, network: &NetworkName) -> Option<String> {
    let prefix = format!("{network}.");
    let record = situation
        .recorded
        .unreadable
        .iter()
        .find(|object| object.name == network.as_str() || object.name.starts_with(&prefix));
    let device = situation.host.unreadable.iter().find(|(device, _)| device.network == *network);
    record
        .map(|object| format!("the record {} {} can't be read: {}", object.kind, object.name, object.cause))
        .or_else(|| device.map(|(device, cause)| format!("the device {device} can't be read: {cause}")))
}

/// Own prefixes, the source address, the wide prefixes and the family of the underlay.
fn fill_addresses(situation: &Situation<'_>, applied: &AppliedIntent, desired: &mut DesiredNetwork) {
    let intent = &applied.intent;
    let on_host = |subnet: &IpNet| situation.host.addresses.iter().find(|ip| subnet.contains(*ip)).copied();
    desired.tunnel_address = intent.tunnel_address.or_else(|| applied.own_subnets.iter().find_map(on_host));
    desired.own =
        intent.tunnel_address.map(IpNet::from).into_iter().chain(applied.own_subnets.clone()).collect();
    desired.wide = intent.wide_cidrs.clone();
    for list in [&mut desired.own, &mut desired.wide] {
        list.sort();
        list.dedup();
    }
    let host = applied.own_host.as_deref().and_then(|host| host.parse::<IpAddr>().ok());
    desired.underlay_is_v4 = host.is_some_and(|address| address.is_ipv4());
}

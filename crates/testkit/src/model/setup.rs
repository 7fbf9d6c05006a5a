//! What is explored: members, declarations, and how much may go wrong. It refuses to be random.

use std::{collections::BTreeMap, time::Duration};

use spanwire_engine::{
    Gateway, GatewayFacts, GatewayName, HubChange, LinkRole, Listener, Meta, NetworkName, NetworkSpec,
    OnTimeout, PublicKey, Transit, Uid,
};

use super::Rule;

/// At most this many members fit into a world.
pub(super) const MOST: usize = 5;

/// One declaration; an edit goes from any to any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// `mesh` or `hub-spoke`.
    pub topology: &'static str,
    /// Hub, then standbys, as indices of members.
    pub hubs: Vec<usize>,
    /// Members, as indices.
    pub members: Vec<usize>,
}

/// What is explored.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How many gateways there are: `a`, `b`, … up to five.
    pub gateways: usize,
    /// Declarations; the first one is where it starts, at rest.
    pub declarations: Vec<Declaration>,
    /// How many edits may be made.
    pub edits: u8,
    /// Edits go to later declarations only.
    pub forward: bool,
    /// How many times a connected link may break (it may come back).
    pub faults: u8,
    /// How many times a worker may be restarted, losing all evidence.
    pub restarts: u8,
    /// How many times connectTimeout may pass, each time when nothing else can happen.
    pub times: u8,
    /// A gateway that dies before the first edit.
    pub dead: Option<usize>,
    /// Two gateways between which no new link ever connects.
    pub blocked: Option<(usize, usize)>,
    /// Of these two only links of this role; `None`: of every role.
    pub blocked_role: Option<LinkRole>,
    /// What happens at a time-out.
    pub on_timeout: OnTimeout,
    /// A rule that is switched off.
    pub without: Option<Rule>,
    /// Stop after this many states and say that it is not complete.
    pub limit: usize,
}

impl Setup {
    /// A setup without faults.
    pub fn new(gateways: usize, declarations: Vec<Declaration>) -> Self {
        Self {
            gateways,
            declarations,
            edits: 1,
            forward: false,
            faults: 0,
            restarts: 0,
            times: 0,
            dead: None,
            blocked: None,
            blocked_role: None,
            on_timeout: OnTimeout::Proceed,
            without: None,
            limit: 5_000_000,
        }
    }

    /// A change of hubs among `gateways`: from each list of `hubs` to each other.
    pub fn hub_change(gateways: usize, hubs: &[&[usize]]) -> Self {
        let declaration = |hubs: &&[usize]| Declaration {
            topology: "hub-spoke",
            hubs: hubs.to_vec(),
            members: (0..gateways).collect(),
        };
        Self::new(gateways, hubs.iter().map(declaration).collect())
    }

    /// From mesh to hub and spoke around the first gateway, or back.
    pub fn topology(gateways: usize, back: bool) -> Self {
        let all: Vec<usize> = (0..gateways).collect();
        let mesh = Declaration { topology: "mesh", hubs: Vec::new(), members: all.clone() };
        let hub = Declaration { topology: "hub-spoke", hubs: vec![0], members: all };
        Self::new(gateways, if back { vec![hub, mesh] } else { vec![mesh, hub] })
    }

    pub(super) fn is_dead(&self, index: usize) -> bool {
        self.dead == Some(index)
    }

    /// Alive, and a member in every declaration.
    pub(super) fn is_steady(&self, index: usize) -> bool {
        !self.is_dead(index) && self.declarations.iter().all(|declared| declared.members.contains(&index))
    }

    pub(super) fn is_blocked(&self, a: usize, b: usize, role: LinkRole) -> bool {
        self.blocked.is_some_and(|pair| pair == (a, b) || pair == (b, a))
            && self.blocked_role.is_none_or(|blocked| blocked == role)
    }

    pub(super) fn name(&self, index: usize) -> GatewayName {
        let name = ["a", "b", "c", "d", "e"][index.min(MOST - 1)];
        name.parse().expect("a letter is a name")
    }

    pub(super) fn names(&self) -> Vec<GatewayName> {
        (0..self.gateways).map(|index| self.name(index)).collect()
    }

    pub(super) fn network() -> NetworkName {
        "net".parse().expect("a constant name")
    }

    pub(super) fn key(index: usize) -> PublicKey {
        PublicKey([u8::try_from(index).unwrap_or(u8::MAX) + 1; 32])
    }

    pub(super) fn address(index: usize) -> std::net::IpAddr {
        std::net::IpAddr::from([10, 0, 0, u8::try_from(index).unwrap_or(u8::MAX) + 1])
    }

    pub(super) fn spec(&self, declaration: usize) -> NetworkSpec {
        let Declaration { topology, hubs, members } = &self.declarations[declaration];
        let names =
            |list: &[usize]| list.iter().map(|index| self.name(*index).to_string()).collect::<Vec<_>>();
        NetworkSpec {
            topology: (*topology).to_owned(),
            hub: hubs.first().map(|hub| self.name(*hub).to_string()),
            standby_hubs: names(hubs.get(1..).unwrap_or_default()),
            members: names(members),
            cidr: "10.0.0.0/24".to_owned(),
            transit: Transit::Routed,
            hub_change: HubChange { connect_timeout: Duration::from_secs(60), on_timeout: self.on_timeout },
            ..NetworkSpec::default()
        }
    }

    /// All gateways with key, endpoint and ports published, and the address they will have.
    pub(super) fn gateways(&self) -> BTreeMap<GatewayName, Gateway> {
        self.names().into_iter().enumerate().map(|(index, name)| (name, self.gateway(index))).collect()
    }

    fn gateway(&self, index: usize) -> Gateway {
        let listener = |role, peer, port| Listener { network: Self::network(), role, peer, port };
        let mut listeners =
            vec![listener(LinkRole::Downlink, None, 51820), listener(LinkRole::Mesh, None, 51821)];
        for (offset, peer) in self.names().into_iter().enumerate() {
            let port = 51830 + u16::try_from(offset).unwrap_or_default();
            listeners.push(listener(LinkRole::Trunk, Some(peer), port));
        }
        Gateway {
            meta: Meta { uid: Uid(format!("uid-{index}")), generation: 1, resource_version: String::new() },
            facts: GatewayFacts {
                public_key: Some(Self::key(index).to_string()),
                key_generation: 1,
                endpoint: Some(format!("192.0.2.{}", index + 1)),
                listeners,
                ..GatewayFacts::default()
            },
            networks: BTreeMap::from([(Self::network(), Some(Self::address(index)))]),
            ..Gateway::default()
        }
    }
}

//! What a phase waits for, read from the workers' statuses. It refuses to count a status that is not about this
//! phase's intent.

use crate::{
    Change, GatewayName, LinkRole, LinkState, PeerStatus, Phase, Role, RouteState, Topology, WorkerStatus,
    topology,
};

use super::{Stage, intents::active, phase::Context};

/// A member that lacks something, and what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lag {
    /// The member.
    pub member: GatewayName,
    /// What it lacks, for people.
    pub what: String,
}

/// Everything that the phase still waits for; empty: its barrier holds. The intents of the phase must stand.
pub fn lags(context: &Context<'_>, change: &Change, stage: &Stage) -> Vec<Lag> {
    let reader = Reader { context, stage, lags: Vec::new() };
    let members: Vec<GatewayName> = active(context, stage)
        .into_iter()
        .filter(|entry| change.phase == Phase::Adding || !entry.joining)
        .map(|entry| entry.gateway.clone())
        .collect();
    let of_topology = change.from.topology != change.to.topology;
    match change.phase {
        Phase::Adding if of_topology => reader.topology_adding(change, &members),
        Phase::Adding => reader.adding(change, &members),
        Phase::Switching if of_topology => reader.topology_switching(change, &members),
        Phase::Switching => reader.switching(change, &members),
        Phase::Demoting if of_topology => reader.topology_demoting(change, &members),
        Phase::Demoting => reader.demoting(change, &members),
        Phase::Removing => reader.removing(&members),
    }
}

/// What a worker says of the intent that stands, if it has confirmed that one.
fn confirmed<'a>(context: &Context<'a>, member: &GatewayName) -> Option<&'a WorkerStatus> {
    let view = context.view.intents.get(&(context.name.clone(), member.clone()))?;
    (view.status.observed_generation == view.meta.generation).then_some(&view.status)
}

/// Whether a member takes part in what happens: its Gateway exists and it has confirmed the standing intent, or a
/// member that has confirmed reports a connected link to it.
pub fn is_live(context: &Context<'_>, member: &GatewayName) -> bool {
    let exists = context.view.gateways.contains_key(member);
    let seen = || {
        context.members.entries.iter().filter(|entry| entry.gateway != *member).any(|entry| {
            confirmed(context, &entry.gateway).is_some_and(|status| {
                status
                    .peers
                    .iter()
                    .any(|row| row.peer == member.as_str() && row.state == LinkState::Connected)
            })
        })
    };
    exists && (confirmed(context, member).is_some() || seen())
}

struct Reader<'a> {
    context: &'a Context<'a>,
    stage: &'a Stage,
    lags: Vec<Lag>,
}

impl Reader<'_> {
    fn lag(&mut self, member: &GatewayName, what: String) {
        self.lags.push(Lag { member: member.clone(), what });
    }

    /// Whether a member has confirmed its intent; if not, it lags.
    fn is_confirmed(&mut self, member: &GatewayName) -> bool {
        let is_confirmed = confirmed(self.context, member).is_some();
        if !is_confirmed {
            self.lag(member, "it has not confirmed its intent".to_owned());
        }
        is_confirmed
    }

    fn row<'s>(&'s self, member: &GatewayName, peer: &GatewayName, role: LinkRole) -> Option<&'s PeerStatus> {
        confirmed(self.context, member)?.peers.iter().find(|row| row.is_link(peer, role))
    }

    fn is_connected(&self, member: &GatewayName, peer: &GatewayName, role: LinkRole) -> bool {
        self.row(member, peer, role).is_some_and(|row| row.state == LinkState::Connected)
    }

    fn carries(&self, member: &GatewayName, peer: &GatewayName, role: LinkRole) -> bool {
        self.row(member, peer, role).is_some_and(|row| row.route == RouteState::Active)
    }

    fn want_connected(&mut self, member: &GatewayName, peer: &GatewayName, role: LinkRole) {
        if !self.is_connected(member, peer, role) {
            self.lag(member, format!("its {role} to {peer} is not Connected"));
        }
    }

    /// Everybody that has not confirmed lags.
    fn want_confirmed(&mut self, members: &[GatewayName]) {
        for member in members {
            self.is_confirmed(member);
        }
    }

    /// Both ends of every link between a member and the new first hub, or an added hub, and that hub's exact routes.
    fn adding(mut self, change: &Change, members: &[GatewayName]) -> Vec<Lag> {
        self.want_confirmed(members);
        let added = change.to.hubs.iter().filter(|hub| !change.from.hubs.contains(hub));
        let mut hubs: Vec<&GatewayName> = change.to.hubs.first().into_iter().chain(added).collect();
        hubs.dedup();
        for hub in hubs {
            for member in members.iter().filter(|member| *member != hub) {
                for role in topology::roles(member, hub, &self.stage.hubs, false) {
                    self.want_connected(member, hub, role);
                    self.want_connected(hub, member, role.other_end());
                }
                if !self.carries(hub, member, LinkRole::Downlink) {
                    self.lag(member, format!("{hub} has no active route to it"));
                }
            }
        }
        self.lags
    }

    /// Every spoke sends through the first hub, and that hub does not send through an uplink.
    fn switching(mut self, change: &Change, members: &[GatewayName]) -> Vec<Lag> {
        self.want_confirmed(members);
        let Some(first) = change.to.hubs.first() else { return self.lags };
        for member in members.iter().filter(|member| !self.stage.hubs.contains(member)) {
            if !self.carries(member, first, LinkRole::Uplink) {
                self.lag(member, format!("its wide route is not on {first}"));
            }
        }
        let uplink = confirmed(self.context, first).and_then(|status| {
            let mut rows = status.peers.iter();
            rows.find(|row| row.role == Some(LinkRole::Uplink) && row.route == RouteState::Active)
        });
        if let Some(row) = uplink {
            self.lag(first, format!("its wide route is still on the uplink to {}", row.peer));
        }
        self.lags
    }

    /// Each demoted hub acts as a spoke and sends through the first hub that it reports connected.
    fn demoting(mut self, change: &Change, members: &[GatewayName]) -> Vec<Lag> {
        self.want_confirmed(members);
        for hub in members.iter().filter(|member| self.stage.demoted.contains(member)) {
            let role = confirmed(self.context, hub).and_then(|status| status.role);
            if role != Some(Role::Spoke) {
                self.lag(hub, "it still acts as a hub".to_owned());
                continue;
            }
            let first = change.to.hubs.iter().find(|peer| self.is_connected(hub, peer, LinkRole::Uplink));
            if !first.is_some_and(|first| self.carries(hub, first, LinkRole::Uplink)) {
                self.lag(hub, "its wide route is not on a connected new hub".to_owned());
            }
        }
        self.lags
    }

    /// Nobody has a link that the new intents don't want.
    fn removing(mut self, members: &[GatewayName]) -> Vec<Lag> {
        for member in members {
            if !self.is_confirmed(member) {
                continue;
            }
            let view = self.context.view.intents.get(&(self.context.name.clone(), member.clone()));
            let Some(view) = view else { continue };
            let wanted = |row: &PeerStatus| {
                let peer = row.peer.parse::<GatewayName>().ok();
                let listed = view.intent.peers.as_ref().is_some_and(|peers| peers.contains(&row.peer));
                let roles = peer
                    .map(|peer| topology::roles(member, &peer, &view.intent.hubs, view.intent.mesh_links));
                row.role.is_none_or(|role| listed && roles.is_some_and(|roles| roles.contains(&role)))
            };
            if let Some(row) = view.status.peers.iter().find(|row| !wanted(row)) {
                self.lag(member, format!("it still has a link to {}", row.peer));
            }
        }
        self.lags
    }

    /// Both ends of all links of the new kind are connected, and each new hub acts as one and routes over its downlinks.
    fn topology_adding(mut self, change: &Change, members: &[GatewayName]) -> Vec<Lag> {
        self.want_confirmed(members);
        for member in members {
            for peer in members.iter().filter(|peer| *peer != member) {
                for role in self.new_roles(change, member, peer) {
                    self.want_connected(member, peer, role);
                }
            }
        }
        for hub in members.iter().filter(|member| change.to.hubs.contains(member)) {
            if confirmed(self.context, hub).and_then(|status| status.role) != Some(Role::Hub) {
                self.lag(hub, "it does not act as a hub yet".to_owned());
            }
            for member in members.iter().filter(|member| *member != hub) {
                if !self.carries(hub, member, LinkRole::Downlink) {
                    self.lag(member, format!("{hub} has no active route to it over its downlink"));
                }
            }
        }
        self.lags
    }

    /// An old hub has moved its own traffic to the mesh links, now that nobody sends through it.
    fn topology_demoting(mut self, change: &Change, members: &[GatewayName]) -> Vec<Lag> {
        self.want_confirmed(members);
        for hub in members.iter().filter(|member| self.stage.demoted.contains(member)) {
            for peer in members.iter().filter(|peer| *peer != hub) {
                if !self.new_roles(change, hub, peer).is_empty() && !self.carries(hub, peer, LinkRole::Mesh) {
                    self.lag(hub, format!("its route to {peer} is not on the mesh link"));
                }
            }
        }
        self.lags
    }

    fn new_roles(&self, change: &Change, member: &GatewayName, peer: &GatewayName) -> Vec<LinkRole> {
        let pair = |a: &GatewayName, b: &GatewayName| {
            self.context.members.unlinkable.contains(&(a.clone(), b.clone()))
        };
        match change.to.topology {
            Topology::HubSpoke => topology::roles(member, peer, &change.to.hubs, false)
                .into_iter()
                .filter(|role| *role != LinkRole::Mesh)
                .collect(),
            Topology::Mesh if pair(member, peer) || pair(peer, member) => Vec::new(),
            Topology::Mesh => vec![LinkRole::Mesh],
        }
    }

    /// Every worker reports its routes on the links of the new kind.
    fn topology_switching(mut self, change: &Change, members: &[GatewayName]) -> Vec<Lag> {
        self.want_confirmed(members);
        for member in members {
            let peers = members.iter().filter(|peer| *peer != member);
            match (change.to.topology, change.to.hubs.first()) {
                // An old hub forwards over its downlinks until they go.
                (Topology::Mesh, _) if self.stage.hubs.contains(member) => {}
                (Topology::Mesh, _) | (Topology::HubSpoke, None) => {
                    for peer in peers {
                        let linkable = !self.new_roles(change, member, peer).is_empty();
                        if linkable && !self.carries(member, peer, LinkRole::Mesh) {
                            self.lag(member, format!("its route to {peer} is not on the mesh link"));
                        }
                    }
                }
                (Topology::HubSpoke, Some(first)) => {
                    let is_hub = change.to.hubs.contains(member);
                    if !is_hub && !self.carries(member, first, LinkRole::Uplink) {
                        self.lag(member, format!("its wide route is not on {first}"));
                    }
                    for peer in peers {
                        if self.carries(member, peer, LinkRole::Mesh) {
                            self.lag(member, format!("its route to {peer} is still on the mesh link"));
                        }
                    }
                }
            }
        }
        self.lags
    }
}

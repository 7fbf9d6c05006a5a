//! The controller of the model: the engine's plan, one write at a time. It refuses to remember anything between writes.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{Hash, Hasher},
};

use spanwire_engine::{
    Change, Intent, Meta, NetworkStatus, Phase, Uid, controller,
    port::{ControlView, IntentView, NetworkView},
};

use super::{
    Rule,
    hosts::{Hosts, now},
    intern::Table,
    rules,
    setup::{MOST, Setup},
    world::World,
};

/// The part of a network's status that decides anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Control(pub(super) NetworkStatus);

impl Hash for Control {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

type Key = (u8, u32, [u32; MOST], [u32; MOST], u8);

pub(super) struct Controller<'a> {
    setup: &'a Setup,
    pub(super) states: Table<Control>,
    turns: HashMap<Key, Option<(u32, [u32; MOST])>>,
}

impl<'a> Controller<'a> {
    pub(super) fn new(setup: &'a Setup) -> Self {
        let mut states = Table::new();
        states.id(Control(NetworkStatus::default()));
        Self { setup, states, turns: HashMap::new() }
    }

    /// Status and intents after the controller's next write; `None`: it has nothing to write.
    pub(super) fn turn(&mut self, world: &World, hosts: &mut Hosts<'_>) -> Option<(u32, [u32; MOST])> {
        let key = (world.declaration, world.control, world.intents, world.reports, world.clock);
        if let Some(turn) = self.turns.get(&key) {
            return *turn;
        }
        let turn = self.write(world, hosts);
        self.turns.insert(key, turn);
        turn
    }

    fn write(&mut self, world: &World, hosts: &mut Hosts<'_>) -> Option<(u32, [u32; MOST])> {
        let view = self.view(world, hosts);
        let name = Setup::network();
        let network = view.networks.get(&name)?;
        let plan = controller::plan_network(&view, &name, network, &now(world.clock));
        if let Some((status, _)) = plan.status {
            let status = self.without_words(status);
            if status != network.status {
                return Some((self.states.id(Control(status)), world.intents));
            }
        }
        let mut intents = world.intents;
        if let Some(write) = plan.intents.first() {
            let index = self.index(&write.intent);
            let last = hosts.intents.get(world.intents[index]);
            let generation = last.as_ref().as_ref().map_or(1, |(_, generation)| generation + 1);
            intents[index] = hosts.intents.id(Some((write.intent.clone(), generation)));
            return Some((world.control, intents));
        }
        let delete = plan.deletes.first()?;
        let index = self.setup.names().iter().position(|name| *name == delete.gateway)?;
        intents[index] = 0;
        Some((world.control, intents))
    }

    fn index(&self, intent: &Intent) -> usize {
        self.setup.names().iter().position(|name| *name == intent.gateway).unwrap_or_default()
    }

    /// Words, counts and moments decide nothing; with a rule switched off the phase itself may be another.
    fn without_words(&self, mut status: NetworkStatus) -> NetworkStatus {
        status.conditions.clear();
        status.edges = spanwire_engine::network::Edges::default();
        status.observed_generation = 0;
        for member in &mut status.members {
            member.reason = None;
        }
        if self.setup.without == Some(Rule::Demoting)
            && let Some(change) = &mut status.change
            && change.phase == Phase::Demoting
        {
            change.phase = Phase::Removing;
        }
        status
    }

    fn view(&self, world: &World, hosts: &Hosts<'_>) -> ControlView {
        let name = Setup::network();
        let status = self.states.get(world.control).0.clone();
        let phase = status.change.as_ref().map(|change| change.phase);
        let mut intents = BTreeMap::new();
        for (index, gateway) in self.setup.names().into_iter().enumerate() {
            let Some((intent, generation)) = (*hosts.intents.get(world.intents[index])).clone() else {
                continue;
            };
            let meta =
                Meta { uid: Uid(format!("intent-{index}")), generation, resource_version: String::new() };
            let status = (*hosts.reports.get(world.reports[index])).clone();
            let mut view = IntentView { meta, intent, status, managed: true, deleting: None };
            if let (Some(rule), Some(phase)) = (self.setup.without, phase) {
                view.status = rules::lie(rule, phase, &view);
            }
            intents.insert((name.clone(), gateway), view);
        }
        let meta = Meta { uid: Uid("network".to_owned()), generation: 1, resource_version: String::new() };
        let spec = self.setup.spec(usize::from(world.declaration));
        let networks = BTreeMap::from([(name, NetworkView { meta, spec, status })]);
        ControlView { gateways: self.setup.gateways(), networks, intents, ..ControlView::default() }
    }

    /// The status after an edit during Removing that does not wait, which only a controller without that rule makes.
    pub(super) fn rash_edit(&mut self, control: u32, declaration: usize) -> u32 {
        let mut status = self.states.get(control).0.clone();
        let hubs =
            self.setup.declarations[declaration].hubs.iter().map(|hub| self.setup.name(*hub)).collect();
        if self.setup.without == Some(Rule::EditWaits)
            && let Some(change) = status.change.take_if(|change| change.phase == Phase::Removing)
        {
            let Change { from: _, to: from, phase: _, started_at, started } = change;
            let to = spanwire_engine::Published { hubs, topology: from.topology };
            status.change = Some(Change { from, to, phase: Phase::Adding, started_at, started });
            return self.states.id(Control(status));
        }
        control
    }
}

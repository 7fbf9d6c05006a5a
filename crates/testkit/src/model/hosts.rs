//! The workers of the model: the engine's `desire`, `plan` and `report` on a twin of records and host. It refuses to
//! take more than one visible step at a time, so that everything else can happen in between.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{Hash, Hasher},
    rc::Rc,
    time::Duration,
};

use spanwire_engine::{
    BootTime, Gateway, GatewayName, Intent, LinkId, LinkRole, NetworkName, Now, Role, Stored, Topology,
    WorkerStatus,
    port::WorkerView,
    worker::{self, Evidence, Host, HostStep, Recorded, RouteKind, Settings, Situation, Step},
};

use crate::twin;

use super::{Rule, fib::Fib, intern::Table, setup::Setup, world::session};

/// Records and host of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Local {
    pub(super) recorded: Recorded,
    pub(super) host: Host,
}

impl Hash for Local {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{self:?}").hash(state);
    }
}

/// What a worker would do now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Records and host after its next visible step, if it has any step to take.
    pub(super) next: Option<u32>,
    /// What it would report.
    pub(super) report: u32,
}

type Key = (u8, u32, u32, u64, u8, bool);

pub(super) struct Hosts<'a> {
    setup: &'a Setup,
    names: Vec<GatewayName>,
    network: NetworkName,
    gateways: BTreeMap<GatewayName, Gateway>,
    settings: Settings,
    pub(super) intents: Table<Option<(Intent, i64)>>,
    pub(super) locals: Table<Local>,
    pub(super) reports: Table<WorkerStatus>,
    fibs: HashMap<u32, Rc<Fib>>,
    turns: HashMap<Key, Turn>,
    masks: Vec<u64>,
}

pub(super) fn now(clock: u8) -> Now {
    let since_boot = Duration::from_secs(60 * u64::from(clock));
    Now { boot: BootTime { boot_id: "boot".to_owned(), since_boot }, wall: String::new() }
}

impl<'a> Hosts<'a> {
    pub(super) fn new(setup: &'a Setup) -> Self {
        let mask = |me: usize| {
            let peers = (0..setup.gateways).filter(|peer| *peer != me);
            peers
                .flat_map(|peer| LinkRole::ALL.map(|role| session(me, peer, role)))
                .fold(0, |mask, bit| mask | bit)
        };
        let mut hosts = Self {
            setup,
            names: setup.names(),
            network: Setup::network(),
            gateways: setup.gateways(),
            settings: Settings { linger: Duration::ZERO, ..Settings::default() },
            intents: Table::new(),
            locals: Table::new(),
            reports: Table::new(),
            fibs: HashMap::new(),
            turns: HashMap::new(),
            masks: (0..setup.gateways).map(mask).collect(),
        };
        hosts.intents.id(None);
        hosts.locals.id(Local {
            recorded: Recorded::default(),
            host: Host { underlay_mtu: 1500, ..Host::default() },
        });
        hosts.reports.id(WorkerStatus::default());
        hosts
    }

    pub(super) fn mask(&self, me: usize) -> u64 {
        self.masks[me]
    }

    pub(super) fn fib(&mut self, local: u32) -> Rc<Fib> {
        if let Some(fib) = self.fibs.get(&local) {
            return Rc::clone(fib);
        }
        let fib = Rc::new(Fib::read(self.setup, &self.locals.get(local).host));
        self.fibs.insert(local, Rc::clone(&fib));
        fib
    }

    /// What the worker `me` does next, from the intent it has seen, its records and host, and the sessions it has.
    pub(super) fn turn(
        &mut self,
        me: usize,
        seen: u32,
        local: u32,
        sessions: u64,
        clock: u8,
        amnesia: bool,
    ) -> Turn {
        let key =
            (u8::try_from(me).unwrap_or(u8::MAX), seen, local, sessions & self.masks[me], clock, amnesia);
        if let Some(turn) = self.turns.get(&key) {
            return *turn;
        }
        let turn = self.take_turn(me, seen, local, sessions, clock, amnesia);
        self.turns.insert(key, turn);
        turn
    }

    fn take_turn(
        &mut self,
        me: usize,
        seen: u32,
        local: u32,
        sessions: u64,
        clock: u8,
        amnesia: bool,
    ) -> Turn {
        let mut state = (*self.locals.get(local)).clone();
        let view = self.view(me, seen);
        let mut taken = 0;
        let mut visible = false;
        while !visible {
            state.host.evidence = self.evidence(me, &state, sessions, amnesia);
            let desired = worker::desire(&self.situation(me, &view, &state));
            let plan = worker::plan(&desired, &state.recorded, &state.host, &now(clock));
            let Some(step) = plan.steps.first() else { break };
            visible = is_visible(step);
            apply(&mut state, step, Setup::key(me));
            taken += 1;
            assert!(taken < 1000, "a plan never ends for {}: {step:?}", self.names[me]);
        }
        let report = self.report(me, &view, local, sessions, clock, amnesia);
        state.host.evidence.clear();
        Turn { next: (taken > 0).then(|| self.locals.id(state)), report }
    }

    fn situation<'s>(&'s self, me: usize, view: &'s WorkerView, state: &'s Local) -> Situation<'s> {
        Situation {
            me: &self.names[me],
            own_key: Setup::key(me),
            view: Some(view),
            consistent: true,
            recorded: &state.recorded,
            host: &state.host,
            settings: &self.settings,
        }
    }

    fn view(&self, me: usize, seen: u32) -> WorkerView {
        let mut view = WorkerView { gateways: self.gateways.clone(), ..WorkerView::default() };
        if let Some((intent, generation)) = (*self.intents.get(seen)).clone() {
            let meta = spanwire_engine::Meta {
                uid: spanwire_engine::Uid(format!("intent-{me}")),
                generation,
                resource_version: String::new(),
            };
            let status = WorkerStatus::default();
            view.intents.insert(self.network.clone(), (Stored { meta, value: intent }, status));
        }
        view
    }

    fn evidence(&self, me: usize, state: &Local, sessions: u64, amnesia: bool) -> BTreeMap<LinkId, Evidence> {
        let mut evidence = BTreeMap::new();
        for peer in (0..self.names.len()).filter(|peer| *peer != me && !amnesia) {
            for role in LinkRole::ALL {
                let id = LinkId { network: self.network.clone(), peer: self.names[peer].clone(), role };
                let once = state.recorded.links.get(&id).is_some_and(|link| link.status.connected_once);
                if sessions & session(me, peer, role) != 0 {
                    evidence.insert(id, Evidence::Connected { settled: true });
                } else if once {
                    evidence.insert(id, Evidence::NotConnected { one_way: false });
                }
            }
        }
        evidence
    }

    /// What the worker says as things stand, without words and moments: they decide nothing.
    fn report(
        &mut self,
        me: usize,
        view: &WorkerView,
        local: u32,
        sessions: u64,
        clock: u8,
        amnesia: bool,
    ) -> u32 {
        let mut state = (*self.locals.get(local)).clone();
        state.host.evidence = self.evidence(me, &state, sessions, amnesia);
        let desired = worker::desire(&self.situation(me, view, &state));
        let mut statuses = worker::report(
            &desired,
            &state.recorded,
            &state.host,
            &now(clock),
            &BTreeMap::new(),
            &BTreeMap::new(),
        );
        let mut status = statuses.intents.remove(&self.network).unwrap_or_default();
        for row in &mut status.peers {
            row.message.clear();
        }
        status.conditions.clear();
        self.reports.id(status)
    }

    /// What a worker does at once, on seeing an intent, when a rule of order is switched off.
    pub(super) fn rash(&mut self, seen: u32, local: u32) -> u32 {
        let Some((intent, _)) = (*self.intents.get(seen)).clone() else { return local };
        let kind = match self.setup.without {
            Some(Rule::DemoteInOrder) if intent.role() == Role::Spoke && !intent.hubs.is_empty() => {
                RouteKind::Exact
            }
            Some(Rule::WideBeforeMesh) if intent.topology == Some(Topology::HubSpoke) => RouteKind::Exact,
            Some(Rule::MeshBeforeWide) if intent.topology == Some(Topology::Mesh) => RouteKind::Wide,
            _ => return local,
        };
        let mut state = (*self.locals.get(local)).clone();
        for table in state.host.tables.values_mut() {
            table.routes.retain(|(of, _), _| *of != kind);
        }
        self.locals.id(state)
    }
}

/// Whether another host, or a packet, can notice the step.
fn is_visible(step: &Step) -> bool {
    match step {
        Step::Record(_) => false,
        Step::Host(step) => match step {
            HostStep::Peer(_)
            | HostStep::TakeOver { .. }
            | HostStep::Route { .. }
            | HostStep::RemoveRoute { .. }
            | HostStep::RemovePeer { .. }
            | HostStep::RemoveDevice(_) => true,
            HostStep::Firewall(_)
            | HostStep::Table(_)
            | HostStep::Device(_)
            | HostStep::AddRule { .. }
            | HostStep::RemoveRule { .. }
            | HostStep::RemoveTable(_) => false,
        },
    }
}

fn apply(state: &mut Local, step: &Step, own_key: spanwire_engine::PublicKey) {
    match step {
        Step::Record(step) => twin::apply_to_records(&mut state.recorded, step),
        Step::Host(step) => {
            let outcome = twin::apply_to_host(&mut state.host, step, own_key);
            assert_eq!(outcome, Ok(()), "a plan has a step that a kernel refuses: {step:?}");
        }
    }
}

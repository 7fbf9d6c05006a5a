//! Breadth first over all states, so that the first counter-example is a shortest one. It refuses to guess: a search
//! that stops at its limit says that it is not complete.

use std::collections::{HashMap, VecDeque};

use spanwire_engine::LinkRole;

use super::{
    Rule,
    control::Controller,
    fib::{Fib, may_forward},
    hosts::Hosts,
    setup::{MOST, Setup},
    world::{World, session},
};

/// What came of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every state was seen and none is bad.
    Complete {
        /// How many there are.
        states: usize,
        /// How many of them are ends.
        ends: usize,
    },
    /// No state seen is bad; there are more.
    Stopped {
        /// How many were seen.
        states: usize,
    },
    /// A bad state, with the shortest way to it.
    Violation {
        /// What is wrong.
        what: String,
        /// The events that lead there.
        trace: Vec<String>,
        /// How many states were seen before.
        states: usize,
    },
}

struct Search<'a> {
    setup: &'a Setup,
    hosts: Hosts<'a>,
    controller: Controller<'a>,
    names: Vec<String>,
}

/// Explores a setup.
pub fn explore(setup: &Setup) -> Outcome {
    let names = setup.names().iter().map(ToString::to_string).collect();
    let mut search = Search { setup, hosts: Hosts::new(setup), controller: Controller::new(setup), names };
    let start = search.start();
    search.run(start)
}

impl Search<'_> {
    /// The first declaration at rest, everything connected; then a dead member dies.
    fn start(&mut self) -> World {
        let mut world = World {
            declaration: 0,
            control: 0,
            intents: [0; MOST],
            seen: [0; MOST],
            local: [0; MOST],
            reports: [0; MOST],
            sessions: 0,
            amnesia: 0,
            clock: 0,
            edits: 0,
            faults: 0,
            restarts: 0,
            times: 0,
        };
        while let Some((_, next)) = self.ordinary(&world, true).into_iter().next() {
            world = next;
        }
        let Setup { edits, faults, restarts, times, dead, .. } = *self.setup;
        if let Some(dead) = dead {
            world.sessions &= !self.hosts.mask(dead);
        }
        World { edits, faults, restarts, times, ..world }
    }

    /// Everything that happens by itself; `starting`: nobody is dead or blocked yet.
    fn ordinary(&mut self, world: &World, starting: bool) -> Vec<(String, World)> {
        let mut next = Vec::new();
        let setup = self.setup;
        for me in (0..setup.gateways).filter(|me| starting || !setup.is_dead(*me)) {
            if world.seen[me] != world.intents[me] {
                let mut then = World { seen: with(world.seen, me, world.intents[me]), ..*world };
                if !starting {
                    then.local[me] = self.hosts.rash(then.seen[me], then.local[me]);
                }
                next.push((format!("{} sees its intent", self.names[me]), then));
            }
            let amnesia = world.amnesia & 1 << me != 0;
            let turn =
                self.hosts.turn(me, world.seen[me], world.local[me], world.sessions, world.clock, amnesia);
            if let Some(local) = turn.next {
                let mut then = World { local: with(world.local, me, local), ..*world };
                self.drop_sessions(&mut then, me);
                next.push((format!("{} takes a step", self.names[me]), then));
            }
            if turn.report != world.reports[me] {
                let then = World { reports: with(world.reports, me, turn.report), ..*world };
                next.push((format!("{} reports", self.names[me]), then));
            }
            if amnesia {
                let then = World { amnesia: world.amnesia & !(1 << me), ..*world };
                next.push((format!("{} has evidence again", self.names[me]), then));
            }
        }
        self.handshakes(world, starting, &mut next);
        if let Some((control, intents)) = self.controller.turn(world, &mut self.hosts) {
            next.push(("the controller writes".to_owned(), World { control, intents, ..*world }));
        }
        next
    }

    /// Links whose both ends are there connect, in any order.
    fn handshakes(&mut self, world: &World, starting: bool, next: &mut Vec<(String, World)>) {
        for me in 0..self.setup.gateways {
            let fib = self.hosts.fib(world.local[me]);
            for (role, peer) in fib.accepts.keys().copied() {
                let bit = session(me, peer, role);
                let dialler = role == LinkRole::Uplink || (role != LinkRole::Downlink && me < peer);
                let blocked = self.setup.is_blocked(me, peer, role);
                let dead = self.setup.is_dead(me) || self.setup.is_dead(peer);
                if !dialler || world.sessions & bit != 0 || (!starting && (dead || blocked)) {
                    continue;
                }
                let other = self.hosts.fib(world.local[peer]);
                if other.accepts.contains_key(&(role.other_end(), me)) {
                    let what = format!("{} {role} to {} connects", self.names[me], self.names[peer]);
                    next.push((what, World { sessions: world.sessions | bit, ..*world }));
                }
            }
        }
    }

    /// A link without one of its ends is not connected.
    fn drop_sessions(&mut self, world: &mut World, me: usize) {
        let fib = self.hosts.fib(world.local[me]);
        for peer in (0..self.setup.gateways).filter(|peer| *peer != me) {
            for role in LinkRole::ALL.into_iter().filter(|role| !fib.accepts.contains_key(&(*role, peer))) {
                world.sessions &= !session(me, peer, role);
            }
        }
    }

    /// What somebody or bad luck does, within the budgets.
    fn disturbances(&mut self, world: &World) -> Vec<(String, World)> {
        let mut next = Vec::new();
        if world.edits > 0 {
            for declaration in 0..self.setup.declarations.len() {
                let Ok(to) = u8::try_from(declaration) else { continue };
                if to == world.declaration || (self.setup.forward && to < world.declaration) {
                    continue;
                }
                let control = self.controller.rash_edit(world.control, declaration);
                let then = World { declaration: to, control, edits: world.edits - 1, ..*world };
                next.push((format!("declaration {declaration} replaces {}", world.declaration), then));
            }
        }
        if world.faults > 0 {
            let bits = (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| world.sessions & bit != 0);
            next.extend(bits.map(|bit: u64| {
                let then = World { sessions: world.sessions & !bit, faults: world.faults - 1, ..*world };
                (format!("link {} breaks", bit.trailing_zeros()), then)
            }));
        }
        for me in (0..self.setup.gateways).filter(|me| world.restarts > 0 && !self.setup.is_dead(*me)) {
            if world.amnesia & 1 << me == 0 {
                let then = World { amnesia: world.amnesia | 1 << me, restarts: world.restarts - 1, ..*world };
                next.push((format!("{}'s worker restarts", self.names[me]), then));
            }
        }
        next
    }

    fn run(&mut self, start: World) -> Outcome {
        let mut seen: HashMap<World, Option<(World, String)>> = HashMap::from([(start, None)]);
        let mut queue = VecDeque::from([start]);
        let mut ends = 0;
        while let Some(world) = queue.pop_front() {
            if let Some(what) = self.fault(&world) {
                return violation(what, &world, &seen);
            }
            let mut next = self.ordinary(&world, false);
            let quiet = next.is_empty();
            let wedged = if quiet { self.wedged(&world) } else { None };
            if world.times > 0 && wedged.is_some() {
                let then = World { times: world.times - 1, clock: world.clock + 1, ..world };
                next.push(("connectTimeout passes".to_owned(), then));
            } else if let Some(what) = wedged {
                return violation(what, &world, &seen);
            }
            ends += usize::from(quiet);
            next.extend(self.disturbances(&world));
            for (event, then) in next {
                if let std::collections::hash_map::Entry::Vacant(entry) = seen.entry(then) {
                    entry.insert(Some((world, event)));
                    queue.push_back(then);
                }
            }
            if seen.len() > self.setup.limit {
                return Outcome::Stopped { states: seen.len() };
            }
        }
        Outcome::Complete { states: seen.len(), ends }
    }

    /// What is wrong with a state: a pair without a path though nothing broke, or a packet that circles.
    fn fault(&mut self, world: &World) -> Option<String> {
        let fibs: Vec<std::rc::Rc<Fib>> =
            (0..self.setup.gateways).map(|me| self.hosts.fib(world.local[me])).collect();
        // Proceed goes on without a link that never comes: what only it could carry is lost, as declared.
        let given_up = world.times != self.setup.times
            && self.setup.blocked.is_some()
            && self.setup.blocked_role.is_none()
            && self.setup.on_timeout == spanwire_engine::OnTimeout::Proceed;
        // With a dead hub there is nothing to lose before the change is over.
        let given_up =
            given_up || self.setup.dead.is_some_and(|dead| self.setup.declarations[0].hubs.contains(&dead));
        let unbroken = world.faults == self.setup.faults && !given_up;
        let setup = self.setup;
        for from in (0..setup.gateways).filter(|from| setup.is_steady(*from)) {
            for to in (0..setup.gateways).filter(|to| *to != from) {
                match self.walk(world, &fibs, from, to) {
                    Ok(()) => {}
                    Err(Lost::Circles) => {
                        return Some(format!(
                            "a packet from {} to {} circles",
                            self.names[from], self.names[to]
                        ));
                    }
                    Err(Lost::At(at, why)) if unbroken && self.setup.is_steady(to) => {
                        let names = &self.names;
                        return Some(format!(
                            "{} to {} is lost at {}: {why}",
                            names[from], names[to], names[at]
                        ));
                    }
                    Err(Lost::At(..)) => {}
                }
            }
        }
        None
    }

    fn walk(&self, world: &World, fibs: &[std::rc::Rc<Fib>], from: usize, to: usize) -> Result<(), Lost> {
        let (mut at, mut arrived) = (from, None::<LinkRole>);
        for _ in 0..4 * MOST {
            if at == to {
                return Ok(());
            }
            let Some((role, peer)) = fibs[at].out[to] else { return Err(Lost::At(at, "no route")) };
            let over_uplink = role == LinkRole::Trunk && self.setup.without == Some(Rule::TrunkOnly);
            let role = if over_uplink { LinkRole::Uplink } else { role };
            let horizon = self.setup.without != Some(Rule::Horizon);
            if horizon && arrived.is_some_and(|arrived| !may_forward(arrived, role)) {
                return Err(Lost::At(at, "the horizon"));
            }
            if world.sessions & session(at, peer, role) == 0 {
                return Err(Lost::At(at, "the link is not connected"));
            }
            match fibs[peer].accepts.get(&(role.other_end(), at)) {
                Some(accepted) if accepted & 1 << from != 0 => {}
                Some(_) => return Err(Lost::At(peer, "the sender is not in the allowed IPs")),
                None => return Err(Lost::At(peer, "the other end is gone")),
            }
            (at, arrived) = (peer, Some(role.other_end()));
        }
        Err(Lost::Circles)
    }

    /// What is wrong with an end: it is not what was declared, or somebody has links too many.
    fn wedged(&mut self, world: &World) -> Option<String> {
        let setup = self.setup;
        let control = self.controller.states.get(world.control);
        let declared = &setup.declarations[usize::from(world.declaration)];
        let hubs: Vec<_> = declared.hubs.iter().map(|hub| self.setup.name(*hub)).collect();
        if let Some(change) = &control.0.change {
            let expected =
                self.setup.on_timeout == spanwire_engine::OnTimeout::Hold && self.setup.blocked.is_some();
            return (!expected).then(|| format!("wedged in {}", change.phase.as_str()));
        }
        let published = control.0.published.as_ref();
        if published.is_none_or(|published| published.hubs != hubs) {
            return Some(format!("ended with {published:?}"));
        }
        for me in (0..setup.gateways).filter(|me| declared.members.contains(me) && !setup.is_dead(*me)) {
            let intent = self.hosts.intents.get(world.intents[me]);
            let Some((intent, _)) = intent.as_ref() else {
                return Some(format!("{} has no intent", self.names[me]));
            };
            let mut wanted = 0;
            for peer in intent.peers.iter().flatten().filter_map(|peer| peer.parse().ok()) {
                wanted +=
                    spanwire_engine::topology::roles(&intent.gateway, &peer, &intent.hubs, intent.mesh_links)
                        .len();
            }
            let there = self.hosts.fib(world.local[me]).accepts.len();
            if there != wanted {
                return Some(format!("{} ended with {there} links of {wanted}", self.names[me]));
            }
        }
        for me in (0..setup.gateways).filter(|me| !declared.members.contains(me) && !setup.is_dead(*me)) {
            if !self.hosts.fib(world.local[me]).accepts.is_empty() {
                return Some(format!("{} left and still has links", self.names[me]));
            }
        }
        None
    }
}

enum Lost {
    At(usize, &'static str),
    Circles,
}

fn with(mut array: [u32; MOST], index: usize, value: u32) -> [u32; MOST] {
    array[index] = value;
    array
}

fn violation(what: String, world: &World, seen: &HashMap<World, Option<(World, String)>>) -> Outcome {
    let mut trace = Vec::new();
    let mut at = *world;
    while let Some(Some((before, event))) = seen.get(&at) {
        trace.push(event.clone());
        at = *before;
    }
    trace.reverse();
    Outcome::Violation { what, trace, states: seen.len() }
}

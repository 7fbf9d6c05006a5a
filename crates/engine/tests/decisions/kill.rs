//! A worker that is killed after every single step of every plan, and started again: the same end, and what was right
//! is not touched. It refuses sampling: kill points are counted from the plans.

mod situations;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use spanwire_engine::{
    BootTime, DeviceName, GatewayName, Now, PublicKey, check,
    port::WorkerView,
    worker::{self, Evidence, Host, HostStep, ObservedPeer, Recorded, Settings, Situation, Step},
};

use crate::world::{Local, made_worse, restarted};

/// A state and what is asked for in it.
pub(crate) struct Case {
    pub(crate) me: GatewayName,
    pub(crate) start: Local,
    pub(crate) view: WorkerView,
    /// Peers whose links never connect (any more).
    pub(crate) silent: BTreeSet<GatewayName>,
}

type Peers = BTreeMap<(DeviceName, PublicKey), ObservedPeer>;

/// A run from a start to its end.
struct Run<'a> {
    case: &'a Case,
    local: Local,
    since_boot: Duration,
    /// Numbers of steps, counted over the whole run, after which the worker is killed.
    kills: Vec<usize>,
    taken: usize,
    /// Whether every state is looked at, not only every plan.
    thorough: bool,
    /// Peers that a step named, and devices.
    touched: BTreeSet<(DeviceName, Option<PublicKey>)>,
}

/// Steps for a person who looks into a failure.
fn lines(steps: &[Step]) -> String {
    let lines: Vec<String> = steps.iter().enumerate().map(|(at, step)| format!("{at}: {step:?}")).collect();
    lines.join("\n")
}

fn peers(host: &Host) -> Peers {
    let named = host.devices.values().filter_map(|device| Some((device.name.clone()?, device)));
    named
        .flat_map(|(name, device)| {
            device.peers.iter().map(move |(key, peer)| ((name.clone(), *key), peer.clone()))
        })
        .collect()
}

impl<'a> Run<'a> {
    fn new(case: &'a Case, kills: &[usize]) -> Self {
        Self {
            case,
            local: case.start.clone(),
            since_boot: Duration::from_secs(5000),
            kills: kills.to_vec(),
            taken: 0,
            thorough: true,
            touched: BTreeSet::new(),
        }
    }

    fn evidence(&self) -> BTreeMap<spanwire_engine::LinkId, Evidence> {
        if self.local.amnesia {
            return BTreeMap::new();
        }
        let mut evidence = BTreeMap::new();
        for (id, link) in &self.local.recorded.links {
            let device = self.local.host.devices.get(&id.device());
            let stands = device.is_some_and(|device| device.peers.contains_key(&link.public_key));
            if stands && !self.case.silent.contains(&id.peer) {
                evidence.insert(id.clone(), Evidence::Connected { settled: true });
            } else if link.status.connected_once {
                evidence.insert(id.clone(), Evidence::NotConnected { one_way: false });
            }
        }
        evidence
    }

    /// Plans and takes steps until nothing is left, killed where it is asked for.
    fn finish(mut self) -> Self {
        for _ in 0..100_000 {
            if self.kills.contains(&self.taken) {
                self.kills.retain(|kill| *kill != self.taken);
                self.local = restarted(&self.local);
            }
            let (steps, next_due) = self.pass();
            if !steps {
                if self.local.amnesia {
                    self.local.amnesia = false;
                } else if let Some(due) = next_due {
                    self.since_boot += due.max(Duration::from_millis(1));
                } else {
                    self.local.host.evidence.clear();
                    return self;
                }
            }
        }
        panic!("it never ends");
    }

    /// One plan, up to its end or the next kill. Returns whether there was a step, and when time alone has an effect.
    fn pass(&mut self) -> (bool, Option<Duration>) {
        self.local.host.evidence = self.evidence();
        let settings = Settings::default();
        let Local { key, recorded, host, boot, amnesia: _ } = &self.local;
        let desired = worker::desire(&Situation {
            me: &self.case.me,
            own_key: *key,
            view: Some(&self.case.view),
            consistent: true,
            recorded,
            host,
            settings: &settings,
        });
        let boot = BootTime { boot_id: format!("boot-{boot}"), since_boot: self.since_boot };
        let plan = worker::plan(&desired, recorded, host, &Now { boot, wall: "now".to_owned() });
        let wrong = check::plan(&desired, recorded, host, &plan.steps);
        assert!(wrong.is_empty(), "out of order: {wrong:?}\n{}", lines(&plan.steps));
        let mut before = check::state(&desired, recorded, host);
        for step in &plan.steps {
            self.local.apply(step);
            self.note(step);
            self.taken += 1;
            if self.thorough {
                let after = check::state(&desired, &self.local.recorded, &self.local.host);
                let new = made_worse(step, &before, &after);
                assert!(new.is_empty(), "{step:?} makes it worse: {new:#?}");
                before = after;
            }
            if self.kills.contains(&self.taken) {
                return (true, None);
            }
        }
        assert!(!plan.steps.is_empty() || before.is_empty(), "nothing is left to do, and yet: {before:#?}");
        (!plan.steps.is_empty(), plan.report.next_due)
    }

    fn note(&mut self, step: &Step) {
        match step {
            Step::Host(HostStep::Peer(config)) => {
                self.touched.insert((config.device.clone(), Some(config.public_key)));
            }
            Step::Host(HostStep::RemovePeer { device, public_key }) => {
                self.touched.insert((device.clone(), Some(*public_key)));
            }
            Step::Host(HostStep::RemoveDevice(device)) => {
                self.touched.insert((device.clone(), None));
            }
            Step::Host(HostStep::Device(config)) => {
                self.touched.insert((config.name.clone(), None));
            }
            Step::Host(_) | Step::Record(_) => {}
        }
    }

    /// The peers that stood at the start and that no step of this run named.
    fn untouched(&self) -> Peers {
        let named = |name: &DeviceName, key: &PublicKey| {
            self.touched.contains(&(name.clone(), Some(*key))) || self.touched.contains(&(name.clone(), None))
        };
        let mut peers = peers(&self.case.start.host);
        peers.retain(|(name, key), _| !named(name, key));
        peers
    }

    /// Records and host without moments and kernel numbers.
    fn end(&self) -> (Recorded, Host) {
        let Local { key: _, recorded, host, boot: _, amnesia: _ } = self.local.clone();
        let (mut recorded, mut host) = (recorded, host);
        for intent in recorded.intents.values_mut() {
            intent.wanted_since.values_mut().for_each(|since| *since = BootTime::default());
        }
        for link in recorded.links.values_mut() {
            link.status.unwanted_since = None;
            link.status.last_transition.clear();
        }
        host.devices.values_mut().for_each(|device| device.index = 0);
        (recorded, host)
    }
}

/// Kills after every step, and where the plans are small (`twice`), again after every further step, with a look at every
/// state in between. Returns how many runs that were.
pub(crate) fn everywhere(case: &Case, twice: bool) -> usize {
    let straight = Run::new(case, &[]).finish();
    assert!(straight.taken > 0, "there is nothing to kill");
    let (end, right) = (straight.end(), straight.untouched());
    let mut runs = 1;
    let mut compare = |kills: &[usize]| {
        let run = Run { thorough: twice, ..Run::new(case, kills) }.finish();
        assert_eq!(run.end(), end, "killed after {kills:?} steps it ends differently");
        let now = peers(&run.local.host);
        for (peer, entry) in &right {
            assert!(run.untouched().contains_key(peer), "killed after {kills:?} steps it touched {peer:?}");
            assert_eq!(now.get(peer), Some(entry), "killed after {kills:?} steps {peer:?} is another");
        }
        runs += 1;
        run.taken
    };
    for first in 0..=straight.taken {
        let taken = compare(&[first]);
        for second in (first + 1..taken).filter(|_| twice) {
            compare(&[first, second]);
        }
    }
    runs
}

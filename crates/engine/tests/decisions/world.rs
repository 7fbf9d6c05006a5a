//! A control store, the workers' records and hosts, and which links connect. It refuses to decide anything: the engine
//! does, the world carries it out.

mod build;
mod links;
mod passes;
mod paths;
pub(crate) mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use spanwire_engine::{
    BootTime, GatewayName, LinkRole, NetworkName, Now, PublicKey,
    port::ControlView,
    worker::{Host, Recorded, Settings, Step},
};
use spanwire_testkit::twin;

pub(crate) use build::key;
pub(crate) use links::{rebooted, restarted};
pub(crate) use passes::made_worse;
pub(crate) use words::{Words, link as link_words};

/// What one worker keeps: its key, its records, its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) key: PublicKey,
    pub(crate) recorded: Recorded,
    pub(crate) host: Host,
    /// Which boot the host is on.
    pub(crate) boot: u32,
    /// The worker was started again and knows nothing of its links' health yet.
    pub(crate) amnesia: bool,
}

impl Local {
    pub(crate) fn new(key: PublicKey) -> Self {
        let host = Host { underlay_mtu: 1500, ..Host::default() };
        Self { key, recorded: Recorded::default(), host, boot: 1, amnesia: false }
    }

    /// Carries out one step.
    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Record(step) => twin::apply_to_records(&mut self.recorded, step),
            Step::Host(step) => {
                let outcome = twin::apply_to_host(&mut self.host, step, self.key);
                assert_eq!(outcome, Ok(()), "a kernel refuses {step:?}");
            }
        }
    }
}

/// A pair that can't connect, in the role that the first of the two plays; `None`: in no role.
pub(crate) type Cut = (GatewayName, GatewayName, Option<LinkRole>);

/// Everything.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) view: ControlView,
    pub(crate) hosts: BTreeMap<GatewayName, Local>,
    pub(crate) cuts: BTreeSet<Cut>,
    pub(crate) dead: BTreeSet<GatewayName>,
    /// Links back from a loss that have not settled yet.
    pub(crate) unsettled: BTreeSet<(GatewayName, GatewayName)>,
    /// Probes have judged every link: one that was never answered is down after three missed rounds, too.
    pub(crate) judged: bool,
    pub(crate) settings: Settings,
    pub(crate) since_boot: Duration,
    /// How far the clocks on the wall were stepped, in seconds.
    pub(crate) wall_step: i64,
    /// Writes to the control store.
    pub(crate) writes: usize,
    /// How many more writes the controller makes before it is killed; `None`: it lives.
    pub(crate) writes_left: Option<usize>,
    /// Steps taken by workers.
    pub(crate) steps: usize,
    /// Pairs that are held to deliver, and those that did not at some moment.
    pub(crate) watched: BTreeSet<(NetworkName, GatewayName, GatewayName)>,
    pub(crate) lost: BTreeSet<(NetworkName, GatewayName, GatewayName)>,
    objects: u32,
}

impl Default for World {
    fn default() -> Self {
        Self {
            view: ControlView::default(),
            hosts: BTreeMap::new(),
            cuts: BTreeSet::new(),
            dead: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            judged: false,
            settings: Settings::default(),
            since_boot: Duration::from_secs(1000),
            wall_step: 0,
            writes: 0,
            writes_left: None,
            steps: 0,
            watched: BTreeSet::new(),
            lost: BTreeSet::new(),
            objects: 0,
        }
    }
}

impl World {
    /// The moment, on a host's boot.
    pub(crate) fn now(&self, boot: u32) -> Now {
        Now {
            boot: BootTime { boot_id: format!("boot-{boot}"), since_boot: self.since_boot },
            wall: format!("t{}", i128::from(self.since_boot.as_secs()) + i128::from(self.wall_step)),
        }
    }

    pub(crate) fn uid(&mut self) -> spanwire_engine::Uid {
        self.objects += 1;
        spanwire_engine::Uid(format!("uid-{}", self.objects))
    }

    /// Whether the controller still makes its next write.
    fn may_write(&mut self) -> bool {
        match &mut self.writes_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    pub(crate) fn is_alive(&self, gateway: &GatewayName) -> bool {
        !self.dead.contains(gateway)
    }
}

/// A name in a test.
pub(crate) fn name(text: &str) -> GatewayName {
    text.parse().unwrap_or_else(|fault| panic!("{fault}"))
}

/// A network's name in a test.
pub(crate) fn net(text: &str) -> NetworkName {
    text.parse().unwrap_or_else(|fault| panic!("{fault}"))
}

//! Asks all links and hears their answers, on one task. It refuses to wake up for each link: what is due within one tick
//! is done together.

mod ask;
mod look;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use spanwire_engine::{DeviceName, LinkId, LinkRole, worker::Evidence};
use tokio::{
    sync::{mpsc, watch},
    time::sleep_until,
};

use super::{
    evidence::Silent,
    prober::{ProberConfig, Target},
    state::LinkProbe,
};
use ask::{Heard, Sockets};
use look::{Depth, Look, Question, Seen};

/// Moments are rounded up to this.
const TICK: Duration = Duration::from_millis(100);
/// How often the questions of peers are looked up that are not asked themselves, because they ask.
const HEARD: Duration = Duration::from_millis(200);
/// How often peers that do not answer are looked up at their device.
const LOOK: Duration = Duration::from_secs(2);

/// One link's state.
struct Link {
    target: Target,
    /// `None`: it has no addresses to probe.
    probe: Option<LinkProbe>,
    silent: Silent,
}

struct Session {
    config: ProberConfig,
    start: Instant,
    links: BTreeMap<LinkId, Link>,
    /// Whose answer it is, by device and address.
    by_address: BTreeMap<(DeviceName, IpAddr), LinkId>,
    sockets: Sockets,
    look: Look,
    looked: Duration,
    /// When questions alone were looked up last.
    listened: Duration,
    made: u32,
    publish: watch::Sender<BTreeMap<LinkId, Evidence>>,
}

/// Runs until the handle is gone.
pub(super) async fn run(
    config: ProberConfig,
    mut targets: mpsc::UnboundedReceiver<Vec<Target>>,
    publish: watch::Sender<BTreeMap<LinkId, Evidence>>,
) {
    let (heard, mut answers) = mpsc::channel(1024);
    let (seen, mut looks) = mpsc::channel(4);
    let mut session = Session {
        look: Look::new(&config, seen),
        config,
        start: Instant::now(),
        links: BTreeMap::new(),
        by_address: BTreeMap::new(),
        sockets: Sockets::new(heard),
        looked: Duration::ZERO,
        listened: Duration::ZERO,
        made: 0,
        publish,
    };
    loop {
        let wake = session.next_wake();
        tokio::select! {
            biased;
            wanted = targets.recv() => match wanted {
                Some(wanted) => session.set_targets(wanted),
                None => return,
            },
            Some(answer) = answers.recv() => if !session.hear(&answer) { continue },
            Some(seen) = looks.recv() => seen.iter().for_each(|seen| session.see(seen)),
            () = sleep_until(wake.into()) => session.tick(),
        }
        session.tell();
    }
}

impl Session {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn next_wake(&self) -> Instant {
        let of_link = |link: &Link| match &link.probe {
            Some(probe) => [Some(probe.next()), probe.settles_at()],
            None => [Some(self.looked + LOOK), None],
        };
        let listen = self.links.values().any(Link::is_asked).then_some(self.listened + HEARD);
        let next = self.links.values().flat_map(of_link).flatten().chain(listen).min();
        let next = next.unwrap_or(Duration::from_secs(3600) + self.now());
        let tick = TICK.as_millis();
        let rounded = next.as_millis().div_ceil(tick) * tick;
        self.start + Duration::from_millis(u64::try_from(rounded).unwrap_or(u64::MAX))
    }

    fn set_targets(&mut self, targets: Vec<Target>) {
        let mut before = std::mem::take(&mut self.links);
        self.by_address.clear();
        for target in targets {
            let kept = before.remove(&target.link).filter(|link| {
                let Target { link: _, device, public_key, addresses, connected_once: _, lost: _ } =
                    &link.target;
                *device == target.device
                    && *addresses == target.addresses
                    && (addresses.is_some() || *public_key == target.public_key)
            });
            let link = kept.unwrap_or_else(|| self.begin(&target));
            if let Some((_, remote)) = target.addresses {
                self.by_address.insert((target.device.clone(), remote), target.link.clone());
            }
            self.links.insert(target.link.clone(), link);
        }
        let devices: Vec<&DeviceName> = self.links.values().map(|link| &link.target.device).collect();
        self.sockets.keep(&devices);
    }

    fn begin(&mut self, target: &Target) -> Link {
        let probe = target.addresses.is_some().then(|| self.first_probe(target));
        Link { target: target.clone(), probe, silent: Silent::default() }
    }

    fn first_probe(&mut self, target: &Target) -> LinkProbe {
        self.made = self.made.wrapping_add(1);
        // Multiples of the golden ratio spread any number of links evenly.
        let phase = self.config.timing.interval.mul_f64(f64::from(self.made) * 0.618_034 % 1.0);
        let mut round = [0u8; 8];
        if let Err(error) = getrandom::fill(&mut round) {
            tracing::warn!(%error, "probes start at a number that can be foreseen");
        }
        let lost = target.connected_once && target.lost;
        let round = u64::from_ne_bytes(round);
        LinkProbe::new(self.config.timing, self.now(), phase, round, lost)
    }

    /// Asks whatever is due, and looks at the devices of peers that do not answer.
    fn tick(&mut self) {
        let now = self.now();
        for link in self.links.values_mut() {
            let Some(probe) = &mut link.probe else { continue };
            if probe.poll(now).ask {
                self.sockets.ask(&link.target, probe.round(), probe.last_answer().map(|at| now - at));
            }
            probe.settle(now);
        }
        self.look_up(now);
    }

    /// Looks up the questions of peers that ask, and from time to time the counters of those that do not answer.
    fn look_up(&mut self, now: Duration) {
        let is_silent = |link: &Link| link.probe.as_ref().is_none_or(|probe| probe.misses() > 0);
        let counters = now >= self.looked + LOOK && self.links.values().any(is_silent);
        if !counters && now < self.listened + HEARD {
            return;
        }
        let concerned = self.links.values().filter(|link| link.is_asked() || counters && is_silent(link));
        let targets: Vec<&Target> = concerned.map(|link| &link.target).collect();
        self.listened = now;
        if counters {
            self.looked = now;
        }
        if !targets.is_empty() {
            self.look.start(&targets, if counters { Depth::Counters } else { Depth::Questions });
        }
    }

    /// Returns whether the answer changed what is known.
    fn hear(&mut self, answer: &Heard) -> bool {
        let now = self.now();
        let Heard { device, remote, sequence } = answer;
        let link = self.by_address.get(&(device.clone(), *remote)).and_then(|id| self.links.get_mut(id));
        let Some(link) = link else { return false };
        let before = link.evidence(now);
        if let Some(probe) = &mut link.probe {
            probe.answer(now, *sequence);
        }
        link.evidence(now) != before
    }

    fn see(&mut self, seen: &Seen) {
        let now = self.now();
        let Seen { link, counters, heard } = seen;
        let Some(link) = self.links.get_mut(link) else { return };
        if let Some(counters) = counters {
            link.silent.counters(now, *counters);
        }
        let Some(Question { age, answered }) = heard else { return };
        link.silent.heard(now, *age);
        let is_asked = link.is_asked();
        if let Some(probe) = link.probe.as_mut().filter(|_| is_asked) {
            probe.confirm(now.saturating_sub(*age), *answered);
        }
    }

    /// Publishes what is known, if it is other than before.
    fn tell(&self) {
        let now = self.now();
        let known = || self.links.iter().filter_map(|(id, link)| Some((id, link.evidence(now)?)));
        if !is_same(&self.publish.borrow(), known()) {
            self.publish.send_replace(known().map(|(id, evidence)| (id.clone(), evidence)).collect());
        }
    }
}

/// Whether what is known, in order, is what was published.
fn is_same<'a>(
    published: &BTreeMap<LinkId, Evidence>,
    known: impl Iterator<Item = (&'a LinkId, Evidence)>,
) -> bool {
    let (mut published, mut known) = (published.iter(), known);
    known.all(|(id, evidence)| published.next() == Some((id, &evidence))) && published.next().is_none()
}

impl Link {
    /// Whether its peer asks anyhow, once an interval as long as it has this link: then its questions say all that
    /// there is to know, and nobody has to ask back. Of two who both could wait for the other only one may.
    fn is_asked(&self) -> bool {
        self.target.link.role == LinkRole::Downlink && self.probe.is_some()
    }

    fn evidence(&self, now: Duration) -> Option<Evidence> {
        let Some(probe) = &self.probe else { return self.silent.judged(now) };
        let probed = probe.evidence(now, self.silent.one_way(now));
        let received = self.silent.connected(now, probe.is_answered());
        probed.filter(|evidence| evidence.is_connected()).or(received).or(probed)
    }
}

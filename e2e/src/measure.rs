//! What is measured between the members: a quiet stretch first, then everything from before a change to after it. It
//! refuses to mix up the two: what a machine can't carry at rest says nothing about the product.

mod drops;
mod expect;
mod load;

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use spanwire_api::GatewayNetworkStatus;
use spanwire_testkit::{
    lab::Host,
    prober::{Pair, Prober, Rate, Report},
    streams::{StreamReport, Streams},
};

pub use drops::Drops;
pub use expect::Keeps;
pub use load::Load;
use load::Sampler;

use crate::{Fleet, Say, Setup, fleet::Member, interrupt};

const QUIET: Duration = Duration::from_secs(3);
const SLOWEST: u32 = 50;

/// The stretch in which nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quiet {
    /// Datagrams a second and pair that the machine carries without loss.
    pub rate: u32,
    /// Sent at that rate.
    pub sent: u64,
    /// Lost at that rate.
    pub lost: u64,
    /// The longest time without an arrival, in milliseconds.
    pub longest_gap_ms: u64,
}

/// A measurement that runs.
#[derive(Debug)]
pub struct Run {
    prober: Prober,
    streams: Option<Streams>,
    drops: Drops,
    sampler: Sampler,
    sampled: Vec<String>,
}

/// A measurement that is over.
#[derive(Debug)]
pub struct Measured {
    /// Datagrams.
    pub report: Report,
    /// Streams, where there were any.
    pub streams: Vec<StreamReport>,
    /// What full queues of the machine dropped meanwhile.
    pub drops: Drops,
    /// What the dataplanes got of the processor.
    pub load: Load,
}

/// All ordered pairs of declared members, between their pods, or where there are none between their tunnel addresses.
///
/// # Errors
/// A member has no address yet.
pub fn pairs(fleet: &Fleet, status: &GatewayNetworkStatus) -> Result<Vec<Pair>> {
    let end = |member: &Member| -> Result<(Host, IpAddr)> {
        if let Some(pod) = member.pod() {
            return Ok((pod.clone(), pod.address()));
        }
        let name = member.name();
        let entry = status.members.iter().find(|entry| entry.gateway == name);
        let text = entry.and_then(|entry| entry.tunnel_address.as_deref());
        let text = text.with_context(|| format!("{name} has no tunnel address"))?;
        let address = text.parse().with_context(|| format!("the tunnel address of {name}"))?;
        Ok((member.host().clone(), address))
    };
    let declared = |member: &&Member| fleet.declared().members.iter().any(|name| name == member.name());
    let members: Vec<_> = fleet.members().iter().filter(declared).collect();
    let mut pairs = Vec::new();
    for from in &members {
        for to in members.iter().filter(|to| to.name() != from.name()) {
            let ((from, source), (to, target)) = (end(from)?, end(to)?);
            pairs.push(Pair { from, source, to, target });
        }
    }
    Ok(pairs)
}

/// Finds a rate that this machine carries without loss while nothing changes, from the one that was asked for downwards.
///
/// # Errors
/// Even the slowest rate loses something.
pub fn quiet(setup: &Setup, pairs: &[Pair], say: Say) -> Result<Quiet> {
    let mut per_second = setup.rate;
    loop {
        let before = Drops::now(pairs)?;
        let prober = Prober::start(pairs, rate(per_second)).context("starting the quiet stretch")?;
        interrupt::pause(QUIET)?;
        let total = prober.finish().context("counting the quiet stretch")?.total();
        let quiet = Quiet {
            rate: per_second,
            sent: total.sent,
            lost: total.lost,
            longest_gap_ms: millis(total.longest_gap),
        };
        if quiet.lost == 0 {
            return Ok(quiet);
        }
        let drops = Drops::now(pairs)?.since(before);
        let lost = quiet.lost;
        say.line(format!(
            "Overload: {lost} of {} lost at {per_second}/s a pair while nothing changes ({drops}).",
            quiet.sent
        ));
        per_second /= 2;
        if per_second < SLOWEST {
            bail!(
                "this machine loses packets at rest even at {SLOWEST}/s a pair: nothing can be measured on it"
            );
        }
        say.line(format!("Trying {per_second}/s."));
    }
}

impl Run {
    /// Begins to measure.
    ///
    /// # Errors
    /// A socket could not be made, or a stream does not connect.
    pub fn start(fleet: &Fleet, pairs: &[Pair], per_second: u32, streams: Option<&[Pair]>) -> Result<Self> {
        let drops = Drops::now(pairs)?;
        let streams = streams.map(Streams::start).transpose().context("starting the streams")?;
        let prober = Prober::start(pairs, rate(per_second)).context("starting the measurement")?;
        let dataplanes =
            || fleet.members().iter().filter_map(|member| Some((member.name(), member.dataplane()?)));
        let sampled = dataplanes().map(|(name, _)| name.to_owned()).collect();
        let pids = dataplanes().map(|(_, process)| process.pid()).collect();
        let begun = Instant::now().checked_sub(prober.now()).unwrap_or_else(Instant::now);
        Ok(Self { prober, streams, drops, sampler: Sampler::start(pids, begun), sampled })
    }

    /// The time of the measurement.
    pub fn now(&self) -> Duration {
        self.prober.now()
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.prober.progress().0
    }

    /// Ends it and counts.
    ///
    /// # Errors
    /// A thread of it panicked.
    pub fn finish(self, pairs: &[Pair]) -> Result<Measured> {
        let streams = self.streams.map(Streams::finish).transpose().context("counting the streams")?;
        let report = self.prober.finish().context("counting the measurement")?;
        let drops = Drops::now(pairs)?.since(self.drops);
        let load = self.sampler.finish(self.sampled)?;
        Ok(Measured { report, streams: streams.unwrap_or_default(), drops, load })
    }
}

fn rate(per_second: u32) -> Rate {
    Rate { per_second, ..Rate::default() }
}

/// Whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

//! Notes when each phase of a change begins and ends, as the controller's status tells. It refuses to guess at phases
//! that it did not see.

use std::time::Duration;

use anyhow::{Result, bail};
use spanwire_api::{GatewayNetworkStatus, Phase};

use crate::{Fleet, Say, interrupt, measure::Run, outcome::PhaseOutcome};

/// How long a change may take: every phase may wait for a time-out of a minute.
const LIMIT: Duration = Duration::from_secs(300);

/// The phases seen so far.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    seen: Vec<(Phase, Duration)>,
    ended: Option<Duration>,
}

impl Phases {
    /// Watches until the declared state is reached; `look` is called as each phase begins, and each time that
    /// nothing has changed.
    pub(crate) fn follow(
        &mut self,
        fleet: &mut Fleet,
        run: &Run,
        say: Say,
        look: impl FnMut(&mut Fleet, Option<Phase>) -> Result<()>,
    ) -> Result<()> {
        self.follow_since(fleet, &|| run.now(), say, look)
    }

    /// The same by another clock.
    pub(crate) fn follow_since(
        &mut self,
        fleet: &mut Fleet,
        now: &dyn Fn() -> Duration,
        say: Say,
        mut look: impl FnMut(&mut Fleet, Option<Phase>) -> Result<()>,
    ) -> Result<()> {
        let first = self.seen.len();
        let done = interrupt::wait_for(LIMIT, || {
            let Some(status) = fleet.network()? else { return Ok(None) };
            if let Some(phase) = self.note(&status, now(), first) {
                say.line(format!("{:7.2} s  {phase:?}", now().as_secs_f64()));
                look(fleet, Some(phase))?;
                return Ok(None);
            }
            look(fleet, None)?;
            Ok(fleet.declared().is_reached(&status).then_some(()))
        })?;
        if done.is_none() {
            bail!("the change was not done after {LIMIT:?}.\n{}", fleet.last_words());
        }
        self.ended = Some(now());
        say.line(format!("{:7.2} s  done", now().as_secs_f64()));
        Ok(())
    }

    fn note(&mut self, status: &GatewayNetworkStatus, now: Duration, first: usize) -> Option<Phase> {
        let phase = status.change.as_ref()?.phase;
        if self.seen[first..].last().map(|(last, _)| *last) == Some(phase) {
            return None;
        }
        self.seen.push((phase, now));
        Some(phase)
    }

    /// When a phase was first seen.
    pub(crate) fn began(&self, phase: Phase) -> Option<Duration> {
        self.seen.iter().find(|(seen, _)| *seen == phase).map(|(_, at)| *at)
    }

    /// When the last change was done.
    pub(crate) fn ended(&self) -> Option<Duration> {
        self.ended
    }

    /// The phase at a moment, for messages; nothing where there is no change.
    pub(crate) fn at(&self, moment: Duration) -> String {
        if self.seen.is_empty() {
            return String::new();
        }
        if self.ended.is_some_and(|ended| moment >= ended) {
            return ", after the change".to_owned();
        }
        let phase = self.seen.iter().rev().find(|(_, began)| *began <= moment);
        phase.map_or(", before the change".to_owned(), |(phase, _)| format!(", in {phase:?}"))
    }

    /// Every phase with its length.
    pub(crate) fn outcome(&self) -> Vec<PhaseOutcome> {
        let ends = self.seen.iter().skip(1).map(|(_, at)| *at).chain(self.ended);
        self.seen
            .iter()
            .zip(ends)
            .map(|((phase, began), ended)| PhaseOutcome {
                phase: format!("{phase:?}"),
                seconds: (ended.saturating_sub(*began).as_secs_f64() * 1000.0).round() / 1000.0,
            })
            .collect()
    }
}

//! A worker that stands still in the middle of a hub change. It refuses to stop it before it has confirmed what the phase
//! before needs of it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::Signal;
use spanwire_api::{LinkState, Role};

use crate::{Fleet, Laggard, Say, interrupt};

/// How long the worker stands still: longer than a link lingers.
const STANDS_STILL: Duration = Duration::from_secs(6);

/// One worker of a fleet.
#[derive(Debug)]
pub(crate) struct Stop {
    which: Laggard,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    Runs,
    Stopped(Instant),
    RunsAgain,
}

impl Stop {
    /// A worker that still runs.
    pub(crate) fn new(which: Laggard) -> Self {
        Self { which, state: State::Runs }
    }

    /// Stops the worker when the moment has come, and lets it go on when its time is over.
    pub(crate) fn look(&mut self, fleet: &Fleet, say: Say) -> Result<()> {
        let name = match self.which {
            Laggard::Spoke => "spoke-1",
            Laggard::OldHub => "hub-a",
        };
        let signal = match self.state {
            State::Runs if self.is_ready(fleet, name)? => Signal::SIGSTOP,
            State::Stopped(since) if since.elapsed() >= STANDS_STILL => Signal::SIGCONT,
            State::Runs | State::Stopped(_) | State::RunsAgain => return Ok(()),
        };
        fleet.member(name)?.signal_worker(signal)?;
        say.line(format!("           {signal:?} to the worker of {name}"));
        self.state =
            if signal == Signal::SIGSTOP { State::Stopped(Instant::now()) } else { State::RunsAgain };
        Ok(())
    }

    /// Whether the worker has confirmed everything that comes before the moment in which it is to stand still.
    fn is_ready(&self, fleet: &Fleet, name: &str) -> Result<bool> {
        let (Some((generation, intent)), Some(status)) = (fleet.intent(name)?, fleet.links(name)?) else {
            return Ok(false);
        };
        let confirmed = status.observed_generation == generation;
        let hubs = intent.hubs.iter().map(String::as_str);
        Ok(match self.which {
            Laggard::Spoke => {
                let reached = |hub: &str| {
                    let mut peers = status.peer_statuses.iter().filter(|row| row.peer == hub);
                    peers.any(|row| row.state == LinkState::Connected)
                };
                confirmed && hubs.eq(["hub-a", "hub-b"]) && reached("hub-b")
            }
            Laggard::OldHub => confirmed && hubs.eq(["hub-b", "hub-a"]) && status.role == Some(Role::Hub),
        })
    }

    /// Waits until it goes on, where the change did not wait for it.
    ///
    /// # Errors
    /// The change was over and it never stood still: nothing was shown.
    pub(crate) fn finish(&mut self, fleet: &Fleet, say: Say) -> Result<()> {
        if self.state == State::Runs {
            bail!("the change was over before the worker could be stopped");
        }
        interrupt::wait_for(2 * STANDS_STILL, || {
            self.look(fleet, say)?;
            Ok((self.state == State::RunsAgain).then_some(()))
        })?;
        Ok(())
    }
}

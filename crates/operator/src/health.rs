//! Whether a process is alive and ready, for probes. It refuses to take a dead peer or an unreachable store for a fault of
//! the process: only a loop that stands still is one, and what was never looked at.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long a pass may take before the loop counts as stuck.
pub const LONGEST_PASS: Duration = Duration::from_secs(300);
/// How much later than due a pass may begin.
pub const OVERDUE: Duration = Duration::from_secs(30);

/// What a probe is told: good or not, and why.
pub type Verdict = Result<String, String>;

/// The health of one process. Clones show the same.
#[derive(Debug, Clone)]
pub struct Health(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    process: Process,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    Controller,
    Worker,
    Dataplane,
}

#[derive(Debug)]
struct State {
    doing: Doing,
    looked: bool,
}

#[derive(Debug, Clone, Copy)]
enum Doing {
    /// It has no loop yet.
    Begins,
    /// It waits while another process acts.
    StandsBy,
    /// Between passes.
    Rests { since: Instant, resync: Duration },
    /// Within a pass.
    Passes { since: Instant, resync: Duration },
    /// It answers others.
    Serves,
}

impl Health {
    /// Of a controller: ready once it has read its store.
    pub fn of_controller() -> Self {
        Self::of(Process::Controller)
    }

    /// Of a worker: ready once a pass has looked at records and host, and while it stands by.
    pub fn of_worker() -> Self {
        Self::of(Process::Worker)
    }

    /// Of a dataplane: ready once its control socket listens.
    pub fn of_dataplane() -> Self {
        Self::of(Process::Dataplane)
    }

    fn of(process: Process) -> Self {
        let state = State { doing: Doing::Begins, looked: false };
        Self(Arc::new(Inner { process, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to be looked at before the process is ready was looked at.
    pub fn looked(&self) {
        self.state().looked = true;
    }

    /// It is this process' turn, and it has no loop yet.
    pub fn begins(&self) {
        self.state().doing = Doing::Begins;
    }

    /// Another process acts.
    pub fn stands_by(&self) {
        self.state().doing = Doing::StandsBy;
    }

    /// The process answers others.
    pub fn serves(&self) {
        *self.state() = State { doing: Doing::Serves, looked: true };
    }

    /// The loop runs, with a pass every `resync` at least, until the value is dropped: then the process stands by.
    pub fn acts(&self, resync: Duration) -> Acting {
        self.state().doing = Doing::Rests { since: Instant::now(), resync };
        Acting(self.clone())
    }

    /// Whether the loop runs.
    pub fn acts_now(&self) -> bool {
        match self.state().doing {
            Doing::Rests { .. } | Doing::Passes { .. } => true,
            Doing::Begins | Doing::StandsBy | Doing::Serves => false,
        }
    }

    /// A pass runs until the value is dropped.
    pub fn passes(&self) -> Passing {
        self.turn(|since, resync| Doing::Passes { since, resync });
        Passing(self.clone())
    }

    /// Where the loop runs, it does something else from now on.
    fn turn(&self, next: impl FnOnce(Instant, Duration) -> Doing) {
        let mut state = self.state();
        match state.doing {
            Doing::Rests { since: _, resync } | Doing::Passes { since: _, resync } => {
                state.doing = next(Instant::now(), resync);
            }
            Doing::Begins | Doing::StandsBy | Doing::Serves => {}
        }
    }

    /// Whether the process should be left alone.
    pub fn alive(&self) -> Verdict {
        let doing = self.state().doing;
        match doing {
            Doing::Begins => Ok("it starts".to_owned()),
            Doing::StandsBy => Ok("it stands by: another process acts".to_owned()),
            Doing::Serves => Ok("it serves".to_owned()),
            Doing::Passes { since, resync: _ } if since.elapsed() > LONGEST_PASS => Err(format!(
                "a pass has been running for {} s, and {} s is the limit",
                since.elapsed().as_secs(),
                LONGEST_PASS.as_secs()
            )),
            Doing::Rests { since, resync } if since.elapsed() > resync + OVERDUE => Err(format!(
                "the last pass ended {} s ago, and one is due every {} s",
                since.elapsed().as_secs(),
                resync.as_secs()
            )),
            Doing::Passes { since, resync: _ } => {
                Ok(format!("a pass has been running for {} s", since.elapsed().as_secs()))
            }
            Doing::Rests { since, resync: _ } => {
                Ok(format!("the last pass ended {} s ago", since.elapsed().as_secs()))
            }
        }
    }

    /// Whether the process does what it is there for.
    pub fn ready(&self) -> Verdict {
        let State { doing, looked } = *self.state();
        let (ready, not_yet) = match self.0.process {
            Process::Controller => (
                "the control store was read",
                "the control store was not read yet: see the log for what it waits for",
            ),
            Process::Worker => (
                "records and host were read by a pass",
                "no pass over records and host was made yet: see the log for what it waits for",
            ),
            Process::Dataplane => ("the control socket listens", "the control socket does not listen yet"),
        };
        match (looked, doing, self.0.process) {
            (true, _, _) => Ok(ready.to_owned()),
            // A rollout that waits for the new one to be ready would wait for ever: the old one has to go first.
            (false, Doing::StandsBy, Process::Worker) => Ok("it stands by: another worker acts".to_owned()),
            (false, _, _) => Err(not_yet.to_owned()),
        }
    }
}

/// See [`Health::acts`].
#[must_use]
#[derive(Debug)]
pub struct Acting(Health);

impl Drop for Acting {
    fn drop(&mut self) {
        self.0.stands_by();
    }
}

/// See [`Health::passes`].
#[must_use]
#[derive(Debug)]
pub struct Passing(Health);

impl Drop for Passing {
    fn drop(&mut self) {
        self.0.turn(|since, resync| Doing::Rests { since, resync });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const RESYNC: Duration = Duration::from_secs(60);
    const MOMENT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_takes_too_long_is_told_until_it_ends() {
        let health = Health::of_worker();
        let _acting = health.acts(RESYNC);
        let passing = health.passes();
        advance(LONGEST_PASS).await;
        assert!(health.alive().is_ok(), "{:?}", health.alive());
        advance(MOMENT).await;
        let why = health.alive().unwrap_err();
        assert!(why.contains("running for 301 s") && why.contains("300 s is the limit"), "{why}");
        drop(passing);
        assert!(health.alive().is_ok(), "{:?}", health.alive());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_does_not_begin_when_it_is_due_is_told() {
        let health = Health::of_controller();
        let acting = health.acts(RESYNC);
        drop(health.passes());
        advance(RESYNC + OVERDUE).await;
        assert!(health.alive().is_ok(), "{:?}", health.alive());
        advance(MOMENT).await;
        let why = health.alive().unwrap_err();
        assert!(why.contains("91 s ago") && why.contains("every 60 s"), "{why}");
        drop(acting);
        assert!(health.alive().is_ok(), "who stands by has no pass to make: {:?}", health.alive());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_is_cut_off_leaves_nothing_running() {
        let health = Health::of_worker();
        let acting = health.acts(RESYNC);
        let passing = health.passes();
        drop((passing, acting));
        assert!(!health.acts_now());
        advance(LONGEST_PASS * 2).await;
        assert!(health.alive().is_ok(), "{:?}", health.alive());
    }

    #[test]
    fn who_has_looked_is_ready_and_a_worker_that_stands_by_as_well() {
        let (controller, worker) = (Health::of_controller(), Health::of_worker());
        for health in [&controller, &worker] {
            assert!(health.ready().is_err());
            health.stands_by();
        }
        assert!(controller.ready().is_err(), "its store was not read");
        assert!(worker.ready().is_ok());
        for health in [&controller, &worker] {
            health.looked();
            assert!(health.ready().is_ok(), "{:?}", health.ready());
        }
    }
}

//! One pass of the controller, one of a worker, and time. It refuses to let a plan through that breaks a promise: every
//! state between two steps is checked.

use std::{collections::BTreeMap, time::Duration};

use spanwire_engine::{
    GatewayName, NetworkName, NetworkStatus, Now, WorkerStatus,
    check::{self, Violation},
    controller,
    port::WorkerView,
    worker::{self, Desired, HostStep, Plan, Situation, Statuses, Step},
};

use super::World;

/// What a controller's pass wrote.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pass {
    pub(crate) writes: Vec<String>,
    pub(crate) waits: Vec<String>,
}

/// What a worker's pass did.
#[derive(Debug, Clone)]
pub(crate) struct WorkerPass {
    pub(crate) steps: Vec<Step>,
    pub(crate) report: worker::Report,
    pub(crate) statuses: Statuses,
    /// Whether a status or facts changed.
    pub(crate) published: bool,
}

/// What a step has broken. A dead route is the doing of the step that puts it there, not of one that makes another way.
pub(crate) fn made_worse(step: &Step, before: &[Violation], after: &[Violation]) -> Vec<Violation> {
    let by_step = |wrong: &Violation| match (wrong, step) {
        (
            Violation::DeadRoute { kind, prefix, .. },
            Step::Host(HostStep::Route { kind: k, prefix: p, .. }),
        ) => kind == k && prefix == p,
        (Violation::DeadRoute { .. }, _) => false,
        _ => true,
    };
    after.iter().filter(|wrong| !before.contains(wrong) && by_step(wrong)).cloned().collect()
}

impl World {
    pub(crate) fn controller_pass(&mut self) -> Pass {
        let now = self.now(0);
        let plans = controller::plan(&self.view, &now);
        let mut pass = Pass::default();
        for (name, plan) in plans.networks {
            let report = plan.report.waits.iter().chain(&plan.report.unknown);
            pass.waits.extend(report.map(|wait| format!("{name}: {wait}")));
            if let Some((status, _)) = plan.status.filter(|_| self.may_write()) {
                pass.writes.push(format!("status of {name}"));
                self.write_status(&name, status);
            }
            for write in plan.intents {
                if self.may_write() {
                    pass.writes.push(format!("intent {}", write.intent.object_name()));
                    self.write_intent(write.intent, true);
                }
            }
            for delete in plan.deletes {
                if self.may_write() {
                    pass.writes.push(format!("deletion of intent {}.{}", delete.network, delete.gateway));
                    self.view.intents.remove(&(delete.network, delete.gateway));
                    self.writes += 1;
                }
            }
        }
        for (name, networks) in plans.gateways {
            if let Some(gateway) = self.view.gateways.get_mut(&name) {
                pass.writes.push(format!("networks of {name}"));
                gateway.networks = networks;
                self.writes += 1;
            }
        }
        pass
    }

    fn write_status(&mut self, name: &NetworkName, status: NetworkStatus) {
        if let Some(network) = self.view.networks.get_mut(name) {
            network.status = status;
            self.writes += 1;
        }
    }

    pub(crate) fn worker_view(&self, me: &GatewayName) -> WorkerView {
        let own = self.view.intents.iter().filter(|((_, gateway), _)| gateway == me);
        let intents = own.map(|((network, _), view)| {
            let stored = spanwire_engine::Stored { meta: view.meta.clone(), value: view.intent.clone() };
            (network.clone(), (stored, view.status.clone()))
        });
        WorkerView {
            gateways: self.view.gateways.clone(),
            intents: intents.collect(),
            unreadable: self.view.unreadable.clone(),
            ..WorkerView::default()
        }
    }

    /// What `me` wants, from this view.
    pub(crate) fn desire(&self, me: &GatewayName, view: Option<&WorkerView>) -> Desired {
        let local = &self.hosts[me];
        worker::desire(&Situation {
            me,
            own_key: local.key,
            view,
            consistent: true,
            recorded: &local.recorded,
            host: &local.host,
            settings: &self.settings,
        })
    }

    /// What `me` would do now.
    pub(crate) fn planned(&mut self, me: &GatewayName, view: Option<&WorkerView>) -> (Desired, Plan) {
        self.learn(me);
        let evidence = self.evidence(me);
        let now = self.host_now(me);
        if let Some(local) = self.hosts.get_mut(me) {
            local.host.evidence = evidence;
        }
        let desired = self.desire(me, view);
        let local = &self.hosts[me];
        let plan = worker::plan(&desired, &local.recorded, &local.host, &now);
        let wrong = check::plan(&desired, &local.recorded, &local.host, &plan.steps);
        let lines = || plan.steps.iter().map(|step| format!("{step:?}")).collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "the plan of {me} is out of order: {wrong:?}\n{}", lines());
        (desired, plan)
    }

    pub(crate) fn host_now(&self, me: &GatewayName) -> Now {
        self.now(self.hosts[me].boot)
    }

    /// Takes one step; what was right before stays right.
    pub(crate) fn take(&mut self, me: &GatewayName, desired: &Desired, step: &Step) {
        let wrong = |world: &Self| {
            let local = &world.hosts[me];
            check::state(desired, &local.recorded, &local.host)
        };
        let before = wrong(self);
        if let Some(local) = self.hosts.get_mut(me) {
            local.apply(step);
        }
        let new = made_worse(step, &before, &wrong(self));
        assert!(new.is_empty(), "{me}: {step:?} makes it worse: {new:#?}");
        self.steps += 1;
        self.look_for_losses();
    }

    pub(crate) fn worker_pass(&mut self, me: &GatewayName) -> WorkerPass {
        let view = self.worker_view(me);
        self.pass_with(me, Some(&view))
    }

    /// A pass with what the worker can read; `None`: it can't read the control store.
    pub(crate) fn pass_with(&mut self, me: &GatewayName, view: Option<&WorkerView>) -> WorkerPass {
        let (desired, plan) = self.planned(me, view);
        for step in &plan.steps {
            self.take(me, &desired, step);
        }
        if plan.steps.is_empty() {
            let local = &self.hosts[me];
            let wrong = check::state(&desired, &local.recorded, &local.host);
            assert!(wrong.is_empty(), "{me} has nothing to do, and yet: {wrong:#?}");
        }
        let desired = self.desire(me, view);
        let previous: BTreeMap<_, _> = view
            .into_iter()
            .flat_map(|view| view.intents.iter().map(|(name, (_, status))| (name.clone(), status.clone())))
            .collect();
        let local = &self.hosts[me];
        let now = self.host_now(me);
        let statuses =
            worker::report(&desired, &local.recorded, &local.host, &now, &previous, &BTreeMap::new());
        let published = view.is_some() && self.publish(me, &statuses);
        if let Some(local) = self.hosts.get_mut(me) {
            local.amnesia = false;
        }
        WorkerPass { steps: plan.steps, report: plan.report, statuses, published }
    }

    fn publish(&mut self, me: &GatewayName, statuses: &Statuses) -> bool {
        let before = self.writes;
        for (network, status) in &statuses.intents {
            let standing: Option<&mut WorkerStatus> =
                self.view.intents.get_mut(&(network.clone(), me.clone())).map(|view| &mut view.status);
            if let Some(standing) = standing.filter(|standing| **standing != *status) {
                *standing = status.clone();
                self.writes += 1;
            }
        }
        if let Some(gateway) =
            self.view.gateways.get_mut(me).filter(|g| g.facts.listeners != statuses.listeners)
        {
            gateway.facts.listeners.clone_from(&statuses.listeners);
            self.writes += 1;
        }
        self.writes != before
    }

    /// Passes at one moment until nothing changes any more. `after`: called after each pass of the controller.
    pub(crate) fn settle(&mut self, mut after: impl FnMut(&mut Self)) {
        for _ in 0..200 {
            let before = (self.writes, self.steps);
            self.controller_pass();
            after(self);
            for me in self.hosts.keys().cloned().collect::<Vec<_>>() {
                if self.is_alive(&me) {
                    self.worker_pass(&me);
                }
            }
            if (self.writes, self.steps) == before {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// Lets time pass, a second at a time, with all passes that it brings.
    pub(crate) fn wait(&mut self, seconds: u64, mut after: impl FnMut(&mut Self)) {
        self.settle(&mut after);
        for _ in 0..seconds {
            self.since_boot += Duration::from_secs(1);
            self.settle(&mut after);
        }
    }

    /// Lets everything come to its end.
    pub(crate) fn rest(&mut self) {
        self.wait(5, |_| {});
    }
}

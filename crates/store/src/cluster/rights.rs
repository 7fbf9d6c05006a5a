//! One Role a worker in the control cluster, which names the intents that it may read. It refuses to take a name away
//! while the gateway exists: a worker that slept must be able to read that it has to tear down.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use k8s_openapi::api::rbac::v1::Role;
use kube::{
    api::{Api, Patch, PatchParams},
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use spanwire_api::{Kind as _, WorkerSliceConfigSpec, rbac};
use spanwire_engine::{GatewayName, NetworkName, port::Written};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    Connection, Error,
    apply::Manager,
    call::{Verb, call},
    words,
};

const ROLES: &str = "roles";
/// How long the first list may take.
const FIRST: Duration = Duration::from_secs(5);
/// How long the watch may take to show what was just written.
const SHOWN: Duration = Duration::from_secs(10);

/// The Roles of all workers. Dropping it ends the watch.
pub(super) struct Rights {
    api: Api<Role>,
    namespace: String,
    known: reflector::Store<Role>,
    written: Mutex<BTreeMap<GatewayName, (Arc<Role>, Instant)>>,
    task: JoinHandle<()>,
}

impl Drop for Rights {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Rights {
    pub(super) fn follow(connection: &Connection) -> Self {
        let api: Api<Role> = Api::namespaced(connection.client().clone(), connection.namespace());
        let (known, writer) = reflector::store();
        let (key, value) = rbac::WORKER_ROLE_LABEL;
        let config = watcher::Config::default().labels(&format!("{key}={value}"));
        let roles = watcher(api.clone(), config).default_backoff().reflect(writer);
        let task = tokio::spawn(roles.for_each(|event| {
            if let Err(error) = event {
                tracing::warn!(error = words(&error), "the roles of workers can't be followed");
            }
            std::future::ready(())
        }));
        let namespace = connection.namespace().to_owned();
        Self { api, namespace, known, written: Mutex::default(), task }
    }

    /// Writes the Role of a gateway's worker, unless it says so already.
    pub(super) async fn grant(
        &self,
        gateway: &GatewayName,
        networks: &BTreeSet<NetworkName>,
    ) -> Result<Written, Error> {
        let ready = timeout(FIRST, self.known.wait_until_ready()).await;
        ready.map_err(|_| Error::NotRead { kind: ROLES })?.map_err(|_| Error::NotRead { kind: ROLES })?;
        let standing = self.standing(gateway);
        let mut names = standing.as_deref().map(|role| named(role, gateway)).unwrap_or_default();
        names.extend(networks.iter().map(ToString::to_string));
        let wanted = rbac::worker_role(&self.namespace, gateway.as_str(), &names);
        if standing.is_some_and(|role| role.rules == wanted.rules) {
            return Ok(Written::Same);
        }
        let name = rbac::worker_role_name(gateway.as_str());
        let params = PatchParams::apply(Manager::Controller.as_str()).force();
        let stated = Patch::Apply(&wanted);
        let sent = self.api.patch(&name, &params, &stated);
        let answer = call(Verb::Apply, ROLES, &name, sent).await;
        let role = answer.map_err(|cause| Error::Call {
            verb: "write",
            kind: ROLES,
            name,
            cause: Arc::new(cause),
        })?;
        self.written().insert(gateway.clone(), (Arc::new(role), Instant::now()));
        Ok(Written::Changed)
    }

    /// The Role as it stands: as written just now, else as the watch shows it.
    fn standing(&self, gateway: &GatewayName) -> Option<Arc<Role>> {
        let mut written = self.written();
        written.retain(|_, (_, at)| at.elapsed() < SHOWN);
        if let Some((role, _)) = written.get(gateway) {
            return Some(Arc::clone(role));
        }
        let key =
            reflector::ObjectRef::new(&rbac::worker_role_name(gateway.as_str())).within(&self.namespace);
        self.known.get(&key)
    }

    fn written(&self) -> std::sync::MutexGuard<'_, BTreeMap<GatewayName, (Arc<Role>, Instant)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The networks whose intents a Role names.
fn named(role: &Role, gateway: &GatewayName) -> BTreeSet<String> {
    let suffix = format!(".{gateway}");
    let of_intents = role.rules.iter().flatten().filter(|rule| {
        rule.resources.iter().flatten().any(|resource| resource == WorkerSliceConfigSpec::PLURAL)
    });
    let names = of_intents.flat_map(|rule| rule.resource_names.iter().flatten());
    names.filter_map(|name| name.strip_suffix(&suffix)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_names_the_networks_that_it_was_made_for() {
        let gateway: GatewayName = "w1".parse().unwrap();
        for networks in [vec![], vec!["demo"], vec!["demo", "other"]] {
            let networks: BTreeSet<String> = networks.into_iter().map(str::to_owned).collect();
            assert_eq!(named(&rbac::worker_role("n", "w1", &networks), &gateway), networks);
        }
    }
}

//! API servers for a fleet: one control cluster, and one cluster for each worker, with the roles that are installed for
//! users. It refuses to give a process of the product more rights than those.

use std::{collections::BTreeSet, net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use k8s_openapi::api::{core::v1::Secret, rbac::v1::Role};
use kube::{Api, api::DeleteParams};
use spanwire_api::rbac;
use spanwire_testkit::control_plane::{ADMIN, ControlPlane, Exposed, Mark, Options, Request, Snapshot};

use super::{
    Member, NETWORK,
    admin::{self, Admin},
    control::Places,
};

/// The namespace of everything in the control cluster.
const NAMESPACE: &str = "spanwire";
/// More workers than this share one API server.
const MOST_CLUSTERS: usize = 4;

/// See the module.
pub(crate) struct Servers {
    admin: Admin,
    control: ControlPlane,
    controller: String,
    /// The API servers of the workers: one each, or one for all.
    own: Vec<Arc<ControlPlane>>,
    workers: Vec<Cluster>,
    /// The control cluster without an object of ours.
    empty: Option<Snapshot>,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers").field("control", &self.control).field("workers", &self.workers).finish()
    }
}

/// A worker's own cluster, and its way to both.
#[derive(Debug)]
struct Cluster {
    gateway: String,
    /// Both kubeconfigs, as `KUBECONFIG` takes them.
    kubeconfig: String,
    /// Many workers share one API server, each with a namespace of its own.
    plane: Arc<ControlPlane>,
    _doors: [Exposed; 2],
}

impl Servers {
    /// Starts them all at once.
    pub(crate) fn start(members: &[Member]) -> Result<Self> {
        let runtime = admin::runtime()?;
        let begin = |name: &str| ControlPlane::start(Options::named(name));
        let (control, planes) = std::thread::scope(|scope| {
            let control = scope.spawn(|| begin("control"));
            let own = members.iter().take(if members.len() > MOST_CLUSTERS { 1 } else { MOST_CLUSTERS });
            let all: Vec<_> = own.map(|member| scope.spawn(move || begin(member.name()))).collect();
            (control.join(), all.into_iter().map(|one| one.join()).collect::<Vec<_>>())
        });
        let ended = |_| anyhow::anyhow!("the thread that started an API server ended");
        let control = control.map_err(ended)?.context("starting the control cluster")?;
        let controller = runtime.block_on(prepare_control(&control))?;
        let client = runtime.block_on(control.client(ADMIN)).context("making a client")?;
        let started = planes.into_iter().map(|plane| {
            let plane = plane.map_err(ended)?.context("starting a worker's cluster")?;
            Ok(Arc::new(plane))
        });
        let own = started.collect::<Result<Vec<_>>>()?;
        let mut workers = Vec::new();
        for (member, plane) in members.iter().zip(own.iter().cycle()) {
            workers.push(runtime.block_on(join(&control, Arc::clone(plane), member))?);
        }
        let admin = Admin::new(runtime, client, NAMESPACE);
        Ok(Self { admin, control, controller, own, workers, empty: None })
    }

    pub(super) fn admin(&self) -> &Admin {
        &self.admin
    }

    pub(super) fn of_controller(&self) -> Places {
        let arguments = ["--control", "kube:control", "--control-namespace", NAMESPACE];
        Places {
            arguments: arguments.map(Into::into).to_vec(),
            variables: vec![("KUBECONFIG".to_owned(), self.controller.clone())],
        }
    }

    pub(super) fn of_worker(&self, name: &str) -> Result<Places> {
        let cluster = self.cluster(name)?;
        let (local, namespace) = (format!("kube:{}", cluster.plane.name()), own_namespace(name));
        let places = ["--control", "kube:control", "--control-namespace", NAMESPACE];
        let local = ["--local", &local, "--local-namespace", &namespace];
        Ok(Places {
            arguments: places.into_iter().chain(local).map(Into::into).collect(),
            variables: vec![("KUBECONFIG".to_owned(), cluster.kubeconfig.clone())],
        })
    }

    /// Keeps the control cluster as it is now, for [`Servers::empty`]: with the roles of all workers, who would be
    /// refused otherwise, and would not see that it is empty.
    pub(super) fn remember_empty(&mut self, members: &[Member]) -> Result<()> {
        let networks = BTreeSet::from([NETWORK.to_owned()]);
        for member in members {
            let role = rbac::worker_role(NAMESPACE, member.name(), &networks);
            self.admin
                .runtime
                .block_on(self.control.apply_object(NAMESPACE, &role))
                .context("applying a role")?;
        }
        self.empty = Some(self.snapshot()?);
        Ok(())
    }

    /// What the control cluster's etcd holds.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.control.snapshot().context("copying the control cluster's etcd")
    }

    /// Puts the control cluster's etcd back to what it held.
    pub(crate) fn restore(&self, snapshot: &Snapshot) -> Result<()> {
        self.control.restore(snapshot).context("restoring the control cluster's etcd")
    }

    /// Empties the control cluster: accounts and roles stay, our objects are gone.
    pub(crate) fn empty(&self) -> Result<()> {
        self.restore(self.empty.as_ref().context("the empty control cluster was not remembered")?)
    }

    /// Ends the control cluster's API server.
    pub(crate) fn stop_control(&self) -> Result<()> {
        self.control.stop_api_server().context("ending the control cluster's API server")
    }

    /// Starts it again.
    pub(crate) fn start_control(&self) -> Result<()> {
        self.control.start_api_server().context("starting the control cluster's API server again")
    }

    /// Deletes the Secret of a worker's private key.
    pub(super) fn delete_key(&self, gateway: &str) -> Result<()> {
        let cluster = self.cluster(gateway)?;
        self.admin.runtime.block_on(async {
            let client = cluster.plane.client(ADMIN).await.context("making a client")?;
            let secrets: Api<Secret> = Api::namespaced(client, &own_namespace(gateway));
            let name = rbac::worker_secret_name(gateway);
            secrets.delete(&name, &DeleteParams::default()).await.context("deleting the Secret")?;
            Ok(())
        })
    }

    /// Writes every object of ours, and the audit logs, to a folder.
    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        for plane in self.planes() {
            let audit = folder.join(format!("{}-audit.log", plane.name()));
            std::fs::copy(plane.audit_log(), audit).context("copying an audit log")?;
            let objects = self
                .admin
                .runtime
                .block_on(objects_of(plane))
                .unwrap_or_else(|error| format!("# {error:#}\n"));
            std::fs::write(folder.join(format!("{}-objects.yaml", plane.name())), objects)
                .context("writing objects")?;
        }
        Ok(())
    }

    /// The ends of all ledgers, the control cluster's first.
    pub(crate) fn marks(&self) -> Result<Vec<Mark>> {
        self.planes().map(|plane| plane.mark().context("reading an audit log")).collect()
    }

    /// What the product asked of all API servers after the marks.
    pub(crate) fn requests_since(&self, marks: &[Mark]) -> Result<Vec<Request>> {
        let mut all = Vec::new();
        for (plane, mark) in self.planes().zip(marks) {
            all.extend(plane.ledger_since(*mark).context("reading an audit log")?);
        }
        all.retain(|request| request.user.starts_with("system:serviceaccount:"));
        Ok(all)
    }

    fn planes(&self) -> impl Iterator<Item = &ControlPlane> {
        std::iter::once(&self.control).chain(self.own.iter().map(|plane| &**plane))
    }

    fn cluster(&self, gateway: &str) -> Result<&Cluster> {
        let cluster = self.workers.iter().find(|cluster| cluster.gateway == gateway);
        cluster.with_context(|| format!("{gateway} has no cluster"))
    }

    /// Commands that show the control cluster.
    pub(super) fn how_to_look(&self) -> Option<String> {
        let file = self.control.kubeconfig_file(ADMIN).ok()?;
        Some(format!("kubectl --kubeconfig {} --namespace {NAMESPACE} get spanwire", file.display()))
    }

    /// Ends the API servers of all workers.
    pub(crate) fn stop_own_clusters(&self) -> Result<()> {
        for plane in &self.own {
            let ended = plane.stop_api_server();
            ended.with_context(|| format!("ending the API server {}", plane.name()))?;
        }
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.workers.clear();
        // All at once: each waits for its processes to be gone.
        std::thread::scope(|scope| {
            for plane in self.own.drain(..) {
                scope.spawn(move || drop(plane));
            }
        });
    }
}

async fn objects_of(plane: &ControlPlane) -> Result<String> {
    admin::objects(&plane.client(ADMIN).await.context("making a client")?).await
}

/// Namespace and controller's account of the control cluster; its kubeconfig.
async fn prepare_control(control: &ControlPlane) -> Result<String> {
    let role = rbac::controller_role(NAMESPACE);
    let user = account(control, NAMESPACE, rbac::CONTROLLER_ROLE, Some(&role)).await?;
    Ok(text(&control.kubeconfig_file(&user).context("writing the controller's kubeconfig")?))
}

/// A worker's own cluster with its roles, and doors to both clusters on the loopback of its host.
async fn join(control: &ControlPlane, plane: Arc<ControlPlane>, member: &Member) -> Result<Cluster> {
    let (gateway, account_name) = (member.name(), rbac::worker_role_name(member.name()));
    let own = own_namespace(gateway);
    let local = rbac::worker_local_role(&own, gateway);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut doors = Vec::new();
    let mut files = Vec::new();
    for (server, namespace, role) in [(control, NAMESPACE, None), (&*plane, &*own, Some(&local))] {
        let user = account(server, namespace, &account_name, role).await?;
        let door = server.expose(member.host(), any).context("opening a door to an API server")?;
        let file = server.kubeconfig_through(&door, &user).context("writing a worker's kubeconfig")?;
        files.push(text(&file));
        doors.push(door);
    }
    let doors: [Exposed; 2] = doors.try_into().map_err(|_| anyhow::anyhow!("two doors"))?;
    Ok(Cluster { gateway: gateway.to_owned(), kubeconfig: files.join(":"), plane, _doors: doors })
}

/// A service account with its rights, by a role that the controller makes where none is given.
async fn account(server: &ControlPlane, namespace: &str, name: &str, role: Option<&Role>) -> Result<String> {
    let user = server.account(namespace, name, role, &rbac::role_binding(namespace, name)).await;
    user.with_context(|| format!("making the account {name}"))
}

/// The namespace of a worker in its own cluster.
fn own_namespace(gateway: &str) -> String {
    format!("{NAMESPACE}-{gateway}")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

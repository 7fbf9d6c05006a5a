//! Hosts whose workers live on two real API servers: the control cluster, and one for what is their own. Every process has
//! the rights that are installed for users, and speaks through a proxy that can misbehave. It refuses shared namespaces.

mod observed;
mod second;

use std::{collections::BTreeSet, fs, net::IpAddr, path::PathBuf, sync::LazyLock, time::Duration};

use k8s_openapi::api::{events::v1::Event, rbac::v1::Role};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use spanwire_api::{Kind, rbac, resource};
use spanwire_testkit::{
    control_plane::{ADMIN, ControlPlane, Exposed, Mark, Proxy, Request},
    lab::{Host, Lab},
    process::Process,
};

pub(crate) use crate::fleet::wait_until;
use crate::fleet::{Run, begin, cannot, device_names, exchange, run, start};

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
});

/// One of the two API servers.
pub(crate) struct Server {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) proxy: Proxy,
    client: Client,
}

/// See the module. Dropping it ends and removes all but the namespaces.
pub(crate) struct Site {
    pub(crate) members: Vec<Gateway>,
    pub(crate) control: Server,
    pub(crate) own: Server,
    /// The namespace in the control cluster; that of a worker in its own is this and the worker's name.
    pub(crate) namespace: String,
    /// The controller's user name.
    controller: String,
    folder: tempfile::TempDir,
    _lab: Lab,
}

/// A gateway's host with its dataplane, and its way to both servers.
pub(crate) struct Gateway {
    pub(crate) host: Host,
    inside: IpAddr,
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    namespaces: [String; 2],
    variables: Vec<(String, String)>,
    _dataplane: Process,
    _doors: [Exposed; 2],
}

impl Server {
    fn new(plane: &'static ControlPlane) -> Self {
        let client = RUNTIME.block_on(plane.client(ADMIN)).unwrap();
        Self { plane, proxy: plane.proxy().unwrap(), client }
    }

    fn apply(&self, namespace: &str, text: &str) {
        RUNTIME.block_on(self.plane.apply(namespace, text)).unwrap();
    }

    fn api<S: Kind>(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource::<S>())
    }

    fn events(&self, namespace: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        RUNTIME.block_on(events.list(&ListParams::default())).unwrap().items
    }

    /// An account with a role, as those of users are installed.
    fn account(&self, namespace: &str, name: &str, role: Option<&Role>) -> String {
        let binding = rbac::role_binding(namespace, name);
        RUNTIME.block_on(self.plane.account(namespace, name, role, &binding)).unwrap()
    }
}

impl Site {
    /// Hosts of these names, each with its subnet, dataplane and Gateway object. `None`: no lab or API server here.
    /// `networks`: what workers may read although no controller of ours runs.
    pub(crate) fn new(namespace: &str, names: &[&str], networks: &[&str]) -> Option<Self> {
        if cannot() {
            return None;
        }
        let [control, own] = ControlPlane::shared_pair()?;
        let (control, own) = (Server::new(control), Server::new(own));
        let (folder, mut lab) = (tempfile::tempdir().unwrap(), Lab::new().unwrap());
        let controller = rbac::controller_role(namespace);
        let controller = control.account(namespace, rbac::CONTROLLER_ROLE, Some(&controller));
        let mut members = Vec::new();
        for (number, name) in (1..).zip(names) {
            let host = lab.host(name).unwrap();
            let inside: ipnet::IpNet = format!("10.72.{number}.1/24").parse().unwrap();
            host.add_address("lo", inside).unwrap();
            let text = format!(
                "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: {name}\nspec:\n  subnets: \
                 [10.72.{number}.0/24]\n  advertise:\n    host: {}\n",
                host.address()
            );
            control.apply(namespace, &text);
            members.push(Gateway::new((host, inside.addr()), &folder, [&control, &own], namespace, networks));
        }
        Some(Self { members, control, own, namespace: namespace.to_owned(), controller, folder, _lab: lab })
    }

    /// Writes an object to the control cluster as a person would.
    pub(crate) fn apply(&self, text: &str) {
        self.control.apply(&self.namespace, text);
    }

    /// An object in the control cluster.
    pub(crate) fn object<S: Kind>(&self, name: &str) -> Option<DynamicObject> {
        RUNTIME.block_on(self.control.api::<S>(&self.namespace).get_opt(name)).unwrap()
    }

    /// Part of an object in the control cluster, by JSON pointer; null where there is none.
    pub(crate) fn field<S: Kind>(&self, name: &str, pointer: &str) -> serde_json::Value {
        let object = self.object::<S>(name).map(|object| serde_json::to_value(object).unwrap());
        object.and_then(|object| object.pointer(pointer).cloned()).unwrap_or_default()
    }

    /// Changes a status as another controller could.
    pub(crate) fn patch_status<S: Kind>(&self, name: &str, status: serde_json::Value) {
        let patch = Patch::Merge(serde_json::json!({ "status": status }));
        let api = self.control.api::<S>(&self.namespace);
        RUNTIME.block_on(api.patch_status(name, &PatchParams::default(), &patch)).unwrap();
    }

    /// Deletes an object of the control cluster, as `kubectl delete --wait=false` does.
    pub(crate) fn delete<S: Kind>(&self, name: &str) {
        let api = self.control.api::<S>(&self.namespace);
        RUNTIME.block_on(api.delete(name, &kube::api::DeleteParams::default())).unwrap();
    }

    /// Events in the control cluster.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.control.events(&self.namespace)
    }

    /// UID and resource version of every object of a kind in both clusters, by namespace and name.
    pub(crate) fn versions<S: Kind>(&self) -> Vec<(String, String, String)> {
        let spaces = self.members.iter().map(|member| (&self.own, member.namespaces[1].as_str()));
        let spaces = spaces.chain([(&self.control, self.namespace.as_str())]);
        let list = |(server, namespace): (&Server, &str)| {
            RUNTIME.block_on(server.api::<S>(namespace).list(&ListParams::default())).unwrap()
        };
        let objects = spaces.flat_map(|space| list(space).items);
        objects
            .map(|object| {
                let meta = object.metadata;
                let name =
                    format!("{}/{}", meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default());
                (name, meta.uid.unwrap_or_default(), meta.resource_version.unwrap_or_default())
            })
            .collect()
    }

    /// The ends of both ledgers.
    pub(crate) fn marks(&self) -> [Mark; 2] {
        [self.control.plane.mark().unwrap(), self.own.plane.mark().unwrap()]
    }

    /// All that the product wrote in the namespaces of this site after the marks, but for leases.
    pub(crate) fn writes_since(&self, marks: [Mark; 2]) -> Vec<Request> {
        let servers = [&self.control, &self.own].into_iter().zip(marks);
        let all = servers.flat_map(|(server, mark)| server.plane.ledger_since(mark).unwrap());
        let here = |namespace: &str| {
            namespace == self.namespace || self.members.iter().any(|member| member.namespaces[1] == namespace)
        };
        all.filter(|request| request.is_write() && here(&request.namespace))
            .filter(|request| {
                request.resource != "leases" && request.user.starts_with("system:serviceaccount")
            })
            .collect()
    }

    fn controller_variables(&self) -> Vec<(String, String)> {
        let path = self.control.plane.kubeconfig_by(&self.control.proxy, None, &self.controller).unwrap();
        vec![("KUBECONFIG".to_owned(), path.display().to_string())]
    }

    /// `controller --once`.
    pub(crate) fn controller(&self) -> Run {
        self.controller_with(&[])
    }

    /// The same, with more arguments.
    pub(crate) fn controller_with(&self, more: &[&str]) -> Run {
        let base = ["controller", "--once", "--control", "kube", "--control-namespace", &self.namespace];
        let arguments: Vec<&str> = base.into_iter().chain(more.iter().copied()).collect();
        run(None, &self.folder.path().join("controller"), &arguments, &self.controller_variables())
    }

    /// A controller that goes on.
    pub(crate) fn start_controller(&self) -> Process {
        self.start_controller_with(&[])
    }

    /// The same, with more arguments.
    pub(crate) fn start_controller_with(&self, more: &[&str]) -> Process {
        let base = ["controller", "--control", "kube", "--control-namespace", &self.namespace];
        let arguments = base.into_iter().chain(more.iter().copied()).map(Into::into).collect();
        start(None, &self.folder.path().join("controller.log"), arguments, &self.controller_variables())
    }

    /// What the controller has logged.
    pub(crate) fn controller_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("controller.log")).unwrap_or_default()
    }
}

impl Drop for Site {
    /// What a failed test leaves to look at.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- controller ---\n{}", self.controller_log());
            for member in &self.members {
                eprintln!("--- worker of {} ---\n{}", member.name, member.log());
            }
        }
    }
}

impl Gateway {
    fn new(
        (host, inside): (Host, IpAddr),
        folder: &tempfile::TempDir,
        servers: [&Server; 2],
        namespace: &str,
        networks: &[&str],
    ) -> Self {
        let name = host.name().to_owned();
        let folder = folder.path().join(&name);
        fs::create_dir_all(&folder).unwrap();
        let namespaces = [namespace.to_owned(), format!("{namespace}-{name}")];
        let networks: BTreeSet<String> = networks.iter().map(|&network| network.to_owned()).collect();
        // Where there are none the controller makes the role.
        let role = (!networks.is_empty()).then(|| rbac::worker_role(namespace, &name, &networks));
        let roles = [role, Some(rbac::worker_local_role(&namespaces[1], &name))];
        let account = rbac::worker_role_name(&name);
        let mut files = Vec::new();
        let doors = [0, 1].map(|at| {
            let user = servers[at].account(&namespaces[at], &account, roles[at].as_ref());
            let door = servers[at].proxy.expose(&host).unwrap();
            let file = servers[at].plane.kubeconfig_by(&servers[at].proxy, Some(&door), &user).unwrap();
            files.push(file.display().to_string());
            door
        });
        let arguments = ["dataplane".into(), "--socket".into(), folder.join("dataplane.sock").into()];
        let dataplane = start(Some(&host), &folder.join("dataplane.log"), arguments.into(), &[]);
        let variables = vec![("KUBECONFIG".to_owned(), files.join(":"))];
        Self { host, inside, name, folder, namespaces, variables, _dataplane: dataplane, _doors: doors }
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let path = |file: &str| self.folder.join(file).display().to_string();
        let (socket, runs) = (path("dataplane.sock"), path("run"));
        let [control, own] = &self.namespaces;
        let own = ["--gateway", &self.name, "--control", "kube:shared", "--control-namespace", control]
            .into_iter()
            .chain(["--local", "kube:second", "--local-namespace", own])
            .chain(["--dataplane-socket", &socket, "--run-dir", &runs]);
        std::iter::once("worker").chain(own).chain(more.iter().copied()).map(str::to_owned).collect()
    }

    /// `worker` with more arguments, until it ends.
    pub(crate) fn worker(&self, more: &[&str]) -> Run {
        let arguments = self.arguments(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(Some(&self.host), &self.folder.join("worker"), &arguments, &self.variables)
    }

    /// `worker --once`.
    pub(crate) fn once(&self) -> Run {
        self.worker(&["--once"])
    }

    /// `worker --once`, without waiting for its end.
    pub(crate) fn begin_once(&self) -> Process {
        let arguments = self.arguments(&["--once"]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        begin(Some(&self.host), &self.folder.join("begun"), &arguments, &self.variables)
    }

    /// A worker that goes on.
    pub(crate) fn start(&self) -> Process {
        self.start_with(&[])
    }

    /// The same, with more arguments.
    pub(crate) fn start_with(&self, more: &[&str]) -> Process {
        let arguments = self.arguments(more).into_iter().map(Into::into).collect();
        start(Some(&self.host), &self.folder.join("running.log"), arguments, &self.variables)
    }

    /// What the running worker has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("running.log")).unwrap_or_default()
    }

    /// Objects of a kind in the worker's own cluster, by name.
    pub(crate) fn records<S: Kind>(&self, site: &Site) -> Vec<DynamicObject> {
        let api = site.own.api::<S>(&self.namespaces[1]);
        RUNTIME.block_on(api.list(&ListParams::default())).unwrap().items
    }

    /// Events in the worker's own cluster.
    pub(crate) fn events(&self, site: &Site) -> Vec<Event> {
        site.own.events(&self.namespaces[1])
    }

    /// Our devices here with their peers: name, kernel index, and for each key its latest handshake.
    pub(crate) fn devices(&self) -> Vec<Device> {
        device_names(&self.host)
            .into_iter()
            .filter_map(|name| {
                // One that goes meanwhile is gone.
                let index = self.host.device_index(&name).ok()?;
                let shown = self.host.output("wg", &["show", &name, "latest-handshakes"], "").ok()?;
                let peer = |line: &str| {
                    let (key, at) = line.split_once('\t').unwrap();
                    (key.to_owned(), at.parse().unwrap())
                };
                let mut peers: Vec<(String, u64)> = shown.lines().map(peer).collect();
                peers.sort();
                Some(Device { name, index, peers })
            })
            .collect()
    }

    /// All keys that stand on our devices here, sorted.
    pub(crate) fn keys(&self) -> Vec<String> {
        let devices = self.devices().into_iter();
        let mut keys: Vec<String> = devices.flat_map(|device| device.peers).map(|(key, _)| key).collect();
        keys.sort();
        keys
    }

    /// Whether a datagram and its answer get through to the subnet of another host within a second.
    pub(crate) fn reaches(&self, other: &Gateway) -> bool {
        exchange((&self.host, self.inside), (&other.host, other.inside), Duration::from_secs(1)).is_ok()
    }
}

/// One of our devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) peers: Vec<(String, u64)>,
}

/// The text of an intent that somebody wrote by hand; `more` are lines of its spec.
pub(crate) fn intent(gateway: &str, more: &str) -> String {
    let lines: String = more.lines().map(|line| format!("  {}\n", line.trim_end())).collect();
    format!(
        "apiVersion: spanwire.dev/v1alpha1\nkind: WorkerSliceConfig\nmetadata:\n  name: demo.{gateway}\nspec:\n  \
         sliceName: demo\n  gateway: {gateway}\n{lines}"
    )
}

//! The publishing bench: the controller's first pass over a thousand gateways, beside a plain client that writes the same
//! objects to the same API server. It refuses to time the setup.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::rbac::v1::Role;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::json;
use spanwire_api::{GatewayNetworkSpec, GatewaySpec, Kind, WorkerSliceConfigSpec, rbac, resource};
use spanwire_testkit::{
    control_plane::{ADMIN, ControlPlane, Options},
    process::{Process, Program},
};

use crate::{Say, interrupt};

/// Networks, and the gateways of each: one mesh, the others hub and spoke.
const NETWORKS: usize = 10;
const MEMBERS: usize = 100;
/// Writes that are under way at once, as the controller has them.
const TOGETHER: usize = 8;
const PAGE: u32 = 500;
const LIMIT: Duration = Duration::from_secs(300);

/// What is run.
#[derive(Debug)]
pub struct Plan {
    /// The program `spanwire`.
    pub spanwire: PathBuf,
    /// Rounds; each has one turn of both.
    pub rounds: u32,
}

/// What came of it.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Seconds of the controller's first pass, from the start of its process to its end, sorted.
    pub controller: Vec<f64>,
    /// Seconds of the plain client for the same lists and writes, sorted.
    pub plain: Vec<f64>,
    /// Objects and statuses written by each.
    pub writes: usize,
    /// Resident memory of a controller that follows all this, in bytes.
    pub resident: u64,
}

impl Figures {
    /// The controller's median over the plain client's.
    pub fn ratio(&self) -> f64 {
        let middle = |times: &[f64]| times.get(times.len() / 2).copied().unwrap_or_default();
        middle(&self.controller) / middle(&self.plain)
    }
}

/// Runs all rounds.
///
/// # Errors
/// The API server could not be started, or a write failed.
pub fn run(plan: &Plan, say: Say) -> Result<Figures> {
    let runtime = tokio::runtime::Runtime::new().context("making a runtime")?;
    let plane = ControlPlane::start(Options::named("publish")).context("starting an API server")?;
    let client = runtime.block_on(plane.client(ADMIN)).context("making a client")?;
    let bench = Bench { plane: &plane, client, spanwire: &plan.spanwire };
    let mut figures = Figures { controller: Vec::new(), plain: Vec::new(), writes: 0, resident: 0 };
    for round in 0..plan.rounds {
        let (ours, theirs) = (format!("controller-{round}"), format!("plain-{round}"));
        for namespace in [&ours, &theirs] {
            runtime.block_on(bench.declare(namespace))?;
        }
        let controller = bench.controller(&ours)?;
        let written = runtime.block_on(bench.written(&ours))?;
        // The same account in its namespace: the server treats an administrator better.
        let account = runtime.block_on(plane.client(&account(&theirs))).context("making a client")?;
        let plain = Bench { plane: &plane, client: account, spanwire: &plan.spanwire };
        let begun = Instant::now();
        let writes = runtime.block_on(plain.write(&theirs, &written))?;
        let plain = begun.elapsed();
        say.line(format!(
            "round {}: controller {:.2} s, plain client {:.2} s, {writes} writes each",
            round + 1,
            controller.as_secs_f64(),
            plain.as_secs_f64()
        ));
        figures.controller.push(controller.as_secs_f64());
        figures.plain.push(plain.as_secs_f64());
        figures.writes = writes;
        interrupt::pause(Duration::ZERO)?;
    }
    figures.controller.sort_by(f64::total_cmp);
    figures.plain.sort_by(f64::total_cmp);
    figures.resident = bench.resident("controller-0")?;
    Ok(figures)
}

struct Bench<'a> {
    plane: &'a ControlPlane,
    client: Client,
    spanwire: &'a PathBuf,
}

/// What one pass leaves.
struct Written {
    networks: Vec<DynamicObject>,
    roles: Vec<Role>,
    gateways: Vec<DynamicObject>,
    intents: Vec<DynamicObject>,
}

/// The controller's account of a namespace.
fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:{}", rbac::CONTROLLER_ROLE)
}

fn gateway(number: usize) -> String {
    format!("gateway-{number:04}")
}

impl Bench<'_> {
    fn api<S: Kind>(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource::<S>())
    }

    /// Gateways whose workers have published their facts, networks, and the controller's account.
    async fn declare(&self, namespace: &str) -> Result<()> {
        let (name, role) = (rbac::CONTROLLER_ROLE, rbac::controller_role(namespace));
        let binding = rbac::role_binding(namespace, name);
        self.plane
            .account(namespace, name, Some(&role), &binding)
            .await
            .context("making the controller's account")?;
        let gateways = self.api::<GatewaySpec>(namespace);
        let one = |number: usize| {
            let gateways = gateways.clone();
            async move {
                let (name, high, low) = (gateway(number), number / 250, number % 250);
                let spec =
                    object::<GatewaySpec>(&name, json!({"subnets": [format!("10.{high}.{low}.0/24")]}));
                let params = PatchParams::apply("bench");
                gateways.patch(&name, &params, &Patch::Apply(&spec)).await?;
                let mut key = [7; 32];
                key[..8].copy_from_slice(&(number as u64 + 1).to_be_bytes());
                let status = json!({"status": {
                    "publicKey": spanwire_engine::PublicKey(key).to_string(), "keyGeneration": 1,
                    "endpoint": format!("198.51.{high}.{low}"),
                }});
                gateways.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await
            }
        };
        together((0..NETWORKS * MEMBERS).map(one)).await?;
        let networks = self.api::<GatewayNetworkSpec>(namespace);
        for number in 0..NETWORKS {
            let members: Vec<String> =
                (0..MEMBERS).map(|member| gateway(number * MEMBERS + member)).collect();
            let cidr = format!("100.{}.0.0/16", 64 + number);
            let spec = if number == 0 {
                json!({"topology": "mesh", "members": members, "cidr": cidr})
            } else {
                json!({"topology": "hub-spoke", "hub": members[0], "members": members, "cidr": cidr})
            };
            let name = format!("net-{number}");
            let object = object::<GatewayNetworkSpec>(&name, spec);
            let made = networks.patch(&name, &PatchParams::apply("bench"), &Patch::Apply(&object)).await;
            made.context("making a network")?;
        }
        Ok(())
    }

    fn program(&self, namespace: &str, once: bool) -> Result<Process> {
        let file = self.plane.kubeconfig_file(&account(namespace)).context("writing a kubeconfig")?;
        let arguments = ["controller", "--control", "kube", "--control-namespace", namespace];
        let once = once.then_some("--once");
        Process::start(Program {
            name: "controller".to_owned(),
            path: self.spanwire.clone(),
            arguments: arguments.into_iter().chain(once).map(Into::into).collect(),
            variables: vec![("KUBECONFIG".to_owned(), file.display().to_string())],
            host: None,
            log: self.plane.folder().join(format!("{namespace}.log")),
        })
        .context("starting the controller")
    }

    fn controller(&self, namespace: &str) -> Result<Duration> {
        let begun = Instant::now();
        let mut process = self.program(namespace, true)?;
        match process.wait(LIMIT).context("waiting for the controller")? {
            Some(status) if matches!(status.code(), Some(0 | 75)) => Ok(begun.elapsed()),
            other => {
                let log = std::fs::read_to_string(process.log()).unwrap_or_default();
                bail!("the controller ended with {other:?}:\n{log}")
            }
        }
    }

    async fn written(&self, namespace: &str) -> Result<Written> {
        let (key, value) = rbac::WORKER_ROLE_LABEL;
        let roles: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        Ok(Written {
            networks: self.list::<GatewayNetworkSpec>(namespace).await?,
            roles: roles.list(&ListParams::default().labels(&format!("{key}={value}"))).await?.items,
            gateways: self.list::<GatewaySpec>(namespace).await?,
            intents: self.list::<WorkerSliceConfigSpec>(namespace).await?,
        })
    }

    async fn list<S: Kind>(&self, namespace: &str) -> Result<Vec<DynamicObject>> {
        let api = self.api::<S>(namespace);
        let mut all = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let listed = api.list(&page).await.with_context(|| format!("listing {}", S::PLURAL))?;
            all.extend(listed.items);
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(all),
            }
        }
    }

    /// The same lists, then the same writes, to another namespace.
    async fn write(&self, namespace: &str, written: &Written) -> Result<usize> {
        self.written(namespace).await?;
        let Written { networks, roles, gateways, intents } = written;
        let params = PatchParams::apply("spanwire-controller").force();
        let networks = networks.iter().map(|it| {
            (
                object_with::<GatewayNetworkSpec>(it, &["status"]),
                self.api::<GatewayNetworkSpec>(namespace),
                true,
            )
        });
        let gateways = gateways.iter().map(|it| {
            let mut stated = object_with::<GatewaySpec>(it, &["status"]);
            stated.data["status"] = json!({"networks": it.data["status"]["networks"]});
            (stated, self.api::<GatewaySpec>(namespace), true)
        });
        let intents = intents.iter().map(|it| {
            let mut stated = object_with::<WorkerSliceConfigSpec>(it, &["spec"]);
            stated.metadata.labels.clone_from(&it.metadata.labels);
            (stated, self.api::<WorkerSliceConfigSpec>(namespace), false)
        });
        let all: Vec<_> = networks.chain(gateways).chain(intents).collect();
        let count = all.len() + roles.len();
        let api: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        let roles = roles.iter().map(|role| {
            let (api, params, mut role) = (api.clone(), params.clone(), role.clone());
            role.metadata = kube::api::ObjectMeta {
                name: role.metadata.name,
                labels: role.metadata.labels,
                ..Default::default()
            };
            async move {
                let name = role.metadata.name.clone().unwrap_or_default();
                api.patch(&name, &params, &Patch::Apply(&role)).await
            }
        });
        together(roles).await?;
        let writes = all.into_iter().map(|(object, api, status)| {
            let params = params.clone();
            async move {
                let name = object.metadata.name.clone().unwrap_or_default();
                if status {
                    api.patch_status(&name, &params, &Patch::Apply(&object)).await
                } else {
                    api.patch(&name, &params, &Patch::Apply(&object)).await
                }
            }
        });
        together(writes).await?;
        Ok(count)
    }

    /// What a controller needs that has read everything and has nothing left to write.
    fn resident(&self, namespace: &str) -> Result<u64> {
        let process = self.program(namespace, false)?;
        let mut last = None;
        let settled = interrupt::wait_for(LIMIT, || {
            let usage = process.usage().context("reading the controller's usage")?;
            let log = std::fs::read_to_string(process.log()).unwrap_or_default();
            let still = last == Some(usage.processor) && log.contains("the controller acts");
            last = Some(usage.processor);
            interrupt::pause(Duration::from_secs(2))?;
            Ok(still.then_some(usage.resident))
        })?;
        settled.context("the controller did not come to rest")
    }
}

async fn together<T>(writes: impl Iterator<Item = impl Future<Output = kube::Result<T>>>) -> Result<()> {
    let all: Vec<T> = stream::iter(writes).buffered(TOGETHER).try_collect().await.context("writing")?;
    drop(all);
    Ok(())
}

fn object<S: Kind>(name: &str, spec: serde_json::Value) -> DynamicObject {
    DynamicObject::new(name, &resource::<S>()).data(json!({ "spec": spec }))
}

/// An object of the same name with parts of another.
fn object_with<S: Kind>(other: &DynamicObject, parts: &[&str]) -> DynamicObject {
    let name = other.metadata.name.clone().unwrap_or_default();
    let data = parts.iter().map(|part| ((*part).to_owned(), other.data[part].clone())).collect();
    DynamicObject::new(&name, &resource::<S>()).data(serde_json::Value::Object(data))
}

//! What the roles let a worker do, asked of the server for every verb and tried for some. It refuses trust in the
//! YAML: the server's own answer counts.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    core::v1::Secret,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use spanwire_api::rbac;
use spanwire_testkit::control_plane::ControlPlane;

use super::{api, apply, client, object, words};

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// Group, resource with subresource, name (empty: all), and the verbs that are allowed.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

const IN_CONTROL_CLUSTER: &[Row] = &[
    ("spanwire.dev", "gateways", "", &["get", "list", "watch"]),
    ("spanwire.dev", "gateways", "w1", &["get", "list", "watch"]),
    ("spanwire.dev", "gateways", "w2", &["get", "list", "watch"]),
    ("spanwire.dev", "gateways/status", "w1", &["get", "patch"]),
    ("spanwire.dev", "gateways/status", "w2", &[]),
    ("spanwire.dev", "gateways/status", "", &[]),
    ("spanwire.dev", "workersliceconfigs", "demo.w1", &["get", "list", "watch"]),
    ("spanwire.dev", "workersliceconfigs", "demo.w2", &[]),
    ("spanwire.dev", "workersliceconfigs", "other.w1", &[]),
    ("spanwire.dev", "workersliceconfigs", "", &[]),
    ("spanwire.dev", "workersliceconfigs/status", "demo.w1", &["get", "patch"]),
    ("spanwire.dev", "workersliceconfigs/status", "demo.w2", &[]),
    ("spanwire.dev", "gatewaynetworks", "", &[]),
    ("spanwire.dev", "gatewaynetworks", "demo", &[]),
    ("spanwire.dev", "tunnellinks", "", &[]),
    ("spanwire.dev", "appliedintents", "", &[]),
    ("", "secrets", "", &[]),
    ("", "secrets", "spanwire-w1", &[]),
    ("", "secrets", "spanwire-w2", &[]),
    ("rbac.authorization.k8s.io", "roles", "spanwire-worker-w1", &[]),
    ("rbac.authorization.k8s.io", "rolebindings", "spanwire-worker-w1", &[]),
    ("", "serviceaccounts/token", "spanwire-worker-w2", &[]),
    ("coordination.k8s.io", "leases", "spanwire-controller", &[]),
];

const IN_OWN_CLUSTER: &[Row] = &[
    ("spanwire.dev", "tunnellinks", "", &["get", "list", "watch", "create", "update", "patch", "delete"]),
    ("spanwire.dev", "tunnellinks/status", "demo.w2.mesh", &["get", "update", "patch"]),
    ("spanwire.dev", "appliedintents", "", &["get", "list", "watch", "create", "update", "patch", "delete"]),
    ("spanwire.dev", "gateways", "", &[]),
    // A create has no name that a role could ask for; what it made for another can't be read or changed.
    ("", "secrets", "", &["create"]),
    ("", "secrets", "spanwire-w1", &["get", "create", "update", "patch", "delete"]),
    ("", "secrets", "spanwire-w2", &["create"]),
    ("coordination.k8s.io", "leases", "spanwire-worker-w1", &["get", "create", "update", "patch"]),
    ("coordination.k8s.io", "leases", "spanwire-worker-w2", &["create"]),
    ("events.k8s.io", "events", "", &["create", "patch"]),
    ("", "pods", "", &[]),
];

/// A worker's client after its role was bound.
async fn worker(
    control: &ControlPlane,
    admin: &Client,
    namespace: &str,
    role: Role,
    gateway: &str,
) -> Client {
    let name = role.metadata.name.clone().unwrap();
    let roles: Api<Role> = Api::namespaced(admin.clone(), namespace);
    roles.create(&PostParams::default(), &role).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(admin.clone(), namespace);
    let binding = rbac::worker_role_binding(namespace, gateway);
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let user = control.service_account(namespace, &name, 600).await.unwrap();
    control.client(&user).await.unwrap()
}

async fn allowed(client: &Client, namespace: &str, (group, target, name, _): Row, verb: &str) -> bool {
    let (resource, subresource) = target.split_once('/').unwrap_or((target, ""));
    let asked = ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: Some(subresource.to_owned()),
        name: Some(name.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(asked), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}

async fn hold_against(client: &Client, namespace: &str, rows: &[Row]) {
    let mut wrong = Vec::new();
    for row in rows {
        for verb in VERBS {
            if allowed(client, namespace, *row, verb).await != row.3.contains(&verb) {
                wrong.push(format!("{verb} {} {:?}", row.1, row.2));
            }
        }
    }
    assert!(wrong.is_empty(), "allowed or refused against the table: {wrong:#?}");
}

fn demo() -> BTreeSet<String> {
    BTreeSet::from(["demo".to_owned()])
}

#[tokio::test]
async fn a_worker_reaches_its_own_objects_in_the_control_cluster_alone() {
    const HERE: &str = "roles-control";
    let Some(control) = ControlPlane::shared() else { return };
    let admin = client(control, HERE).await;
    let w1 = worker(control, &admin, HERE, rbac::worker_role(HERE, "w1", &demo()), "w1").await;
    hold_against(&w1, HERE, IN_CONTROL_CLUSTER).await;
    hold_against(
        &w1,
        "default",
        &IN_CONTROL_CLUSTER.iter().map(|(a, b, c, _)| (*a, *b, *c, &[][..])).collect::<Vec<_>>(),
    )
    .await;
}

#[tokio::test]
async fn real_calls_against_another_gateway_are_refused() {
    const HERE: &str = "roles-calls";
    let Some(control) = ControlPlane::shared() else { return };
    let admin = client(control, HERE).await;
    for gateway in ["w1", "w2"] {
        apply(&admin, HERE, &object("Gateway", gateway, "{subnets: [10.1.0.0/24]}")).await.unwrap();
        let spec = format!("{{sliceName: demo, gateway: {gateway}}}");
        apply(&admin, HERE, &object("WorkerSliceConfig", &format!("demo.{gateway}"), &spec)).await.unwrap();
    }
    let w1 = worker(control, &admin, HERE, rbac::worker_role(HERE, "w1", &demo()), "w1").await;
    let (gateways, intents) = (api(&w1, HERE, "Gateway"), api(&w1, HERE, "WorkerSliceConfig"));
    assert_eq!(gateways.list(&ListParams::default()).await.unwrap().items.len(), 2);
    let own = ListParams::default().fields("metadata.name=demo.w1");
    assert_eq!(intents.list(&own).await.unwrap().items.len(), 1);
    let parameters = PatchParams::apply("worker");
    let report =
        |kind: &str, status| json!({"apiVersion": "spanwire.dev/v1alpha1", "kind": kind, "status": status});
    let facts = Patch::Apply(report("Gateway", json!({"endpoint": "192.0.2.66"})));
    let role = Patch::Apply(report("WorkerSliceConfig", json!({"role": "spoke"})));
    gateways.patch_status("w1", &parameters, &facts).await.unwrap();
    intents.patch_status("demo.w1", &parameters, &role).await.unwrap();
    let spec = Patch::Merge(json!({"spec": {"subnets": ["0.0.0.0/0"]}}));
    let refusals = [
        ("another's intent", intents.get("demo.w2").await.map(drop)),
        ("all intents", intents.list(&ListParams::default()).await.map(drop)),
        ("another's facts", gateways.patch_status("w2", &parameters, &facts).await.map(drop)),
        ("another's report", intents.patch_status("demo.w2", &parameters, &role).await.map(drop)),
        ("its own spec", gateways.patch("w1", &PatchParams::default(), &spec).await.map(drop)),
        ("its own intent", intents.delete("demo.w1", &Default::default()).await.map(drop)),
        ("secrets", Api::<Secret>::namespaced(w1.clone(), HERE).list(&ListParams::default()).await.map(drop)),
        ("secrets of all", Api::<Secret>::all(w1.clone()).list(&ListParams::default()).await.map(drop)),
    ];
    for (what, answer) in refusals {
        let words = words(answer.expect_err(what));
        assert!(words.starts_with("403"), "{what}: {words}");
    }
}

#[tokio::test]
async fn a_worker_keeps_its_records_and_its_own_secret_in_its_cluster() {
    const HERE: &str = "roles-local";
    let Some(control) = ControlPlane::shared() else { return };
    let admin = client(control, HERE).await;
    let w1 = worker(control, &admin, HERE, rbac::worker_local_role(HERE, "w1"), "w1").await;
    hold_against(&w1, HERE, IN_OWN_CLUSTER).await;
    let secrets: Api<Secret> = Api::namespaced(w1.clone(), HERE);
    let parameters = PatchParams::apply("worker");
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    let own = rbac::worker_secret_name("w1");
    let made: Secret = serde_json::from_value(secret(&own)).unwrap();
    secrets.create(&PostParams::default(), &made).await.unwrap();
    secrets.patch(&own, &parameters, &Patch::Apply(secret(&own))).await.unwrap();
    assert_eq!(secrets.get(&own).await.unwrap().metadata.name, Some(own));
    let other = rbac::worker_secret_name("w2");
    let theirs: Api<Secret> = Api::namespaced(admin.clone(), HERE);
    theirs.create(&PostParams::default(), &serde_json::from_value(secret(&other)).unwrap()).await.unwrap();
    assert!(words(secrets.get(&other).await.unwrap_err()).starts_with("403"));
    let refusal = words(secrets.patch(&other, &parameters, &Patch::Apply(secret(&other))).await.unwrap_err());
    assert!(refusal.starts_with("403"), "{refusal}");
}

#[tokio::test]
async fn the_controller_can_hand_on_what_a_worker_needs_and_no_more() {
    const HERE: &str = "roles-controller";
    let Some(control) = ControlPlane::shared() else { return };
    let admin = client(control, HERE).await;
    let roles: Api<Role> = Api::namespaced(admin.clone(), HERE);
    roles.create(&PostParams::default(), &rbac::controller_role(HERE)).await.unwrap();
    let binding = rbac::role_binding(HERE, rbac::CONTROLLER_ROLE);
    let bindings: Api<RoleBinding> = Api::namespaced(admin, HERE);
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let user = control.service_account(HERE, "spanwire-controller", 600).await.unwrap();
    let controller = control.client(&user).await.unwrap();
    let roles: Api<Role> = Api::namespaced(controller.clone(), HERE);
    let bindings: Api<RoleBinding> = Api::namespaced(controller, HERE);
    let parameters = PatchParams::apply("spanwire-controller");
    let role = rbac::worker_role(HERE, "w1", &demo());
    let name = rbac::worker_role_name("w1");
    roles.patch(&name, &parameters, &Patch::Apply(&role)).await.unwrap();
    bindings.patch(&name, &parameters, &Patch::Apply(&rbac::worker_role_binding(HERE, "w1"))).await.unwrap();
    let too_much = rbac::worker_local_role(HERE, "w1");
    let refusal = words(roles.patch(&name, &parameters, &Patch::Apply(&too_much)).await.unwrap_err());
    assert!(refusal.starts_with("403") && refusal.contains("attempting to grant"), "{refusal}");
}

//! Roles that let each process do its work and nothing more. It refuses rights over all objects of a kind where those
//! over named ones do.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{
    AppliedIntentSpec, CrdError, GROUP, GatewayNetworkSpec, GatewaySpec, Kind, TunnelLinkSpec,
    WorkerSliceConfigSpec,
};

const LEASES: &str = "coordination.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// Name of a worker's Role, in the control cluster and in its own; bindings go by it, too.
#[must_use]
pub fn worker_role_name(gateway: &str) -> String {
    format!("spanwire-worker-{gateway}")
}

/// The label of the Roles of workers in the control cluster, which the controller keeps.
pub const WORKER_ROLE_LABEL: (&str, &str) = ("spanwire.dev/role", "worker");

/// Name of the Secret, in the worker's own cluster, that holds its private key.
#[must_use]
pub fn worker_secret_name(gateway: &str) -> String {
    format!("spanwire-{gateway}")
}

/// Name of the Lease, in the worker's own cluster, whose holder acts for the gateway.
#[must_use]
pub fn worker_lease_name(gateway: &str) -> String {
    format!("spanwire-worker-{gateway}")
}

/// Name of the Lease, in the control cluster, whose holder publishes.
pub const CONTROLLER_LEASE: &str = "spanwire-controller";

/// Name of the controller's Role, and of its service account.
pub const CONTROLLER_ROLE: &str = "spanwire-controller";

/// What a worker may do in the control cluster: read the gateways, read its own intents by name, report on both.
/// `networks` are all that the gateway was ever in.
#[must_use]
pub fn worker_role(namespace: &str, gateway: &str, networks: &BTreeSet<String>) -> Role {
    let own = vec![gateway.to_owned()];
    let intents: Vec<String> = networks.iter().map(|network| format!("{network}.{gateway}")).collect();
    let gateways = GatewaySpec::PLURAL;
    let mut rules = vec![
        rule(GROUP, &[gateways], READ),
        named(rule(GROUP, &[&status(gateways)], &["get", "patch"]), own),
    ];
    // No name in a rule means every name: without a network there is no rule.
    if !intents.is_empty() {
        let kind = WorkerSliceConfigSpec::PLURAL;
        // A watch of one object begins with a list of one object.
        rules.push(named(rule(GROUP, &[kind], READ), intents.clone()));
        rules.push(named(rule(GROUP, &[&status(kind)], &["get", "patch"]), intents));
    }
    let mut role = role(namespace, &worker_role_name(gateway), rules);
    let (key, value) = WORKER_ROLE_LABEL;
    role.metadata.labels = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
    role
}

/// Binds a worker's Role to the service account of the same name, in the same namespace.
#[must_use]
pub fn worker_role_binding(namespace: &str, gateway: &str) -> RoleBinding {
    role_binding(namespace, &worker_role_name(gateway))
}

/// Binds a Role to the service account of the same name, in the same namespace.
#[must_use]
pub fn role_binding(namespace: &str, name: &str) -> RoleBinding {
    RoleBinding {
        metadata: metadata(namespace, name),
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: name.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]),
    }
}

/// What a worker may do in its own cluster: keep its records, its key, its lease, and say what happened.
#[must_use]
pub fn worker_local_role(namespace: &str, gateway: &str) -> Role {
    let (links, applied) = (TunnelLinkSpec::PLURAL, AppliedIntentSpec::PLURAL);
    let secret = vec![worker_secret_name(gateway)];
    let rules = vec![
        rule(GROUP, &[links, applied], OWN),
        rule(GROUP, &[&status(links)], &["get", "update", "patch"]),
        named(rule("", &["secrets"], &["get", "update", "patch", "delete"]), secret),
        // A plain create has no name that could be asked for. It must be one: an apply would write over another key.
        rule("", &["secrets"], &["create"]),
        named(rule(LEASES, &["leases"], &["get", "update", "patch"]), vec![worker_lease_name(gateway)]),
        rule(LEASES, &["leases"], &["create"]),
        events(),
    ];
    role(namespace, &worker_role_name(gateway), rules)
}

/// What the controller may do in the control cluster: read what people declare, write intents and statuses, and keep
/// the Roles of workers, none of which may hold more than this one does.
#[must_use]
pub fn controller_role(namespace: &str) -> Role {
    let (gateways, networks) = (GatewaySpec::PLURAL, GatewayNetworkSpec::PLURAL);
    let intents = WorkerSliceConfigSpec::PLURAL;
    let report = ["get", "update", "patch"];
    let rules = vec![
        rule(GROUP, &[gateways, networks], READ),
        rule(GROUP, &[&status(gateways), &status(networks)], &report),
        rule(GROUP, &[intents], OWN),
        // Only to hand it on: nobody can grant what he does not have.
        rule(GROUP, &[&status(intents)], &["get", "patch"]),
        rule("rbac.authorization.k8s.io", &["roles", "rolebindings"], OWN),
        named(rule(LEASES, &["leases"], &["get", "update", "patch"]), vec![CONTROLLER_LEASE.to_owned()]),
        // A plain create has no name that could be asked for.
        rule(LEASES, &["leases"], &["create"]),
        events(),
    ];
    role(namespace, CONTROLLER_ROLE, rules)
}

/// File name and YAML of the roles as they are installed by hand. Those of a worker are for the gateway `example` in
/// the network `demo`.
///
/// # Errors
/// A role that YAML cannot express, which a test rules out.
pub fn manifests() -> Result<Vec<(String, String)>, CrdError> {
    let (namespace, gateway) = ("spanwire", "example");
    let networks = BTreeSet::from(["demo".to_owned()]);
    let roles = [
        ("controller.yaml", controller_role(namespace)),
        ("worker-in-control-cluster.yaml", worker_role(namespace, gateway, &networks)),
        ("worker-in-own-cluster.yaml", worker_local_role(namespace, gateway)),
    ];
    let written = roles.into_iter().map(|(file, role)| {
        let yaml =
            serde_saphyr::to_string(&role).map_err(|source| CrdError { name: file.to_owned(), source })?;
        Ok((file.to_owned(), yaml))
    });
    written.collect()
}

fn events() -> PolicyRule {
    rule("events.k8s.io", &["events"], &["create", "patch"])
}

fn status(plural: &str) -> String {
    format!("{plural}/status")
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(texts(resources)),
        verbs: texts(verbs),
        ..PolicyRule::default()
    }
}

fn named(rule: PolicyRule, names: Vec<String>) -> PolicyRule {
    PolicyRule { resource_names: Some(names), ..rule }
}

fn role(namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Role {
    Role { metadata: metadata(namespace, name), rules: Some(rules) }
}

fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some(namespace.to_owned()), ..ObjectMeta::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_without_a_network_reads_no_intent() {
        let role = worker_role("n", "w1", &BTreeSet::new());
        for rule in role.rules.unwrap() {
            let resources = rule.resources.unwrap();
            assert!(!resources.iter().any(|resource| resource.starts_with("workersliceconfigs")));
        }
    }

    #[test]
    fn no_role_lists_secrets() {
        let networks = BTreeSet::from(["demo".to_owned()]);
        for role in [worker_role("n", "w1", &networks), worker_local_role("n", "w1"), controller_role("n")] {
            for rule in role.rules.unwrap() {
                let secrets = rule.resources.unwrap().contains(&"secrets".to_owned());
                let many = rule
                    .verbs
                    .iter()
                    .any(|verb| ["list", "watch", "deletecollection"].contains(&verb.as_str()));
                let made = rule.verbs == ["create"];
                assert!(!secrets || made || (!many && rule.resource_names.is_some()));
            }
        }
    }
}

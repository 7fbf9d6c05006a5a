//! What the control cluster needs for a new worker: the Gateway, an account, and what this may do. It refuses rights that
//! are not explained beside them.

use ipnet::IpNet;
use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{PolicyRule, Role},
};
use kube::api::ObjectMeta;
use spanwire_api::{Advertise, GatewaySpec, Metadata, Object, rbac};
use spanwire_engine::GatewayName;

use super::{Error, document::Document};

/// What is declared of the gateway.
pub(super) fn spec(subnets: &[IpNet], host: Option<&str>) -> GatewaySpec {
    let advertise = host.map(|host| Advertise { host: Some(host.to_owned()), ..Advertise::default() });
    GatewaySpec { subnets: subnets.iter().map(ToString::to_string).collect(), advertise, maintenance: false }
}

/// The objects, in the order in which they are applied.
pub(super) fn documents(
    namespace: &str,
    gateway: &GatewayName,
    spec: &GatewaySpec,
) -> Result<Vec<Document>, Error> {
    let name = gateway.as_str();
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some(rbac::worker_role_name(name)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    let role = rbac::worker_role(namespace, name, &std::collections::BTreeSet::new());
    let binding = rbac::worker_role_binding(namespace, name);
    let metadata = Metadata { namespace: Some(namespace.to_owned()), ..Metadata::named(name) };
    let object = Object { spec: Some(spec.clone()), ..Object::<GatewaySpec>::new(metadata) };
    Ok(vec![
        Document::new("a ServiceAccount", about_account(name), &account)?,
        Document::new("a Role", about_role(name, &role), &role)?,
        Document::new(
            "a RoleBinding",
            vec!["Gives the account that Role, in this namespace alone.".to_owned()],
            &binding,
        )?,
        Document::new(
            "a Gateway",
            vec![format!("Where {name} is attached, and what is behind it.")],
            &object,
        )?,
    ])
}

fn about_account(gateway: &str) -> Vec<String> {
    vec![
        format!(
            "As whom the worker of {gateway} speaks to this cluster. Deleting it ends every token of it at once."
        ),
        format!("A token: spanwirectl join {gateway} --side worker"),
    ]
}

fn about_role(gateway: &str, role: &Role) -> Vec<String> {
    let mut lines = vec!["What that worker may do here, and nothing more:".to_owned()];
    for rule in role.rules.iter().flatten() {
        let resources = rule.resources.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
        lines.push(format!("  {resources}: {}: {}", rule.verbs.join(", "), why(rule, gateway)));
    }
    lines.extend([
        "The controller keeps this Role from now on: for each network with this gateway it adds".to_owned(),
        format!("  workersliceconfigs: get, list, watch: of NETWORK.{gateway} by name, its own intents"),
        format!("  workersliceconfigs/status: get, patch: of NETWORK.{gateway} by name, what it did"),
        "Applied again, it lacks these until the controller's next look; the worker then leaves its links as they are."
            .to_owned(),
    ]);
    lines
}

/// What a worker does with a right.
fn why(rule: &PolicyRule, gateway: &str) -> String {
    match rule.resources.iter().flatten().map(String::as_str).next() {
        Some("gateways") => {
            "the public keys, endpoints and subnets of its peers, and changes of them as they happen"
                .to_owned()
        }
        Some("gateways/status") => {
            format!(
                "of {gateway} alone: it publishes its public key, endpoint and ports, and whether it is Ready"
            )
        }
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Form, document},
        *,
    };

    fn printed(form: Form) -> String {
        let spec =
            spec(&["10.7.1.0/24".parse().unwrap(), "fd00:7::/48".parse().unwrap()], Some("berlin.example"));
        document::print(&documents("mesh", &"berlin".parse().unwrap(), &spec).unwrap(), form).unwrap()
    }

    #[test]
    fn the_control_side_is_printed_with_every_right_explained() {
        let golden = include_str!("control.yaml");
        assert_eq!(printed(Form::Yaml), golden, "what is printed changed: compare it with control.yaml");
    }

    #[test]
    fn json_holds_the_same_objects() {
        let list: serde_json::Value = serde_json::from_str(&printed(Form::Json)).unwrap();
        let kinds: Vec<&str> =
            list["items"].as_array().unwrap().iter().filter_map(|item| item["kind"].as_str()).collect();
        assert_eq!(kinds, ["ServiceAccount", "Role", "RoleBinding", "Gateway"]);
        assert_eq!(list["items"][3]["spec"]["advertise"]["host"], "berlin.example");
    }

    #[test]
    fn no_right_is_left_unexplained() {
        let role = rbac::worker_role("mesh", "berlin", &std::collections::BTreeSet::new());
        for rule in role.rules.iter().flatten() {
            assert!(!why(rule, "berlin").is_empty(), "{rule:?}");
        }
    }
}

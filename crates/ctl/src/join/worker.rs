//! What the worker's cluster needs: a Secret with a kubeconfig and a token for the control cluster. It refuses to write the
//! token into the kubeconfig: as a file of its own it is read again when the Secret is replaced.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use spanwire_api::rbac;
use spanwire_engine::GatewayName;

use super::{Error, ask::Token, document::Document, server::Server};

/// Where the Secret is mounted in the worker's pod.
const MOUNT: &str = "/etc/spanwire/control";
/// The kubeconfig's only context: the worker runs with `--control kube:control`.
const CONTEXT: &str = "control";
/// Where the chart looks for objects of the control cluster unless told otherwise, and where it is installed.
const NAMESPACE: &str = "spanwire";

/// How a worker reaches the control cluster.
#[derive(Debug)]
pub(super) struct Access<'a> {
    /// Whose worker.
    pub(super) gateway: &'a GatewayName,
    /// Namespace of the objects.
    pub(super) namespace: &'a str,
    /// Namespace of the worker in its own cluster.
    pub(super) worker_namespace: &'a str,
    /// The API server.
    pub(super) server: &'a Server,
}

/// Name of the Secret.
fn secret_name(gateway: &GatewayName) -> String {
    format!("spanwire-control-{gateway}")
}

impl Access<'_> {
    /// The Secret with its comment.
    pub(super) fn secret(&self, token: &str) -> Result<Document, Error> {
        let kubeconfig = serde_saphyr::to_string(&self.kubeconfig()).map_err(Error::Yaml)?;
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret_name(self.gateway), "namespace": self.worker_namespace},
            "type": "Opaque",
            "stringData": {"kubeconfig": kubeconfig, "token": token},
        });
        let comment = vec![
            format!("How the worker of {} reaches the control cluster; mounted at {MOUNT}.", self.gateway),
            "It holds a token: treat this text like a password.".to_owned(),
        ];
        Document::new("a Secret", comment, &secret)
    }

    fn kubeconfig(&self) -> Value {
        let user = rbac::worker_role_name(self.gateway.as_str());
        let Server { url, authority, name } = self.server;
        let mut cluster = json!({"server": url});
        if let Some(pem) = authority {
            cluster["certificate-authority-data"] = json!(STANDARD.encode(pem));
        }
        if let Some(name) = name {
            cluster["tls-server-name"] = json!(name);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": user, "user": {"tokenFile": format!("{MOUNT}/token")}}],
            "contexts": [
                {"name": CONTEXT, "context": {"cluster": CONTEXT, "namespace": self.namespace, "user": user}},
            ],
        })
    }

    /// What the person has to know and to do.
    pub(super) fn notes(&self, token: &Token, asked: Duration) -> String {
        let Self { gateway, namespace, worker_namespace, server } = *self;
        let mut notes = format!(
            "The token is good until {}. Before that, renew it: the same command again, piped to the same kubectl apply; \
             the worker reads it within about two minutes, without a restart.\n",
            token.expires
        );
        if token.lasts < asked.saturating_sub(Duration::from_secs(60)) {
            notes.push_str(&format!(
                "The control cluster gave {} h of the {} h that were asked for.\n",
                token.lasts.as_secs() / 3600,
                asked.as_secs() / 3600
            ));
        }
        if server.is_of_this_machine() {
            notes.push_str(&format!(
                "{} is an address of this machine, which a worker elsewhere does not reach: name another with --server.\n",
                server.url
            ));
        }
        let elsewhere = if namespace == NAMESPACE {
            String::new()
        } else {
            format!(" --set worker.control.namespace={namespace}")
        };
        notes.push_str(&format!(
            "\nIn the cluster of {gateway}:\n  \
             kubectl create namespace {worker_namespace}\n  \
             … | kubectl apply -f -                                  this output\n  \
             kubectl label node NODE spanwire.dev/gateway=true       where the tunnels end\n  \
             helm install spanwire charts/spanwire --namespace {worker_namespace} --set worker.enabled=true --set \
             worker.gateway={gateway}{elsewhere}\n"
        ));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Form, document},
        *,
    };

    fn server(url: &str) -> Server {
        let authority = Some(b"-----BEGIN CERTIFICATE-----\n".to_vec());
        Server { url: url.to_owned(), authority, name: None }
    }

    fn token() -> Token {
        let lasts = Duration::from_secs(3600);
        Token { secret: "t0ken".to_owned(), expires: "2026-12-31T00:00:00Z".to_owned(), lasts }
    }

    #[test]
    fn the_worker_side_is_one_secret_that_kubeconfigs_name_a_file_of() {
        let (gateway, server) = ("berlin".parse().unwrap(), server("https://control.example:6443"));
        let access =
            Access { gateway: &gateway, namespace: "mesh", worker_namespace: "net", server: &server };
        let text = document::print(&[access.secret("t0ken").unwrap()], Form::Yaml).unwrap();
        assert_eq!(text, include_str!("worker.yaml"), "what is printed changed: compare it with worker.yaml");
        let secret: Value = serde_saphyr::from_str(&text).unwrap();
        let kubeconfig = secret["stringData"]["kubeconfig"].as_str().unwrap();
        let kubeconfig = kube::config::Kubeconfig::from_yaml(kubeconfig).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("control"));
        let user = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!(user.token_file.as_deref(), Some("/etc/spanwire/control/token"));
        assert!(user.token.is_none());
    }

    #[test]
    fn notes_say_what_is_to_be_done_and_never_the_token() {
        let (gateway, server) = ("berlin".parse().unwrap(), server("https://127.0.0.1:6443"));
        let access =
            Access { gateway: &gateway, namespace: "mesh", worker_namespace: "net", server: &server };
        let notes = access.notes(&token(), Duration::from_secs(720 * 3600));
        for words in [
            "until 2026-12-31T00:00:00Z",
            "renew it: the same command",
            "gave 1 h of the 720 h",
            "name another with --server",
            "--namespace net --set worker.enabled=true --set worker.gateway=berlin --set worker.control.namespace=mesh",
        ] {
            assert!(notes.contains(words), "{words:?} not in\n{notes}");
        }
        assert!(!notes.contains("t0ken"));
    }
}

//! Why a join printed nothing: the object, the cause and the next step. It refuses to carry tokens.

use std::{io, path::PathBuf, time::Duration};

use spanwire_store::{Place, cluster};

/// A join that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The control store is no API server of a kubeconfig.
    #[error(
        "join asks the control cluster with your own rights: use --control kube or kube:CONTEXT, not {0} (in a directory a \
         new gateway is one file under gateways/ and needs no account)"
    )]
    NoApiServer(Place),
    /// A Gateway needs a prefix.
    #[error(
        "a Gateway says what is behind it: add --subnet, such as --subnet 10.7.1.0/24; it may be repeated"
    )]
    NoSubnet,
    /// There is no configuration of the control cluster.
    #[error("failed to reach the control cluster")]
    Connection(#[source] cluster::Error),
    /// The control cluster did not answer.
    #[error("the control cluster did not answer within {} s: is it reachable from here?", .0.as_secs())]
    Late(Duration),
    /// The kubeconfig can't be read, or names no cluster.
    #[error(
        "the kubeconfig does not say how the control cluster is reached: {0}; check --control and KUBECONFIG"
    )]
    Kubeconfig(String),
    /// The person's own access checks no certificate.
    #[error(
        "the kubeconfig's cluster {0:?} takes any certificate (insecure-skip-tls-verify), which a worker must not: name the \
         authority of the API server with --ca-file"
    )]
    NoAuthority(String),
    /// A file could not be read.
    #[error("failed to read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file holds no certificate.
    #[error("{} is no PEM file with a certificate", .0.display())]
    NotPem(PathBuf),
    /// There is no such namespace.
    #[error(
        "there is no namespace {0} in the control cluster: kubectl create namespace {0}, or name that of the Gateways with -n"
    )]
    NoNamespace(String),
    /// There is another Gateway of that name.
    #[error(
        "there is a Gateway {gateway} in namespace {namespace} already, and it says otherwise: {there}. Another cluster needs \
         another name; to change this one: kubectl -n {namespace} edit gateway {gateway}"
    )]
    GatewayExists {
        /// Its name.
        gateway: String,
        /// Its namespace.
        namespace: String,
        /// Its spec.
        there: String,
    },
    /// There is no account to make a token for.
    #[error(
        "there is no service account {account} in namespace {namespace} of the control cluster: apply what `spanwirectl \
         join {gateway} --side control --subnet PREFIX` prints there first"
    )]
    NoAccount {
        /// The account.
        account: String,
        /// Its namespace.
        namespace: String,
        /// The gateway.
        gateway: String,
    },
    /// The person may not make tokens.
    #[error(
        "the control cluster does not let you make a token for {namespace}/{account}: {cause}. Ask its administrator for the \
         verb create on serviceaccounts/token in namespace {namespace}, or to run this command"
    )]
    TokenRefused {
        /// The account.
        account: String,
        /// Its namespace.
        namespace: String,
        /// The server's words.
        cause: String,
    },
    /// A call failed otherwise.
    #[error("failed to {what}: {cause}")]
    Call {
        /// What was to be done.
        what: String,
        /// The server's words.
        cause: String,
    },
    /// The server's answer holds no token.
    #[error("the control cluster answered without a token")]
    NoToken,
    /// An object could not be expressed.
    #[error("failed to express {0} as JSON")]
    Json(&'static str, #[source] serde_json::Error),
    /// An object could not be expressed.
    #[error("failed to express the answer as YAML")]
    Yaml(#[source] serde_saphyr::ser::Error),
}

//! The control cluster's API server as a worker reaches it, by default as this person does. It refuses to hand on a way
//! that checks no certificate.

use std::{fs, net::IpAddr, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::config::{Cluster, Kubeconfig};

use super::Error;

/// An API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// Its address.
    pub(super) url: String,
    /// Its authorities as PEM; none: those that the worker's image knows.
    pub(super) authority: Option<Vec<u8>>,
    /// The name in its certificate, where that is not the address.
    pub(super) name: Option<String>,
}

impl Server {
    /// Whether only this machine reaches it.
    pub(super) fn is_of_this_machine(&self) -> bool {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(inner) => inner.split(']').next().unwrap_or_default(),
            None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
        };
        let address = host.parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
    }
}

/// From the kubeconfig's context, where the arguments do not say otherwise.
pub(super) fn of(context: Option<&str>, url: Option<&str>, ca_file: Option<&Path>) -> Result<Server, Error> {
    let kubeconfig = Kubeconfig::read().map_err(|fault| Error::Kubeconfig(fault.to_string()))?;
    let (name, cluster) = cluster(&kubeconfig, context)?;
    let authority = match ca_file {
        Some(path) => Some(pem(path)?),
        None => authority(name, cluster)?,
    };
    let own = cluster.server.as_deref();
    let missing = || Error::Kubeconfig(format!("the cluster {name:?} has no server"));
    Ok(Server {
        url: url.or(own).ok_or_else(missing)?.to_owned(),
        authority,
        // Another address may be in the certificate by itself.
        name: if url.is_none_or(|url| Some(url) == own) { cluster.tls_server_name.clone() } else { None },
    })
}

/// The cluster of a context, or of the current one.
fn cluster<'a>(kubeconfig: &'a Kubeconfig, context: Option<&str>) -> Result<(&'a str, &'a Cluster), Error> {
    let context = context.or(kubeconfig.current_context.as_deref());
    let context = context.ok_or_else(|| Error::Kubeconfig("it has no current context".to_owned()))?;
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let named = named.and_then(|named| named.context.as_ref());
    let named = named.ok_or_else(|| Error::Kubeconfig(format!("there is no context {context:?}")))?;
    let found = kubeconfig.clusters.iter().find(|cluster| cluster.name == named.cluster);
    let found = found.and_then(|found| Some((found.name.as_str(), found.cluster.as_ref()?)));
    found.ok_or_else(|| Error::Kubeconfig(format!("there is no cluster {:?}", named.cluster)))
}

fn authority(name: &str, cluster: &Cluster) -> Result<Option<Vec<u8>>, Error> {
    if let Some(data) = &cluster.certificate_authority_data {
        let broken = |_| Error::Kubeconfig(format!("the authority of the cluster {name:?} is no base64"));
        return STANDARD.decode(data.trim()).map(Some).map_err(broken);
    }
    if let Some(path) = &cluster.certificate_authority {
        return pem(Path::new(path)).map(Some);
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(Error::NoAuthority(name.to_owned()));
    }
    Ok(None)
}

fn pem(path: &Path) -> Result<Vec<u8>, Error> {
    let text = fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    let begins = b"-----BEGIN CERTIFICATE-----";
    if text.windows(begins.len()).any(|window| window == begins) {
        Ok(text)
    } else {
        Err(Error::NotPem(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: a
contexts:
- {name: a, context: {cluster: one, user: u}}
- {name: b, context: {cluster: two, user: u}}
- {name: c, context: {cluster: gone, user: u}}
clusters:
- {name: one, cluster: {server: 'https://one:6443', certificate-authority-data: YWJj}}
- {name: two, cluster: {server: 'https://two:6443', insecure-skip-tls-verify: true}}
";

    #[test]
    fn the_cluster_is_that_of_the_context() {
        let kubeconfig = Kubeconfig::from_yaml(KUBECONFIG).unwrap();
        let (name, one) = cluster(&kubeconfig, None).unwrap();
        assert_eq!(authority(name, one).unwrap().as_deref(), Some(&b"abc"[..]));
        let (name, two) = cluster(&kubeconfig, Some("b")).unwrap();
        assert!(authority(name, two).unwrap_err().to_string().contains("--ca-file"));
        for (context, words) in [("c", "no cluster \"gone\""), ("d", "no context \"d\"")] {
            let error = cluster(&kubeconfig, Some(context)).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn addresses_of_this_machine_are_known() {
        let of = |url: &str| Server { url: url.to_owned(), authority: None, name: None }.is_of_this_machine();
        for here in
            ["https://127.0.0.1:6443", "https://localhost:1/x", "https://[::1]:6443", "https://0.0.0.0"]
        {
            assert!(of(here), "{here}");
        }
        for there in ["https://control.example:6443", "https://192.0.2.1", "https://[fd00::1]:6443"] {
            assert!(!of(there), "{there}");
        }
    }
}

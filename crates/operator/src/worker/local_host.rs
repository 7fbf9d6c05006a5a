//! The host of a worker that runs for real: devices, probes and the host's own facts. It refuses to decide.

use std::collections::BTreeMap;

use spanwire_dataplane::{
    key::SecretKey,
    local::{LocalDevices, Options},
    probe::Target,
};
use spanwire_engine::{LinkId, worker::Evidence};
use tokio::time::timeout;

use super::{Facts, HOST_LIMIT, HostFacts, Probes};
use crate::cli::WorkerArgs;

/// Opens the host with what the command line says of it.
///
/// # Errors
/// What is needed at start is missing: the packet filter, or any WireGuard.
pub async fn open(
    args: &WorkerArgs,
    secret: SecretKey,
) -> Result<LocalDevices, spanwire_dataplane::local::Error> {
    let WorkerArgs { gateway, dataplane_socket, uapi_dir, run_dir, .. } = args;
    let options = Options {
        uapi_dir: uapi_dir.clone(),
        ..Options::new(gateway.clone(), secret, dataplane_socket, run_dir)
    };
    LocalDevices::open(options).await
}

impl Facts for LocalDevices {
    async fn host_facts(&self) -> HostFacts {
        HostFacts {
            endpoint: timeout(HOST_LIMIT, self.default_endpoint()).await.ok().flatten(),
            backend: Some(self.backend().as_str().to_owned()),
        }
    }
}

/// For runs that judge no link.
#[derive(Debug, Clone, Copy)]
pub struct NoProbes;

impl Probes for NoProbes {
    fn set_targets(&self, _: Vec<Target>) {}

    fn evidence(&self) -> BTreeMap<LinkId, Evidence> {
        BTreeMap::new()
    }
}

//! The host of a worker that runs for real: devices, probes and the host's own facts. It refuses to decide.

use std::{collections::BTreeMap, path::PathBuf};

use spanwire_dataplane::{
    key::SecretKey,
    local::{LocalDevices, Options, secret_of},
    probe::Target,
};
use spanwire_engine::{LinkId, PublicKey, worker::Evidence};
use tokio::time::timeout;

use super::{Facts, HOST_LIMIT, HostFacts, Probes, own_key::LostKeys};
use crate::{cli::WorkerArgs, fault::chain};

/// Opens the host with what the command line says of it.
///
/// # Errors
/// What is needed at start is missing: the packet filter, or any WireGuard.
pub async fn open(
    args: &WorkerArgs,
    secret: SecretKey,
) -> Result<LocalDevices, spanwire_dataplane::local::Error> {
    let WorkerArgs { gateway, dataplane_socket, uapi_dir, run_dir, sysctl_dir, .. } = args;
    let options = Options {
        uapi_dir: uapi_dir.clone(),
        sysctl_dir: sysctl_dir.clone(),
        ..Options::new(gateway.clone(), secret, dataplane_socket, run_dir)
    };
    LocalDevices::open(args.numbers.options(options)).await
}

impl Facts for LocalDevices {
    async fn host_facts(&self) -> HostFacts {
        HostFacts {
            endpoint: timeout(HOST_LIMIT, self.default_endpoint()).await.ok().flatten(),
            kernel: self.kernel_wireguard().await.map_err(|error| error.to_string()),
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

/// The keys that our devices carry; a folder of configuration sockets.
#[derive(Debug, Clone)]
pub struct KeysOfDevices(pub PathBuf);

impl LostKeys for KeysOfDevices {
    async fn secret_of(&self, public: &PublicKey) -> Option<SecretKey> {
        match timeout(HOST_LIMIT, secret_of(public, self.0.clone())).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::warn!("cannot look for a lost key: {}", chain(&error));
                None
            }
            Err(_) => None,
        }
    }
}

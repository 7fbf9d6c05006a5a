//! The statuses that a person would read. It refuses to take one that does not parse for a missing one.

use anyhow::Result;
use spanwire_api::{
    GatewayNetworkSpec, GatewayNetworkStatus, WorkerSliceConfigSpec, WorkerSliceConfigStatus,
};

use super::{Fleet, NETWORK, control::Control};

/// What the controller says of the network.
pub(crate) fn network(control: &Control) -> Result<Option<GatewayNetworkStatus>> {
    control.status::<GatewayNetworkSpec>(NETWORK, "controller")
}

impl Fleet {
    /// What a member's worker says of its links; `None`: nothing yet.
    ///
    /// # Errors
    /// It is there and could not be read.
    pub fn links(&self, member: &str) -> Result<Option<WorkerSliceConfigStatus>> {
        self.control.status::<WorkerSliceConfigSpec>(&format!("{NETWORK}.{member}"), "worker")
    }

    /// Generation and content of a member's intent; `None`: nothing yet.
    ///
    /// # Errors
    /// It is there and could not be read.
    pub(crate) fn intent(&self, member: &str) -> Result<Option<(i64, WorkerSliceConfigSpec)>> {
        let object = self.control.object::<WorkerSliceConfigSpec>(&format!("{NETWORK}.{member}"))?;
        Ok(object.and_then(|object| Some((object.metadata.generation?, object.spec?))))
    }
}

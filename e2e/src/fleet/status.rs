//! The statuses that a person would read, from their files. It refuses to take a file that does not parse for a missing
//! one.

use std::{fs, io, path::Path};

use anyhow::{Context as _, Result};
use spanwire_api::{
    GatewayNetworkSpec, GatewayNetworkStatus, Kind, Object, WorkerSliceConfigSpec, WorkerSliceConfigStatus,
};

use super::{Fleet, NETWORK};

/// What the controller says of the network.
pub(crate) fn network(control: &Path) -> Result<Option<GatewayNetworkStatus>> {
    read::<GatewayNetworkSpec>(control, NETWORK, "controller")
}

impl Fleet {
    /// What a member's worker says of its links; `None`: nothing yet.
    ///
    /// # Errors
    /// The file is there and could not be read.
    pub fn links(&self, member: &str) -> Result<Option<WorkerSliceConfigStatus>> {
        read::<WorkerSliceConfigSpec>(&self.control(), &format!("{NETWORK}.{member}"), "worker")
    }
}

impl Fleet {
    /// Generation and content of a member's intent; `None`: nothing yet.
    ///
    /// # Errors
    /// The file is there and could not be read.
    pub(crate) fn intent(&self, member: &str) -> Result<Option<(i64, WorkerSliceConfigSpec)>> {
        let object = object::<WorkerSliceConfigSpec>(&self.control(), &format!("{NETWORK}.{member}.yaml"))?;
        Ok(object.and_then(|object| Some((object.metadata.generation?, object.spec?))))
    }
}

fn read<S: Kind>(control: &Path, name: &str, owner: &str) -> Result<Option<S::Status>> {
    let object = object::<S>(control, &format!("{name}.status.{owner}.yaml"))?;
    Ok(object.and_then(|object| object.status))
}

fn object<S: Kind>(control: &Path, file: &str) -> Result<Option<Object<S>>> {
    let path = control.join(S::PLURAL).join(file);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let object =
        serde_saphyr::from_str(&text).with_context(|| format!("understanding {}", path.display()))?;
    Ok(Some(object))
}

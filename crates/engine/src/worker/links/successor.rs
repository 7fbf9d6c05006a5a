//! Devices whose place is taken by one of the other backend: a network that asks for another `tunnel.mode`, or a kernel that
//! has WireGuard now. It refuses to begin while a link of the device is not wanted or can't be made: it would not come along.

use std::collections::BTreeMap;

use crate::{Backend, DeviceId, DeviceName, GatewayName, NetworkName};

use super::{
    super::{DesiredNetwork, Host, ObservedDevice},
    row::Row,
};

/// One device and its successor.
#[derive(Debug)]
pub(in crate::worker) struct Succession<'a> {
    /// The device that goes.
    pub(in crate::worker) old: &'a ObservedDevice,
    pub(in crate::worker) old_name: &'a DeviceName,
    pub(in crate::worker) new_name: DeviceName,
    /// The device that comes, if it is there.
    pub(in crate::worker) new: Option<&'a ObservedDevice>,
    /// Where its links are expected to listen: where they are recorded to, else where the old one does.
    pub(in crate::worker) port: u16,
}

pub(super) fn find<'a>(
    desired: &DesiredNetwork,
    network: &NetworkName,
    me: &GatewayName,
    host: &'a Host,
    rows: &[Row<'a>],
) -> BTreeMap<&'a DeviceId, Succession<'a>> {
    let wanted = desired.backend;
    let possible = wanted == Backend::Userspace || host.kernel_wireguard;
    if !possible || desired.keep.is_some() || desired.incomplete {
        return BTreeMap::new();
    }
    let ours = host.devices.iter().chain(&host.beside).filter(|(id, _)| id.network == *network);
    let leaving = ours.filter(|(_, device)| device.backend() != wanted);
    let succession = |(id, old): (&'a DeviceId, &'a ObservedDevice)| {
        let old_name = old.name.as_ref()?;
        let is_carried =
            |row: &&Row<'_>| row.role() == id.role && id.peer.as_ref().is_none_or(|peer| peer == row.key.0);
        let mut carried = rows.iter().filter(is_carried);
        let all_come_along = carried.clone().all(|row| row.wanted.is_some());
        let first = carried.next().filter(|_| all_come_along)?;
        let new = host.device(id, wanted).filter(|device| device.backend() == wanted);
        let port = first.recorded.map_or(old.port, |recorded| recorded.listen_port);
        Some((id, Succession { old, old_name, new_name: id.name(me, wanted), new, port }))
    };
    leaving.filter_map(succession).collect()
}

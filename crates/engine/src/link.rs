//! Links and the devices that carry them. It refuses to know keys or routes.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};
use smol_str::{SmolStr, format_smolstr};

use crate::{Backend, GatewayName, NetworkName, name::NameError};

/// The part that one end of a link plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkRole {
    /// Towards a hub; dials. A device of its own.
    Uplink,
    /// From a hub to a member; listens. All of a network share one device, the listener.
    Downlink,
    /// Between two hubs; both dial. A device of its own.
    Trunk,
    /// Between two members without a hub; both dial. All of a network share one device.
    Mesh,
}

impl LinkRole {
    /// All roles, in the order in which they are listed.
    pub const ALL: [LinkRole; 4] = [LinkRole::Uplink, LinkRole::Downlink, LinkRole::Trunk, LinkRole::Mesh];

    /// The word used in names and objects.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkRole::Uplink => "uplink",
            LinkRole::Downlink => "downlink",
            LinkRole::Trunk => "trunk",
            LinkRole::Mesh => "mesh",
        }
    }

    /// The role of the other end.
    pub fn other_end(self) -> LinkRole {
        match self {
            LinkRole::Uplink => LinkRole::Downlink,
            LinkRole::Downlink => LinkRole::Uplink,
            LinkRole::Trunk => LinkRole::Trunk,
            LinkRole::Mesh => LinkRole::Mesh,
        }
    }

    /// Whether all links of this role in one network share a device.
    pub fn shares_device(self) -> bool {
        matches!(self, LinkRole::Downlink | LinkRole::Mesh)
    }

    /// Whether this end knows where to dial.
    pub fn dials(self) -> bool {
        !matches!(self, LinkRole::Downlink)
    }
}

impl fmt::Display for LinkRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is not a role of a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("role {0:?} is not known: use one of uplink, downlink, trunk, mesh")]
pub struct UnknownRole(pub String);

impl FromStr for LinkRole {
    type Err = UnknownRole;
    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        LinkRole::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

/// One directed relation of this worker to one peer in one network. Its object is `<network>.<peer>.<role>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId {
    /// The network.
    pub network: NetworkName,
    /// The gateway at the other end.
    pub peer: GatewayName,
    /// The part that this end plays.
    pub role: LinkRole,
}

impl LinkId {
    /// The device that carries the link.
    pub fn device(&self) -> DeviceId {
        let peer = (!self.role.shares_device()).then(|| self.peer.clone());
        DeviceId { network: self.network.clone(), role: self.role, peer }
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.network, self.peer, self.role)
    }
}

/// Why a string is no [`LinkId`] or [`DeviceId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// A part is missing or too many.
    #[error("{0:?} does not have three parts")]
    Parts(String),
    /// A part is no name.
    #[error("a part is not a name")]
    Name(#[source] NameError),
    /// The role is not known.
    #[error("a part is not a role")]
    Role(#[source] UnknownRole),
}

impl FromStr for LinkId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let [network, peer, role] =
            text.split('.').collect::<Vec<_>>().try_into().map_err(|_| IdError::Parts(text.to_owned()))?;
        Ok(Self {
            network: network.parse().map_err(IdError::Name)?,
            peer: peer.parse().map_err(IdError::Name)?,
            role: role.parse().map_err(IdError::Role)?,
        })
    }
}

/// The identity of a device, written into its ifalias as `spanwire/<network>/<role>/<peer or ->`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// The network whose packets the device carries.
    pub network: NetworkName,
    /// The role of its links.
    pub role: LinkRole,
    /// The only peer, where the device is not shared.
    pub peer: Option<GatewayName>,
}

const ALIAS_PREFIX: &str = "spanwire/";
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl DeviceId {
    /// The ifalias of the device.
    pub fn alias(&self) -> String {
        let peer = self.peer.as_ref().map_or("-", GatewayName::as_str);
        format!("{ALIAS_PREFIX}{}/{}/{peer}", self.network, self.role)
    }

    /// Reads an ifalias. `None`: the device is not ours.
    pub fn from_alias(alias: &str) -> Option<Self> {
        let mut parts = alias.strip_prefix(ALIAS_PREFIX)?.split('/');
        let (network, role, peer) = (parts.next()?, parts.next()?, parts.next()?);
        let peer = if peer == "-" { None } else { Some(peer.parse().ok()?) };
        let id = Self { network: network.parse().ok()?, role: role.parse().ok()?, peer };
        (parts.next().is_none() && id.role.shares_device() == id.peer.is_none()).then_some(id)
    }

    /// The name of the device: at most 15 bytes, the same after every restart, unique for the gateway `me` (50 bits
    /// of SHA-256 over gateway, network, role and peer). Two devices of one identity, one of each backend, stand beside
    /// each other while the one takes the place of the other.
    pub fn name(&self, me: &GatewayName, backend: Backend) -> DeviceName {
        let digest = Sha256::digest(format!("{me}/{}", self.alias()));
        let bits = digest.iter().take(8).fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        let tail: String = (0..10).map(|i| char::from(BASE32[(bits >> (5 * i) & 31) as usize])).collect();
        let letter = &self.role.as_str()[..1];
        DeviceName(format_smolstr!("{}{letter}-{tail}", backend.prefix()))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.alias())
    }
}

/// The name of a network interface: 1 to 15 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceName(SmolStr);

impl DeviceName {
    /// The name as the kernel shows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The implementation that a device of ours with this name is of.
    pub fn backend(&self) -> Backend {
        if self.0.starts_with(Backend::Kernel.prefix()) { Backend::Kernel } else { Backend::Userspace }
    }
}

/// The string is no interface name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an interface name: use 1 to 15 bytes without spaces and slashes")]
pub struct DeviceNameError(pub String);

impl FromStr for DeviceName {
    type Err = DeviceNameError;
    fn from_str(text: &str) -> Result<Self, DeviceNameError> {
        let good = (1..=15).contains(&text.len())
            && text != "."
            && text != ".."
            && !text
                .bytes()
                .any(|b| b == b'/' || b == b':' || b.is_ascii_whitespace() || b.is_ascii_control());
        if good { Ok(Self(SmolStr::new(text))) } else { Err(DeviceNameError(text.to_owned())) }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a peer is dialled: a DNS name or an address, and a UDP port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// DNS name, IPv4 or IPv6 address (without brackets).
    pub host: String,
    /// UDP port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The string is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an endpoint: write host:port, or [address]:port for IPv6")]
pub struct EndpointError(pub String);

impl FromStr for Endpoint {
    type Err = EndpointError;
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let fault = || EndpointError(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(fault)?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = inner.unwrap_or(host);
        if host.is_empty() || (host.contains(':') && inner.is_none()) {
            return Err(fault());
        }
        Ok(Self { host: host.to_owned(), port: port.parse().map_err(|_| fault())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(role: LinkRole, peer: &str) -> LinkId {
        LinkId { network: "demo".parse().unwrap(), peer: peer.parse().unwrap(), role }
    }

    #[test]
    fn d20_device_names_are_short_unique_and_stable() {
        let me: GatewayName = "m".repeat(63).parse().unwrap();
        let long = |c: &str| c.repeat(63);
        let mut names = std::collections::BTreeSet::new();
        for role in [LinkRole::Uplink, LinkRole::Trunk] {
            for i in 0..1000 {
                let network = format!("n{}{i}", "x".repeat(50)).parse().unwrap();
                let device = DeviceId { network, role, peer: Some(long("p").parse().unwrap()) };
                let name = device.name(&me, Backend::Userspace);
                assert!(name.as_str().len() <= 15, "{name}");
                assert_eq!(name, device.name(&me, Backend::Userspace));
                let other = device.name(&me, Backend::Kernel);
                assert_eq!((name.backend(), other.backend()), (Backend::Userspace, Backend::Kernel));
                assert!(names.insert(name));
            }
        }
    }

    #[test]
    fn aliases_and_names_round_trip() {
        for role in LinkRole::ALL {
            let link = id(role, "hub-a");
            assert_eq!(link.to_string().parse(), Ok(link.clone()));
            assert_eq!(DeviceId::from_alias(&link.device().alias()), Some(link.device()));
        }
        for foreign in
            ["", "wg0", "spanwire/", "spanwire/a/uplink/-", "spanwire/a/mesh/b", "spanwire/a/mesh/-/x"]
        {
            assert_eq!(DeviceId::from_alias(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn endpoints() {
        for text in ["192.0.2.1:51820", "[2001:db8::1]:51820", "gw.example:1"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for bad in ["", "x", ":1", "h:", "h:70000", "2001:db8::1:51820"] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }
}

//! Addresses of interfaces: list, add, delete. It refuses to add a prefix route with an address.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope},
};

use super::{Error, Netlink};

/// One address of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) index: u32,
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
    /// Reachable from elsewhere, as opposed to link-local and host scope.
    pub(crate) global: bool,
}

impl Netlink {
    pub(crate) async fn addresses(&self) -> Result<Vec<Address>, Error> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let found = self.dump("addresses", &request).await?;
        Ok(found.into_iter().filter_map(read).collect())
    }

    /// Adds `address` as /32 or /128.
    pub(crate) async fn add_address(&self, index: u32, address: IpAddr) -> Result<(), Error> {
        let what = format!("add address {address} to interface {index}");
        let mut message = message(index, address, if address.is_ipv4() { 32 } else { 128 });
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Noprefixroute | AddressFlags::Nodad));
        self.write(what, NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewAddress(message)).await
    }

    pub(crate) async fn delete_address(&self, address: &Address) -> Result<(), Error> {
        let what = format!("delete address {} from interface {}", address.address, address.index);
        let message = message(address.index, address.address, address.prefix);
        self.write(what, 0, RouteNetlinkMessage::DelAddress(message)).await
    }
}

fn message(index: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.prefix_len = prefix;
    message.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    message
}

fn read(message: RouteNetlinkMessage) -> Option<Address> {
    let RouteNetlinkMessage::NewAddress(message) = message else { return None };
    let (mut local, mut far) = (None, None);
    for attribute in message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(address),
            AddressAttribute::Address(address) => far = Some(address),
            _ => {}
        }
    }
    Some(Address {
        index: message.header.index,
        address: local.or(far)?,
        prefix: message.header.prefix_len,
        global: message.header.scope == AddressScope::Universe,
    })
}

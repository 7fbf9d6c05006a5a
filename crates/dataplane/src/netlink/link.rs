//! Interfaces: list, change, delete. It refuses to hold back from those that are not ours: whoever asks does.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage},
};

use spanwire_engine::DeviceId;

use super::{Error, Netlink};

/// One interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) alias: Option<String>,
    pub(crate) mtu: u32,
    pub(crate) queue: u32,
    pub(crate) up: bool,
    pub(crate) loopback: bool,
    /// Whether it is a device of the kernel's own WireGuard.
    pub(crate) kernel_wireguard: bool,
}

impl Link {
    /// Whether it carries our mark.
    pub(crate) fn is_ours(&self) -> bool {
        self.alias.as_deref().is_some_and(|alias| DeviceId::from_alias(alias).is_some())
    }
}

/// What to change of an interface; `None` leaves it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkChange {
    pub(crate) alias: Option<String>,
    pub(crate) mtu: Option<u32>,
    pub(crate) queue: Option<u32>,
    pub(crate) up: bool,
}

impl Netlink {
    pub(crate) async fn links(&self) -> Result<Vec<Link>, Error> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let found = self.dump("interfaces", &request).await?;
        Ok(found.into_iter().filter_map(read).collect())
    }

    pub(crate) async fn change_link(&self, index: u32, change: LinkChange) -> Result<(), Error> {
        let what = format!("change interface {index} ({change:?})");
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.extend(change.alias.map(LinkAttribute::IfAlias));
        message.attributes.extend(change.mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(change.queue.map(LinkAttribute::TxQueueLen));
        if change.up {
            message.header.flags = LinkFlags::Up;
            message.header.change_mask = LinkFlags::Up;
        }
        self.write(what, 0, RouteNetlinkMessage::SetLink(message)).await
    }

    pub(crate) async fn delete_link(&self, index: u32) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.write(format!("delete interface {index}"), 0, RouteNetlinkMessage::DelLink(message)).await
    }

    /// Creates a device of the kernel's own WireGuard; a kernel without it answers EOPNOTSUPP. An alias is not taken at
    /// creation.
    pub(crate) async fn add_kernel_wireguard(&self, name: &str, mtu: u32) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Mtu(mtu),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Wireguard)]),
        ];
        let what = format!("create the kernel WireGuard device {name}");
        self.write(what, NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewLink(message)).await
    }
}

fn read(message: RouteNetlinkMessage) -> Option<Link> {
    let RouteNetlinkMessage::NewLink(message) = message else { return None };
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        alias: None,
        mtu: 0,
        queue: 0,
        up: message.header.flags.contains(LinkFlags::Up),
        loopback: message.header.flags.contains(LinkFlags::Loopback),
        kernel_wireguard: false,
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::IfAlias(alias) => link.alias = Some(alias),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::TxQueueLen(length) => link.queue = length,
            LinkAttribute::LinkInfo(infos) => {
                link.kernel_wireguard = infos.contains(&LinkInfo::Kind(InfoKind::Wireguard));
            }
            _ => {}
        }
    }
    Some(link)
}

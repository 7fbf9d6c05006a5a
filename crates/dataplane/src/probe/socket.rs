//! A UDP socket that is bound to one device: what it sends leaves by that device whatever the routes say, and it hears
//! nothing else. It refuses to choose a source address: the caller names it.

use std::{
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket as StdSocket},
    os::fd::{AsRawFd, OwnedFd},
};

use nix::{
    cmsg_space,
    libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo},
    sys::socket::{
        AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrIn,
        SockaddrIn6, SockaddrStorage, bind, recvmsg, sendmsg, setsockopt, socket, sockopt,
    },
};
use tokio::{io::Interest, net::UdpSocket};

use crate::netlink::rule::Family;

use super::wire::LENGTH;

/// See the module.
pub(crate) struct ProbeSocket(UdpSocket);

impl ProbeSocket {
    /// Port 0: any free one.
    pub(crate) fn open(device: &str, family: Family, port: u16) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let kind = match family {
            Family::V4 => AddressFamily::Inet,
            Family::V6 => AddressFamily::Inet6,
        };
        let socket: OwnedFd = socket(kind, SockType::Datagram, flags, None)?;
        setsockopt(&socket, sockopt::BindToDevice, &OsString::from(device))?;
        match family {
            Family::V4 => {
                setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
                bind(socket.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, port))?;
            }
            Family::V6 => {
                setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
                setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
                let any = SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, port, 0, 0);
                bind(socket.as_raw_fd(), &SockaddrIn6::from(any))?;
            }
        }
        UdpSocket::from_std(StdSocket::from(socket)).map(Self)
    }

    /// The next datagram: its bytes, who sent it, and the address that it was sent to.
    pub(crate) async fn receive(&self) -> io::Result<(Vec<u8>, SocketAddr, IpAddr)> {
        self.0.async_io(Interest::READABLE, || self.receive_now()).await
    }

    fn receive_now(&self) -> io::Result<(Vec<u8>, SocketAddr, IpAddr)> {
        let mut buffer = [0u8; LENGTH + 1];
        let mut control = cmsg_space!(in_pktinfo, in6_pktinfo);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let message = recvmsg::<SockaddrStorage>(
            self.0.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let odd = || io::Error::from(io::ErrorKind::InvalidData);
        let remote = message.address.as_ref().and_then(address).ok_or_else(odd)?;
        let local = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(IpAddr::from(u32::from_be(info.ipi_addr.s_addr).to_be_bytes()))
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => Some(IpAddr::from(info.ipi6_addr.s6_addr)),
            _ => None,
        });
        let (bytes, local) = (message.bytes, local.ok_or_else(odd)?);
        Ok((buffer[..bytes].to_vec(), remote, local))
    }

    /// Sends at once or not at all.
    pub(crate) fn send(&self, bytes: &[u8], remote: SocketAddr, source: IpAddr) -> io::Result<()> {
        let parts = [IoSlice::new(bytes)];
        let (four, six);
        let control = match source {
            IpAddr::V4(source) => {
                let source = in_addr { s_addr: u32::from(source).to_be() };
                four = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: in_addr { s_addr: 0 } };
                ControlMessage::Ipv4PacketInfo(&four)
            }
            IpAddr::V6(source) => {
                six = in6_pktinfo { ipi6_addr: in6_addr { s6_addr: source.octets() }, ipi6_ifindex: 0 };
                ControlMessage::Ipv6PacketInfo(&six)
            }
        };
        let address = SockaddrStorage::from(remote);
        // Not through the runtime: it would hold a socket that was just opened for one that cannot send.
        sendmsg(self.0.as_raw_fd(), &parts, &[control], MsgFlags::MSG_DONTWAIT, Some(&address))?;
        Ok(())
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let four = storage.as_sockaddr_in().map(|address| SocketAddr::V4(SocketAddrV4::from(*address)));
    four.or_else(|| storage.as_sockaddr_in6().map(|address| SocketAddr::V6(SocketAddrV6::from(*address))))
}

//! One host of the lab: what can be done in it and to it. It refuses to know what runs on it: processes and scenarios do.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd,
    sync::Arc,
    time::Duration,
};

use ipnet::IpNet;
use nix::sys::{
    socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt},
    time::TimeVal,
};

use super::{LabError, Namespace, netlink};

/// A host. Clones are the same host; the last one to go removes it.
#[derive(Debug, Clone)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    namespace: Namespace,
    beyond: Namespace,
    port: String,
    addresses: [IpAddr; 2],
}

impl Host {
    pub(crate) fn new(
        name: &str,
        namespace: Namespace,
        beyond: Namespace,
        port: String,
        addresses: [IpAddr; 2],
    ) -> Self {
        Self(Arc::new(Inner { name: name.to_owned(), namespace, beyond, port, addresses }))
    }

    /// One that somebody else made, such as a container; `cable` is the far end of its network device, for
    /// [`Host::cut_off`].
    pub fn adopted(name: &str, namespace: Namespace, cable: (Namespace, String), address: IpAddr) -> Self {
        let (beyond, port) = cable;
        Self::new(name, namespace, beyond, port, [address; 2])
    }

    /// The name given to it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its namespaces.
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// Its IPv4 address on the underlay.
    pub fn address(&self) -> IpAddr {
        self.0.addresses[0]
    }

    /// Its IPv6 address on the underlay; unspecified behind NAT.
    pub fn address_v6(&self) -> IpAddr {
        self.0.addresses[1]
    }

    /// Runs `work` inside the host, on a thread of its own.
    ///
    /// # Errors
    /// The namespace could not be entered, or `work` panicked.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        self.namespace().run(work)
    }

    /// Adds an address to a device of the host, `lo` for one that stands for a subnet behind it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn add_address(&self, device: &str, address: IpNet) -> Result<(), LabError> {
        netlink::add_address(self.namespace(), device, address)
    }

    /// Pulls the plug at the switch: the host keeps its addresses and routes and hears nothing any more.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn cut_off(&self) -> Result<(), LabError> {
        netlink::set_up(&self.0.beyond, &self.0.port, false)
    }

    /// Puts the plug back.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn reconnect(&self) -> Result<(), LabError> {
        netlink::set_up(&self.0.beyond, &self.0.port, true)
    }

    /// Sets a device of the host up.
    ///
    /// # Errors
    /// There is none of that name, or the kernel's refusal.
    pub fn set_up(&self, device: &str) -> Result<(), LabError> {
        netlink::set_up(self.namespace(), device, true)
    }

    /// Changes the MTU of a device of the host.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_mtu(&self, device: &str, mtu: u32) -> Result<(), LabError> {
        netlink::set_mtu(self.namespace(), device, mtu)
    }

    /// Deletes a device of the host, as somebody would by hand.
    ///
    /// # Errors
    /// There is none of that name, or the kernel's refusal.
    pub fn delete_device(&self, device: &str) -> Result<(), LabError> {
        netlink::delete(self.namespace(), device)
    }

    /// The kernel index of a device of the host.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn device_index(&self, device: &str) -> Result<u32, LabError> {
        netlink::index(self.namespace(), device)
    }

    /// Writes a kernel setting; `key` is a path below /proc/sys.
    ///
    /// # Errors
    /// The setting does not exist or may not be written.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<(), LabError> {
        self.namespace().set_sysctl(key, value)
    }

    /// Reads a kernel setting; `key` is a path below /proc/sys.
    ///
    /// # Errors
    /// The setting does not exist or may not be read.
    pub fn sysctl(&self, key: &str) -> Result<String, LabError> {
        self.namespace().sysctl(key)
    }

    /// A UDP socket of the host; it stays the host's wherever it is used.
    ///
    /// # Errors
    /// The namespace could not be entered, or the address could not be bound.
    pub fn udp_socket(&self, address: SocketAddr) -> Result<UdpSocket, LabError> {
        self.run(|| UdpSocket::bind(address))?.map_err(|source| self.socket(address, source))
    }

    /// A TCP listener of the host.
    ///
    /// # Errors
    /// The namespace could not be entered, or the address could not be bound.
    pub fn tcp_listener(&self, address: SocketAddr) -> Result<TcpListener, LabError> {
        self.run(|| TcpListener::bind(address))?.map_err(|source| self.socket(address, source))
    }

    /// A TCP connection of the host, from one of its addresses.
    ///
    /// # Errors
    /// The namespace could not be entered, or the peer did not answer within `limit`.
    pub fn tcp_stream_from(
        &self,
        source: IpAddr,
        peer: SocketAddr,
        limit: Duration,
    ) -> Result<TcpStream, LabError> {
        self.run(|| connect(source, peer, limit))?.map_err(|error| self.socket(peer, error))
    }

    /// Runs a program inside and returns what it wrote to standard output.
    ///
    /// # Errors
    /// It is missing, or it failed: the error holds what it wrote to standard error.
    pub fn output(&self, program: &str, arguments: &[&str], input: &str) -> Result<String, LabError> {
        let result = self.run(|| run_program(program, arguments, input))?;
        let missing = |source| LabError::Program {
            namespace: self.name().to_owned(),
            program: program.to_owned(),
            source,
        };
        let output = result.map_err(missing)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(LabError::Refused {
            namespace: self.name().to_owned(),
            program: format!("{program} {}", arguments.join(" ")),
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    fn socket(&self, address: SocketAddr, source: io::Error) -> LabError {
        LabError::File { namespace: self.name().to_owned(), path: address.to_string().into(), source }
    }
}

/// The standard library can't bind before it connects.
fn connect(source: IpAddr, peer: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let family = if source.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // The kernel gives up a connection attempt when this is over.
    setsockopt(&socket, sockopt::SendTimeout, &TimeVal::new(limit.as_secs().try_into().unwrap_or(1), 0))?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(source, 0)))?;
    nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(peer))?;
    Ok(TcpStream::from(socket))
}

fn run_program(program: &str, arguments: &[&str], input: &str) -> io::Result<std::process::Output> {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes())?;
    }
    child.wait_with_output()
}

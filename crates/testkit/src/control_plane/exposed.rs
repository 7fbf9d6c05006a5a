//! The API server's port inside a host of the lab: what connects there is carried to loopback of this program. It
//! refuses to look inside; the connection stays encrypted from end to end.

use std::{
    collections::BTreeMap,
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::{ControlPlane, ControlPlaneError, programs::write_private};
use crate::lab::Host;

/// A door to a control plane inside a host. Dropping it closes the door and everything that went through.
#[derive(Debug)]
pub struct Exposed {
    door: Arc<Door>,
    address: SocketAddr,
    ends: TcpListener,
    host: Host,
}

#[derive(Debug)]
struct Door {
    open: AtomicBool,
    ended: AtomicBool,
    connections: Mutex<(u64, BTreeMap<u64, [TcpStream; 2]>)>,
}

impl ControlPlane {
    /// Lets programs inside `host`, and those who reach `address` over the lab, speak to this API server. Port 0: any.
    /// The host's loopback serves the host alone, its underlay address everybody.
    ///
    /// # Errors
    /// The address is not the host's.
    pub fn expose(&self, host: &Host, address: SocketAddr) -> Result<Exposed, ControlPlaneError> {
        Exposed::new(host, address, SocketAddr::from(([127, 0, 0, 1], self.port())))
    }

    /// The kubeconfig of a user for programs that come through a door, as a file.
    ///
    /// # Errors
    /// There is no such user, or the file could not be written.
    pub fn kubeconfig_through(
        &self,
        door: &Exposed,
        user: &str,
    ) -> Result<std::path::PathBuf, ControlPlaneError> {
        let name = format!("{}-{}.kubeconfig", user.replace([':', '/'], "-"), door.host.name());
        let path = self.folder().join(name);
        write_private(&path, &self.access.kubeconfig(user, &door.url())?)?;
        Ok(path)
    }
}

impl Exposed {
    /// A door in a host to a server of this program.
    pub(super) fn new(
        host: &Host,
        address: SocketAddr,
        server: SocketAddr,
    ) -> Result<Self, ControlPlaneError> {
        let ends = host.tcp_listener(address).map_err(|source| ControlPlaneError::Lab { source })?;
        let file = |source| ControlPlaneError::File { path: address.to_string().into(), source };
        let listener = ends.try_clone().map_err(file)?;
        let address = ends.local_addr().map_err(file)?;
        let door = Arc::new(Door {
            open: AtomicBool::new(true),
            ended: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let here = Arc::clone(&door);
        thread::spawn(move || here.serve(&listener, server));
        Ok(Exposed { door, address, ends, host: host.clone() })
    }

    /// Where it is reached inside the lab.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as `https://…`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Cuts all connections and refuses new ones, as if the API server were gone for those who come this way.
    pub fn close(&self) {
        self.door.open.store(false, Ordering::SeqCst);
        self.door.cut();
    }

    /// Lets them in again.
    pub fn open(&self) {
        self.door.open.store(true, Ordering::SeqCst);
    }

    /// Cuts all connections once; new ones are let in.
    pub fn cut(&self) {
        self.door.cut();
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        self.door.ended.store(true, Ordering::SeqCst);
        self.close();
        // Wakes the thread that accepts, which shares this socket.
        use std::os::fd::AsRawFd as _;
        let _ = nix::sys::socket::shutdown(self.ends.as_raw_fd(), nix::sys::socket::Shutdown::Both);
    }
}

impl Door {
    fn serve(self: &Arc<Self>, listener: &TcpListener, server: SocketAddr) {
        while !self.ended.load(Ordering::SeqCst) {
            let Ok((outer, _)) = listener.accept() else { continue };
            if self.open.load(Ordering::SeqCst) {
                // What fails here looks to the client like a server that went away, as it should.
                let _ = self.carry(outer, server);
            }
        }
    }

    fn carry(self: &Arc<Self>, outer: TcpStream, server: SocketAddr) -> io::Result<()> {
        let inner = TcpStream::connect(server)?;
        for stream in [&outer, &inner] {
            stream.set_nodelay(true)?;
        }
        let pair = [outer.try_clone()?, inner.try_clone()?];
        let number = {
            let mut connections = self.connections();
            connections.0 += 1;
            let number = connections.0;
            connections.1.insert(number, pair);
            number
        };
        let (outer_again, inner_again) = (outer.try_clone()?, inner.try_clone()?);
        thread::spawn(move || pump(&outer_again, &inner_again));
        let door = Arc::clone(self);
        thread::spawn(move || {
            pump(&inner, &outer);
            door.connections().1.remove(&number);
        });
        Ok(())
    }

    fn cut(&self) {
        for stream in std::mem::take(&mut self.connections().1).values().flatten() {
            // It may be gone already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn connections(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, [TcpStream; 2]>)> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries one direction until an end closes; then both are closed.
fn pump(mut from: &TcpStream, mut to: &TcpStream) {
    // Either end may go away at any time; that is what closing means.
    let _ = io::copy(&mut from, &mut to);
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

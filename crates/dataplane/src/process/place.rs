//! Where a tunnel listens. It moves to another port without a gap: the new socket is open before the old one closes, and
//! what was heard of is read for a moment on. It refuses to leave a port before it has the other.

use std::{
    io,
    net::SocketAddr,
    os::fd::AsFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gotatun::udp::{
    UdpSend, UdpTransportFactory, UdpTransportFactoryParams,
    socket::{UdpSocket, UdpSocketFactory},
};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::sync::{mpsc, watch};

/// Bytes of each socket buffer.
const BUFFER: usize = 4 << 20;
/// How long the socket of before may take to close.
const CLOSING: Duration = Duration::from_secs(2);

/// The place of one tunnel; clones are of the same.
#[derive(Clone, Default)]
pub(super) struct Place(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The socket that counts.
    bound: watch::Sender<Option<Bound>>,
    /// Ends when nobody holds that socket any more.
    closing: Mutex<Option<mpsc::Receiver<()>>>,
    /// The mark of what is sent, if it has one.
    mark: Mutex<Option<u32>>,
}

/// An open socket: closed when the last clone of this is dropped.
#[derive(Clone)]
pub(super) struct Bound {
    pub(super) socket: UdpSocket,
    _open: mpsc::Sender<()>,
}

impl Place {
    /// Opens a socket at any port, where none is open.
    pub(super) async fn open(&self) -> io::Result<()> {
        if self.0.bound.borrow().is_some() {
            return Ok(());
        }
        self.listen(0).await
    }

    /// The socket that counts now.
    pub(super) fn current(&self) -> io::Result<Bound> {
        self.0.bound.borrow().clone().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Tells of every socket that counts from now on.
    pub(super) fn moves(&self) -> watch::Receiver<Option<Bound>> {
        self.0.bound.subscribe()
    }

    /// The port; 0 where nothing is open.
    pub(super) fn port(&self) -> u16 {
        let address = self.current().and_then(|bound| bound.socket.local_addr());
        address.as_ref().map_or(0, SocketAddr::port)
    }

    /// Moves to a port, 0 for any. When this returns, the port of before is free.
    ///
    /// # Errors
    /// The port can't be had: the tunnel stays where it is.
    pub(super) async fn listen(&self, port: u16) -> io::Result<()> {
        let mut factory = UdpSocketFactory { recv_buffer_size: Some(BUFFER), send_buffer_size: Some(BUFFER) };
        let fwmark = *lock(&self.0.mark);
        let (socket, _) = factory.bind(&UdpTransportFactoryParams { addr: None, port, fwmark }).await?;
        // Beyond the system's limit where this process may; within it otherwise.
        let _ = setsockopt(&socket.as_fd(), sockopt::RcvBufForce, &BUFFER);
        let _ = setsockopt(&socket.as_fd(), sockopt::SndBufForce, &BUFFER);
        let (open, closing) = mpsc::channel(1);
        self.0.bound.send_replace(Some(Bound { socket, _open: open }));
        let before = lock(&self.0.closing).replace(closing);
        if let Some(mut before) = before
            && tokio::time::timeout(CLOSING, before.recv()).await.is_err()
        {
            tracing::warn!("the socket of before is still open");
        }
        Ok(())
    }

    /// Marks what is sent from now on.
    pub(super) fn set_mark(&self, mark: u32) -> io::Result<()> {
        *lock(&self.0.mark) = Some(mark);
        UdpSend::set_fwmark(&self.current()?.socket, mark)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

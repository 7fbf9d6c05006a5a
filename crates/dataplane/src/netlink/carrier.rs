//! A thread that carries one netlink connection. The kernel works a request off inside the call that sends it, and there
//! it may wait for its lock for a long time: it refuses to let the packets of the caller's runtime wait with it.

use std::{future::Future, io, sync::mpsc::SyncSender};

use tokio::sync::oneshot;

/// A connection with its thread, which ends when this is dropped.
pub(crate) struct Carrier<H> {
    handle: H,
    _leave: oneshot::Sender<()>,
}

impl<H: Clone + Send + 'static> Carrier<H> {
    /// Starts the thread in the caller's network namespace. `connect` runs on it and gives the connection, which has to
    /// be driven, and its handle.
    pub(crate) fn start<C: Future>(
        connect: impl FnOnce() -> io::Result<(C, H)> + Send + 'static,
    ) -> io::Result<Self> {
        let (opened, answer) = std::sync::mpsc::sync_channel(1);
        let (leave, left) = oneshot::channel();
        let thread = std::thread::Builder::new().name("netlink".to_owned());
        thread.spawn(move || carry(connect, &opened, left))?;
        let handle = answer.recv().unwrap_or_else(|error| Err(io::Error::other(error)))?;
        Ok(Self { handle, _leave: leave })
    }

    pub(crate) fn handle(&self) -> H {
        self.handle.clone()
    }
}

fn carry<H, C: Future>(
    connect: impl FnOnce() -> io::Result<(C, H)>,
    opened: &SyncSender<io::Result<H>>,
    left: oneshot::Receiver<()>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(opened.send(Err(error))),
    };
    runtime.block_on(async {
        match connect() {
            Ok((connection, handle)) => {
                // A caller that is gone has dropped the other end of `left` too.
                let _ = opened.send(Ok(handle));
                tokio::select! {
                    _ = connection => {}
                    _ = left => {}
                }
            }
            Err(error) => drop(opened.send(Err(error))),
        }
    });
}

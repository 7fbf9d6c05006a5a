//! One thread that notes what arrives and when. It refuses to think: the report counts later.

use std::{net::UdpSocket, os::fd::AsFd, sync::atomic::Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Shared, wire::Numbered};

/// One datagram that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// Its number.
    pub(crate) number: u64,
    /// When it came, in nanoseconds of the run.
    pub(crate) at: u64,
}

const LONGEST_WAIT_MS: u8 = 20;

pub(crate) fn run(shared: &Shared, sockets: &[UdpSocket], run: u32) -> Vec<Vec<Arrival>> {
    prefer_this_thread();
    let mut arrivals = vec![Vec::new(); sockets.len()];
    let mut polled: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    while !shared.stop_receiving.load(Ordering::Relaxed) {
        if poll(&mut polled, PollTimeout::from(LONGEST_WAIT_MS)).is_ok_and(|ready| ready > 0) {
            for (socket, state) in sockets.iter().zip(&polled) {
                if state.any().unwrap_or(true) {
                    drain(shared, socket, run, &mut arrivals);
                }
            }
        }
    }
    arrivals
}

fn drain(shared: &Shared, socket: &UdpSocket, run: u32, arrivals: &mut [Vec<Arrival>]) {
    let mut buffer = [0; 2048];
    // Errors of a datagram socket are about single datagrams; the loop ends when nothing is left.
    while let Ok(length) = socket.recv(&mut buffer) {
        let Some(datagram) = Numbered::read(&buffer[..length]).filter(|datagram| datagram.run == run) else {
            continue;
        };
        if let Some(list) = arrivals.get_mut(datagram.pair as usize) {
            list.push(Arrival { number: datagram.number, at: shared.now() });
            shared.received.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Asks for the processor before the programs under test, so that what is measured is them and not this thread.
/// Where that is not allowed the figures are only less sharp.
pub(crate) fn prefer_this_thread() {
    // SAFETY: a plain system call; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
}

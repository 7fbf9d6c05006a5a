//! Counts what arrives: numbered datagrams between pairs of hosts, from before a change to after it. It refuses to
//! judge: a report says what was sent and what came, for any stretch of the run.

mod receiver;
mod report;
mod sender;
mod wire;

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use nix::sys::socket::{setsockopt, sockopt};

pub(crate) use receiver::prefer_this_thread;
pub use report::{PairReport, Report, Stats};

use crate::lab::{Host, LabError};

/// One direction between two hosts.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Who sends.
    pub from: Host,
    /// The source address, one of the sender's.
    pub source: IpAddr,
    /// Who receives.
    pub to: Host,
    /// The destination address, one of the receiver's.
    pub target: IpAddr,
}

impl Pair {
    /// `from>to`, for tables.
    pub fn label(&self) -> String {
        format!("{}>{}", self.from.name(), self.to.name())
    }
}

/// How to send.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Datagrams a second and pair.
    pub per_second: u32,
    /// Bytes of payload, at least [`Rate::SMALLEST`].
    pub payload: usize,
    /// How long late ones are waited for at the end.
    pub grace: Duration,
}

impl Rate {
    /// The least payload: numbers and time stamps need it.
    pub const SMALLEST: usize = wire::LENGTH;
}

impl Default for Rate {
    fn default() -> Self {
        Self { per_second: 1000, payload: 128, grace: Duration::from_secs(2) }
    }
}

/// Why a run could not begin or end.
#[derive(Debug, thiserror::Error)]
pub enum ProberError {
    /// A socket could not be made.
    #[error("making a socket for {pair}")]
    Lab {
        /// The pair.
        pair: String,
        /// The refusal.
        #[source]
        source: LabError,
    },
    /// A socket could not be prepared.
    #[error("preparing a socket for {pair}")]
    Socket {
        /// The pair.
        pair: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// One of the two threads panicked.
    #[error("the {0} of the prober did not come back")]
    Thread(&'static str),
}

/// A run that goes on. Dropping it ends its threads.
#[derive(Debug)]
pub struct Prober {
    labels: Vec<String>,
    shared: Arc<Shared>,
    grace: Duration,
    sender: Option<JoinHandle<sender::Sent>>,
    receiver: Option<JoinHandle<Vec<Vec<receiver::Arrival>>>>,
}

/// What both threads and their owner look at.
#[derive(Debug)]
pub(crate) struct Shared {
    start: Instant,
    stop_sending: AtomicBool,
    stop_receiving: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Shared {
    /// Nanoseconds since the run began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The two ends of one pair.
struct Ends {
    send: UdpSocket,
    target: SocketAddr,
    receive: UdpSocket,
}

const RECEIVE_BUFFER: usize = 4 << 20;

impl Prober {
    /// Makes all sockets, then begins to send.
    ///
    /// # Errors
    /// An address is not there, or a namespace could not be entered.
    pub fn start(pairs: &[Pair], rate: Rate) -> Result<Self, ProberError> {
        let ends = pairs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared {
            start: Instant::now(),
            stop_sending: AtomicBool::new(false),
            stop_receiving: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        for end in ends {
            send.push((end.send, end.target));
            receive.push(end.receive);
        }
        let run = std::process::id();
        let receiver = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || receiver::run(&shared, &receive, run)
        });
        let sender = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || sender::run(&shared, &send, rate, run)
        });
        Ok(Self {
            labels: pairs.iter().map(Pair::label).collect(),
            shared,
            grace: rate.grace,
            sender: Some(sender),
            receiver: Some(receiver),
        })
    }

    /// The time of the run, for windows of the report.
    pub fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }

    /// Sent and received so far, over all pairs.
    pub fn progress(&self) -> (u64, u64) {
        (self.shared.sent.load(Ordering::Relaxed), self.shared.received.load(Ordering::Relaxed))
    }

    /// Ends the run: stops sending, waits for late ones, counts.
    ///
    /// # Errors
    /// A thread of the run panicked.
    pub fn finish(mut self) -> Result<Report, ProberError> {
        self.shared.stop_sending.store(true, Ordering::Relaxed);
        let sender = self.sender.take().ok_or(ProberError::Thread("sender"))?;
        let sent = sender.join().map_err(|_| ProberError::Thread("sender"))?;
        self.wait_for_late_ones();
        self.shared.stop_receiving.store(true, Ordering::Relaxed);
        let receiver = self.receiver.take().ok_or(ProberError::Thread("receiver"))?;
        let arrivals = receiver.join().map_err(|_| ProberError::Thread("receiver"))?;
        let labels = std::mem::take(&mut self.labels);
        Ok(Report::new(labels, sent, arrivals))
    }

    /// At most the grace; less where everything is there.
    fn wait_for_late_ones(&self) {
        let end = Instant::now() + self.grace;
        while Instant::now() < end {
            let (sent, received) = self.progress();
            if received >= sent {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.shared.stop_sending.store(true, Ordering::Relaxed);
        self.shared.stop_receiving.store(true, Ordering::Relaxed);
    }
}

fn open(pair: &Pair) -> Result<Ends, ProberError> {
    let lab = |source| ProberError::Lab { pair: pair.label(), source };
    let socket = |source| ProberError::Socket { pair: pair.label(), source };
    let send = pair.from.udp_socket((pair.source, 0).into()).map_err(lab)?;
    let receive = pair.to.udp_socket((pair.target, 0).into()).map_err(lab)?;
    // The machine's limit counts only where this program may not pass it.
    if setsockopt(&receive, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        setsockopt(&receive, sockopt::RcvBuf, &RECEIVE_BUFFER).map_err(|error| socket(error.into()))?;
    }
    receive.set_nonblocking(true).map_err(socket)?;
    let target = receive.local_addr().map_err(socket)?;
    Ok(Ends { send, target, receive })
}

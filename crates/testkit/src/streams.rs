//! Watches paced TCP streams between pairs of hosts for stalls. It refuses to measure throughput: each stream asks for
//! less than the path carries.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{lab::LabError, prober::Pair};

/// Why streams could not be set up or counted.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A connection could not be made.
    #[error("connecting {pair}")]
    Lab {
        /// The pair.
        pair: String,
        /// The refusal.
        #[source]
        source: LabError,
    },
    /// A connection could not be prepared.
    #[error("preparing the connection of {pair}")]
    Socket {
        /// The pair.
        pair: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// A thread panicked.
    #[error("the {0} of the streams did not come back")]
    Thread(&'static str),
}

/// What became of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamReport {
    /// `from>to`.
    pub label: String,
    /// Bytes that arrived.
    pub received: u64,
    /// The longest time without a byte.
    pub longest_stall: Duration,
    /// Why the stream ended before its time.
    pub broken: Option<String>,
}

/// Streams that run. Dropping them ends their threads.
#[derive(Debug)]
pub struct Streams {
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<Vec<TcpStream>>>,
    receiver: Option<JoinHandle<Vec<StreamReport>>>,
}

const CHUNK: [u8; 2048] = [0x5a; 2048];
const PERIOD: Duration = Duration::from_millis(10);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

impl Streams {
    /// Connects every pair, then sends 2 KiB every 10 ms on each.
    ///
    /// # Errors
    /// A pair does not connect.
    pub fn start(pairs: &[Pair]) -> Result<Self, StreamError> {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for pair in pairs {
            let (sender, receiver) = connect(pair)?;
            senders.push(sender);
            receivers.push((pair.label(), receiver));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let sender = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || send(&stop, senders)
        });
        let receiver = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || receive(&stop, receivers)
        });
        Ok(Self { stop, sender: Some(sender), receiver: Some(receiver) })
    }

    /// Ends the streams and says what became of each.
    ///
    /// # Errors
    /// A thread panicked.
    pub fn finish(mut self) -> Result<Vec<StreamReport>, StreamError> {
        self.stop.store(true, Ordering::Relaxed);
        let receiver = self.receiver.take().ok_or(StreamError::Thread("receiver"))?;
        let reports = receiver.join().map_err(|_| StreamError::Thread("receiver"))?;
        let sender = self.sender.take().ok_or(StreamError::Thread("sender"))?;
        sender.join().map_err(|_| StreamError::Thread("sender"))?;
        Ok(reports)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn connect(pair: &Pair) -> Result<(TcpStream, TcpStream), StreamError> {
    let lab = |source| StreamError::Lab { pair: pair.label(), source };
    let socket = |source| StreamError::Socket { pair: pair.label(), source };
    let listener = pair.to.tcp_listener((pair.target, 0).into()).map_err(lab)?;
    let address = listener.local_addr().map_err(socket)?;
    let sender = pair.from.tcp_stream_from(pair.source, address, CONNECT_LIMIT).map_err(lab)?;
    let (receiver, _) = listener.accept().map_err(socket)?;
    sender.set_nodelay(true).map_err(socket)?;
    sender.set_nonblocking(true).map_err(socket)?;
    receiver.set_nonblocking(true).map_err(socket)?;
    Ok((sender, receiver))
}

/// Gives the open streams back, so that none ends before its receiver stops watching.
fn send(stop: &AtomicBool, mut streams: Vec<TcpStream>) -> Vec<TcpStream> {
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for stream in &mut streams {
            // A full buffer is a stall, and the receiver sees it; a broken stream too.
            let _ = stream.write(&CHUNK);
        }
        due += PERIOD;
        std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
    }
    streams
}

struct Watched {
    stream: TcpStream,
    last: Instant,
    report: StreamReport,
}

fn receive(stop: &AtomicBool, streams: Vec<(String, TcpStream)>) -> Vec<StreamReport> {
    crate::prober::prefer_this_thread();
    let now = Instant::now();
    let empty = |label| StreamReport { label, received: 0, longest_stall: Duration::ZERO, broken: None };
    let mut watched: Vec<Watched> = streams
        .into_iter()
        .map(|(label, stream)| Watched { stream, last: now, report: empty(label) })
        .collect();
    while !stop.load(Ordering::Relaxed) {
        wait_for_bytes(&watched);
        watched.iter_mut().for_each(Watched::read);
    }
    watched.iter_mut().for_each(Watched::note_stall);
    watched.into_iter().map(|watched| watched.report).collect()
}

fn wait_for_bytes(watched: &[Watched]) {
    let open = watched.iter().filter(|watched| watched.report.broken.is_none());
    let mut polled: Vec<PollFd<'_>> =
        open.map(|watched| PollFd::new(watched.stream.as_fd(), PollFlags::POLLIN)).collect();
    // An error is a signal; the loop looks at every stream anyway.
    let _ = poll(&mut polled, PollTimeout::from(20u8));
}

impl Watched {
    fn read(&mut self) {
        let mut buffer = [0; 16384];
        while self.report.broken.is_none() {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.report.broken = Some("closed by the sender".into()),
                Ok(length) => {
                    self.note_stall();
                    self.last = Instant::now();
                    self.report.received += length as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => self.report.broken = Some(error.to_string()),
            }
        }
    }

    fn note_stall(&mut self) {
        self.report.longest_stall = self.report.longest_stall.max(self.last.elapsed());
    }
}

//! A UDP relay that disturbs: it delays, drops, reorders or blocks, each direction by itself. It refuses to be random
//! across runs: the same seed drops the same datagrams.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::lab::{Host, LabError};

/// What happens to the datagrams of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Disturbance {
    /// Nothing passes.
    pub block: bool,
    /// How long every datagram is held.
    pub delay: Duration,
    /// Datagrams dropped of a million.
    pub drop_per_million: u32,
    /// Datagrams of a million that are held for another [`Disturbance::delay`] plus 5 ms, so that later ones pass them.
    pub reorder_per_million: u32,
}

/// The two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From whoever dials to the target.
    ToTarget,
    /// Back.
    FromTarget,
}

/// What passed and what did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Datagrams passed on.
    pub forwarded: u64,
    /// Datagrams dropped or blocked.
    pub dropped: u64,
}

/// Why no relay runs.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The listening socket could not be made.
    #[error("opening the relay's socket on {host:?}")]
    Lab {
        /// The host.
        host: String,
        /// The refusal.
        #[source]
        source: LabError,
    },
    /// The listening socket could not be prepared.
    #[error("preparing the relay's socket on {host:?}")]
    Socket {
        /// The host.
        host: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
}

/// A relay that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    control: Arc<Mutex<Control>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Control {
    disturbance: [Disturbance; 2],
    passed: [Passed; 2],
}

impl Relay {
    /// Listens on `host` at `listen` and passes everything on to `target`, from a port of its own for each client.
    ///
    /// # Errors
    /// The address could not be bound.
    pub fn start(host: &Host, listen: SocketAddr, target: SocketAddr, seed: u64) -> Result<Self, RelayError> {
        let lab = |source| RelayError::Lab { host: host.name().to_owned(), source };
        let failed = |source| RelayError::Socket { host: host.name().to_owned(), source };
        let socket = host.udp_socket(listen).map_err(lab)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let (control, stop) = (Arc::new(Mutex::new(Control::default())), Arc::new(AtomicBool::new(false)));
        let mut work = Work {
            host: host.clone(),
            listener: socket,
            target,
            clients: BTreeMap::new(),
            waiting: BinaryHeap::new(),
            random: seed,
            control: Arc::clone(&control),
        };
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || work.run(&stop)
        });
        Ok(Self { address, control, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens to one direction, from the next datagram on.
    pub fn disturb(&self, direction: Direction, disturbance: Disturbance) {
        lock(&self.control).disturbance[direction as usize] = disturbance;
    }

    /// What passed in one direction so far.
    pub fn passed(&self, direction: Direction) -> Passed {
        lock(&self.control).passed[direction as usize]
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed where it happened.
            let _ = thread.join();
        }
    }
}

fn lock(control: &Mutex<Control>) -> std::sync::MutexGuard<'_, Control> {
    control.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A datagram that is held: ordered by when it is due.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: Instant,
    client: SocketAddr,
    direction: Direction,
    bytes: Vec<u8>,
}

struct Work {
    host: Host,
    listener: UdpSocket,
    target: SocketAddr,
    clients: BTreeMap<SocketAddr, UdpSocket>,
    waiting: BinaryHeap<Reverse<Held>>,
    random: u64,
    control: Arc<Mutex<Control>>,
}

const LONGEST_WAIT: Duration = Duration::from_millis(20);
const OVERTAKEN_BY: Duration = Duration::from_millis(5);

impl Work {
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.wait();
            self.take_from_clients();
            self.take_from_target();
            self.send_due();
        }
    }

    fn wait(&self) {
        let due = self.waiting.peek().map(|held| held.0.due.saturating_duration_since(Instant::now()));
        let limit = due.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        let sockets = std::iter::once(&self.listener).chain(self.clients.values());
        let mut polled: Vec<PollFd<'_>> =
            sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        // An error is a signal; the loop looks at every socket anyway.
        let _ = poll(&mut polled, PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO));
    }

    fn take_from_clients(&mut self) {
        let mut buffer = [0; 65536];
        while let Ok((length, client)) = self.listener.recv_from(&mut buffer) {
            if !self.clients.contains_key(&client) {
                let any = if self.target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let Some(socket) = any.parse().ok().and_then(|any| self.host.udp_socket(any).ok()) else {
                    continue;
                };
                if socket.set_nonblocking(true).is_ok() {
                    self.clients.insert(client, socket);
                }
            }
            self.admit(client, Direction::ToTarget, &buffer[..length]);
        }
    }

    fn take_from_target(&mut self) {
        let mut buffer = [0; 65536];
        let mut came = Vec::new();
        for (client, socket) in &self.clients {
            while let Ok(length) = socket.recv(&mut buffer) {
                came.push((*client, buffer[..length].to_vec()));
            }
        }
        for (client, bytes) in came {
            self.admit(client, Direction::FromTarget, &bytes);
        }
    }

    fn admit(&mut self, client: SocketAddr, direction: Direction, bytes: &[u8]) {
        let disturbance = lock(&self.control).disturbance[direction as usize];
        let (dropped, overtaken) = (
            self.happens(disturbance.drop_per_million) || disturbance.block,
            self.happens(disturbance.reorder_per_million),
        );
        let mut control = lock(&self.control);
        let passed = &mut control.passed[direction as usize];
        if dropped {
            passed.dropped += 1;
            return;
        }
        passed.forwarded += 1;
        let extra = if overtaken { disturbance.delay + OVERTAKEN_BY } else { Duration::ZERO };
        let due = Instant::now() + disturbance.delay + extra;
        self.waiting.push(Reverse(Held { due, client, direction, bytes: bytes.to_vec() }));
    }

    fn send_due(&mut self) {
        let now = Instant::now();
        while self.waiting.peek().is_some_and(|held| held.0.due <= now) {
            let Some(Reverse(held)) = self.waiting.pop() else { return };
            // A datagram that the kernel refuses is a lost one, as on any path.
            let _ = match held.direction {
                Direction::ToTarget => {
                    self.clients.get(&held.client).map(|socket| socket.send_to(&held.bytes, self.target))
                }
                Direction::FromTarget => Some(self.listener.send_to(&held.bytes, held.client)),
            };
        }
    }

    /// The next number of a fixed sequence (SplitMix64, Steele and others 2014) against a chance of a million.
    fn happens(&mut self, per_million: u32) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 1_000_000 < u64::from(per_million)
    }
}

//! A TCP stream as fast as it goes, counted where it arrives, with the processor time that carried it. It refuses to
//! count the first second, in which it finds its speed.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use spanwire_testkit::lab::Host;

const WARM_UP: Duration = Duration::from_secs(1);
const BLOCK: usize = 128 * 1024;
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What a stream carried while it was counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried {
    bytes: f64,
    seconds: f64,
    busy: Duration,
}

impl Carried {
    pub(crate) fn gbit_per_second(&self) -> f64 {
        self.bytes * 8.0 / self.seconds / 1e9
    }

    /// Processor seconds of the carrier for each gigabyte.
    pub(crate) fn seconds_per_gigabyte(&self) -> f64 {
        self.busy.as_secs_f64() / (self.bytes / 1e9)
    }
}

/// Sends from the first host to the second; `busy` reads the processor time that the carrier has taken so far.
pub(crate) fn measure(
    hosts: &[Host; 2],
    target: IpAddr,
    time: Duration,
    busy: impl Fn() -> Result<Duration>,
) -> Result<Carried> {
    let listener = hosts[1].tcp_listener((target, 0).into())?;
    let address = listener.local_addr().context("the address of the listener")?;
    let any = if target.is_ipv4() { "0.0.0.0" } else { "::" }.parse::<IpAddr>().context("an address")?;
    let sender = hosts[0].tcp_stream_from(any, address, CONNECT_LIMIT)?;
    let (receiver, _) = listener.accept().context("accepting the stream")?;
    let sending = std::thread::spawn(move || send(sender));
    let carried = receive(receiver, time, busy)?;
    sending.join().map_err(|_| anyhow!("the sender panicked"))?;
    Ok(carried)
}

/// Until the receiver hangs up.
fn send(mut stream: TcpStream) {
    let block = vec![0x5a; BLOCK];
    while stream.write_all(&block).is_ok() {}
}

fn receive(mut stream: TcpStream, time: Duration, busy: impl Fn() -> Result<Duration>) -> Result<Carried> {
    stream.set_read_timeout(Some(CONNECT_LIMIT)).context("limiting the wait for bytes")?;
    let mut block = vec![0; BLOCK];
    // A signal is no end of the stream.
    let mut read = || loop {
        match stream.read(&mut block) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            done => return done.context("the stream stood still"),
        }
    };
    let begun = Instant::now();
    while begun.elapsed() < WARM_UP {
        read()?;
    }
    let (counted_from, busy_before) = (Instant::now(), busy()?);
    let mut bytes = 0;
    while counted_from.elapsed() < time {
        bytes += read()?;
    }
    #[allow(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    let bytes = bytes as f64;
    Ok(Carried { bytes, seconds: counted_from.elapsed().as_secs_f64(), busy: busy()? - busy_before })
}

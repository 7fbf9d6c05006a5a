//! A TCP stream as fast as it goes, counted where it arrives. It refuses to count the first second, in which it finds
//! its speed.

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

/// Gbit/s from the first host to the second.
pub(crate) fn measure(hosts: &[Host; 2], target: IpAddr, time: Duration) -> Result<f64> {
    let listener = hosts[1].tcp_listener((target, 0).into())?;
    let address = listener.local_addr().context("the address of the listener")?;
    let any = if target.is_ipv4() { "0.0.0.0" } else { "::" }.parse::<IpAddr>().context("an address")?;
    let sender = hosts[0].tcp_stream_from(any, address, CONNECT_LIMIT)?;
    let (receiver, _) = listener.accept().context("accepting the stream")?;
    let sending = std::thread::spawn(move || send(sender));
    let rate = receive(receiver, time)?;
    sending.join().map_err(|_| anyhow!("the sender panicked"))?;
    Ok(rate)
}

/// Until the receiver hangs up.
fn send(mut stream: TcpStream) {
    let block = vec![0x5a; BLOCK];
    while stream.write_all(&block).is_ok() {}
}

fn receive(mut stream: TcpStream, time: Duration) -> Result<f64> {
    stream.set_read_timeout(Some(CONNECT_LIMIT)).context("limiting the wait for bytes")?;
    let mut block = vec![0; BLOCK];
    let begun = Instant::now();
    let (mut counted_from, mut bytes) = (None, 0u64);
    loop {
        let length = stream.read(&mut block).context("the stream stood still")?;
        let age = begun.elapsed();
        match counted_from {
            None if age >= WARM_UP => counted_from = Some(Instant::now()),
            None => {}
            Some(from) => {
                bytes += length as u64;
                if age >= WARM_UP + time {
                    let seconds = from.elapsed().as_secs_f64();
                    #[allow(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
                    return Ok(bytes as f64 * 8.0 / seconds / 1e9);
                }
            }
        }
    }
}

//! The relay: what it passes, drops, delays and reorders, each direction by itself.
#![allow(clippy::unwrap_used, reason = "an error here is a failed test")]

use std::{
    net::UdpSocket,
    time::{Duration, Instant},
};

use spanwire_testkit::{
    lab::Lab,
    relay::{Direction, Disturbance, Relay},
};

struct Path {
    client: UdpSocket,
    server: UdpSocket,
    relay: Relay,
}

fn path() -> Option<Path> {
    if let Some(why) = Lab::why_not() {
        eprintln!("skipped: {why}");
        return None;
    }
    let mut lab = Lab::new().unwrap();
    let [a, middle, b] = ["a", "middle", "b"].map(|name| lab.host(name).unwrap());
    let server = b.udp_socket((b.address(), 0).into()).unwrap();
    let listen = (middle.address(), 0).into();
    let relay = Relay::start(&middle, listen, server.local_addr().unwrap(), 1).unwrap();
    let client = a.udp_socket((a.address(), 0).into()).unwrap();
    client.connect(relay.address()).unwrap();
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    }
    Some(Path { client, server, relay })
}

impl Path {
    fn arrivals(&self, count: u8) -> Vec<u8> {
        for number in 0..count {
            self.client.send(&[number]).unwrap();
        }
        let mut buffer = [0; 16];
        std::iter::from_fn(|| self.server.recv(&mut buffer).ok().map(|_| buffer[0])).collect()
    }
}

#[test]
fn passes_both_ways_and_blocks_one() {
    let Some(path) = path() else { return };
    let mut buffer = [0; 16];
    path.client.send(b"there").unwrap();
    let (length, from) = path.server.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"there");
    path.server.send_to(b"back", from).unwrap();
    assert_eq!(path.client.recv(&mut buffer).unwrap(), 4);
    path.relay.disturb(Direction::ToTarget, Disturbance { block: true, ..Disturbance::default() });
    path.client.send(b"there").unwrap();
    path.server.send_to(b"back", from).unwrap();
    assert_eq!(path.client.recv(&mut buffer).unwrap(), 4);
    assert!(path.server.recv(&mut buffer).is_err());
    assert_eq!(path.relay.passed(Direction::ToTarget).dropped, 1);
}

#[test]
fn drops_about_the_share_asked_for() {
    let Some(path) = path() else { return };
    let half = Disturbance { drop_per_million: 500_000, ..Disturbance::default() };
    path.relay.disturb(Direction::ToTarget, half);
    let came = path.arrivals(200);
    assert!((60..140).contains(&came.len()), "{}", came.len());
    assert!(came.is_sorted());
}

#[test]
fn delays_and_reorders() {
    let Some(path) = path() else { return };
    let delay = Duration::from_millis(50);
    path.relay.disturb(Direction::ToTarget, Disturbance { delay, ..Disturbance::default() });
    let before = Instant::now();
    path.client.send(b"late").unwrap();
    path.server.recv(&mut [0; 16]).unwrap();
    assert!(before.elapsed() >= delay);
    let mixed = Disturbance { reorder_per_million: 300_000, ..Disturbance::default() };
    path.relay.disturb(Direction::ToTarget, mixed);
    let came = path.arrivals(100);
    assert_eq!(came.len(), 100);
    assert!(!came.is_sorted());
}

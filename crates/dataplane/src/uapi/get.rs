//! Text of `get=1` answers, both ways. It refuses to take the wall clock as an age: ages are turned into moments and
//! back with the clock that is passed in.

use std::{fmt::Write as _, time::Duration};

use spanwire_engine::PublicKey;
use zeroize::Zeroizing;

use crate::{
    configuration::{DeviceInfo, PeerInfo},
    key::{PresharedKey, SecretKey},
};

use super::{SyntaxError, hex, unhex};

/// Which peers a `get=1` request asks for: those that it names, an addition of ours to the protocol; `None`: all.
pub(crate) fn parse_filter(text: &str) -> Result<Option<Vec<PublicKey>>, SyntaxError> {
    let mut keys = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let named = line.strip_prefix("public_key=").and_then(unhex);
        let fault =
            || SyntaxError { line: index + 1, key: line.split('=').next().unwrap_or(line).to_owned() };
        keys.push(PublicKey(named.ok_or_else(fault)?));
    }
    Ok((!keys.is_empty()).then_some(keys))
}

/// Writes a whole answer. `wall` is the time since the epoch, for the moments of handshakes.
pub(crate) fn render_get(device: &DeviceInfo, wall: Duration) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(256 + 512 * device.peers.len()));
    if let Some(key) = &device.private_key {
        line(&mut text, "private_key", &*Zeroizing::new(hex(key.bytes())));
    }
    line(&mut text, "listen_port", device.listen_port);
    if device.mark != 0 {
        line(&mut text, "fwmark", device.mark);
    }
    for (key, peer) in &device.peers {
        line(&mut text, "public_key", hex(&key.0));
        if let Some(key) = &peer.preshared_key {
            line(&mut text, "preshared_key", &*Zeroizing::new(hex(key.bytes())));
        }
        line(&mut text, "protocol_version", 1);
        if let Some(endpoint) = peer.endpoint {
            line(&mut text, "endpoint", endpoint);
        }
        let moment = peer.handshake.map_or(Duration::ZERO, |age| wall.saturating_sub(age));
        line(&mut text, "last_handshake_time_sec", moment.as_secs());
        line(&mut text, "last_handshake_time_nsec", moment.subsec_nanos());
        line(&mut text, "tx_bytes", peer.sent);
        line(&mut text, "rx_bytes", peer.received);
        line(&mut text, "persistent_keepalive_interval", peer.keepalive);
        for prefix in &peer.allowed_ips {
            line(&mut text, "allowed_ip", prefix);
        }
    }
    text.push_str("errno=0\n\n");
    text
}

fn line(text: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a string has no failure.
    let _ = writeln!(text, "{key}={value}");
}

/// Reads an answer up to, and without, its `errno` line. Keys of other implementations are skipped.
pub(crate) fn parse_get(text: &str, wall: Duration) -> Result<DeviceInfo, SyntaxError> {
    let mut device = DeviceInfo::default();
    let mut current: Option<(PublicKey, PeerInfo, Duration)> = None;
    for (index, line) in text.lines().enumerate() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let known = if key == "public_key" {
            close(&mut device, current.take(), wall);
            unhex(value).map(|key| current = Some((PublicKey(key), PeerInfo::default(), Duration::ZERO)))
        } else if let Some((_, peer, moment)) = &mut current {
            peer_line(peer, moment, key, value)
        } else {
            device_line(&mut device, key, value)
        };
        known.ok_or_else(|| SyntaxError { line: index + 1, key: key.to_owned() })?;
    }
    close(&mut device, current, wall);
    Ok(device)
}

fn close(device: &mut DeviceInfo, peer: Option<(PublicKey, PeerInfo, Duration)>, wall: Duration) {
    if let Some((key, mut peer, moment)) = peer {
        peer.handshake = (!moment.is_zero()).then(|| wall.saturating_sub(moment));
        device.peers.insert(key, peer);
    }
}

fn device_line(device: &mut DeviceInfo, key: &str, value: &str) -> Option<()> {
    match key {
        "private_key" => {
            let bytes = Zeroizing::new(unhex(value)?);
            device.private_key = (*bytes != [0; 32]).then(|| SecretKey::from_bytes(bytes));
        }
        "listen_port" => device.listen_port = value.parse().ok()?,
        "fwmark" => device.mark = value.parse().ok()?,
        _ => {}
    }
    Some(())
}

fn peer_line(peer: &mut PeerInfo, moment: &mut Duration, key: &str, value: &str) -> Option<()> {
    match key {
        "preshared_key" => peer.preshared_key = PresharedKey::from_bytes(Zeroizing::new(unhex(value)?)),
        "endpoint" => peer.endpoint = Some(value.parse().ok()?),
        "last_handshake_time_sec" => *moment += Duration::from_secs(value.parse().ok()?),
        "last_handshake_time_nsec" => *moment += Duration::from_nanos(value.parse().ok()?),
        "tx_bytes" => peer.sent = value.parse().ok()?,
        "rx_bytes" => peer.received = value.parse().ok()?,
        "persistent_keepalive_interval" => peer.keepalive = value.parse().ok()?,
        "allowed_ip" => drop(peer.allowed_ips.insert(value.parse().ok()?)),
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_name_peers() {
        assert_eq!(parse_filter(""), Ok(None));
        let line = format!("public_key={}\n", "05".repeat(32));
        assert_eq!(parse_filter(&line), Ok(Some(vec![PublicKey([5; 32])])));
        assert!(parse_filter("nonsense=1").is_err());
    }

    #[test]
    fn an_answer_survives_the_round_trip() {
        let wall = Duration::from_secs(1_700_000_000);
        let mut device = DeviceInfo { listen_port: 7, mark: 3, ..DeviceInfo::default() };
        device.private_key = Some(SecretKey::generate().unwrap());
        let peer = PeerInfo {
            endpoint: Some("192.0.2.1:51820".parse().unwrap()),
            keepalive: 25,
            allowed_ips: ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()].into(),
            handshake: Some(Duration::from_millis(1500)),
            received: 10,
            sent: 20,
            ..PeerInfo::default()
        };
        device.peers.insert(PublicKey([5; 32]), peer);
        device.peers.insert(PublicKey([6; 32]), PeerInfo::default());
        let text = render_get(&device, wall);
        let again = parse_get(text.strip_suffix("errno=0\n\n").unwrap(), wall).unwrap();
        assert_eq!(*render_get(&again, wall), *text);
        assert_eq!(again.peers[&PublicKey([6; 32])].handshake, None);
    }
}

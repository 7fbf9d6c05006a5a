//! Text of `set=1` requests, both ways. It refuses unknown keys and keys out of place.

use std::fmt::Write as _;

use ipnet::IpNet;
use spanwire_engine::PublicKey;
use zeroize::Zeroizing;

use crate::{
    configuration::{AllowedIp, SetDevice, SetPeer},
    key::{PresharedKey, SecretKey},
};

use super::{SyntaxError, hex, unhex};

/// Reads the lines after `set=1`.
pub(crate) fn parse_set(text: &str) -> Result<SetDevice, SyntaxError> {
    let mut set = SetDevice::default();
    for (index, line) in text.lines().enumerate() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let known = match (key, set.peers.last_mut()) {
            ("public_key", _) => unhex(value).map(|key| set.peers.push(SetPeer::new(PublicKey(key)))),
            (_, None) => device_line(&mut set, key, value),
            (_, Some(peer)) => peer_line(peer, key, value),
        };
        known.ok_or_else(|| SyntaxError { line: index + 1, key: key.to_owned() })?;
    }
    Ok(set)
}

fn device_line(set: &mut SetDevice, key: &str, value: &str) -> Option<()> {
    match key {
        "private_key" => {
            let bytes = Zeroizing::new(unhex(value)?);
            if *bytes == [0; 32] {
                return None;
            }
            set.private_key = Some(SecretKey::from_bytes(bytes));
        }
        "listen_port" => set.listen_port = Some(value.parse().ok()?),
        "fwmark" => set.mark = Some(value.parse().ok()?),
        "replace_peers" => set.replace_peers = truth(value)?,
        _ => return None,
    }
    Some(())
}

fn peer_line(peer: &mut SetPeer, key: &str, value: &str) -> Option<()> {
    match key {
        "remove" => peer.remove = truth(value)?,
        "update_only" => peer.update_only = truth(value)?,
        "preshared_key" => {
            peer.preshared_key = Some(PresharedKey::from_bytes(Zeroizing::new(unhex(value)?)));
        }
        "endpoint" => peer.endpoint = Some(value.parse().ok()?),
        "persistent_keepalive_interval" => peer.keepalive = Some(value.parse().ok()?),
        "replace_allowed_ips" => peer.replace_allowed_ips = truth(value)?,
        "allowed_ip" => peer.allowed_ips.push(allowed_ip(value)?),
        "protocol_version" if value == "1" => {}
        _ => return None,
    }
    Some(())
}

fn truth(value: &str) -> Option<bool> {
    value.parse().ok()
}

fn allowed_ip(value: &str) -> Option<AllowedIp> {
    let (remove, value) = match value.strip_prefix('-') {
        Some(value) => (true, value),
        None => (false, value.strip_prefix('+').unwrap_or(value)),
    };
    let prefix: IpNet = value.parse().ok()?;
    Some(AllowedIp { remove, prefix: prefix.trunc() })
}

/// Writes a whole request with its closing blank line.
pub(crate) fn render_set(set: &SetDevice) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(256 + 512 * set.peers.len()));
    text.push_str("set=1\n");
    if let Some(key) = &set.private_key {
        line(&mut text, "private_key", &*Zeroizing::new(hex(key.bytes())));
    }
    if let Some(port) = set.listen_port {
        line(&mut text, "listen_port", port);
    }
    if let Some(mark) = set.mark {
        line(&mut text, "fwmark", mark);
    }
    if set.replace_peers {
        line(&mut text, "replace_peers", true);
    }
    for peer in &set.peers {
        render_peer(&mut text, peer);
    }
    text.push('\n');
    text
}

fn render_peer(text: &mut String, peer: &SetPeer) {
    line(text, "public_key", hex(&peer.public_key.0));
    if peer.remove {
        line(text, "remove", true);
    }
    if peer.update_only {
        line(text, "update_only", true);
    }
    if let Some(key) = &peer.preshared_key {
        let bytes = key.as_ref().map_or(&[0; 32], PresharedKey::bytes);
        line(text, "preshared_key", &*Zeroizing::new(hex(bytes)));
    }
    if let Some(endpoint) = peer.endpoint {
        line(text, "endpoint", endpoint);
    }
    if let Some(keepalive) = peer.keepalive {
        line(text, "persistent_keepalive_interval", keepalive);
    }
    if peer.replace_allowed_ips {
        line(text, "replace_allowed_ips", true);
    }
    for allowed in &peer.allowed_ips {
        let sign = if allowed.remove { "-" } else { "" };
        line(text, "allowed_ip", format_args!("{sign}{}", allowed.prefix));
    }
}

fn line(text: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a string has no failure.
    let _ = writeln!(text, "{key}={value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_round_trip() {
        let mut peer = SetPeer::new(PublicKey([3; 32]));
        peer.endpoint = Some("[2001:db8::1]:51820".parse().unwrap());
        peer.keepalive = Some(25);
        peer.preshared_key = Some(PresharedKey::from_bytes(Zeroizing::new([9; 32])));
        peer.allowed_ips = vec![
            AllowedIp { remove: false, prefix: "10.0.0.0/8".parse().unwrap() },
            AllowedIp { remove: true, prefix: "fd00::/64".parse().unwrap() },
        ];
        let mut gone = SetPeer::new(PublicKey([4; 32]));
        gone.remove = true;
        let set = SetDevice {
            private_key: Some(SecretKey::generate().unwrap()),
            listen_port: Some(51820),
            mark: Some(7),
            replace_peers: true,
            peers: vec![peer, gone],
        };
        let text = render_set(&set);
        let body = text.strip_prefix("set=1\n").unwrap().strip_suffix('\n').unwrap();
        let again = parse_set(body).unwrap();
        assert_eq!(*render_set(&again), *text);
    }

    #[test]
    fn host_bits_are_cut_and_faults_are_named_without_values() {
        let key = "ab".repeat(32);
        let set = parse_set(&format!("public_key={key}\nallowed_ip=10.1.2.3/16\n")).unwrap();
        assert_eq!(set.peers[0].allowed_ips[0].prefix, "10.1.0.0/16".parse().unwrap());
        let long = format!("public_key={key}\nprivate_key=secret\n");
        for (text, line, fault) in [
            ("listen_port=70000", 1, "listen_port"),
            ("endpoint=192.0.2.1:1", 1, "endpoint"),
            (&*long, 2, "private_key"),
            ("nonsense", 1, "nonsense"),
            ("public_key=zz", 1, "public_key"),
        ] {
            let error = parse_set(text).err().unwrap();
            assert_eq!((error.line, error.key.as_str()), (line, fault));
        }
    }
}

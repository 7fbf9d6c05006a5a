//! What a gateway would publish if its worker ran. It refuses to replace what a worker has published.

use sha2::{Digest as _, Sha256};
use spanwire_engine::{Gateway, GatewayName, PublicKey};

/// Fills what is missing and returns the gateway's key. `number` makes an address of the documentation range.
pub(super) fn fill(number: u32, name: &GatewayName, gateway: &mut Gateway) -> PublicKey {
    let key = super::key_of(name, gateway.facts.public_key.as_deref());
    gateway.facts.public_key.get_or_insert_with(|| key.to_string());
    gateway.facts.endpoint.get_or_insert_with(|| {
        let [_, high, middle, low] = number.to_be_bytes();
        format!("fd00::{high:x}:{middle:x}:{low:x}")
    });
    // A host name would have to be looked up; where it leads makes no difference to any decision here.
    if let Some(host) =
        gateway.advertise_host.as_ref().filter(|host| host.parse::<std::net::IpAddr>().is_err())
    {
        gateway.facts.endpoint = Some(host.clone());
        gateway.advertise_host = Some(format!("fd00:1::{number:x}"));
    }
    key
}

/// A key that stands for one that is not published yet.
pub(super) fn stand_in(name: &GatewayName) -> PublicKey {
    PublicKey(Sha256::digest(format!("no key of {name} yet")).into())
}

//! A private key that was lost, read back from a device that still carries it. It refuses any key but the one whose public
//! half is named.

use std::path::PathBuf;

use spanwire_engine::{DeviceName, PublicKey};

use crate::{key::SecretKey, netlink::Netlink, wireguard::Wireguard};

use super::Error;

/// The private key of `public`, if one of our devices has it. A device that does not answer is passed over.
///
/// # Errors
/// The interfaces of this host can't be listed.
pub async fn secret_of(public: &PublicKey, uapi_dir: PathBuf) -> Result<Option<SecretKey>, Error> {
    let links = Netlink::open().map_err(Error::Netlink)?.links().await.map_err(Error::Netlink)?;
    let wireguard = Wireguard::open(uapi_dir).map_err(Error::Configuration)?;
    for link in links.iter().filter(|link| link.is_ours()) {
        let Ok(name) = link.name.parse::<DeviceName>() else { continue };
        let Ok(info) = wireguard.get(&name).await else { continue };
        if let Some(secret) = info.private_key.filter(|secret| secret.public() == *public) {
            return Ok(Some(secret));
        }
    }
    Ok(None)
}

//! The kernel switches of our devices and of forwarding. It refuses to switch anything off that is not ours.

use ipnet::IpNet;
use spanwire_engine::DeviceName;

use crate::sysctl::{Error, Sysctl};

use super::{LocalDevices, for_all};

/// Of a device: no reverse-path filter, no redirects either way, no link-local address of its own.
fn wanted(device: &DeviceName) -> [(String, &'static str); 5] {
    [
        (format!("ipv4/conf/{device}/rp_filter"), "0"),
        (format!("ipv4/conf/{device}/send_redirects"), "0"),
        (format!("ipv4/conf/{device}/accept_redirects"), "0"),
        (format!("ipv6/conf/{device}/accept_redirects"), "0"),
        (format!("ipv6/conf/{device}/addr_gen_mode"), "1"),
    ]
}

/// Sets what differs. Returns what was changed.
pub(super) fn set(sysctl: &Sysctl, device: &DeviceName, v6: bool) -> Result<Vec<String>, Error> {
    let mut changed = Vec::new();
    let more = v6.then(|| (format!("ipv6/conf/{device}/disable_ipv6"), "0"));
    for (key, value) in wanted(device).into_iter().chain(more) {
        if sysctl.set(&key, value)?.is_some() {
            changed.push(key);
        }
    }
    Ok(changed)
}

/// Whether all stand as wanted.
pub(super) fn stand(sysctl: &Sysctl, device: &DeviceName) -> Result<bool, Error> {
    for (key, value) in wanted(device) {
        if sysctl.get(&key)?.is_some_and(|now| now != value) {
            return Ok(false);
        }
    }
    for_all::are_off(sysctl)
}

impl LocalDevices {
    /// Lets the host forward packets of the families that `prefixes` have.
    pub(super) fn allow_forwarding(&self, prefixes: impl Iterator<Item = IpNet>) -> Result<(), super::Error> {
        let (mut v4, mut v6) = (false, false);
        for prefix in prefixes {
            *if prefix.addr().is_ipv4() { &mut v4 } else { &mut v6 } = true;
        }
        if v4 {
            self.switch_on("ipv4/ip_forward")?;
        }
        let routes_v6 = || self.sysctl.get("ipv6/conf/all/forwarding").map_err(super::Error::Switch);
        if v6 && routes_v6()?.as_deref() == Some("0") {
            self.keep_router_advertisements()?;
            self.switch_on("ipv6/conf/all/forwarding")?;
        }
        Ok(())
    }

    /// A host that forwards ignores router advertisements, and would lose the default route that it has from one.
    fn keep_router_advertisements(&self) -> Result<(), super::Error> {
        for interface in self.sysctl.names("ipv6/conf").map_err(super::Error::Switch)? {
            let key = format!("ipv6/conf/{interface}/accept_ra");
            if self.sysctl.get(&key).map_err(super::Error::Switch)?.as_deref() == Some("1") {
                self.report(&key, "2", self.sysctl.set(&key, "2").map_err(super::Error::Switch)?);
            }
        }
        Ok(())
    }

    fn switch_on(&self, key: &str) -> Result<(), super::Error> {
        self.report(key, "1", self.sysctl.set(key, "1").map_err(super::Error::Switch)?);
        Ok(())
    }

    fn report(&self, key: &str, value: &str, before: Option<String>) {
        if let Some(before) = before {
            tracing::warn!(key, before, value, "changed a switch of this host");
            self.wrote();
        }
    }
}

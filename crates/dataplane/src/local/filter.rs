//! The packet filter step. It refuses to write a table that stands as asked.

use spanwire_engine::firewall::Firewall;

use super::{Error, LocalDevices};

impl LocalDevices {
    /// No networks: no table.
    pub(super) async fn apply_firewall(&self, firewall: &Firewall) -> Result<(), Error> {
        if firewall.networks.is_empty() {
            if self.filter.remove().await.map_err(Error::Filter)? {
                self.wrote();
            }
            return Ok(());
        }
        if self.filter.set(firewall).await.map_err(Error::Filter)? {
            self.wrote();
        }
        Ok(())
    }
}

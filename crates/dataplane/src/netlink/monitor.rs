//! Notices that the host's interfaces, addresses, routes or rules changed. It refuses to say what changed: the next pass
//! reads everything.

use std::time::Duration;

use futures::StreamExt;
use rtnetlink::MulticastGroup;
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use super::Error;

/// Notifications that come this close together count as one change.
const QUIET: Duration = Duration::from_millis(30);

const GROUPS: [MulticastGroup; 7] = [
    MulticastGroup::Link,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Route,
    MulticastGroup::Ipv4Rule,
    MulticastGroup::Ipv6Rule,
];

/// Changes of the host's network configuration, coalesced.
pub struct HostChanges {
    seen: watch::Receiver<u64>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl HostChanges {
    /// Everything that concerns a pass over the host.
    pub(crate) fn open() -> Result<Self, Error> {
        Self::open_groups(&GROUPS)
    }

    /// Interfaces alone.
    pub(crate) fn open_links() -> Result<Self, Error> {
        Self::open_groups(&[MulticastGroup::Link])
    }

    fn open_groups(groups: &[MulticastGroup]) -> Result<Self, Error> {
        let (connection, _, mut messages) =
            rtnetlink::new_multicast_connection(groups).map_err(Error::Open)?;
        let (count, seen) = watch::channel(0u64);
        let reader = tokio::spawn(async move {
            while messages.next().await.is_some() {
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(Self { seen, tasks: [tokio::spawn(connection), reader] })
    }

    /// Resolves when something may have changed since the last call returned; what happens in between is not lost.
    pub async fn changed(&mut self) {
        if self.seen.changed().await.is_err() {
            // The reader ended with its connection: nothing more will be noticed, the periodic resync is the net.
            std::future::pending::<()>().await;
        }
        sleep(QUIET).await;
        self.seen.mark_unchanged();
    }
}

impl spanwire_engine::port::Changes for HostChanges {
    async fn changed(&mut self) {
        HostChanges::changed(self).await;
    }
}

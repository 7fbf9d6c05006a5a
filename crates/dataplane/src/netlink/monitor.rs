//! Notices that the host's interfaces, addresses, routes or rules changed. It refuses to say what changed: the next pass
//! reads everything.

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use rtnetlink::MulticastGroup;
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use super::Error;

/// Notifications that come this close together count as one change.
const QUIET: Duration = Duration::from_millis(100);
/// Pause before a connection that ended is opened again.
const REOPEN: Duration = Duration::from_secs(1);

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
    task: JoinHandle<()>,
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        self.task.abort();
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

    fn open_groups(groups: &'static [MulticastGroup]) -> Result<Self, Error> {
        let listening = listen(groups)?;
        let (count, seen) = watch::channel(0u64);
        Ok(Self { seen, task: tokio::spawn(follow(groups, listening, count)) })
    }

    /// Resolves when something may have changed since the last call returned; what happens in between is not lost.
    pub async fn changed(&mut self) {
        if self.seen.changed().await.is_err() {
            // The follower never ends while this lives.
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

/// A connection that has to be driven, and what arrives by it.
type Listening = (BoxFuture<'static, ()>, BoxStream<'static, ()>);

fn listen(groups: &[MulticastGroup]) -> Result<Listening, Error> {
    let (connection, _, messages) = rtnetlink::new_multicast_connection(groups).map_err(Error::Open)?;
    Ok((connection.boxed(), messages.map(|_| ()).boxed()))
}

/// Counts notifications. A connection that ends, as by more of them than fit into its socket, is opened again, and
/// counts as a change itself: something was missed.
async fn follow(groups: &[MulticastGroup], mut listening: Listening, count: watch::Sender<u64>) {
    loop {
        let (mut connection, mut messages) = listening;
        loop {
            tokio::select! {
                () = &mut connection => break,
                message = messages.next() => match message {
                    Some(()) => count.send_modify(|count| *count += 1),
                    None => break,
                },
            }
        }
        listening = loop {
            sleep(REOPEN).await;
            match listen(groups) {
                Ok(listening) => break listening,
                Err(error) => tracing::warn!(%error, "changes of this host are not noticed for now"),
            }
        };
        count.send_modify(|count| *count += 1);
    }
}

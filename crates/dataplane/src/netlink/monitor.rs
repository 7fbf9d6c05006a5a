//! Notices that the host's interfaces, addresses, routes or rules changed: what is ours at once, what is not from time to
//! time. It refuses to say what changed: the next pass reads everything.

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{LinkAttribute, LinkMessage},
    route::RouteProtocol,
    rule::RuleAttribute,
};
use rtnetlink::MulticastGroup;
use spanwire_engine::DeviceId;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::Error;

/// Notifications that come this close together count as one change.
const QUIET: Duration = Duration::from_millis(100);
/// What is not ours is looked at no more often: a router on this host may change thousands of routes a second.
const FOREIGN: Duration = Duration::from_secs(10);
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

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Foreign,
    /// A plan looks at it in no case.
    Nobodys,
}

/// Counts of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    ours: u64,
    foreign: u64,
}

/// Changes of the host's network configuration, coalesced.
pub(crate) struct HostChanges {
    seen: watch::Receiver<Counts>,
    last: Counts,
    /// When foreign changes may be looked at again.
    patience: Instant,
    task: JoinHandle<()>,
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HostChanges {
    /// Everything that concerns a pass over the host. `protocol`: the number of our routes and rules.
    pub(crate) fn open(protocol: u8) -> Result<Self, Error> {
        Self::open_groups(&GROUPS, move |message| whose(message, protocol))
    }

    /// Interfaces alone, whosever they are.
    pub(crate) fn open_links() -> Result<Self, Error> {
        Self::open_groups(&[MulticastGroup::Link], |_| Whose::Ours)
    }

    fn open_groups(
        groups: &'static [MulticastGroup],
        whose: impl Fn(&RouteNetlinkMessage) -> Whose + Send + Clone + 'static,
    ) -> Result<Self, Error> {
        let open = move || listen(groups, whose.clone());
        let listening = open()?;
        let (count, seen) = watch::channel(Counts::default());
        let task = tokio::spawn(follow(open, listening, count));
        Ok(Self { seen, last: Counts::default(), patience: Instant::now(), task })
    }

    /// Resolves when something may have changed since the last call returned; what happens in between is not lost.
    pub(crate) async fn changed(&mut self) {
        loop {
            let now = *self.seen.borrow_and_update();
            if now.ours != self.last.ours {
                sleep(QUIET).await;
                break;
            }
            let foreign = now.foreign != self.last.foreign;
            tokio::select! {
                changed = self.seen.changed() => if changed.is_err() {
                    // The follower never ends while this lives.
                    std::future::pending::<()>().await;
                },
                () = sleep_until(self.patience), if foreign => break,
            }
        }
        self.last = *self.seen.borrow_and_update();
        self.patience = Instant::now() + FOREIGN;
    }
}

/// Whose the thing is of which a notification tells.
fn whose(message: &RouteNetlinkMessage, protocol: u8) -> Whose {
    match message {
        RouteNetlinkMessage::NewRoute(route) | RouteNetlinkMessage::DelRoute(route) => {
            if route.header.protocol == RouteProtocol::from(protocol) { Whose::Ours } else { Whose::Foreign }
        }
        RouteNetlinkMessage::NewRule(rule) | RouteNetlinkMessage::DelRule(rule) => {
            let ours = RuleAttribute::Protocol(RouteProtocol::from(protocol));
            if rule.attributes.contains(&ours) { Whose::Ours } else { Whose::Nobodys }
        }
        RouteNetlinkMessage::NewLink(link) | RouteNetlinkMessage::DelLink(link) if is_ours(link) => {
            Whose::Ours
        }
        // They do not say of whose interface, and there are few.
        RouteNetlinkMessage::NewAddress(_) | RouteNetlinkMessage::DelAddress(_) => Whose::Ours,
        _ => Whose::Foreign,
    }
}

fn is_ours(link: &LinkMessage) -> bool {
    link.attributes.iter().any(|attribute| match attribute {
        LinkAttribute::IfAlias(alias) => DeviceId::from_alias(alias).is_some(),
        _ => false,
    })
}

/// A connection that has to be driven, and what arrives by it.
type Listening = (BoxFuture<'static, ()>, BoxStream<'static, Whose>);

fn listen(
    groups: &[MulticastGroup],
    whose: impl Fn(&RouteNetlinkMessage) -> Whose + Send + 'static,
) -> Result<Listening, Error> {
    let (connection, _, messages) = rtnetlink::new_multicast_connection(groups).map_err(Error::Open)?;
    let messages = messages.map(move |(message, _)| match &message.payload {
        NetlinkPayload::InnerMessage(message) => whose(message),
        // As by an overrun: something was missed.
        _ => Whose::Ours,
    });
    Ok((connection.boxed(), messages.boxed()))
}

/// Counts notifications. A connection that ends, as by more of them than fit into its socket, is opened again, and
/// counts as a change itself: something was missed.
async fn follow(
    open: impl Fn() -> Result<Listening, Error>,
    mut listening: Listening,
    count: watch::Sender<Counts>,
) {
    loop {
        let (mut connection, mut messages) = listening;
        loop {
            tokio::select! {
                () = &mut connection => break,
                message = messages.next() => match message {
                    Some(Whose::Ours) => count.send_modify(|count| count.ours += 1),
                    Some(Whose::Foreign) => count.send_modify(|count| count.foreign += 1),
                    Some(Whose::Nobodys) => {}
                    None => break,
                },
            }
        }
        listening = loop {
            sleep(REOPEN).await;
            match open() {
                Ok(listening) => break listening,
                Err(error) => tracing::warn!(%error, "changes of this host are not noticed for now"),
            }
        };
        count.send_modify(|count| count.ours += 1);
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::{route::RouteMessage, rule::RuleMessage};

    use super::*;

    #[test]
    fn ours_is_told_from_foreign_by_alias_and_protocol() {
        let link = |alias: &str| {
            let mut link = LinkMessage::default();
            link.attributes.push(LinkAttribute::IfAlias(alias.to_owned()));
            RouteNetlinkMessage::DelLink(link)
        };
        assert_eq!(whose(&link("spanwire/demo/downlink/-"), 83), Whose::Ours);
        assert_eq!(whose(&link("something"), 83), Whose::Foreign);
        let route = |protocol: u8| {
            let mut route = RouteMessage::default();
            route.header.protocol = RouteProtocol::from(protocol);
            RouteNetlinkMessage::DelRoute(route)
        };
        assert_eq!((whose(&route(83), 83), whose(&route(186), 83)), (Whose::Ours, Whose::Foreign));
        let rule = |protocol: u8| {
            let mut rule = RuleMessage::default();
            rule.attributes.push(RuleAttribute::Protocol(RouteProtocol::from(protocol)));
            RouteNetlinkMessage::NewRule(rule)
        };
        assert_eq!((whose(&rule(83), 83), whose(&rule(4), 83)), (Whose::Ours, Whose::Nobodys));
    }
}

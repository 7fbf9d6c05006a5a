//! What the local store should hold of an intent and of each link. It refuses to rewrite what means the same.

use crate::{
    DeviceName, LinkId, LinkRole, LinkState, Now, OnTimeout, Reason,
    worker::{
        AppliedIntent, Evidence, LinkStatus, RecordedLink, WantedLink,
        links::{Links, Row},
    },
};

/// The intent with the moments since when each link is wanted: known ones stay, new ones begin now. `None`: it is recorded
/// like that.
pub(super) fn intent(links: &Links<'_>, recorded: Option<&AppliedIntent>) -> Option<AppliedIntent> {
    let applied = links.desired.applied.as_ref()?;
    let wanted = || links.rows.iter().filter(|row| row.is_wanted());
    let same = recorded.is_some_and(|recorded| {
        let AppliedIntent { intent, uid, generation, own_subnets, own_host, wanted_since } = recorded;
        let since = wanted_since.iter().map(|((peer, role), since)| ((peer, *role), since));
        (generation, uid, own_subnets, own_host)
            == (&applied.generation, &applied.uid, &applied.own_subnets, &applied.own_host)
            && since.eq(wanted().map(|row| (row.key, links.wanted_since(row))))
            && *intent == applied.intent
    });
    let since = wanted().map(|row| ((row.key.0.clone(), row.role()), links.wanted_since(row).clone()));
    (!same).then(|| AppliedIntent {
        intent: applied.intent.clone(),
        uid: applied.uid.clone(),
        generation: applied.generation,
        own_subnets: applied.own_subnets.clone(),
        own_host: applied.own_host.clone(),
        wanted_since: since.collect(),
    })
}

/// The record of a wanted link. `None`: it is recorded like that.
pub(super) fn wanted(
    links: &Links<'_>,
    row: &Row<'_>,
    link: &WantedLink,
    device: &DeviceName,
    port: u16,
    now: &Now,
) -> Option<RecordedLink> {
    let verdict = verdict(links, row, port);
    if row.recorded.is_some_and(|recorded| is_recorded(recorded, link, device, port, &verdict)) {
        return None;
    }
    let last = row.recorded.map(|recorded| &recorded.status);
    let status = LinkStatus { unwanted_since: None, ..verdict.status(last, now) };
    let WantedLink {
        peer_uid,
        public_key,
        key_generation,
        allowed_ips,
        prefixes,
        probe,
        endpoint,
        keepalive,
    } = link.clone();
    let generation = links.desired.applied.as_ref().map_or(0, |applied| applied.generation);
    Some(RecordedLink {
        id: links.id(row.key),
        peer_uid,
        device: device.clone(),
        listen_port: port,
        public_key,
        key_generation,
        allowed_ips,
        prefixes,
        probe,
        endpoint,
        keepalive,
        intent_generation: row.recorded.map_or(generation, |recorded| recorded.intent_generation),
        status,
    })
}

/// Whether a record says what is wanted.
fn is_recorded(
    recorded: &RecordedLink,
    link: &WantedLink,
    device: &DeviceName,
    port: u16,
    verdict: &Verdict,
) -> bool {
    let RecordedLink {
        id: _,
        peer_uid,
        device: on_device,
        listen_port,
        public_key,
        key_generation,
        allowed_ips,
        prefixes,
        probe,
        endpoint,
        keepalive,
        intent_generation: _,
        status: last,
    } = recorded;
    (public_key, key_generation, keepalive) == (&link.public_key, &link.key_generation, &link.keepalive)
        && (*listen_port, on_device) == (port, device)
        && verdict.is_said(last)
        && last.unwanted_since.is_none()
        && (allowed_ips, prefixes, probe) == (&link.allowed_ips, &link.prefixes, &link.probe)
        && (endpoint, peer_uid) == (&link.endpoint, &link.peer_uid)
}

/// The record of a link that no intent wants: taken on from the device if there is none yet. `None`: nothing to hold.
pub(super) fn unwanted(links: &Links<'_>, row: &Row<'_>, now: &Now) -> Option<RecordedLink> {
    let base = match row.recorded {
        Some(recorded) => recorded.clone(),
        None => adopted(links.id(row.key), row, now)?,
    };
    let unwanted_since =
        Some(match row.recorded.and_then(|recorded| recorded.status.unwanted_since.as_ref()) {
            Some(since) if now.boot.since(since).is_some() => since.clone(),
            Some(_) | None => now.boot.clone(),
        });
    let last = row.recorded.map(|recorded| &recorded.status);
    let status = verdict(links, row, base.listen_port).status(last, now);
    Some(RecordedLink { status: LinkStatus { unwanted_since, ..status }, ..base })
}

fn adopted(id: LinkId, row: &Row<'_>, now: &Now) -> Option<RecordedLink> {
    let device = row.device?;
    let (public_key, peer) = device.peers.iter().next()?;
    Some(RecordedLink {
        id,
        peer_uid: crate::Uid::default(),
        device: device.name.clone()?,
        listen_port: device.port,
        public_key: *public_key,
        key_generation: 0,
        allowed_ips: peer.allowed_ips.iter().copied().collect(),
        prefixes: Vec::new(),
        probe: None,
        endpoint: None,
        keepalive: peer.keepalive,
        intent_generation: 0,
        status: LinkStatus {
            state: LinkState::Pending,
            reason: Reason::Unwanted,
            message: String::new(),
            last_transition: now.wall.clone(),
            connected_once: false,
            unwanted_since: None,
        },
    })
}

/// What there is to say of a link.
struct Verdict {
    state: LinkState,
    reason: Reason,
    message: String,
}

impl Verdict {
    /// Whether it was said like that.
    fn is_said(&self, last: &LinkStatus) -> bool {
        (self.state, self.reason) == (last.state, last.reason)
            && self.message == last.message
            && (last.connected_once || self.state != LinkState::Connected)
    }

    /// The status that says it, after what was said last.
    fn status(self, last: Option<&LinkStatus>, now: &Now) -> LinkStatus {
        let Self { state, reason, message } = self;
        let same = last.filter(|last| last.state == state && last.reason == reason);
        LinkStatus {
            state,
            reason,
            message,
            last_transition: same.map_or_else(|| now.wall.clone(), |last| last.last_transition.clone()),
            connected_once: last.is_some_and(|last| last.connected_once) || state == LinkState::Connected,
            unwanted_since: last.and_then(|last| last.unwanted_since.clone()),
        }
    }
}

/// State, reason and words. Without evidence (a restart) what was said last stays said.
fn verdict(links: &Links<'_>, row: &Row<'_>, port: u16) -> Verdict {
    let last = row.recorded.map(|recorded| &recorded.status);
    let state = match row.evidence {
        Some(Evidence::Connected { .. } | Evidence::Receiving) => LinkState::Connected,
        Some(Evidence::NotConnected { .. }) => LinkState::NotConnected,
        None => last.map_or(LinkState::Pending, |last| last.state),
    };
    let one_way = matches!(row.evidence, Some(Evidence::NotConnected { one_way: true }))
        || (row.evidence.is_none() && last.is_some_and(|last| last.reason == Reason::OneWay));
    let hold =
        links.desired.applied.as_ref().is_some_and(|a| a.intent.hub_change.on_timeout == OnTimeout::Hold);
    let reason = match state {
        _ if !row.is_wanted() => {
            if hold {
                Reason::Held
            } else {
                Reason::Unwanted
            }
        }
        LinkState::Connected => {
            let last = last.is_some_and(|last| last.reason == Reason::BytesReceived);
            let received = row.evidence == Some(Evidence::Receiving) || (row.evidence.is_none() && last);
            if received { Reason::BytesReceived } else { Reason::ProbeAnswered }
        }
        LinkState::NotConnected => {
            if one_way {
                Reason::OneWay
            } else if links.is_unresolved(row) {
                Reason::EndpointUnresolved
            } else {
                Reason::NoEvidence
            }
        }
        LinkState::Pending => {
            if links.is_unresolved(row) {
                Reason::EndpointUnresolved
            } else {
                Reason::Connecting
            }
        }
    };
    Verdict { state, reason, message: message(links, row, reason, port) }
}

fn message(links: &Links<'_>, row: &Row<'_>, reason: Reason, port: u16) -> String {
    if matches!(reason, Reason::ProbeAnswered | Reason::BytesReceived) {
        return String::new();
    }
    let (peer, role) = row.key;
    let endpoint = row.wanted.and_then(|link| link.endpoint.as_ref());
    let path = match (role, endpoint) {
        (LinkRole::Downlink, _) => format!("{peer} dials this host at UDP port {port}"),
        (_, Some(endpoint)) => format!("this host dials {peer} at {endpoint} over UDP"),
        (_, None) => format!("{peer} has published no endpoint yet, or can only dial itself"),
    };
    match reason {
        Reason::NoEvidence => {
            format!(
                "nothing arrives from {peer}; {path}: check that firewalls on the way pass it and that {peer} is up"
            )
        }
        Reason::OneWay => format!("{peer} is heard and does not hear this host; {path}: check the way back"),
        Reason::Connecting => path,
        Reason::EndpointUnresolved => {
            format!("{path}, and that name does not resolve on this host: check DNS, or advertise an address")
        }
        Reason::Unwanted | Reason::Held => match links.holders(row).next() {
            None => "no longer wanted; goes with the next pass".to_owned(),
            Some((first, role)) => {
                format!("no longer wanted; stays until the {role} to {first} is connected")
            }
        },
        _ => String::new(),
    }
}

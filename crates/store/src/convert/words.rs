//! The closed words and small structs that several kinds hold. It refuses wildcards: a new word must be placed here.

use spanwire_api as api;
use spanwire_engine as engine;

use super::field::{FieldFault, parse};

macro_rules! words {
    ($to_api:ident $to_engine:ident $name:ident { $($word:ident),* }) => {
        /// To the object's word.
        pub(crate) fn $to_api(word: engine::$name) -> api::$name {
            match word { $(engine::$name::$word => api::$name::$word),* }
        }

        /// From the object's word.
        pub(crate) fn $to_engine(word: api::$name) -> engine::$name {
            match word { $(api::$name::$word => engine::$name::$word),* }
        }
    };
}

words!(role_to_api role_to_engine Role { Hub, Spoke });
words!(link_role_to_api link_role_to_engine LinkRole { Uplink, Downlink, Trunk, Mesh });
words!(link_state_to_api link_state_to_engine LinkState { Connected, NotConnected, Pending });
words!(route_to_api route_to_engine RouteState { Active, Standby, None });
words!(transit_to_api transit_to_engine Transit { Routed, Isolated });
words!(on_timeout_to_api on_timeout_to_engine OnTimeout { Proceed, Hold });
words!(mode_to_api mode_to_engine TunnelMode { Auto, Kernel, Userspace });
words!(phase_to_api phase_to_engine Phase { Adding, Switching, Demoting, Removing });

/// To the object's form.
pub(crate) fn hub_change_to_api(change: engine::HubChange) -> api::HubChange {
    let engine::HubChange { connect_timeout, on_timeout } = change;
    api::HubChange { connect_timeout: connect_timeout.into(), on_timeout: on_timeout_to_api(on_timeout) }
}

/// From the object's form.
pub(crate) fn hub_change_to_engine(change: api::HubChange) -> engine::HubChange {
    let api::HubChange { connect_timeout, on_timeout } = change;
    engine::HubChange { connect_timeout: connect_timeout.0, on_timeout: on_timeout_to_engine(on_timeout) }
}

/// To the object's form.
pub(crate) fn tunnel_to_api(tunnel: engine::Tunnel) -> api::Tunnel {
    let engine::Tunnel { mode, mtu, keepalive } = tunnel;
    api::Tunnel { mode: mode_to_api(mode), mtu, keepalive: keepalive.into() }
}

/// From the object's form.
pub(crate) fn tunnel_to_engine(tunnel: api::Tunnel) -> engine::Tunnel {
    let api::Tunnel { mode, mtu, keepalive } = tunnel;
    engine::Tunnel { mode: mode_to_engine(mode), mtu, keepalive: keepalive.0 }
}

/// To the object's form.
pub(crate) fn moment_to_api(moment: &engine::BootTime) -> api::BootMoment {
    let engine::BootTime { boot_id, since_boot } = moment;
    api::BootMoment { boot_id: boot_id.clone(), boot_time: (*since_boot).into() }
}

/// From the object's form.
pub(crate) fn moment_to_engine(moment: &api::BootMoment) -> engine::BootTime {
    let api::BootMoment { boot_id, boot_time } = moment;
    engine::BootTime { boot_id: boot_id.clone(), since_boot: boot_time.0 }
}

/// To the object's form.
pub(crate) fn condition_to_api(condition: &engine::Condition) -> api::Condition {
    let engine::Condition { kind, status, reason, message, observed_generation, last_transition } = condition;
    let status = match status {
        engine::status::ConditionStatus::True => api::ConditionStatus::True,
        engine::status::ConditionStatus::False => api::ConditionStatus::False,
        engine::status::ConditionStatus::Unknown => api::ConditionStatus::Unknown,
    };
    api::Condition {
        type_: kind.clone(),
        status,
        observed_generation: *observed_generation,
        last_transition_time: last_transition.clone(),
        reason: reason.clone(),
        message: message.clone(),
    }
}

/// From the object's form.
pub(crate) fn condition_to_engine(condition: &api::Condition) -> engine::Condition {
    let api::Condition { type_, status, observed_generation, last_transition_time, reason, message } =
        condition;
    let status = match status {
        api::ConditionStatus::True => engine::status::ConditionStatus::True,
        api::ConditionStatus::False => engine::status::ConditionStatus::False,
        api::ConditionStatus::Unknown => engine::status::ConditionStatus::Unknown,
    };
    engine::Condition {
        kind: type_.clone(),
        status,
        reason: reason.clone(),
        message: message.clone(),
        observed_generation: *observed_generation,
        last_transition: last_transition_time.clone(),
    }
}

/// A reason by its word. A word that this version does not know is a fault: its meaning is not guessed.
pub(crate) fn reason_to_engine(path: &str, word: &str) -> Result<engine::Reason, FieldFault> {
    let known = || engine::Reason::ALL.iter().copied();
    known().find(|reason| reason.as_str() == word).ok_or_else(|| {
        let words: Vec<&str> = known().map(engine::Reason::as_str).collect();
        FieldFault::new(path, crate::yaml::unknown("reason", word, &words))
    })
}

/// To the object's form.
pub(crate) fn listener_to_api(listener: &engine::Listener) -> api::ListenerPort {
    let engine::Listener { network, role, peer, port } = listener;
    api::ListenerPort {
        network: network.to_string(),
        role: link_role_to_api(*role),
        peer: peer.as_ref().map(ToString::to_string),
        port: *port,
    }
}

/// From the object's form.
pub(crate) fn listeners_to_engine(
    path: &str,
    listeners: &[api::ListenerPort],
) -> Result<Vec<engine::Listener>, FieldFault> {
    let item = |(index, listener): (usize, &api::ListenerPort)| {
        let api::ListenerPort { network, role, peer, port } = listener;
        Ok(engine::Listener {
            network: parse(&format!("{path}[{index}].network"), network)?,
            role: link_role_to_engine(*role),
            peer: super::field::parse_option(&format!("{path}[{index}].peer"), peer.as_ref())?,
            port: *port,
        })
    };
    listeners.iter().enumerate().map(item).collect()
}

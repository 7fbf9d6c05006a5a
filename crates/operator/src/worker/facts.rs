//! What a worker publishes of its gateway: key, where to dial, ports, backend. It refuses to publish an address for a
//! gateway that nobody can dial.

use spanwire_engine::{
    Backend, Condition, Gateway, GatewayFacts, KERNEL_WIREGUARD, Listener, Now, PublicKey, TunnelMode,
    status::ConditionStatus,
};

use super::HostFacts;
use crate::fault::Noted;

/// The condition of a Gateway that says whether its worker could do everything that was asked of it.
pub const READY: &str = "Ready";

/// Joins what is published of `own`. Conditions keep the time of their last change.
pub fn facts(
    own: &Gateway,
    key: (&PublicKey, i64),
    host: HostFacts,
    listeners: Vec<Listener>,
    faults: &[Noted],
    now: &Now,
) -> GatewayFacts {
    let HostFacts { endpoint, kernel } = host;
    let backend = Backend::wanted(TunnelMode::Auto, kernel.is_ok());
    let found = endpoint.map(|address| address.to_string());
    let endpoint = own.advertise_host.clone().or(found).filter(|_| !own.dial_only);
    GatewayFacts {
        public_key: Some(key.0.to_string()),
        key_generation: key.1,
        endpoint,
        listeners,
        backend: Some(backend.to_string()),
        conditions: vec![ready(own, faults, now), kernel_wireguard(own, kernel, now)],
    }
}

/// Which backend networks of mode `auto` have here, and why.
fn kernel_wireguard(own: &Gateway, kernel: Result<(), String>, now: &Now) -> Condition {
    let (status, reason, message) = match kernel {
        Ok(()) => {
            let message = "networks of tunnel mode auto and kernel use the kernel's WireGuard";
            (ConditionStatus::True, "Present", message.to_owned())
        }
        Err(why) => {
            let message = format!(
                "the kernel has no WireGuard ({why}): networks of tunnel mode auto use userspace, and those of mode \
                 kernel wait; load the module `wireguard` to change that"
            );
            (ConditionStatus::False, "Absent", message)
        }
    };
    condition(own, KERNEL_WIREGUARD, (status, reason, message), now)
}

fn ready(own: &Gateway, faults: &[Noted], now: &Now) -> Condition {
    let (status, reason, message) = match faults {
        [] => (ConditionStatus::True, "Acting", "the worker acts for this gateway".to_owned()),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            (ConditionStatus::False, "Faults", format!("{first}{more}"))
        }
    };
    condition(own, READY, (status, reason, message), now)
}

/// A condition that keeps the time of its last change.
fn condition(
    own: &Gateway,
    kind: &str,
    (status, reason, message): (ConditionStatus, &str, String),
    now: &Now,
) -> Condition {
    let before = own.facts.condition(kind);
    let since = before.filter(|before| before.status == status).map(|before| before.last_transition.clone());
    Condition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        observed_generation: own.meta.generation,
        last_transition: since.unwrap_or_else(|| now.wall.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanwire_engine::Class;

    fn publish(own: &Gateway, faults: &[Noted], wall: &str) -> GatewayFacts {
        let host = HostFacts { endpoint: "192.0.2.1".parse().ok(), kernel: Err("none".to_owned()) };
        let now = Now { wall: wall.into(), ..Now::default() };
        facts(own, (&PublicKey([1; 32]), 1), host, Vec::new(), faults, &now)
    }

    #[test]
    fn the_advertised_host_counts_and_a_dial_only_gateway_has_none() {
        let mut own = Gateway::default();
        assert_eq!(publish(&own, &[], "a").endpoint.as_deref(), Some("192.0.2.1"));
        own.advertise_host = Some("gw.example".into());
        assert_eq!(publish(&own, &[], "a").endpoint.as_deref(), Some("gw.example"));
        own.dial_only = true;
        assert_eq!(publish(&own, &[], "a").endpoint, None);
    }

    #[test]
    fn w1_equal_facts_are_equal_at_another_time_and_a_fault_shows() {
        let mut own = Gateway::default();
        own.facts = publish(&own, &[], "first");
        assert_eq!(publish(&own, &[], "second"), own.facts);
        let fault = Noted { class: Class::Retry, message: "no /dev/net/tun".into(), late: false };
        let condition = publish(&own, &[fault], "third").conditions.remove(0);
        assert_eq!((condition.status, condition.last_transition.as_str()), (ConditionStatus::False, "third"));
        assert!(condition.message.contains("/dev/net/tun"));
    }
}

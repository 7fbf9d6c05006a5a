//! Tells that the WireGuard of a gateway is another than before, and why. It refuses to tell what stood already at its first
//! look, which follows each start.

use std::collections::BTreeMap;

use spanwire_api::GatewaySpec;
use spanwire_engine::{Gateway, GatewayName, KERNEL_WIREGUARD};

use crate::events::Happening;

/// What gateways said at the last look.
#[derive(Debug, Default)]
pub struct Backends(Option<BTreeMap<GatewayName, Option<String>>>);

impl Backends {
    /// Looks; what is another than at the last look is told on the Gateway.
    pub fn look(&mut self, gateways: &BTreeMap<GatewayName, Gateway>) -> Vec<Happening> {
        let now = gateways.iter().map(|(name, gateway)| (name.clone(), gateway.facts.backend.clone()));
        let Some(before) = self.0.replace(now.collect()) else { return Vec::new() };
        let turned = |(name, gateway): (&GatewayName, &Gateway)| {
            let backend = gateway.facts.backend.as_ref()?;
            let is_new = before.get(name).and_then(Option::as_ref) != Some(backend);
            is_new.then(|| happening(name, gateway, backend))
        };
        gateways.iter().filter_map(turned).collect()
    }
}

fn happening(name: &GatewayName, gateway: &Gateway, backend: &str) -> Happening {
    let why = gateway.facts.condition(KERNEL_WIREGUARD);
    let why = why.map(|condition| format!(": {}", condition.message)).unwrap_or_default();
    Happening::on::<GatewaySpec>(
        name.as_str(),
        &*gateway.meta.uid.0,
        "BackendChosen",
        format!("{backend}{why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateways(backend: Option<&str>) -> BTreeMap<GatewayName, Gateway> {
        let mut gateway = Gateway::default();
        gateway.facts.backend = backend.map(str::to_owned);
        [("a".parse().unwrap(), gateway)].into()
    }

    #[test]
    fn a_backend_is_told_when_it_is_new_or_another_and_not_at_the_first_look() {
        let mut backends = Backends::default();
        let mut told = |backend| backends.look(&gateways(backend)).len();
        assert_eq!(told(Some("kernel")), 0);
        assert_eq!(told(Some("kernel")), 0);
        assert_eq!(told(Some("userspace")), 1);
        let mut late = Backends::default();
        assert_eq!(late.look(&BTreeMap::new()), []);
        assert_eq!(late.look(&gateways(None)), []);
        let happening = late.look(&gateways(Some("kernel"))).remove(0);
        assert_eq!((happening.reason, happening.note.as_str()), ("BackendChosen", "kernel"));
    }
}

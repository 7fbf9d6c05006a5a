//! A declaration laid over what a store holds. It refuses to touch the store.

use std::path::Path;

use spanwire_engine::{
    Gateway, NetworkStatus,
    port::{ControlView, NetworkView},
};
use spanwire_store::dir::{BadDeclaration, Declaration};

/// What a file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared(Declaration);

impl Declared {
    /// Reads a file's text; `path` stands in messages.
    ///
    /// # Errors
    /// The first fault, with path, line and column.
    pub fn parse(path: &Path, text: &str) -> Result<Self, BadDeclaration> {
        Declaration::parse(path, text).map(Self)
    }

    /// The store as it would be with this file in it: identity and statuses stay, an edit counts.
    #[must_use]
    pub fn onto(&self, view: &ControlView) -> ControlView {
        let mut view = view.clone();
        let (kind, name) = match &self.0 {
            Declaration::Gateway(name, gateway) => {
                let old = view.gateways.get(name).cloned().unwrap_or_default();
                let Gateway { meta, facts, networks, .. } = old;
                view.gateways.insert(name.clone(), Gateway { meta, facts, networks, ..gateway.clone() });
                ("gateways", name.as_str())
            }
            Declaration::Network(name, spec) => {
                let NetworkView { mut meta, spec: old, status } =
                    view.networks.get(name).cloned().unwrap_or_else(|| NetworkView {
                        meta: Default::default(),
                        spec: Default::default(),
                        status: NetworkStatus::default(),
                    });
                meta.generation += i64::from(old != *spec);
                view.networks.insert(name.clone(), NetworkView { meta, spec: spec.clone(), status });
                ("gatewaynetworks", name.as_str())
            }
        };
        view.unreadable.retain(|object| object.kind != kind || object.name != name);
        view
    }
}

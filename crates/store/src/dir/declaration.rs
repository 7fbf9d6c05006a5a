//! One declaration that is not in the store yet, read as the store would read it. It refuses what the store would.

use std::path::Path;

use spanwire_api::{GatewayNetworkSpec, GatewaySpec, Kind};
use spanwire_engine::{Gateway, GatewayFacts, GatewayName, Meta, NetworkName, NetworkSpec};

use super::document::{Document, Part};
use crate::{
    convert::{FieldFault, gateway, network},
    yaml,
};

/// What a person may declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declaration {
    /// A gateway, without identity and status.
    Gateway(GatewayName, Gateway),
    /// A network.
    Network(NetworkName, NetworkSpec),
}

/// A text that is no declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadDeclaration(String);

impl Declaration {
    /// Reads a file's text; `path` stands in messages.
    ///
    /// # Errors
    /// The first fault, with path, line and column.
    pub fn parse(path: &Path, text: &str) -> Result<Self, BadDeclaration> {
        let fault = |fault: yaml::Fault| BadDeclaration(format!("{}: {fault}", path.display()));
        let tree = yaml::parse(text).map_err(fault)?;
        let word = |field: &str| yaml::read::<String>(tree.at_path(field)).unwrap_or_default();
        match word("kind").as_str() {
            GatewaySpec::KIND => {
                read(path, text, &word("metadata.name"), |name, document, spec: &GatewaySpec| {
                    let facts = GatewayFacts::default();
                    let gateway = gateway::to_engine(Meta::default(), spec, facts, gateway::Networks::new());
                    gateway
                        .map(|gateway| Self::Gateway(name, gateway))
                        .map_err(|fault| document.locate(&fault))
                })
            }
            GatewayNetworkSpec::KIND => read(path, text, &word("metadata.name"), |name, _, spec| {
                Ok(Self::Network(name, network::spec_to_engine(spec)))
            }),
            other => {
                let message = format!("kind: expected Gateway or GatewayNetwork, found {other:?}");
                Err(fault(yaml::Fault::of(tree.at_path("kind"), message)))
            }
        }
    }
}

fn read<S: Kind, N: std::str::FromStr<Err: std::fmt::Display>>(
    path: &Path,
    text: &str,
    name: &str,
    convert: impl FnOnce(N, &Document<S>, &S) -> Result<Declaration, String>,
) -> Result<Declaration, BadDeclaration> {
    let parsed = Document::<S>::parse(path, text.to_owned(), name, Part::Spec);
    let document = parsed.map_err(|fault| BadDeclaration(format!("{}: {fault}", path.display())))?;
    let Some(spec) = &document.object.spec else { return Err(BadDeclaration(String::new())) };
    let label = name.parse().map_err(|fault| document.locate(&FieldFault::new("metadata.name", fault)));
    label.and_then(|name| convert(name, &document, spec)).map_err(BadDeclaration)
}

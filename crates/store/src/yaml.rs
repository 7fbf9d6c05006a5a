//! YAML in, typed objects out, with the place of every fault. It refuses what a person probably did not mean: unknown
//! fields, duplicate keys, numbers and words where a string belongs.

mod fault;
mod read;
mod tree;

use serde::{Serialize, de::DeserializeOwned};

pub(crate) use fault::Fault;
pub(crate) use read::unknown;
pub(crate) use tree::Node;

/// Text as a tree with places.
///
/// # Errors
/// The first fault of the syntax.
pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    tree::parse(text)
}

/// A tree as a typed value.
///
/// # Errors
/// The first fault of the content, with its place.
pub(crate) fn read<T: DeserializeOwned>(node: &Node) -> Result<T, Fault> {
    T::deserialize(node).map_err(|fault| fault.at(node))
}

/// A value as text: the same value gives the same bytes.
///
/// # Errors
/// Values that YAML cannot hold; none of ours.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<String, serde_saphyr::ser::Error> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(value, options)
}

#[cfg(test)]
mod tests;

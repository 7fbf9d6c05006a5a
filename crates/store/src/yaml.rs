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
mod tests {
    use super::*;
    use spanwire_api::{GatewayNetworkSpec, GatewaySpec, Object};

    #[test]
    fn show() {
        for t in [
            "spec:\n  topology: mesh\n  memebers: [a]\n",
            "spec:\n  topology: 5\n  members: {a: b}\n",
            "spec:\n  members: {a: b}\n",
            "spec:\n  hub: x\n  members: [a, no, true]\n",
            "spec:\n  tunnel: {mtu: 70000}\n",
            "spec:\n  tunnel: {mtu: -1}\n",
            "spec:\n  tunnel: {mtu: hello}\n",
            "spec:\n  tunnel: {mtu: \"1400\"}\n",
            "spec:\n  transit: routed\n",
            "spec:\n  transit: xyz\n",
            "spec:\n  hubChange: {connectTimeout: 60}\n",
            "spec:\n  hubChange: {connectTimeout: 60sec}\n",
            "spec:\n  hub: a\n  hub: b\n",
            "spec:\n  hub: a\n\tmembers: b\n",
            "spec:\n  hub: ~\n",
            "spec:\n  members: [a, b\n",
            "",
            "spec: {}\n---\napiVersion: v1\n",
            "spec:\n  5: x\n",
            "spec:\n  [a]: y\n",
            "spec:\n  members: a\n",
            "spec:\n",
            "spec: &a\n  members: [*b]\n",
            "spec:\n  members:\n  - a\n  - b: c\n",
            "spec:\n  standbyHub: [a]\n",
            "spce: {}\n",
            "spec: {hubChange: {onTimeout: hold, conectTimeout: 5s}}\n",
            "spec:\n  hub: \"a\n",
            "spec: {<<: {hub: a}}\n",
            "spec: {hub: &x a, members: [*x]}\n",
        ] {
            let t = format!("apiVersion: v1\nkind: X\nmetadata: {{name: x}}\n{t}");
            let r = parse(&t).and_then(|n| read::<Object<GatewayNetworkSpec>>(&n));
            println!(
                "{t}  => {}",
                match r {
                    Ok(o) => format!("{:?}", o.spec),
                    Err(f) => f.to_string(),
                }
            );
        }
        for t in [
            "",
            "---\n",
            "- a\n",
            "hello",
            "apiVersion: v1\nkind: Gateway\nmetadata: {name: 5}\nspec: {subnets: []}\n",
            "apiVersion: v1\nkind: Gateway\nmetadata: {name: x}\nspec: {}\n",
            "kind: Gateway\n",
            "apiVersion: v1\nkind: Gateway\nmetadata: {name: x, managedFields: [{a: {b: 5}}]}\nspec:\n  subnets: [10.0.0.0/8]\n  advertise:\n    ports:\n    - {network: x, role: upink, port: 5}",
        ] {
            let r = parse(t).and_then(|n| read::<Object<GatewaySpec>>(&n));
            println!(
                "{t}  => {}",
                match r {
                    Ok(o) => format!("{:?}", o),
                    Err(f) => f.to_string(),
                }
            );
        }
    }
}

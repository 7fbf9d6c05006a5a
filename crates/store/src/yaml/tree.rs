//! A YAML document as a tree in which every node knows its line and column. It refuses to interpret: types are judged
//! by who reads the tree.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{Spanned, from_str_with_options};

use super::Fault;

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Line, from 1; 0: not known.
    pub(crate) line: u64,
    /// Column, from 1.
    pub(crate) column: u64,
    /// What it is.
    pub(crate) value: Value,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// Parses one document.
pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        merge_keys: serde_saphyr::MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
    };
    from_str_with_options(text, options).map_err(|error| Fault::syntax(&error))
}

impl Node {
    /// What the node is, for people.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Int(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(text) => format!("the text {text:?}"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }

    /// The node at a path like `spec.hubs[1]`, or the last one on the way that is there.
    pub(crate) fn at_path(&self, path: &str) -> &Node {
        let mut node = self;
        for part in path.split(['.', '[']) {
            let next = match &node.value {
                Value::Map(entries) => {
                    entries.iter().find(|(key, _)| key.value == Value::Text(part.to_owned())).map(|(_, v)| v)
                }
                Value::List(items) => {
                    part.strip_suffix(']').and_then(|index| items.get(index.parse::<usize>().ok()?))
                }
                Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        let place = spanned.referenced;
        Ok(Self { line: place.line(), column: place.column(), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}

//! Reading typed values from the tree. It refuses to guess: a number is no string, an unknown field is no field.

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor, value,
    },
    forward_to_deserialize_any,
};

use super::{Fault, Node, tree::Value};

type Result<T> = std::result::Result<T, Fault>;

macro_rules! integers {
    ($($method:ident $type:ident $visit:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let fault = || {
                let (low, high) = ($type::MIN, $type::MAX);
                self.expected(&format!("a whole number from {low} to {high}"))
            };
            match &self.value {
                Value::Int(value) => visitor.$visit($type::try_from(*value).map_err(|_| fault())?),
                Value::Null | Value::Bool(_) | Value::Float(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
                    Err(fault())
                }
            }
        }
    )*};
}

impl Node {
    fn expected(&self, what: &str) -> Fault {
        Fault::of(self, format!("expected {what}, found {}", self.describe()))
    }

    fn text(&self) -> Result<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Err(Fault::of(self, format!("expected text, found {}: write it in quotes", self.describe())))
            }
            Value::Null | Value::List(_) | Value::Map(_) => Err(self.expected("text")),
        }
    }

    fn entries(&self) -> Result<&[(Node, Node)]> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_) => Err(self.expected("a mapping")),
        }
    }

    fn items(&self) -> Result<&[Node]> {
        match &self.value {
            Value::List(items) => Ok(items),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Map(_) => Err(self.expected("a list")),
        }
    }
}

impl<'de> Deserializer<'de> for &Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => match i64::try_from(*value) {
                Ok(value) => visitor.visit_i64(value),
                Err(_) => visitor.visit_i128(*value),
            },
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    integers!(
        deserialize_i8 i8 visit_i8, deserialize_i16 i16 visit_i16, deserialize_i32 i32 visit_i32,
        deserialize_i64 i64 visit_i64, deserialize_u8 u8 visit_u8, deserialize_u16 u16 visit_u16,
        deserialize_u32 u32 visit_u32, deserialize_u64 u64 visit_u64
    );

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match &self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Null
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => Err(self.expected("true or false")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.value == Value::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(Items { items: self.items()?.iter(), index: 0 })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor
            .visit_map(Entries { entries: self.entries()?.iter(), current: None })
            .map_err(|fault| fault.at(self))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        for (key, _) in self.entries()? {
            let name = key.text()?;
            if !fields.contains(&name) {
                return Err(Fault::of(key, unknown("field", name, fields)));
            }
        }
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let word = self.text()?;
        if variants.contains(&word) {
            visitor.visit_enum(Word(word))
        } else {
            Err(Fault::of(self, unknown("value", word, variants)))
        }
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

/// What is not known, with the nearest name that is.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .min();
    match near {
        Some((_, near)) => format!("unknown {what} {name:?}, did you mean {near:?}?"),
        None => format!("unknown {what} {name:?}: use one of {}", known.join(", ")),
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(item).map(Some).map_err(|fault| fault.at(item).in_item(index))
    }
}

struct Entries<'a> {
    entries: std::slice::Iter<'a, (Node, Node)>,
    current: Option<&'a (Node, Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.current = self.entries.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        seed.deserialize(key).map(Some).map_err(|fault| fault.at(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let Some((key, value)) = self.current else {
            return Err(Fault::new("a value was asked for before its key"));
        };
        seed.deserialize(value).map_err(|fault| fault.at(value).in_field(key.text().unwrap_or("?")))
    }
}

struct Word<'a>(&'a str);

impl<'de> EnumAccess<'de> for Word<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let word: value::StrDeserializer<'_, Fault> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<()> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value> {
        Err(Fault::new("expected a word alone"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value> {
        Err(Fault::new("expected a word alone"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value> {
        Err(Fault::new("expected a word alone"))
    }
}

//! A field whose value the engine cannot hold. It refuses to know lines: who has the document finds them by the path.

use std::{fmt::Display, str::FromStr};

/// Path and message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub(crate) struct FieldFault {
    /// As in `spec.hubs[1]`.
    pub(crate) path: String,
    /// What is wrong.
    pub(crate) message: String,
}

impl FieldFault {
    /// A fault of one field.
    pub(crate) fn new(path: &str, message: impl Display) -> Self {
        Self { path: path.to_owned(), message: message.to_string() }
    }
}

/// One value from text.
pub(crate) fn parse<T: FromStr<Err: Display>>(path: &str, text: &str) -> Result<T, FieldFault> {
    text.parse().map_err(|fault: T::Err| FieldFault::new(path, fault))
}

/// A value that may be absent.
pub(crate) fn parse_option<T: FromStr<Err: Display>>(
    path: &str,
    text: Option<&String>,
) -> Result<Option<T>, FieldFault> {
    text.map(|text| parse(path, text)).transpose()
}

/// A list of values.
pub(crate) fn parse_list<T: FromStr<Err: Display>>(
    path: &str,
    texts: &[String],
) -> Result<Vec<T>, FieldFault> {
    let item = |(index, text): (usize, &String)| parse(&format!("{path}[{index}]"), text);
    texts.iter().enumerate().map(item).collect()
}

/// A prefix; its message says what is expected.
pub(crate) fn parse_prefixes(path: &str, texts: &[String]) -> Result<Vec<ipnet::IpNet>, FieldFault> {
    let item = |(index, text): (usize, &String)| {
        let fault = |_| {
            FieldFault::new(
                &format!("{path}[{index}]"),
                format!("{text:?} is not a prefix: write address/length"),
            )
        };
        text.parse().map_err(fault)
    };
    texts.iter().enumerate().map(item).collect()
}

/// An address that may be absent.
pub(crate) fn parse_address(
    path: &str,
    text: Option<&String>,
) -> Result<Option<std::net::IpAddr>, FieldFault> {
    let fault = |text: &String| FieldFault::new(path, format!("{text:?} is not an address"));
    text.map(|text| text.parse().map_err(|_| fault(text))).transpose()
}

/// Text of every value.
pub(crate) fn texts<T: Display>(values: &[T]) -> Vec<String> {
    values.iter().map(T::to_string).collect()
}

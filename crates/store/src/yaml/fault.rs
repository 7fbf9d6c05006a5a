//! What is wrong with a document and where, in words for people. It refuses to name the parser's options.

use std::fmt;

use serde::de;

use super::Node;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    /// Line and column, from 1, where they are known.
    place: Option<(u64, u64)>,
    /// Where in the document, as in `spec.members[1]`; empty: the whole.
    path: String,
    /// What is wrong.
    message: String,
}

impl Fault {
    /// A fault without a place yet.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { place: None, path: String::new(), message: message.to_string() }
    }

    /// A fault at a node.
    pub(crate) fn of(node: &Node, message: impl fmt::Display) -> Self {
        Self::new(message).at(node)
    }

    /// Gives a place to a fault that has none.
    pub(crate) fn at(mut self, node: &Node) -> Self {
        if self.place.is_none() && node.line > 0 {
            self.place = Some((node.line, node.column));
        }
        self
    }

    /// Puts a field in front of the path.
    pub(crate) fn in_field(mut self, field: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{field}{dot}{}", self.path);
        self
    }

    /// Puts an index in front of the path.
    pub(crate) fn in_item(mut self, index: usize) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }

    /// The parser's complaint about the syntax, without advice for programmers.
    pub(crate) fn syntax(error: &serde_saphyr::Error) -> Self {
        let place =
            error.location().map(|place| (place.line(), place.column())).filter(|(line, _)| *line > 0);
        let message = match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { key, .. } => match key {
                Some(key) => format!("the key {key:?} is given twice"),
                None => "a key is given twice".to_owned(),
            },
            serde_saphyr::Error::MultipleDocuments { .. } => {
                "a second document begins here: write one object a file".to_owned()
            }
            serde_saphyr::Error::Eof { .. } => "the file holds no object".to_owned(),
            serde_saphyr::Error::Budget { .. } => "the document is too large or nested too deeply".to_owned(),
            #[allow(clippy::wildcard_enum_match_arm, reason = "the parser's enum is open")]
            other => bare(&other.to_string()),
        };
        Self { place, path: String::new(), message }
    }
}

/// The parser appends the place to its messages; ours has a field for it.
fn bare(message: &str) -> String {
    match message.rsplit_once(" at line ") {
        Some((before, _)) => before.to_owned(),
        None => message.to_owned(),
    }
}

/// `path: message (line, column)`; the file stands before it.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message)
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("expected {expected}, found {found}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the field {field:?} is missing"))
    }
}

//! Objects as text: YAML with what they are for above each, or one List in JSON. It refuses to know any kind.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Error, Form};

/// An object, and what it is for, line by line.
#[derive(Debug)]
pub(super) struct Document {
    comment: Vec<String>,
    object: Value,
}

impl Document {
    /// `kind` for people, where it can't be expressed.
    pub(super) fn new(
        kind: &'static str,
        comment: Vec<String>,
        object: &impl Serialize,
    ) -> Result<Self, Error> {
        let object = serde_json::to_value(object).map_err(|source| Error::Json(kind, source))?;
        Ok(Self { comment, object })
    }
}

/// All of them.
pub(super) fn print(documents: &[Document], form: Form) -> Result<String, Error> {
    match form {
        Form::Yaml => {
            let mut text = String::new();
            for Document { comment, object } in documents {
                text.push_str("---\n");
                for line in comment {
                    // Writing to a string can't fail.
                    let _ = writeln!(text, "# {line}");
                }
                text.push_str(&serde_saphyr::to_string(object).map_err(Error::Yaml)?);
            }
            Ok(text)
        }
        Form::Json => {
            let items: Vec<&Value> = documents.iter().map(|document| &document.object).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            let text = serde_json::to_string_pretty(&list).map_err(|source| Error::Json("a List", source))?;
            Ok(format!("{text}\n"))
        }
    }
}

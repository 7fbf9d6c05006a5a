//! One file as a typed object, or why it is none. It refuses an object of another kind, or under another name.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use spanwire_api::{API_VERSION, Kind, Object};

use crate::{
    convert::FieldFault,
    yaml::{self, Fault},
};

/// A file that was read.
#[derive(Debug, Clone)]
pub(crate) struct Document<S: Kind> {
    /// Where it is.
    path: PathBuf,
    /// Its text.
    text: String,
    /// Digest of the text.
    pub(crate) digest: String,
    /// What it says.
    pub(crate) object: Object<S>,
}

const MISSING_SPEC: &str = "the field \"spec\" is missing";

/// What a file has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// An object: with a spec.
    Spec,
    /// What an owner says of it.
    Status,
}

impl<S: Kind> Document<S> {
    /// Understands a file's text.
    pub(crate) fn parse(path: &Path, text: String, name: &str, part: Part) -> Result<Self, Fault> {
        let tree = yaml::parse(&text)?;
        if let Ok(kind) = yaml::read::<String>(tree.at_path("kind"))
            && kind != S::KIND
        {
            let message = format!("kind: expected {}, found {kind}", S::KIND);
            return Err(Fault::of(tree.at_path("kind"), message));
        }
        let object: Object<S> = yaml::read(&tree)?;
        if object.api_version != API_VERSION {
            let message = format!("apiVersion: expected {API_VERSION}, found {}", object.api_version);
            return Err(Fault::of(tree.at_path("apiVersion"), message));
        }
        if object.metadata.name != name {
            let message = format!(
                "metadata.name: expected {name:?} as the file is called, found {:?}",
                object.metadata.name
            );
            return Err(Fault::of(tree.at_path("metadata.name"), message));
        }
        if part == Part::Spec && object.spec.is_none() {
            return Err(Fault::of(&tree, MISSING_SPEC));
        }
        Ok(Self { path: path.to_owned(), digest: digest(text.as_bytes()), text, object })
    }

    /// Whether the file still holds the same text.
    pub(crate) fn is_of(&self, text: &str) -> bool {
        self.text == text
    }

    /// A field that the engine cannot hold, with its file and its place there.
    pub(crate) fn locate(&self, fault: &FieldFault) -> String {
        let located = yaml::parse(&self.text).map(|tree| Fault::of(tree.at_path(&fault.path), fault));
        format!("{}: {}", self.path.display(), located.unwrap_or_else(|fault| fault))
    }
}

/// A short digest.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

//! UID and generation of objects that people write. It refuses to put them into people's files.

use spanwire_api::{Kind, Metadata, Object};
use spanwire_engine::Uid;

use super::{Error, document::digest};

/// Annotation of a status file: digest of the spec that its generation stands for.
const SPEC_DIGEST: &str = "spanwire.dev/spec-digest";

/// Who an object is and how often its spec changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Identity of the object.
    pub(crate) uid: Uid,
    /// Counts changes of the spec, from 1.
    pub(crate) generation: i64,
}

impl Identity {
    /// A new object.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { uid: mint()?, generation: 1 })
    }

    /// The identity in an object's own metadata, as a controller of ours writes it.
    pub(crate) fn of_metadata(metadata: &Metadata) -> Option<Self> {
        Some(Self { uid: Uid(metadata.uid.clone()?), generation: metadata.generation? })
    }

    /// Metadata of an object that carries its identity itself.
    pub(crate) fn write(&self, metadata: &mut Metadata) {
        metadata.uid = Some(self.uid.0.clone());
        metadata.generation = Some(self.generation);
    }
}

/// What a status file knows of the identity of its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The identity.
    pub(crate) identity: Identity,
    /// Digest of the spec that the generation stands for.
    pub(crate) spec_digest: String,
}

impl Noted {
    /// From a status file; `None`: it notes no identity.
    pub(crate) fn from(metadata: &Metadata) -> Option<Self> {
        let identity = Identity::of_metadata(metadata)?;
        Some(Self {
            identity,
            spec_digest: metadata.annotations.get(SPEC_DIGEST).cloned().unwrap_or_default(),
        })
    }

    /// What holds for a spec with that digest: the same, or one generation more.
    pub(crate) fn for_spec(&self, spec_digest: String) -> Self {
        let Identity { uid, generation } = self.identity.clone();
        let generation = if spec_digest == self.spec_digest { generation } else { generation + 1 };
        Self { identity: Identity { uid, generation }, spec_digest }
    }

    /// Metadata of the status file.
    pub(crate) fn metadata(&self, name: &str) -> Metadata {
        let mut metadata = Metadata::named(name);
        self.identity.write(&mut metadata);
        metadata.annotations.insert(SPEC_DIGEST.to_owned(), self.spec_digest.clone());
        metadata
    }
}

/// Digest of a spec: comments, white space, the order of keys and defaults do not move it.
pub(crate) fn spec_digest<S: Kind>(object: &Object<S>) -> String {
    digest(crate::yaml::write(&object.spec).unwrap_or_default().as_bytes())
}

/// A random UUID (RFC 9562, version 4).
fn mint() -> Result<Uid, Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    let bits = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | 4 << 76 | 2 << 62;
    let hex = format!("{bits:032x}");
    let (a, rest) = hex.split_at(8);
    let (b, rest) = rest.split_at(4);
    let (c, rest) = rest.split_at(4);
    let (d, e) = rest.split_at(4);
    Ok(Uid(format!("{a}-{b}-{c}-{d}-{e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_random_uuids_of_version_4() {
        let (one, two) = (mint().unwrap().0, mint().unwrap().0);
        assert_ne!(one, two);
        let parts: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{one}");
        assert_eq!(&one[14..15], "4", "{one}");
        assert!(["8", "9", "a", "b"].contains(&&one[19..20]), "{one}");
    }

    #[test]
    fn generation_moves_with_the_spec_alone() {
        let noted =
            Noted { identity: Identity { uid: Uid("u".into()), generation: 3 }, spec_digest: "a".into() };
        assert_eq!(noted.for_spec("a".into()), noted);
        assert_eq!(noted.for_spec("b".into()).identity.generation, 4);
        assert_eq!(Noted::from(&noted.metadata("x")), Some(noted));
    }
}

//! How a table that was written by us is known to be as written: an empty set whose name holds the digest of the firewall
//! and of the listing that the kernel gave back. It refuses files and memory: what it says is read from the kernel.

use std::borrow::Cow;

use nftables::{
    schema::{NfCmd, NfListObject, NfObject, Nftables, Set, SetType, SetTypeValue},
    types::NfFamily,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::TABLE;

const PREFIX: &str = "standing-";

/// The command that leaves the mark on the table that `listing` shows.
pub(super) fn write(digest: &str, listing: &Value) -> Nftables<'static> {
    let set = Set {
        family: NfFamily::INet,
        table: TABLE.into(),
        name: format!("{PREFIX}{digest}-{}", hash(listing)).into(),
        set_type: SetTypeValue::Single(SetType::Mark),
        ..Set::default()
    };
    let command = NfObject::CmdObject(NfCmd::Add(NfListObject::Set(Box::new(set))));
    Nftables { objects: Cow::Owned(vec![command]) }
}

/// The digest in the mark, if the table is what it was when it was marked.
pub(super) fn read(listing: &Value) -> Option<String> {
    let mut marks = objects(listing).filter_map(mark);
    let (name, further) = (marks.next()?, marks.next());
    let (digest, hashed) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    (further.is_none() && hashed == hash(listing)).then(|| digest.to_owned())
}

fn objects(listing: &Value) -> impl Iterator<Item = &Value> {
    listing.get("nftables").and_then(Value::as_array).into_iter().flatten()
}

fn mark(object: &Value) -> Option<&str> {
    object.get("set")?.get("name")?.as_str().filter(|name| name.starts_with(PREFIX))
}

/// Of everything in the table but handles, which the kernel gives, and the mark itself.
fn hash(listing: &Value) -> String {
    let mut content = Sha256::new();
    for object in objects(listing) {
        if object.get("metainfo").is_some() || mark(object).is_some() {
            continue;
        }
        content.update(without_handles(object).to_string());
        content.update("\n");
    }
    content.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn without_handles(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "handle");
            Value::Object(kept.map(|(name, value)| (name.clone(), without_handles(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_handles).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listing(rule: &str, handle: u32) -> Value {
        json!({"nftables": [
            {"metainfo": {"version": "1.0.6"}},
            {"table": {"family": "inet", "name": "spanwire", "handle": handle}},
            {"rule": {"handle": handle, "expr": [{"match": rule}]}},
        ]})
    }

    fn marked(mut table: Value, digest: &str, of: &Value) -> Value {
        let name = format!("{PREFIX}{digest}-{}", hash(of));
        table["nftables"].as_array_mut().unwrap().push(json!({"set": {"name": name}}));
        table
    }

    #[test]
    fn a_table_is_standing_only_if_nothing_but_handles_changed() {
        let written = listing("a", 1);
        assert_eq!(read(&written), None);
        assert_eq!(read(&marked(listing("a", 9), "feed", &written)), Some("feed".to_owned()));
        assert_eq!(read(&marked(listing("b", 1), "feed", &written)), None);
        let twice = marked(marked(listing("a", 1), "feed", &written), "beef", &written);
        assert_eq!(read(&twice), None);
    }
}

//! The ledger: every request that the API server answered, read from its audit log. It refuses bodies: what was asked
//! of which object by whom, and how it ended, is enough to count.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
};

use serde::Deserialize;

use super::{ControlPlane, ControlPlaneError, programs};

/// One request that was answered; a watch counts when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// API group; empty: the core group, or no object was asked for.
    pub group: String,
    /// Resource, as in `gateways`; empty: no object was asked for, as in `/readyz`.
    pub resource: String,
    /// Subresource, as in `status`.
    pub subresource: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object; empty for lists.
    pub name: String,
    /// Who asked.
    pub user: String,
    /// What the client calls itself.
    pub agent: String,
    /// The answer.
    pub code: u16,
    /// Path and query.
    pub uri: String,
    /// When it arrived, RFC 3339 with microseconds.
    pub at: String,
}

impl Request {
    /// Whether it could change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch" | "head" | "options")
    }

    /// Whether it was a write that was accepted.
    pub fn is_accepted_write(&self) -> bool {
        self.is_write() && (200..300).contains(&self.code)
    }

    /// `resource`, or `resource/subresource`.
    pub fn target(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// A place in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark(u64);

impl ControlPlane {
    /// Everything since the start, the API server's own requests (`system:apiserver`) and those of this crate
    /// ([`ADMIN`](super::ADMIN)) included.
    ///
    /// # Errors
    /// The log could not be read.
    pub fn ledger(&self) -> Result<Vec<Request>, ControlPlaneError> {
        self.ledger_since(Mark::default())
    }

    /// The end of the ledger as it is now.
    ///
    /// # Errors
    /// The log could not be read.
    pub fn mark(&self) -> Result<Mark, ControlPlaneError> {
        let text = self.log_from(Mark::default())?;
        Ok(Mark(whole_lines(&text).len() as u64))
    }

    /// What was answered after a mark.
    ///
    /// # Errors
    /// The log could not be read.
    pub fn ledger_since(&self, mark: Mark) -> Result<Vec<Request>, ControlPlaneError> {
        let text = self.log_from(mark)?;
        Ok(whole_lines(&text).split(|byte| *byte == b'\n').filter_map(parse).collect())
    }

    fn log_from(&self, mark: Mark) -> Result<Vec<u8>, ControlPlaneError> {
        let path = programs::audit_log(self.folder());
        let read = || {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(mark.0))?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Ok(text)
        };
        read().map_err(|source| ControlPlaneError::File { path: path.clone(), source })
    }
}

/// The last line may be half-written.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    text.get(..end).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: Person,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Status,
    request_received_timestamp: String,
}

#[derive(Deserialize)]
struct Person {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    api_group: String,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    code: u16,
}

/// `None`: a line that is torn (the server was killed while it wrote), or a stage that does not count.
fn parse(line: &[u8]) -> Option<Request> {
    let event: Event = serde_json::from_slice(line).ok()?;
    let code = event.response_status.code;
    // A watch that was accepted is written when it begins and once more when it ends.
    let counts = match event.stage.as_str() {
        "ResponseStarted" => event.verb == "watch",
        "ResponseComplete" => event.verb != "watch" || code != 200,
        "Panic" => true,
        _ => false,
    };
    let Object { resource, subresource, namespace, name, api_group: group } = event.object_ref;
    counts.then_some(Request {
        verb: event.verb,
        group,
        resource,
        subresource,
        namespace,
        name,
        user: event.user.username,
        agent: event.user_agent,
        code,
        uri: event.uri,
        at: event.request_received_timestamp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stage: &str, verb: &str, code: u16) -> String {
        format!(
            r#"{{"stage":"{stage}","requestURI":"/x","verb":"{verb}","user":{{"username":"w1"}},"objectRef":{{"resource":"gateways","subresource":"status","namespace":"n","name":"w1","apiGroup":"spanwire.dev"}},"responseStatus":{{"code":{code}}},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z"}}"#
        )
    }

    #[test]
    fn a_request_is_one_row() {
        let row = parse(line("ResponseComplete", "patch", 200).as_bytes()).unwrap();
        assert_eq!((row.target().as_str(), row.user.as_str(), row.code), ("gateways/status", "w1", 200));
        assert!(row.is_accepted_write());
        assert!(!parse(line("ResponseComplete", "patch", 409).as_bytes()).unwrap().is_accepted_write());
    }

    #[test]
    fn a_watch_counts_once() {
        let stages = [("ResponseStarted", 200), ("ResponseComplete", 200)];
        let rows = stages.iter().filter_map(|(stage, code)| parse(line(stage, "watch", *code).as_bytes()));
        assert_eq!(rows.count(), 1);
        assert!(parse(line("ResponseComplete", "watch", 403).as_bytes()).is_some());
        assert!(parse(line("ResponseStarted", "list", 200).as_bytes()).is_none());
    }

    #[test]
    fn half_a_line_is_left_for_later() {
        let text = format!("{}\n{}", line("ResponseComplete", "get", 200), r#"{"stage":"Respo"#);
        let whole = whole_lines(text.as_bytes());
        assert_eq!(whole.len(), text.find('\n').unwrap() + 1);
        assert_eq!(whole.split(|byte| *byte == b'\n').filter_map(parse).count(), 1);
        assert!(parse(br#"{"stage":"Respo{"stage""#).is_none());
    }
}

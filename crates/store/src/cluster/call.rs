//! One call to an API server as a span, which stands under that of the pass that makes it. It refuses to carry content:
//! verb, kind, name, and what the server said of it.

use std::future::Future;

use tracing::{Instrument as _, field::Empty};

/// What is asked of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// One object as it stands.
    Get,
    /// A new object.
    Create,
    /// A part of an object in place of what is there.
    Patch,
    /// What a role states of an object.
    Apply,
    /// What a role states of an object's status.
    ApplyStatus,
    /// The end of an object.
    Delete,
}

impl Verb {
    /// The word in spans.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Create => "create",
            Verb::Patch => "patch",
            Verb::Apply => "apply",
            Verb::ApplyStatus => "apply status",
            Verb::Delete => "delete",
        }
    }
}

/// Makes a call within a span of its own. `kind` is the plural, as in the address of the object.
///
/// # Errors
/// Those of the call.
pub async fn call<T>(
    verb: Verb,
    kind: &'static str,
    name: &str,
    sent: impl Future<Output = kube::Result<T>>,
) -> kube::Result<T> {
    let verb = verb.as_str();
    let span = tracing::debug_span!(
        "call",
        otel.name = format!("{verb} {kind}"),
        otel.kind = "client",
        otel.status_code = Empty,
        verb,
        kind,
        name,
        code = Empty,
    );
    let answer = sent.instrument(span.clone()).await;
    if let Err(fault) = &answer {
        span.record("otel.status_code", "ERROR");
        if let kube::Error::Api(status) = fault {
            span.record("code", status.code);
        }
    }
    answer
}

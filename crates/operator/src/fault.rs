//! What is kept of an error for logs, ledgers and the retry: its words with all causes, and its class. It refuses to
//! decide: the driver does, from the class.

use std::{error::Error, fmt, time::Duration};

use serde::Serialize;
use spanwire_engine::{Class, port};
use tokio::time::{error::Elapsed, timeout};

/// A fault of one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// What it asks for.
    pub class: Class,
    /// What failed and why, all causes joined by colons.
    pub message: String,
    /// The call took longer than it may: what it talks to hangs.
    pub late: bool,
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Serialize for Noted {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("Noted", 2)?;
        fields.serialize_field("class", self.class.as_str())?;
        fields.serialize_field("message", &self.message)?;
        fields.end()
    }
}

impl Noted {
    /// Notes an adapter's error in the context of the action that met it.
    pub fn new(action: &str, error: &impl port::Fault) -> Self {
        Self { class: error.class(), message: format!("{action}: {}", chain(error)), late: false }
    }
}

/// An error with all its causes on one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Runs one external call under a time limit.
///
/// # Errors
/// The call failed, or took longer than `limit` (which is worth a retry).
pub async fn limited<T, E: port::Fault>(
    action: &str,
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Noted> {
    match timeout(limit, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Noted::new(action, &error)),
        Err(elapsed) => Err(late(action, limit, &elapsed)),
    }
}

/// The fault of a call that took longer than `limit`.
pub fn late(action: &str, limit: Duration, elapsed: &Elapsed) -> Noted {
    let message = format!("{action}: no answer within {} s ({elapsed})", limit.as_secs_f32());
    Noted { class: Class::Retry, message, late: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open the file")]
    struct Fails(#[source] std::io::Error);

    impl port::Fault for Fails {
        fn class(&self) -> Class {
            Class::NeedsHuman
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_is_a_fault_to_retry() {
        let hung = limited("read", Duration::from_secs(3), std::future::pending::<Result<(), Fails>>());
        let fault = hung.await.unwrap_err();
        assert_eq!(fault.class, Class::Retry);
        assert!(fault.message.contains("read: no answer within 3 s"), "{fault}");
    }

    #[tokio::test]
    async fn causes_are_joined_once() {
        let call = async { Err::<(), _>(Fails(std::io::Error::other("disk on fire"))) };
        let fault = limited("read records", Duration::from_secs(1), call).await.unwrap_err();
        assert_eq!(fault.message, "read records: cannot open the file: disk on fire");
        assert_eq!(fault.class, Class::NeedsHuman);
    }
}

//! What can go wrong with an API server. It refuses to carry single objects that can't be understood: those are
//! `Unreadable` entries of a view.

use std::{fmt, sync::Arc};

use kube::runtime::watcher;
use spanwire_engine::{Class, port::Fault};

use crate::Conflict;

/// A failed call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no usable configuration of the API server.
    #[error(
        "no usable configuration of an API server{of}: check KUBECONFIG and the contexts that \
         `kubectl config get-contexts` shows, or run in a pod with a service account: {cause}", of = of_context(context.as_deref())
    )]
    Config {
        /// The context that was asked for.
        context: Option<String>,
        /// Why.
        cause: String,
    },
    /// There is no account of a pod.
    #[error(
        "in-cluster is for a pod with a service account, whose token is mounted; elsewhere use kube or kube:CONTEXT: \
         {cause}"
    )]
    NotInPod {
        /// What is missing.
        cause: String,
    },
    /// The first list of a kind is not complete yet.
    #[error("the {kind} are not read yet")]
    NotRead {
        /// Kind in the plural.
        kind: &'static str,
    },
    /// The server can't be heard: what is known may be out of date.
    #[error("failed to follow the {kind}: {}", of_watcher(cause))]
    Unheard {
        /// Kind in the plural.
        kind: &'static str,
        /// Why; its words are in the message.
        cause: Arc<watcher::Error>,
    },
    /// A list failed.
    #[error("failed to list the {kind}: {}", words(&**cause))]
    List {
        /// Kind in the plural.
        kind: &'static str,
        /// Why; its words are in the message.
        cause: Arc<kube::Error>,
    },
    /// A call failed.
    #[error("failed to {verb} {kind} {name}: {}", words(&**cause))]
    Call {
        /// What was to be done.
        verb: &'static str,
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// Why; its words are in the message.
        cause: Arc<kube::Error>,
    },
    /// Somebody else wrote in between, or the object is another one.
    #[error("conflict on {kind} {name}: {why}")]
    Conflict {
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// What does not fit.
        why: Conflict,
    },
    /// The object that a status belongs to is not there.
    #[error("there is no {kind} {name}")]
    NotFound {
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
    },
    /// The object is there and can't be understood, so nothing is written over it.
    #[error("{kind} {name} is not overwritten, because it cannot be read: {cause}")]
    Unreadable {
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// What was expected.
        cause: String,
    },
    /// The intent was written by somebody else than a controller of ours.
    #[error("{name} is not managed by this controller and is left alone")]
    NotManaged {
        /// Name of the intent.
        name: String,
    },
    /// An object could not be expressed as JSON.
    #[error("failed to express {kind} {name} as JSON")]
    Express {
        /// Kind in the plural.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// Why.
        #[source]
        source: Arc<serde_json::Error>,
    },
}

impl Error {
    pub(super) fn config(
        context: Option<&str>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Config { context: context.map(str::to_owned), cause: with_causes(&source) }
    }

    pub(super) fn not_in_pod(source: &(dyn std::error::Error + 'static)) -> Self {
        Self::NotInPod { cause: with_causes(source) }
    }

    /// Whether another writer came first.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }
}

fn of_context(context: Option<&str>) -> String {
    context.map(|context| format!(" in the context {context:?}")).unwrap_or_default()
}

/// An error of an API server in the server's own words where there are some, else with all its causes.
pub fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
            return format!("{} ({})", status.message, status.code);
        }
        cause = error.source();
    }
    with_causes(error)
}

fn of_watcher(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => words(error),
        watcher::Error::WatchError(status) => format!("{} ({})", status.message, status.code),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Many wrappers repeat the text of what they wrap.
        let words = error.to_string();
        if !text.ends_with(&words) {
            fmt::Write::write_fmt(&mut text, format_args!(": {words}")).unwrap_or_default();
        }
        cause = error.source();
    }
    text
}

/// What an answer of the server asks for: a person where it refuses the account or the content.
fn class_of(error: &kube::Error) -> Class {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 401 | 403 | 404 | 405 | 415 | 422) => {
            Class::NeedsHuman
        }
        _ => Class::Retry,
    }
}

impl Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Config { .. }
            | Error::NotInPod { .. }
            | Error::Unreadable { .. }
            | Error::NotManaged { .. }
            | Error::Express { .. } => Class::NeedsHuman,
            Error::NotRead { .. } | Error::Conflict { .. } => Class::Retry,
            Error::Unheard { kind: _, cause } => match &**cause {
                watcher::Error::InitialListFailed(error)
                | watcher::Error::WatchStartFailed(error)
                | watcher::Error::WatchFailed(error) => class_of(error),
                watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => Class::Retry,
            },
            Error::List { kind: _, cause } | Error::Call { cause, .. } => class_of(cause),
            Error::NotFound { .. } => Class::WaitForChange,
        }
    }
}

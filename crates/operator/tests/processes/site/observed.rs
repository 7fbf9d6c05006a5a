//! What an object of the control cluster shows over time. It refuses to miss a value between two looks: it watches.

use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use kube::runtime::{WatchStreamExt as _, watcher};
use spanwire_api::Kind;

use super::{RUNTIME, Site};

/// See [`Site::observe`].
pub(crate) struct Observed {
    seen: Arc<Mutex<Vec<i64>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Observed {
    /// Ends the watch; what it has shown.
    pub(crate) fn take(self) -> Vec<i64> {
        self.task.abort();
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Site {
    /// Every value that part of an object takes from now on, as a watch shows them.
    pub(crate) fn observe<S: Kind>(&self, name: &str, pointer: &'static str) -> Observed {
        let api = self.control.api::<S>(&self.namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let seen: Arc<Mutex<Vec<i64>>> = Arc::default();
        let here = Arc::clone(&seen);
        let task =
            RUNTIME.spawn(watcher(api, config).default_backoff().applied_objects().for_each(move |object| {
                let value = object.ok().map(|object| serde_json::to_value(object).unwrap());
                let value =
                    value.as_ref().and_then(|object| object.pointer(pointer)).and_then(|it| it.as_i64());
                here.lock().unwrap().extend(value);
                std::future::ready(())
            }));
        Observed { seen, task }
    }
}

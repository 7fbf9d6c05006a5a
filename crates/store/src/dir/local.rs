//! A worker's own records in a directory of its own. It refuses to let other accounts read them.

mod look;
mod write;

use std::{path::Path, sync::Arc};

use spanwire_api::{AppliedIntentSpec, TunnelLinkSpec};
use spanwire_engine::{
    port::{LocalStore, Written},
    worker::{RecordStep, Recorded},
};

use super::{
    Error, Watch,
    file::Pen,
    folder::Folder,
    root::{Root, blocking},
};

/// A worker's handle on its local directory.
#[derive(Debug, Clone)]
pub struct Local(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: Root,
    intents: Folder<AppliedIntentSpec>,
    links: Folder<TunnelLinkSpec>,
}

impl Local {
    /// Opens the directory and makes it if it is missing (its parent has to be there).
    ///
    /// # Errors
    /// [`Error::Root`] if it is closed, [`Error::Write`] if it cannot be made.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let pen = Pen::private();
        pen.make_folder(path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        Ok(Self(Arc::new(Inner {
            root: Root::open(path, pen)?,
            intents: Folder::new(path),
            links: Folder::new(path),
        })))
    }

    /// Watches the directory.
    ///
    /// # Errors
    /// [`Error::Watch`] if the system gives no watch.
    pub fn watch(&self) -> Result<Watch, Error> {
        Watch::of(&self.0.root)
    }

    /// Files written or removed by this handle.
    pub fn writes(&self) -> u64 {
        self.0.root.writes()
    }
}

impl LocalStore for Local {
    type Error = Error;

    async fn read(&self) -> Result<Recorded, Error> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.read()).await
    }

    async fn apply(&self, step: &RecordStep) -> Result<Written, Error> {
        let (inner, step) = (Arc::clone(&self.0), step.clone());
        blocking(move || inner.apply(&step)).await
    }
}

//! The directory as a whole: that it is there, who may write, what was left over. It refuses to make a control store
//! that is missing.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use spanwire_api::{Kind, Object};
use spanwire_engine::port::Written;

use super::{
    Error,
    absence::Absences,
    file::Pen,
    folder::Folder,
    layout,
    lock::{self, Exclude, Lock},
};

/// What the handles of all roles share.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
    pen: Arc<Pen>,
    absences: Arc<Absences>,
}

impl Root {
    /// A handle; the directory has to be there.
    pub(crate) fn open(path: &Path, pen: Pen) -> Result<Self, Error> {
        let root = Self { path: path.to_owned(), pen: Arc::new(pen), absences: Arc::default() };
        root.check()?;
        Ok(root)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Objects that are missing and were known.
    pub(crate) fn absences(&self) -> &Arc<Absences> {
        &self.absences
    }

    /// Files written or removed by this handle.
    pub(crate) fn writes(&self) -> u64 {
        self.pen.writes()
    }

    /// Takes the lock, after making sure that the directory is there.
    pub(crate) fn lock(&self, exclude: Exclude) -> Result<Lock, Error> {
        self.check()?;
        lock::take(&self.path, exclude)
    }

    /// Writes an object's own file.
    pub(crate) fn write_object<S: Kind>(
        &self,
        folder: &Folder<S>,
        object: &Object<S>,
    ) -> Result<Written, Error> {
        self.write(folder, &layout::object_file(&object.metadata.name), object)
    }

    /// Writes what `owner` says of an object.
    pub(crate) fn write_status<S: Kind>(
        &self,
        folder: &Folder<S>,
        owner: layout::Owner,
        object: &Object<S>,
    ) -> Result<Written, Error> {
        self.write(folder, &layout::status_file(&object.metadata.name, owner), object)
    }

    /// Removes a file.
    pub(crate) fn remove<S: Kind>(&self, folder: &Folder<S>, file: &str) -> Result<Written, Error> {
        self.pen.remove(folder.path(), file)
    }

    /// Removes what killed writers left. Only under the lock: a living writer has a temporary file, too.
    pub(crate) fn sweep<S: Kind>(&self, folder: &Folder<S>, leftovers: &[String]) -> Result<(), Error> {
        leftovers.iter().try_for_each(|file| self.pen.remove(folder.path(), file).map(drop))
    }

    fn write<S: Kind>(&self, folder: &Folder<S>, file: &str, object: &Object<S>) -> Result<Written, Error> {
        let express = |source| Error::Express { path: folder.path().join(file), source: Box::new(source) };
        let text = crate::yaml::write(object).map_err(express)?;
        self.pen.replace(folder.path(), file, &text)
    }

    fn check(&self) -> Result<(), Error> {
        let root = |source| Error::Root { path: self.path.clone(), source };
        fs::read_dir(&self.path).map_err(root).map(drop)
    }
}

/// Runs file work beside the async threads.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Error> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.map_err(Error::Thread)?
}

//! Folders that this program makes: for its owner alone. It refuses to change one that is there.

use std::{
    fs::{DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// A folder could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the folder {path}")]
pub struct Error {
    /// The folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub cause: io::Error,
}

/// Makes a folder and its parents with mode 0700 where they are missing.
///
/// # Errors
/// One of them could not be made.
pub fn make(path: &Path) -> Result<(), Error> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|cause| Error { path: path.to_owned(), cause })
}

/// The folder of a file.
pub fn of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the entries of the folder of `path` durable.
///
/// # Errors
/// The folder could not be synced.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(of(path))?.sync_all()
}

//! Where the files of a fleet are: in a temporary folder that goes with it, or where somebody wants to read them later.
//! It refuses a folder that is there already: another run's files would be taken for this one's.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// The folder.
#[derive(Debug)]
pub(crate) enum Folder {
    /// It goes with the fleet.
    Temporary(TempDir),
    /// It stays.
    Kept(PathBuf),
}

impl Folder {
    /// Makes it.
    pub(crate) fn new(kept: Option<&Path>) -> Result<Self> {
        let Some(path) = kept else {
            let made = tempfile::Builder::new().prefix("spanwire-demo-").tempdir();
            return Ok(Self::Temporary(made.context("making a temporary folder")?));
        };
        fs::create_dir(path).with_context(|| format!("making the folder {}", path.display()))?;
        // Every mount namespace sees the folder from its own root.
        let whole = path.canonicalize().with_context(|| format!("finding {}", path.display()))?;
        Ok(Self::Kept(whole))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Folder::Temporary(folder) => folder.path(),
            Folder::Kept(path) => path,
        }
    }
}

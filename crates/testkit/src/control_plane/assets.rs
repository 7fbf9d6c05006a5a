//! Where the programs of a control plane are: `KUBEBUILDER_ASSETS`, else what was built from `tools/go.mod`. It
//! refuses programs of another version than `tools/go.mod` names: the cache folder is named by a digest of it.

mod build;

use std::{
    env,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

pub use build::{BuildError, build};

/// The convention of other projects for a folder with these programs.
pub const VARIABLE: &str = "KUBEBUILDER_ASSETS";

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
const KUBECTL: &str = "kubectl";

/// The programs.
#[derive(Debug, Clone)]
pub struct Assets {
    /// etcd.
    pub etcd: PathBuf,
    /// The API server.
    pub api_server: PathBuf,
    /// kubectl, where the folder has one.
    pub kubectl: Option<PathBuf>,
}

/// The programs are not there.
#[derive(Debug, thiserror::Error)]
pub enum AssetsError {
    /// The variable names a folder without them.
    #[error("{VARIABLE} names {folder}, which holds no {program}: correct it or unset it")]
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// What it lacks.
        program: &'static str,
    },
    /// They were not built yet.
    #[error(
        "no kube-apiserver and etcd here: run `cargo xtask control-plane build` (it needs Go, https://go.dev/dl, and \
         about ten minutes once), or let {VARIABLE} name a folder that holds them"
    )]
    NotBuilt,
    /// The files that name the versions cannot be read.
    #[error("reading {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
}

/// Finds them.
///
/// # Errors
/// They are not there; the message says how to get them.
pub fn find() -> Result<Assets, AssetsError> {
    if let Some(folder) = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
        let folder = PathBuf::from(folder);
        return in_folder(&folder).map_err(|program| AssetsError::Incomplete { folder, program });
    }
    in_folder(&cache()?).map_err(|_| AssetsError::NotBuilt)
}

/// Why tests on real API servers can't run here; `None`: they can.
///
/// # Panics
/// Where the variable `CI` is set: there a test that does not run is a failure.
#[allow(clippy::panic, reason = "it fails the test that asks")]
pub fn why_not() -> Option<AssetsError> {
    let why = find().err()?;
    if env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false") {
        panic!("this test has to run where CI is set: {why}");
    }
    Some(why)
}

/// The error is the program that is missing.
fn in_folder(folder: &Path) -> Result<Assets, &'static str> {
    let program = |name| Some(folder.join(name)).filter(|path: &PathBuf| path.is_file());
    Ok(Assets {
        etcd: program(ETCD).ok_or(ETCD)?,
        api_server: program(API_SERVER).ok_or(API_SERVER)?,
        kubectl: program(KUBECTL),
    })
}

/// The user's cache of this project; `XDG_CACHE_HOME`, else `~/.cache`.
pub fn home() -> PathBuf {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let set = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    set.or_else(home).unwrap_or_else(env::temp_dir).join("spanwire")
}

/// The folder of what `tools/go.mod` names, built or not.
///
/// # Errors
/// `tools/go.mod` or `tools/go.sum` can't be read.
pub fn cache() -> Result<PathBuf, AssetsError> {
    let mut digest = Sha256::new();
    for name in ["go.mod", "go.sum"] {
        let path = tools().join(name);
        let text = std::fs::read(&path).map_err(|source| AssetsError::Unreadable { path, source })?;
        digest.update(&text);
    }
    let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(home().join("control-plane").join(digest))
}

/// The Go module that names the versions.
fn tools() -> PathBuf {
    crate::folder::workspace().join("tools")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_folder_names_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(in_folder(folder.path()).unwrap_err(), ETCD);
        std::fs::write(folder.path().join(ETCD), "").unwrap();
        assert_eq!(in_folder(folder.path()).unwrap_err(), API_SERVER);
        std::fs::write(folder.path().join(API_SERVER), "").unwrap();
        assert!(in_folder(folder.path()).unwrap().kubectl.is_none());
    }
}

//! Folders of files. It refuses to follow what is neither a file nor a folder.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// The folder of the workspace: of the clone that cargo runs, else of the one that this crate was built in. Clones may
/// share a build directory, so what was built in one may run in another.
#[must_use]
pub fn workspace() -> PathBuf {
    let run = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let of_run = run
        .as_deref()
        .and_then(|folder| folder.ancestors().find(|parent| parent.join("Cargo.lock").exists()));
    match of_run {
        Some(folder) => folder.to_path_buf(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
    }
}

/// Copies a folder with everything in it; what is there already is written over.
///
/// # Errors
/// Something could not be read or written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

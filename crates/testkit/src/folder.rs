//! Folders of files. It refuses to follow what is neither a file nor a folder.

use std::{fs, io, path::Path};

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

//! Writing and removing one file so that a kill leaves the old content or the new. It refuses to write what is there
//! already.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use spanwire_engine::port::Written;

use super::{Error, layout::TEMPORARY};

/// How files and folders are made, and how many writes there were.
#[derive(Debug)]
pub(crate) struct Pen {
    file_mode: u32,
    folder_mode: u32,
    writes: AtomicU64,
}

impl Pen {
    /// For a store that several accounts may read.
    pub(crate) fn open() -> Self {
        Self { file_mode: 0o644, folder_mode: 0o755, writes: AtomicU64::new(0) }
    }

    /// For a store of one account.
    pub(crate) fn private() -> Self {
        Self { file_mode: 0o600, folder_mode: 0o700, writes: AtomicU64::new(0) }
    }

    /// Files written or removed so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Makes the file hold `text`. The folder is made if it is missing, its parent is not.
    pub(crate) fn replace(&self, folder: &Path, file: &str, text: &str) -> Result<Written, Error> {
        let path = folder.join(file);
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(Written::Same);
        }
        self.make_folder(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        self.write(folder, &path, text).map_err(|source| Error::Write { path, source })?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        Ok(Written::Changed)
    }

    /// Removes the file. A missing one is no error.
    pub(crate) fn remove(&self, folder: &Path, file: &str) -> Result<Written, Error> {
        let path = folder.join(file);
        match fs::remove_file(&path).and_then(|()| sync(folder)) {
            Ok(()) => {
                self.writes.fetch_add(1, Ordering::Relaxed);
                Ok(Written::Changed)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Written::Same),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    /// Makes one folder, durably.
    pub(crate) fn make_folder(&self, folder: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(self.folder_mode).create(folder) {
            Ok(()) => folder.parent().map_or(Ok(()), sync),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn write(&self, folder: &Path, path: &Path, text: &str) -> io::Result<()> {
        let temporary = folder.join(format!("{TEMPORARY}{:016x}", unique()?));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(self.file_mode)
            .open(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            // What is left over would be swept later; a full disk wants it back now.
            let _ = fs::remove_file(&temporary);
        }
        written.and_then(|()| sync(folder))
    }
}

/// Makes the entries of a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn unique() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_ne_bytes(bytes))
}

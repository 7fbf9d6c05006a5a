//! Kernel switches under /proc/sys/net of the calling thread's network namespace. It refuses paths outside of it, and to
//! write what already reads so.

use std::{fs, io, path::PathBuf};

use spanwire_engine::Class;

/// Why a switch could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading failed.
    #[error("could not read net.{key}")]
    Read {
        /// The switch, with slashes.
        key: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Writing failed.
    #[error("could not set net.{key} to {value}: is /proc/sys writable here?")]
    Write {
        /// The switch, with slashes.
        key: String,
        /// The value.
        value: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Read { .. } => Class::Retry,
            Error::Write { source, .. } => match source.kind() {
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Class::NeedsHuman,
                _ => Class::Retry,
            },
        }
    }
}

fn path(key: &str) -> PathBuf {
    // Not /proc/net: that one shows the namespace of the process, this one that of the calling thread.
    PathBuf::from("/proc/sys/net").join(key)
}

/// The value without white space around it; `None`: there is no such switch (IPv6 is off, or the device is gone).
pub(crate) fn get(key: &str) -> Result<Option<String>, Error> {
    match fs::read_to_string(path(key)) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { key: key.to_owned(), source }),
    }
}

/// Sets a switch where it is there and differs. Returns what it was, if it was changed.
pub(crate) fn set(key: &str, value: &str) -> Result<Option<String>, Error> {
    match get(key)? {
        None => Ok(None),
        Some(now) if now == value => Ok(None),
        Some(now) => {
            let written = fs::write(path(key), value);
            let fault = |source| Error::Write { key: key.to_owned(), value: value.to_owned(), source };
            written.map_err(fault).map(|()| Some(now))
        }
    }
}

/// The names under a folder of switches, such as the interfaces of `ipv4/conf`.
pub(crate) fn names(folder: &str) -> Result<Vec<String>, Error> {
    let fault = |source| Error::Read { key: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(path(folder)).map_err(fault)? {
        let name = entry.map_err(fault)?.file_name();
        names.extend(name.into_string());
    }
    names.sort();
    Ok(names)
}

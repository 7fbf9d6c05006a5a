//! The file of the private key and, beside it, the generation of the key. It refuses to overwrite: a file that can't be
//! read or understood is for a person to look at.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use spanwire_dataplane::key::SecretKey;
use spanwire_engine::{Class, PublicKey, port};
use zeroize::Zeroizing;

use crate::folder;

/// Why the key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is there and can't be read.
    #[error("cannot read {path}: it is left as it is; make it readable for this process")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The key file holds no key.
    #[error(
        "{path} holds no WireGuard private key (44 characters of base64 on one line): it is left as it is; restore it \
         from a backup, or move it away to get a new key"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The file beside the key is not understood.
    #[error("{path} is not understood: it is left as it is; move it away, and the generation is counted on")]
    Generation {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
    /// The folder of the key could not be made.
    #[error("cannot make room for the key")]
    Folder(#[source] folder::Error),
    /// The key could not be stored.
    #[error("cannot write {path}: without a stored key no tunnel is made")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl port::Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Read { .. } | Error::Malformed { .. } | Error::Generation { .. } => Class::NeedsHuman,
            Error::Folder(_) | Error::Write { .. } => Class::Retry,
        }
    }
}

/// The key of this worker.
pub struct OwnKey {
    /// The private half.
    pub secret: SecretKey,
    /// The public half.
    pub public: PublicKey,
    /// Its generation; `None`: a person put the key there.
    pub generation: Option<i64>,
}

/// Content of the file beside the key: it counts only for the key that it names.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Beside {
    public_key: String,
    key_generation: i64,
}

/// Where the key is.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The key at `path`, its generation at `<path>.generation`.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The key that is there; `None`: there is no file.
    ///
    /// # Errors
    /// There is a file that can't be read or understood.
    pub fn load(&self) -> Result<Option<OwnKey>, Error> {
        let Some(text) = read_if_there(&self.path)?.map(Zeroizing::new) else { return Ok(None) };
        let malformed = || Error::Malformed { path: self.path.clone() };
        let secret = SecretKey::from_base64(&text).map_err(|_| malformed())?;
        let public = secret.public();
        self.warn_if_open_to_others();
        let generation = self.beside()?.filter(|beside| beside.public_key == public.to_string());
        Ok(Some(OwnKey { secret, public, generation: generation.map(|beside| beside.key_generation) }))
    }

    /// Stores `secret` as the key of `generation` where there is none. It is durable when this returns.
    ///
    /// # Errors
    /// The key could not be stored; a file that came into being meanwhile is left as it is.
    pub fn store(&self, secret: SecretKey, generation: i64) -> Result<OwnKey, Error> {
        let public = secret.public();
        self.remember(&public, generation)?;
        let line = secret.to_base64();
        let write = || {
            let temporary = temporary_beside(&self.path, line.as_bytes())?;
            let linked = fs::hard_link(&temporary, &self.path);
            fs::remove_file(&temporary)?;
            linked?;
            folder::sync(&self.path)
        };
        write().map_err(|cause| Error::Write { path: self.path.clone(), cause })?;
        Ok(OwnKey { secret, public, generation: Some(generation) })
    }

    /// Notes the generation of a key. It is durable when this returns.
    ///
    /// # Errors
    /// It could not be stored.
    pub fn remember(&self, public: &PublicKey, generation: i64) -> Result<(), Error> {
        let path = self.generation_path();
        folder::make(folder::of(&path)).map_err(Error::Folder)?;
        let beside = Beside { public_key: public.to_string(), key_generation: generation };
        let write = || {
            let temporary = temporary_beside(&path, serde_json::to_string(&beside)?.as_bytes())?;
            fs::rename(&temporary, &path)?;
            folder::sync(&path)
        };
        write().map_err(|cause| Error::Write { path: path.clone(), cause })
    }

    fn beside(&self) -> Result<Option<Beside>, Error> {
        let path = self.generation_path();
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|cause| Error::Generation { path, cause })
    }

    fn generation_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".generation");
        path.into()
    }

    fn warn_if_open_to_others(&self) {
        let mode = fs::metadata(&self.path).map(|metadata| metadata.mode()).unwrap_or_default();
        if mode & 0o077 != 0 {
            tracing::warn!(file = %self.path.display(), mode = format!("{:o}", mode & 0o777),
                "others may read the private key: set its mode to 600");
        }
    }
}

fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Error::Read { path: path.to_owned(), cause }),
    }
}

/// A file of the caller's alone in the folder of `path`; what a killed process left of it is replaced.
fn temporary_beside(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let temporary = folder::of(path).join(format!(".{name}.new"));
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    Ok(temporary)
}

#[cfg(test)]
mod tests;

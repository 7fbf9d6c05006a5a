//! Where the objects of a fleet are: a directory, or API servers. It refuses to know what they say.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use spanwire_api::{Kind, Object};

use super::{kind::Clusters, servers::Servers};

/// The control store of a fleet, and the local ones of its workers.
#[derive(Debug)]
pub(crate) enum Control {
    /// A directory for the controller and all workers; each worker has a local one in its own folder.
    Files(PathBuf),
    /// An API server for the controller, and one for each worker.
    Servers(Box<Servers>),
    /// Clusters that run the product by themselves.
    Clusters(Box<Clusters>),
}

/// What a process has to be told to find its stores.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(String, String)>,
}

impl Control {
    /// What the controller is told.
    pub(crate) fn of_controller(&self) -> Places {
        match self {
            Self::Files(path) => {
                Places { arguments: vec!["--control".into(), place(path)], ..Places::default() }
            }
            Self::Servers(servers) => servers.of_controller(),
            Self::Clusters(_) => Places::default(),
        }
    }

    /// What a worker is told whose files are in `folder`.
    pub(crate) fn of_worker(&self, name: &str, folder: &Path) -> Result<Places> {
        match self {
            Self::Files(path) => {
                let local = place(&folder.join("local"));
                let arguments = vec!["--control".into(), place(path), "--local".into(), local];
                Ok(Places { arguments, ..Places::default() })
            }
            Self::Servers(servers) => servers.of_worker(name),
            Self::Clusters(_) => Ok(Places::default()),
        }
    }

    /// Writes an object as a person would.
    pub(crate) fn apply<S: Kind>(&self, name: &str, text: &str) -> Result<()> {
        match self {
            Self::Files(path) => replace(&path.join(S::PLURAL).join(format!("{name}.yaml")), text),
            Self::Servers(servers) => servers.admin().apply::<S>(name, text),
            Self::Clusters(clusters) => clusters.apply(text),
        }
    }

    /// The spec and identity of an object; `None`: there is none.
    pub(crate) fn object<S: Kind>(&self, name: &str) -> Result<Option<Object<S>>> {
        match self {
            Self::Files(path) => parse(&path.join(S::PLURAL).join(format!("{name}.yaml"))),
            Self::Servers(servers) => servers.admin().object(name),
            Self::Clusters(clusters) => clusters.admin().object(name),
        }
    }

    /// What one owner says of an object; `None`: nothing yet.
    pub(crate) fn status<S: Kind>(&self, name: &str, owner: &str) -> Result<Option<S::Status>> {
        let object = match self {
            Self::Files(path) => parse(&path.join(S::PLURAL).join(format!("{name}.status.{owner}.yaml")))?,
            Self::Servers(servers) => servers.admin().object::<S>(name)?,
            Self::Clusters(clusters) => clusters.admin().object::<S>(name)?,
        };
        Ok(object.and_then(|object| object.status))
    }
}

fn place(path: &Path) -> OsString {
    let mut place = OsString::from("dir:");
    place.push(path);
    place
}

fn parse<S: Kind>(path: &Path) -> Result<Option<Object<S>>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    serde_saphyr::from_str(&text).map(Some).with_context(|| format!("understanding {}", path.display()))
}

fn replace(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().with_context(|| format!("{} has no folder", path.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut file =
        tempfile::NamedTempFile::new_in(folder).with_context(|| format!("writing {}", path.display()))?;
    io::Write::write_all(&mut file, text.as_bytes())
        .with_context(|| format!("writing {}", path.display()))?;
    file.persist(path).with_context(|| format!("putting {} into place", path.display()))?;
    Ok(())
}

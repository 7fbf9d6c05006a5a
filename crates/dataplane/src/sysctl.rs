//! Kernel switches of the calling thread's network namespace: /proc/sys/net, or another place where that is mounted
//! writable. It refuses a place that holds no such switches, and to write what already reads so.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use spanwire_engine::Class;

/// Where the kernel shows them. Not /proc/net: that one shows the namespace of the process, this one that of the calling
/// thread.
pub const USUAL: &str = "/proc/sys/net";

/// Why a switch could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder is another one.
    #[error(
        "there are no switches of the kernel in {path}: there is no ipv4/conf; mount the host's {USUAL} there, or name its \
         place by --sysctl-dir"
    )]
    NoSwitches {
        /// The folder.
        path: PathBuf,
    },
    /// Reading failed.
    #[error("could not read {path}")]
    Read {
        /// The switch.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Writing failed.
    #[error(
        "could not set {path} to {value}: where {USUAL} is read-only, as in a container without privileges, mount that of \
         the host at another path, writable, and name it by --sysctl-dir"
    )]
    Write {
        /// The switch.
        path: PathBuf,
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
            Error::NoSwitches { .. } => Class::NeedsHuman,
            Error::Read { .. } => Class::Retry,
            Error::Write { source, .. } => match source.kind() {
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Class::NeedsHuman,
                _ => Class::Retry,
            },
        }
    }
}

/// The switches below one folder.
#[derive(Debug, Clone)]
pub(crate) struct Sysctl(PathBuf);

impl Sysctl {
    /// Those in `folder`.
    ///
    /// # Errors
    /// It holds none: a switch that is not there counts as one that this host does not have.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        if folder.join("ipv4/conf").is_dir() {
            Ok(Self(folder.to_owned()))
        } else {
            Err(Error::NoSwitches { path: folder.to_owned() })
        }
    }

    /// The value without white space around it; `None`: there is no such switch (IPv6 is off, or the device is gone).
    pub(crate) fn get(&self, key: &str) -> Result<Option<String>, Error> {
        let path = self.0.join(key);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Sets a switch where it is there and differs. Returns what it was, if it was changed.
    pub(crate) fn set(&self, key: &str, value: &str) -> Result<Option<String>, Error> {
        match self.get(key)? {
            None => Ok(None),
            Some(now) if now == value => Ok(None),
            Some(now) => {
                let path = self.0.join(key);
                let written = fs::write(&path, value);
                let fault = |source| Error::Write { path, value: value.to_owned(), source };
                written.map_err(fault).map(|()| Some(now))
            }
        }
    }

    /// The names under a folder of switches, such as the interfaces of `ipv4/conf`.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>, Error> {
        let path = self.0.join(folder);
        let fault = |source| Error::Read { path: path.clone(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(fault)? {
            let name = entry.map_err(fault)?.file_name();
            names.extend(name.into_string());
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_and_set_below_the_folder_that_was_named() {
        let folder = tempfile::tempdir().unwrap();
        let switch = folder.path().join("ipv4/conf/all/rp_filter");
        fs::create_dir_all(switch.parent().unwrap()).unwrap();
        fs::write(&switch, "2\n").unwrap();
        let sysctl = Sysctl::open(folder.path()).unwrap();
        assert_eq!(sysctl.get("ipv4/conf/all/rp_filter").unwrap().as_deref(), Some("2"));
        assert_eq!(sysctl.set("ipv4/conf/all/rp_filter", "0").unwrap().as_deref(), Some("2"));
        assert_eq!(sysctl.set("ipv4/conf/all/rp_filter", "0").unwrap(), None, "it reads so already");
        assert_eq!(fs::read_to_string(&switch).unwrap(), "0");
        assert_eq!(sysctl.set("ipv6/conf/all/forwarding", "1").unwrap(), None, "there is none");
        assert_eq!(sysctl.names("ipv4/conf").unwrap(), ["all"]);
    }

    #[test]
    fn what_can_not_be_written_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let refused = Sysctl::open(folder.path()).unwrap_err();
        assert!(matches!(refused.class(), Class::NeedsHuman), "{refused:?}");
        let path = folder.path().display().to_string();
        assert!(
            refused.to_string().contains(&path) && refused.to_string().contains("--sysctl-dir"),
            "{refused}"
        );
        let source = io::ErrorKind::ReadOnlyFilesystem.into();
        let write =
            Error::Write { path: "/proc/sys/net/ipv4/ip_forward".into(), value: "1".to_owned(), source };
        assert!(matches!(write.class(), Class::NeedsHuman), "{write:?}");
        for words in ["/proc/sys/net/ipv4/ip_forward to 1", "mount", "--sysctl-dir"] {
            assert!(write.to_string().contains(words), "{write}");
        }
    }
}

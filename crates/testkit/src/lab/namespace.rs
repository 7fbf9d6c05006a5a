//! A network namespace with a mount namespace, held open by descriptors: an anonymous one, or one that somebody else made.
//! It refuses to be found by name: what nobody can name, nobody leaves behind.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
};

use super::LabError;

/// Where userspace WireGuard keeps its configuration sockets; every namespace has one of its own.
pub const SOCKET_DIRECTORY: &str = "/run/wireguard";

/// A network namespace and the mount namespace that hides other hosts' sockets from it. Clones share it.
#[derive(Debug, Clone)]
pub struct Namespace(Arc<Held>);

#[derive(Debug)]
struct Held {
    name: String,
    net: OwnedFd,
    mount: OwnedFd,
}

impl Namespace {
    /// Makes one with nothing in it; `name` is for messages.
    ///
    /// # Errors
    /// The call that was refused.
    pub fn new(name: &str) -> Result<Self, LabError> {
        thread::scope(|scope| scope.spawn(|| make(name)).join())
            .map_err(|_| LabError::Thread { namespace: name.to_owned() })?
    }

    /// One that somebody else made, such as a container's, by its file (`/proc/<pid>/ns/net`). Mounts stay those of the
    /// caller.
    ///
    /// # Errors
    /// A file could not be opened.
    pub fn of(name: &str, net: &Path) -> Result<Self, LabError> {
        let (net, mount) = (open(name, net)?, open(name, Path::new("/proc/thread-self/ns/mnt"))?);
        Ok(Self(Arc::new(Held { name: name.to_owned(), net, mount })))
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The network namespace.
    pub fn net(&self) -> BorrowedFd<'_> {
        self.0.net.as_fd()
    }

    /// Moves the calling thread in, for good; its working directory stays. Safe to call between fork and exec.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn enter(&self, directory: &Path) -> nix::Result<()> {
        unshare(CloneFlags::CLONE_FS)?;
        setns(&self.0.mount, CloneFlags::CLONE_NEWNS)?;
        setns(&self.0.net, CloneFlags::CLONE_NEWNET)?;
        nix::unistd::chdir(directory)
    }

    /// Runs `work` inside, on a thread of its own.
    ///
    /// # Errors
    /// The namespace could not be entered, or `work` panicked.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let directory = working_directory();
        let inside = || {
            self.enter(&directory).map_err(|source| self.refused("entering", source))?;
            Ok(work())
        };
        thread::scope(|scope| scope.spawn(inside).join())
            .map_err(|_| LabError::Thread { namespace: self.name().to_owned() })?
    }

    /// Writes a kernel setting of the namespace; `key` is a path below /proc/sys.
    ///
    /// # Errors
    /// The setting does not exist or may not be written.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<(), LabError> {
        let path = Path::new("/proc/sys").join(key);
        self.run(|| std::fs::write(&path, value))?.map_err(|source| self.file(path, source))
    }

    /// Reads a kernel setting of the namespace; `key` is a path below /proc/sys.
    ///
    /// # Errors
    /// The setting does not exist or may not be read.
    pub fn sysctl(&self, key: &str) -> Result<String, LabError> {
        let path = Path::new("/proc/sys").join(key);
        let text = self.run(|| std::fs::read_to_string(&path))?.map_err(|source| self.file(path, source))?;
        Ok(text.trim().to_owned())
    }

    fn refused(&self, action: &'static str, source: nix::Error) -> LabError {
        LabError::Namespace { namespace: self.name().to_owned(), action, source }
    }

    fn file(&self, path: PathBuf, source: std::io::Error) -> LabError {
        LabError::File { namespace: self.name().to_owned(), path, source }
    }
}

/// The directory in which threads and children stay when their mount namespace changes.
pub(crate) fn working_directory() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

fn make(name: &str) -> Result<Namespace, LabError> {
    let refused = |action| move |source| LabError::Namespace { namespace: name.to_owned(), action, source };
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(refused("unsharing network and mounts"))?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(refused("making mounts private"))?;
    hide_sockets(name)?;
    Namespace::of(name, Path::new("/proc/thread-self/ns/net"))
}

fn open(name: &str, path: &Path) -> Result<OwnedFd, LabError> {
    let failed = |source| LabError::File { namespace: name.to_owned(), path: path.into(), source };
    File::open(path).map(OwnedFd::from).map_err(failed)
}

/// An empty socket directory that only this mount namespace sees. A machine without one gets it on an empty /run, so
/// that nothing has to be made on the machine itself.
fn hide_sockets(name: &str) -> Result<(), LabError> {
    let there = Path::new(SOCKET_DIRECTORY).is_dir();
    let target = if there { SOCKET_DIRECTORY } else { "/run" };
    mount(Some("tmpfs"), target, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=0755"))
        .map_err(|source| LabError::Namespace {
            namespace: name.to_owned(),
            action: "mounting an empty directory for sockets",
            source,
        })?;
    std::fs::create_dir_all(SOCKET_DIRECTORY).map_err(|source| LabError::File {
        namespace: name.to_owned(),
        path: SOCKET_DIRECTORY.into(),
        source,
    })
}

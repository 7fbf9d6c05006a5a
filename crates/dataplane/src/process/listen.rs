//! Unix sockets with mode 0600 from their first instant. It refuses to take a socket from a process that still answers.

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixListener as StdListener,
    },
    path::Path,
};

use nix::sys::{
    socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket},
    stat::{Mode, fchmod},
};
use tokio::net::{UnixListener, UnixStream};

use super::Error;

/// The control socket, in a directory that is made if need be.
pub(super) async fn control(path: &Path) -> Result<UnixListener, Error> {
    if let Some(parent) = path.parent() {
        let made = std::fs::create_dir_all(parent);
        made.map_err(|source| Error::Listen { path: path.to_owned(), source })?;
    }
    if is_answered(path).await {
        return Err(Error::AlreadyRunning { path: path.to_owned() });
    }
    at(path)
}

/// A socket at `path`, in place of one that nobody answers.
pub(super) fn at(path: &Path) -> Result<UnixListener, Error> {
    remove(path);
    private(path).map_err(|source| Error::Listen { path: path.to_owned(), source })
}

fn private(path: &Path) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // The kernel gives the new file the mode of the socket, less the umask.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&socket, Backlog::new(128)?)?;
    UnixListener::from_std(StdListener::from(socket))
}

/// Makes the directory of configuration sockets and removes what an earlier process of ours left there.
pub(super) async fn prepare_directory(dir: &Path) -> Result<(), Error> {
    let fault = |source| Error::Listen { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(fault)?;
    for entry in std::fs::read_dir(dir).map_err(fault)?.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().and_then(|name| name.strip_suffix(".sock")).is_some_and(is_our_name);
        if ours && !is_answered(&entry.path()).await {
            remove(&entry.path());
        }
    }
    Ok(())
}

/// Whether a device of this name is one that we would make.
pub(super) fn is_our_name(name: &str) -> bool {
    ["swu-", "swd-", "swt-", "swm-"].iter().any(|prefix| name.starts_with(prefix))
        && name.parse::<spanwire_engine::DeviceName>().is_ok()
}

async fn is_answered(path: &Path) -> bool {
    UnixStream::connect(path).await.is_ok()
}

/// Removes a socket file; that it is gone already is no fault.
pub(super) fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, path = %path.display(), "could not remove a socket"),
    }
}

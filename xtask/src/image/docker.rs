//! Whether the image can be tried here: Docker is reached, and the image was made. It refuses to make it: that takes longer
//! than all tests.

use std::{env, os::unix::net::UnixStream, path::PathBuf};

use super::Architecture;
use crate::place;

/// Where Docker listens unless its variable says otherwise.
const SOCKET: &str = "/var/run/docker.sock";

/// Why not; `None`: it can be.
pub(crate) fn why_not() -> Option<String> {
    let host = env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
    let socket = match host.as_deref() {
        None => Some(SOCKET),
        // One elsewhere is left to the test itself.
        Some(host) => host.strip_prefix("unix://"),
    };
    if let Some(socket) = socket
        && let Err(error) = UnixStream::connect(socket)
    {
        return Some(format!("no Docker is reached at {socket}: {error}"));
    }
    let file = match env::var_os("SPANWIRE_IMAGE_FILE") {
        Some(file) => PathBuf::from(file),
        None => {
            let [version, _] = place::product().ok()?;
            place::root()
                .join(format!("target/image/spanwire-{version}-{}.tar", Architecture::here()?.name()))
        }
    };
    (!file.is_file()).then(|| format!("there is no {}: cargo xtask image", place::short(&file)))
}

//! How a program that is not root gets namespaces: it becomes root of a user namespace. It refuses to do so once there
//! are threads, as the kernel does.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::{
    sched::{CloneFlags, unshare},
    unistd::{Uid, getgid, getuid},
};

/// Why no user namespace could be entered.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    /// The system forbids it.
    #[error("the system refuses user namespaces to uid {uid}")]
    Refused {
        /// Who asked.
        uid: u32,
        /// The refusal.
        #[source]
        source: nix::Error,
    },
    /// The ids could not be mapped.
    #[error("writing {path} was refused")]
    Map {
        /// The file.
        path: &'static str,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
}

/// What to do where [`enter`] is refused.
pub const REMEDY: &str = "this is not root, and the system does not let it make network namespaces. Run it with sudo, \
    or allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 (Debian), \
    sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)";

static INSIDE: AtomicBool = AtomicBool::new(false);

/// Whether [`enter`] was called.
pub fn is_inside() -> bool {
    INSIDE.load(Ordering::Relaxed)
}

/// Whether this program needs [`enter`] before it can make a lab.
pub fn is_needed() -> bool {
    !Uid::effective().is_root()
}

/// Makes the calling program root of a new user namespace, with network and mounts of its own. Only while it has one
/// thread.
///
/// # Errors
/// The system forbids user namespaces, or a policy of it forbids to map ids.
pub fn enter() -> Result<(), UserNamespaceError> {
    let (uid, gid) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(|source| UserNamespaceError::Refused { uid: uid.as_raw(), source })?;
    for (path, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {uid} 1")),
        ("/proc/self/gid_map", format!("0 {gid} 1")),
    ] {
        std::fs::write(path, text).map_err(|source| UserNamespaceError::Map { path, source })?;
    }
    INSIDE.store(true, Ordering::Relaxed);
    Ok(())
}

//! Whether this process may change the network of its host. It refuses to begin where it may not: half a tunnel is worse
//! than a container that says what it lacks.

use std::{fs, io};

use spanwire_engine::{Class, port::Fault};

/// Number of the capability in the kernel's `linux/capability.h`.
const NET_ADMIN: u32 = 12;
const STATUS: &str = "/proc/self/status";

/// Why a process can't do its work here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel does not say what this process may do.
    #[error("failed to read which capabilities this process has, in {STATUS}")]
    Unreadable(#[source] io::Error),
    /// The kernel's answer has no such line.
    #[error("{STATUS} has no line CapEff with the capabilities of this process")]
    NotSaid,
    /// The capability is not there.
    #[error(
        "the capability NET_ADMIN is missing: without it the {process} can't {work}. In a pod, add it to the container's \
         securityContext: capabilities: {{drop: [ALL], add: [NET_ADMIN]}}, with runAsUser: 0; on a host, run it as root"
    )]
    NoNetAdmin {
        /// Which process.
        process: &'static str,
        /// What it would do with it.
        work: &'static str,
    },
}

impl Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Unreadable(_) | Error::NotSaid | Error::NoNetAdmin { .. } => Class::NeedsHuman,
        }
    }
}

/// Looks whether this process has NET_ADMIN; `work` completes "it can't …".
///
/// # Errors
/// It has not, or the kernel does not say so.
pub fn check(process: &'static str, work: &'static str) -> Result<(), Error> {
    let status = fs::read_to_string(STATUS).map_err(Error::Unreadable)?;
    if effective(&status).ok_or(Error::NotSaid)? & (1 << NET_ADMIN) == 0 {
        return Err(Error::NoNetAdmin { process, work });
    }
    Ok(())
}

/// The set of capabilities that counts now, a bit each.
fn effective(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_counts() {
        let status = "Name:\tspanwire\nCapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000001000\n";
        assert_eq!(effective(status), Some(1 << NET_ADMIN));
        assert_eq!(effective("Name:\tspanwire\n"), None);
    }

    #[test]
    fn the_message_holds_the_next_step() {
        let error = Error::NoNetAdmin { process: "worker", work: "make devices" }.to_string();
        assert!(error.contains("securityContext: capabilities: {drop: [ALL], add: [NET_ADMIN]}"), "{error}");
    }
}

//! What can go wrong while the lab is built. It refuses to guess at remedies: the callers know who is asking.

use std::path::PathBuf;

/// A step of the lab that failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The kernel refused to make or enter a namespace.
    #[error("{action} for {namespace:?} was refused")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// The call.
        action: &'static str,
        /// The refusal.
        #[source]
        source: nix::Error,
    },
    /// A thread of the lab could not be started or ended in a panic.
    #[error("a thread in {namespace:?} did not come back")]
    Thread {
        /// The namespace.
        namespace: String,
    },
    /// A file could not be opened or written.
    #[error("{path} in {namespace:?} could not be used")]
    File {
        /// The namespace.
        namespace: String,
        /// The file.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
    /// A netlink socket could not be opened.
    #[error("opening a netlink socket in {namespace:?}")]
    Netlink {
        /// The namespace.
        namespace: String,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
    /// The kernel refused a netlink request.
    #[error("{action} of {device:?} in {namespace:?} was refused")]
    Request {
        /// The namespace.
        namespace: String,
        /// The request.
        action: &'static str,
        /// The device.
        device: String,
        /// The refusal.
        #[source]
        source: Box<rtnetlink::Error>,
    },
    /// There is no such device.
    #[error("no device {device:?} in {namespace:?}")]
    NoDevice {
        /// The namespace.
        namespace: String,
        /// The device.
        device: String,
    },
    /// A program of the lab is missing.
    #[error("{program} could not be started in {namespace:?} (is it installed?)")]
    Program {
        /// The namespace.
        namespace: String,
        /// The program.
        program: String,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
    /// A program of the lab said no.
    #[error("{program} in {namespace:?} failed: {output}")]
    Refused {
        /// The namespace.
        namespace: String,
        /// The program.
        program: String,
        /// What it wrote.
        output: String,
    },
    /// The address plan is used up.
    #[error("a lab has room for {limit} hosts")]
    TooManyHosts {
        /// The limit.
        limit: u8,
    },
}

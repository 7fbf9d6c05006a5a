//! The kernel's route socket of the current network namespace: how requests are sent and dumps are read whole. It refuses
//! to return a dump that the kernel marked as interrupted.

pub(crate) mod address;
pub(crate) mod answers;
pub(crate) mod carrier;
pub(crate) mod link;
pub(crate) mod monitor;
pub(crate) mod route;
pub(crate) mod rule;

use std::{io, time::Duration};

use futures::StreamExt;
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage};
use netlink_packet_route::RouteNetlinkMessage;
use rtnetlink::Handle;
use spanwire_engine::Class;
use tokio::sync::Mutex;

use carrier::Carrier;

/// How long the kernel may take to answer.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How often a list is read that keeps changing.
pub(crate) const DUMP_ATTEMPTS: usize = 5;

/// Why a netlink call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No socket.
    #[error("could not open a netlink socket")]
    Open(#[source] io::Error),
    /// A read failed.
    #[error("could not list {what}")]
    Dump {
        /// What was read.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The list kept changing while it was read.
    #[error("the list of {what} kept changing while it was read")]
    Interrupted {
        /// What was read.
        what: &'static str,
    },
    /// A write failed.
    #[error("could not {what}")]
    Write {
        /// What was written, with its names.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No answer in time.
    #[error("the kernel did not answer within {TIME_LIMIT:?}: {what}")]
    TimedOut {
        /// The request.
        what: String,
    },
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Open(source) | Error::Dump { source, .. } | Error::Write { source, .. } => {
                match source.kind() {
                    io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => Class::NeedsHuman,
                    _ => Class::Retry,
                }
            }
            Error::Interrupted { .. } | Error::TimedOut { .. } => Class::Retry,
        }
    }

    /// The kernel's error number of a failed read or write.
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            Error::Write { source, .. } | Error::Dump { source, .. } => source.raw_os_error(),
            Error::Open(_) | Error::Interrupted { .. } | Error::TimedOut { .. } => None,
        }
    }
}

/// A connection to the kernel.
pub(crate) struct Netlink {
    carrier: Carrier<Handle>,
    /// The kernel gives one list at a time to one socket.
    listing: Mutex<()>,
}

impl Netlink {
    pub(crate) fn open() -> Result<Self, Error> {
        let connect = || {
            let (connection, handle, _) = rtnetlink::new_connection_with_strict_check()?;
            Ok((connection, handle))
        };
        Ok(Self { carrier: Carrier::start(connect).map_err(Error::Open)?, listing: Mutex::new(()) })
    }

    /// Reads a whole list; reads it again when the kernel says that it changed under the reading.
    pub(crate) async fn dump(
        &self,
        what: &'static str,
        request: &RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        let _alone = self.listing.lock().await;
        for _ in 0..DUMP_ATTEMPTS {
            let read = tokio::time::timeout(TIME_LIMIT, self.dump_once(what, request.clone()));
            match read.await.map_err(|_| Error::TimedOut { what: format!("list {what}") })? {
                Err(Error::Interrupted { .. }) => {}
                other => return other,
            }
        }
        Err(Error::Interrupted { what })
    }

    async fn dump_once(
        &self,
        what: &'static str,
        request: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        let fault = |source| Error::Dump { what, source };
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let answers = self.carrier.handle().request(message).map_err(|e| fault(io::Error::other(e)))?;
        answers::gather(answers.map(Ok)).await.map_err(fault)?.ok_or(Error::Interrupted { what })
    }

    /// Sends a change and waits for the kernel's word. `what` completes "could not …".
    pub(crate) async fn write(
        &self,
        what: impl Into<String>,
        flags: u16,
        request: RouteNetlinkMessage,
    ) -> Result<(), Error> {
        let what = what.into();
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let sent = self.carrier.handle().request(message);
        let answers = sent.map_err(|e| Error::Write { what: what.clone(), source: io::Error::other(e) })?;
        match tokio::time::timeout(TIME_LIMIT, answers::gather(answers.map(Ok))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(source)) => Err(Error::Write { what, source }),
            Err(_) => Err(Error::TimedOut { what }),
        }
    }
}

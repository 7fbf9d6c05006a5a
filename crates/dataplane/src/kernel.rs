//! The kernel's own WireGuard, over generic netlink: read a device whole, change what is asked. It refuses to decide what
//! to send ([`message`] does) and to return a dump that the kernel marked as interrupted.

mod message;
mod read;

use std::{
    io,
    sync::{
        PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::StreamExt;
use genetlink::GenetlinkHandle;
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage};
use netlink_packet_generic::GenlMessage;
use netlink_packet_wireguard::WireguardMessage;
use spanwire_engine::{Class, DeviceName};
use tokio::sync::Mutex;

use crate::{
    configuration::{DeviceInfo, SetDevice, wall},
    netlink::{DUMP_ATTEMPTS, TIME_LIMIT, answers, carrier::Carrier},
};

/// How long a kernel that has no WireGuard is not asked again.
const ABSENT: Duration = Duration::from_secs(30);

/// Why a kernel device could not be read or changed. Nothing that was sent is shown: it may hold a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No socket.
    #[error("could not open a generic netlink socket")]
    Open(#[source] io::Error),
    /// A read failed.
    #[error("could not read the kernel device {device}")]
    Read {
        /// The device.
        device: DeviceName,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The device kept changing while it was read.
    #[error("the kernel device {device} kept changing while it was read")]
    Interrupted {
        /// The device.
        device: DeviceName,
    },
    /// A write failed.
    #[error("could not configure the kernel device {device}")]
    Write {
        /// The device.
        device: DeviceName,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Open(source) | Error::Read { source, .. } | Error::Write { source, .. }
                if matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) =>
            {
                Class::NeedsHuman
            }
            Error::Open(_) | Error::Read { .. } | Error::Interrupted { .. } | Error::Write { .. } => {
                Class::Retry
            }
        }
    }
}

/// What was sent to change kernel devices, reading not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Messages.
    pub messages: u64,
    /// Bytes of their attributes.
    pub bytes: u64,
}

/// A connection to the kernel's WireGuard.
pub(crate) struct Client {
    carrier: Carrier<GenetlinkHandle>,
    /// The kernel gives one dump at a time to one socket.
    reading: Mutex<()>,
    messages: AtomicU64,
    bytes: AtomicU64,
    /// When the kernel said last that it has no WireGuard.
    absent: std::sync::Mutex<Option<Instant>>,
}

impl Client {
    /// Opens the connection; [`Client::present`] tells whether the kernel has WireGuard.
    pub(crate) fn open() -> Result<Self, Error> {
        let connect = || genetlink::new_connection().map(|(connection, handle, _)| (connection, handle));
        let carrier = Carrier::start(connect).map_err(Error::Open)?;
        Ok(Self {
            carrier,
            reading: Mutex::new(()),
            messages: 0.into(),
            bytes: 0.into(),
            absent: Default::default(),
        })
    }

    /// Whether the kernel has WireGuard. Asking loads the module where it may be loaded, for which the kernel starts a
    /// program: after a no it is not asked again for a while.
    pub(crate) async fn present(&self) -> io::Result<()> {
        if self.absent().is_some_and(|since| since.elapsed() < ABSENT) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let asked = async { self.carrier.handle().resolve_family::<WireguardMessage>().await };
        let answer = match tokio::time::timeout(TIME_LIMIT, asked).await {
            Ok(found) => found.map(drop).map_err(io_error),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        let is_absent = answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Unsupported);
        *self.absent() = is_absent.then(Instant::now);
        answer
    }

    fn absent(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that a device shows. What it costs grows with the number of its peers: the kernel has no shorter answer.
    pub(crate) async fn get(&self, device: &DeviceName) -> Result<DeviceInfo, Error> {
        let fault = |source| Error::Read { device: device.clone(), source };
        let _alone = self.reading.lock().await;
        for _ in 0..DUMP_ATTEMPTS {
            let flags = NLM_F_REQUEST | NLM_F_DUMP;
            if let Some(answers) = self.exchange(flags, message::get(device)).await.map_err(fault)? {
                return Ok(read::device(answers, wall()));
            }
        }
        Err(Error::Interrupted { device: device.clone() })
    }

    /// Makes a change, in as many messages as the kernel's limits ask for.
    pub(crate) async fn set(&self, device: &DeviceName, set: &SetDevice) -> Result<(), Error> {
        let fault = |source| Error::Write { device: device.clone(), source };
        for batch in message::set(device, set) {
            self.messages.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(message::length(&batch), Ordering::Relaxed);
            self.exchange(NLM_F_REQUEST | NLM_F_ACK, batch).await.map_err(fault)?;
        }
        Ok(())
    }

    pub(crate) fn sent(&self) -> Sent {
        Sent { messages: self.messages.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// Sends one request and gathers what is answered; `None`: it changed meanwhile.
    async fn exchange(
        &self,
        flags: u16,
        request: WireguardMessage,
    ) -> io::Result<Option<Vec<WireguardMessage>>> {
        let mut message = NetlinkMessage::from(GenlMessage::from_payload(request));
        message.header.flags = flags;
        let mut handle = self.carrier.handle();
        let exchange = async {
            let answers = handle.request(message).await.map_err(io_error)?;
            let found = answers::gather(answers.map(|answer| answer.map_err(io::Error::other))).await?;
            Ok(found.map(|found| found.into_iter().map(|message| message.payload).collect()))
        };
        tokio::time::timeout(TIME_LIMIT, exchange)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Keeps the kernel's error number. A family that is not there is a kernel without WireGuard.
fn io_error(error: genetlink::GenetlinkError) -> io::Error {
    match error {
        genetlink::GenetlinkError::NetlinkError(source)
            if source.raw_os_error() == Some(nix::libc::ENOENT) =>
        {
            io::ErrorKind::Unsupported.into()
        }
        genetlink::GenetlinkError::NetlinkError(source) => source,
        other => io::Error::other(other),
    }
}

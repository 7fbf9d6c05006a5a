//! Asks a device's configuration socket. It refuses to wait for ever and to keep a connection open.

use std::{io, path::PathBuf, time::Duration};

use spanwire_engine::{Class, DeviceName, PublicKey};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};
use zeroize::Zeroizing;

use crate::configuration::{DeviceInfo, SetDevice, wall};

use super::{SyntaxError, hex, parse_get, render_set};

const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Why a device could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers at its socket.
    #[error("could not reach the configuration socket of {device}")]
    Connect {
        /// The device.
        device: DeviceName,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The answer was cut off or came too late.
    #[error("the configuration socket of {device} did not answer")]
    Answer {
        /// The device.
        device: DeviceName,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The answer is not in the protocol.
    #[error("the configuration socket of {device} gave an answer that is not understood")]
    Syntax {
        /// The device.
        device: DeviceName,
        /// Where.
        #[source]
        source: SyntaxError,
    },
    /// The device refused.
    #[error("{device} refused its configuration")]
    Refused {
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
            Error::Connect { .. } | Error::Answer { .. } | Error::Refused { .. } => Class::Retry,
            Error::Syntax { .. } => Class::NeedsHuman,
        }
    }
}

/// Finds configuration sockets as `<dir>/<device>.sock`.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    dir: PathBuf,
}

impl Client {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(crate) async fn get(&self, device: &DeviceName) -> Result<DeviceInfo, Error> {
        self.get_peers(device, &[]).await
    }

    /// The device with those of `peers` alone that it has, with all where none is named: what it costs does not grow with the others.
    pub(crate) async fn get_peers(
        &self,
        device: &DeviceName,
        peers: &[PublicKey],
    ) -> Result<DeviceInfo, Error> {
        let named: String = peers.iter().map(|peer| format!("public_key={}\n", hex(&peer.0))).collect();
        let answer = self.ask(device, &format!("get=1\n{named}\n")).await?;
        parse_get(&answer, wall()).map_err(|source| Error::Syntax { device: device.clone(), source })
    }

    pub(crate) async fn set(&self, device: &DeviceName, set: &SetDevice) -> Result<(), Error> {
        self.ask(device, &render_set(set)).await.map(drop)
    }

    async fn ask(&self, device: &DeviceName, request: &str) -> Result<Zeroizing<String>, Error> {
        let connect = UnixStream::connect(self.dir.join(format!("{device}.sock"))).await;
        let mut stream = connect.map_err(|source| Error::Connect { device: device.clone(), source })?;
        let exchange = async {
            stream.write_all(request.as_bytes()).await?;
            let mut answer = Zeroizing::new(String::new());
            let mut buffer = Zeroizing::new(vec![0u8; 64 * 1024]);
            while !answer.ends_with("\n\n") {
                let count = stream.read(&mut buffer).await?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let text = std::str::from_utf8(&buffer[..count]).map_err(io::Error::other)?;
                answer.push_str(text);
            }
            Ok(answer)
        };
        let fault = |source| Error::Answer { device: device.clone(), source };
        let answer = tokio::time::timeout(TIME_LIMIT, exchange)
            .await
            .map_err(|_| fault(io::ErrorKind::TimedOut.into()))?
            .map_err(fault)?;
        finish(device, answer)
    }
}

/// Takes the closing `errno` line off.
fn finish(device: &DeviceName, mut answer: Zeroizing<String>) -> Result<Zeroizing<String>, Error> {
    let start = answer.rfind("errno=").unwrap_or(answer.len());
    let number = answer[start..].trim().strip_prefix("errno=").and_then(|text| text.parse::<i32>().ok());
    match number {
        Some(0) => {
            answer.truncate(start);
            Ok(answer)
        }
        Some(number) => {
            let source = io::Error::from_raw_os_error(number.abs());
            Err(Error::Refused { device: device.clone(), source })
        }
        None => {
            let source = io::ErrorKind::InvalidData.into();
            Err(Error::Answer { device: device.clone(), source })
        }
    }
}

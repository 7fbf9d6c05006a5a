//! The control protocol of the dataplane process: one JSON request a line, one JSON answer a line. It refuses to carry
//! peers or keys: those go over each device's configuration socket.

use std::{collections::BTreeMap, io, net::IpAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use spanwire_engine::{Class, DeviceName};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
};

const TIME_LIMIT: Duration = Duration::from_secs(15);

/// What the dataplane process can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Makes a device; one that is there with the same alias is left alone.
    Create { name: String, alias: String, mtu: u32 },
    /// Removes a device; one that is not there is no fault.
    Delete { name: String },
    /// Names of all devices.
    List,
    /// Counts of configuration changes.
    Stats,
    /// When each peer's last probe arrived.
    Heard,
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub(crate) enum Answer {
    Done,
    Devices { devices: Vec<String> },
    Stats { devices: BTreeMap<String, u64>, total: u64 },
    Heard { heard: Vec<HeardEntry> },
    Error { error: String },
}

/// A peer that probes us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeardEntry {
    pub(crate) device: String,
    pub(crate) remote: IpAddr,
    /// Milliseconds since its last request.
    pub(crate) age: u64,
    /// Milliseconds from our last answer that it heard to that request; `None`: it heard none yet.
    #[serde(default)]
    pub(crate) answered: Option<u64>,
}

/// Why the dataplane process did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers.
    #[error("could not reach the dataplane process at {path}: is `spanwire dataplane` running?")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The answer was cut off, came too late or is not understood.
    #[error("the dataplane process at {path} did not answer")]
    Answer {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It refused.
    #[error("the dataplane process refused: {cause}")]
    Refused {
        /// Its words.
        cause: String,
    },
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Connect { .. } | Error::Answer { .. } | Error::Refused { .. } => Class::Retry,
        }
    }
}

/// Asks the dataplane process; one connection a question.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    path: PathBuf,
}

impl Client {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) async fn create(&self, name: &DeviceName, alias: String, mtu: u32) -> Result<(), Error> {
        self.ask(&Request::Create { name: name.to_string(), alias, mtu }).await.map(drop)
    }

    pub(crate) async fn delete(&self, name: &DeviceName) -> Result<(), Error> {
        self.ask(&Request::Delete { name: name.to_string() }).await.map(drop)
    }

    pub(crate) async fn heard(&self) -> Result<Vec<HeardEntry>, Error> {
        match self.ask(&Request::Heard).await? {
            Answer::Heard { heard } => Ok(heard),
            _ => Err(self.fault(io::ErrorKind::InvalidData.into())),
        }
    }

    pub(crate) async fn ask(&self, request: &Request) -> Result<Answer, Error> {
        let connect = UnixStream::connect(&self.path).await;
        let mut stream = connect.map_err(|source| Error::Connect { path: self.path.clone(), source })?;
        let exchange = async {
            let mut line = serde_json::to_string(request).map_err(io::Error::other)?;
            line.push('\n');
            stream.write_all(line.as_bytes()).await?;
            let mut answer = String::new();
            BufReader::new(&mut stream).read_line(&mut answer).await?;
            serde_json::from_str(&answer).map_err(io::Error::other)
        };
        let answered = tokio::time::timeout(TIME_LIMIT, exchange).await;
        let answer = answered
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|source| self.fault(source))?;
        match answer {
            Answer::Error { error } => Err(Error::Refused { cause: error }),
            other => Ok(other),
        }
    }

    fn fault(&self, source: io::Error) -> Error {
        Error::Answer { path: self.path.clone(), source }
    }
}

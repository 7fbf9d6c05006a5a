//! Answers one device's configuration socket. It refuses a request that it does not understand as a whole.

use std::sync::Arc;

use nix::libc::EINVAL;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
};
use zeroize::Zeroizing;

use crate::{
    configuration::wall,
    uapi::{parse_filter, parse_set, render_get},
};

use super::device::UserDevice;

/// Bytes that one request may have: room for a device with a million prefixes.
const LIMIT: usize = 64 << 20;

/// Accepts connections until the task is ended.
pub(super) async fn run(listener: UnixListener, device: Arc<UserDevice>) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(open.spawn(connection(stream, Arc::clone(&device)))),
                Err(error) => {
                    tracing::warn!(%error, "could not accept a configuration connection");
                    tokio::task::yield_now().await;
                }
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn connection(stream: UnixStream, device: Arc<UserDevice>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(request) = next_request(&mut read).await {
        let answer = answer(&device, &request).await;
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads lines up to a blank one.
async fn next_request(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Zeroizing<String>> {
    let mut request = Zeroizing::new(String::new());
    loop {
        let before = request.len();
        let count = read.read_line(&mut request).await.ok()?;
        if count == 0 || request.len() > LIMIT {
            return None;
        }
        if request[before..].trim_end().is_empty() {
            request.truncate(before);
            if before > 0 {
                return Some(request);
            }
        }
    }
}

async fn answer(device: &UserDevice, request: &str) -> Zeroizing<String> {
    let (operation, rest) = request.split_once('\n').unwrap_or((request, ""));
    let result = match operation.trim_end() {
        "get=1" => match parse_filter(rest) {
            Ok(peers) => {
                return render_get(&device.info(peers.as_deref()).await, wall());
            }
            Err(error) => {
                tracing::debug!(%error, "refused a configuration request");
                Err(EINVAL)
            }
        },
        "set=1" => match parse_set(rest) {
            Ok(set) => device.set(&set).await.map(drop),
            Err(error) => {
                tracing::debug!(%error, "refused a configuration request");
                Err(EINVAL)
            }
        },
        _ => Err(EINVAL),
    };
    let number = result.err().unwrap_or(0);
    Zeroizing::new(format!("errno={}\n\n", -number))
}

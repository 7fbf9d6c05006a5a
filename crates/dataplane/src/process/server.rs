//! Answers the control socket. It refuses lines that it does not understand, one by one.

use std::sync::Arc;

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
};

use crate::{
    causes::causes,
    control::{Answer, Request},
};

use super::registry::Registry;

/// Accepts connections for ever.
pub(super) async fn run(listener: UnixListener, registry: Arc<Registry>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, Arc::clone(&registry)))),
            Err(error) => {
                tracing::warn!(%error, "could not accept a control connection");
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn connection(stream: UnixStream, registry: Arc<Registry>) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let answer = match serde_json::from_str(&line) {
            Ok(request) => answer(&registry, request).await,
            Err(error) => Answer::Error { error: format!("the request is not understood: {error}") },
        };
        let Ok(mut text) = serde_json::to_string(&answer) else { return };
        text.push('\n');
        if write.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(registry: &Arc<Registry>, request: Request) -> Answer {
    let done = match request {
        Request::Create { name, alias, mtu } => registry.create(&name, &alias, mtu).await,
        Request::Delete { name } => {
            registry.delete(&name).await;
            Ok(())
        }
        Request::List => return Answer::Devices { devices: registry.names().await },
        Request::Stats => {
            let (devices, total) = registry.stats().await;
            return Answer::Stats { devices, total };
        }
        Request::Heard => return Answer::Heard { heard: registry.heard() },
    };
    match done {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Error { error: causes(&error) },
    }
}

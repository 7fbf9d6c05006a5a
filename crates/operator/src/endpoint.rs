//! One small HTTP server of a process: /metrics, /healthz and /readyz. It refuses requests that come too slowly, and more
//! connections than a scraper and some probes need.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use spanwire_engine::{Class, port};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    health::{Health, Verdict},
    metrics::{Format, Metrics},
};

/// What a client may use up.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Connections at once; more wait until one ends.
    connections: usize,
    /// How long the header of a request may take.
    header: Duration,
    /// How long a request with its answer may take.
    whole: Duration,
}

const LIMITS: Limits =
    Limits { connections: 32, header: Duration::from_secs(5), whole: Duration::from_secs(15) };
/// Bytes of a request's header.
const LARGEST: usize = 16 << 10;
/// A pause after a connection that could not be taken: the process may be short of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else listens there.
    #[error("cannot listen at {address}: another process does; give --metrics-listen another port")]
    Taken {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The address is no use.
    #[error("cannot listen at {address}: check --metrics-listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl port::Fault for Error {
    fn class(&self) -> Class {
        match self {
            Error::Taken { .. } | Error::Listen { .. } => Class::NeedsHuman,
        }
    }
}

/// A server that answers until this is dropped.
#[derive(Debug)]
pub struct Endpoint {
    task: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Begins to listen, where an address was named. Call it within a Tokio runtime.
///
/// # Errors
/// The address is taken, or none of this host.
pub async fn open(
    address: Option<SocketAddr>,
    metrics: &Metrics,
    health: &Health,
) -> Result<Option<Endpoint>, Error> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await.map_err(|cause| match cause.kind() {
        io::ErrorKind::AddrInUse => Error::Taken { address, cause },
        _ => Error::Listen { address, cause },
    })?;
    tracing::info!(%address, "/metrics, /healthz and /readyz are answered");
    let pages = Arc::new(Pages { metrics: metrics.clone(), health: health.clone() });
    Ok(Some(Endpoint { task: tokio::spawn(run(listener, pages, LIMITS)) }))
}

async fn run(listener: TcpListener, pages: Arc<Pages>, limits: Limits) {
    let room = Arc::new(Semaphore::new(limits.connections));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = Arc::clone(&pages);
                tokio::spawn(async move {
                    answer(stream, pages, limits).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection for /metrics could not be taken");
                sleep(PAUSE).await;
            }
        }
    }
}

/// One request and its answer.
async fn answer(stream: TcpStream, pages: Arc<Pages>, limits: Limits) {
    let service = service_fn(move |request: Request<Incoming>| {
        let pages = Arc::clone(&pages);
        async move {
            let page = pages.page(request.method(), request.uri().path(), request.headers()).await;
            Ok::<_, Infallible>(page)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_buf_size(LARGEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(limits.whole, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a request was not answered"),
        Err(_) => tracing::debug!("a request took too long"),
    }
}

/// What there is to be had.
struct Pages {
    metrics: Metrics,
    health: Health,
}

type Page = Response<Full<Bytes>>;

impl Pages {
    async fn page(&self, method: &Method, path: &str, headers: &HeaderMap) -> Page {
        if method != Method::GET && method != Method::HEAD {
            let mut page = line(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
            page.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return page;
        }
        match path {
            "/metrics" => {
                let format = format(headers);
                text(StatusCode::OK, format.content_type(), self.metrics.render(format).await)
            }
            "/healthz" => verdict(self.health.alive()),
            "/readyz" => verdict(self.health.ready()),
            _ => line(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz here"),
        }
    }
}

fn format(headers: &HeaderMap) -> Format {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if accepted.any(|value| value.contains("application/openmetrics-text")) {
        Format::OpenMetrics
    } else {
        Format::Prometheus
    }
}

fn verdict(verdict: Verdict) -> Page {
    match verdict {
        Ok(why) => line(StatusCode::OK, &why),
        Err(why) => line(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

fn line(status: StatusCode, words: &str) -> Page {
    text(status, "text/plain; charset=utf-8", format!("{words}\n"))
}

fn text(status: StatusCode, content_type: &'static str, text: String) -> Page {
    let mut page = Response::new(Full::new(Bytes::from(text)));
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    page
}

#[cfg(test)]
mod tests;

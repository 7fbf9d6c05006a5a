//! An API server that misbehaves: a proxy before a real one, which answers errors, resets, stalls, cuts answers short or
//! loses them, as it is told. It refuses to change what it passes on.

use std::{
    convert::Infallible,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::Notify;

use super::{ControlPlane, ControlPlaneError, Exposed, programs::write_private};
use crate::lab::Host;

/// One request, as the proxy sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub uri: String,
}

impl Call {
    /// Whether it could change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// Whether it is a write of anything but a lease.
    pub fn is_change(&self) -> bool {
        self.is_write() && !self.uri.contains("/leases")
    }

    /// Whether it asks to be told of changes.
    pub fn is_watch(&self) -> bool {
        self.uri.contains("watch=true") || self.uri.contains("watch=1")
    }
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server never hears of it; the answer is this code, as an API server words it.
    Refuse(u16),
    /// 429 with a `Retry-After` of so many seconds.
    TooMany(u32),
    /// The connection ends without an answer.
    Reset,
    /// It is never answered, and the server never hears of it.
    Stall,
    /// The server hears of it only when the proxy is healed.
    Hold,
    /// The server hears and obeys; the answer never comes.
    StallAnswer,
    /// The server hears and obeys; the connection ends instead of an answer.
    LoseAnswer,
    /// The answer ends in the middle.
    CutShort,
}

type Test = Box<dyn FnMut(&Call) -> bool + Send>;

struct Rule {
    fits: Test,
    fault: Fault,
    left: usize,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    hits: Vec<Call>,
}

struct Shared {
    state: Mutex<State>,
    hit: Condvar,
    /// Told when calls that stall end.
    released: Notify,
    /// Told when all connections end.
    cut: Notify,
}

/// See the module. Dropping it ends it.
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    ended: Arc<Notify>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.notify_one();
    }
}

impl ControlPlane {
    /// Puts a proxy before this API server, without faults at first.
    ///
    /// # Errors
    /// There is no port for it.
    pub fn proxy(&self) -> Result<Proxy, ControlPlaneError> {
        let file = |source| ControlPlaneError::File { path: "127.0.0.1:0".into(), source };
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(file)?;
        listener.set_nonblocking(true).map_err(file)?;
        let port = listener.local_addr().map_err(file)?.port();
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            hit: Condvar::new(),
            released: Notify::new(),
            cut: Notify::new(),
        });
        let ended = Arc::new(Notify::new());
        let server = self.bare_kubeconfig();
        let (here, end) = (Arc::clone(&shared), Arc::clone(&ended));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(serve(listener, &server, here, &end)))
        });
        Ok(Proxy { shared, port, ended })
    }

    /// How to reach the server, and nobody to be.
    fn bare_kubeconfig(&self) -> String {
        self.access.kubeconfig_of(&self.url(), None)
    }

    /// The kubeconfig of a user for programs that come through a proxy, and a door of theirs if they are on a host.
    ///
    /// # Errors
    /// There is no such user, or the file could not be written.
    pub fn kubeconfig_by(
        &self,
        proxy: &Proxy,
        door: Option<&Exposed>,
        user: &str,
    ) -> Result<PathBuf, ControlPlaneError> {
        let port = door.map_or(proxy.port, |door| door.address().port());
        let token = self.token(user)?;
        let path = self.folder().join(format!("{}-by-{port}.kubeconfig", user.replace([':', '/'], "-")));
        let text = self.access.kubeconfig_of(&format!("http://127.0.0.1:{port}"), Some((user, &token)));
        write_private(&path, &text)?;
        Ok(path)
    }
}

impl Proxy {
    /// Lets programs inside `host` reach it, on the host's loopback.
    ///
    /// # Errors
    /// The host has no loopback to listen on.
    pub fn expose(&self, host: &Host) -> Result<Exposed, ControlPlaneError> {
        Exposed::new(
            host,
            SocketAddr::from(([127, 0, 0, 1], 0)),
            SocketAddr::from(([127, 0, 0, 1], self.port)),
        )
    }

    /// Does this to the next `times` calls that fit, before rules that were made later.
    pub fn inject(&self, fault: Fault, times: usize, fits: impl FnMut(&Call) -> bool + Send + 'static) {
        self.shared.lock().rules.push(Rule { fits: Box::new(fits), fault, left: times });
    }

    /// Forgets all rules, and ends the calls that stall.
    pub fn heal(&self) {
        self.shared.lock().rules.clear();
        self.shared.released.notify_waiters();
    }

    /// Ends all connections once, watches among them; new ones are let in.
    pub fn cut(&self) {
        self.shared.cut.notify_waiters();
    }

    /// The calls that a rule met, in order.
    pub fn hits(&self) -> Vec<Call> {
        self.shared.lock().hits.clone()
    }

    /// Waits until rules have met `count` calls. `false`: they did not in time.
    pub fn wait_for_hits(&self, count: usize, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut state = self.shared.lock();
        while state.hits.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let (next, _) = self.shared.hit.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
        true
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of a call, if a rule meets it.
    fn judge(&self, call: &Call) -> Option<Fault> {
        let mut state = self.lock();
        let mut rules = state.rules.iter_mut().filter(|rule| rule.left > 0);
        let rule = rules.find_map(|rule| (rule.fits)(call).then_some(rule))?;
        rule.left = rule.left.saturating_sub(1);
        let fault = rule.fault;
        state.hits.push(call.clone());
        self.hit.notify_all();
        Some(fault)
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

async fn serve(listener: TcpListener, server: &str, shared: Arc<Shared>, ended: &Notify) {
    let Some(client) = client(server).await else { return };
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ended.notified() => return,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (client, shared) = (client.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let here = Arc::clone(&shared);
            let service = service_fn(move |request| pass(client.clone(), Arc::clone(&here), request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // What ends a connection is what the client was to see.
            tokio::select! {
                _ = connection => {}
                () = shared.cut.notified() => {}
            }
        });
    }
}

async fn client(kubeconfig: &str) -> Option<Client> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).ok()?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.ok()?;
    Client::try_from(config).ok()
}

/// An error ends the connection.
async fn pass(
    client: Client,
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Answer, std::io::Error> {
    let call = Call { method: request.method().clone(), uri: request.uri().to_string() };
    let fault = shared.judge(&call);
    match fault {
        Some(Fault::Refuse(code)) => return Ok(refusal(code, None)),
        Some(Fault::TooMany(seconds)) => return Ok(refusal(429, Some(seconds))),
        Some(Fault::Reset) => return Err(std::io::ErrorKind::ConnectionReset.into()),
        Some(Fault::Stall) => return stall(&shared).await,
        Some(Fault::Hold) => shared.released.notified().await,
        Some(Fault::StallAnswer | Fault::LoseAnswer | Fault::CutShort) | None => {}
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let answer = client.send(Request::from_parts(head, Body::from(body.to_vec()))).await;
    let answer = answer.map_err(std::io::Error::other)?;
    match fault {
        Some(Fault::StallAnswer) => stall(&shared).await,
        Some(Fault::LoseAnswer) => Err(std::io::ErrorKind::ConnectionReset.into()),
        Some(Fault::CutShort) => cut_short(answer).await,
        _ => Ok(answer.map(|body| body.map_err(std::io::Error::other).boxed_unsync())),
    }
}

async fn stall(shared: &Shared) -> Result<Answer, std::io::Error> {
    shared.released.notified().await;
    Err(std::io::ErrorKind::ConnectionReset.into())
}

fn refusal(code: u16, retry_after: Option<u32>) -> Answer {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":"{reason}","code":{code}}}"#
    );
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(http::header::RETRY_AFTER, seconds.into());
    }
    answer
}

/// Half of the body, then the end of the connection.
async fn cut_short(answer: Response<Body>) -> Result<Answer, std::io::Error> {
    let (mut head, body) = answer.into_parts();
    let whole = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    head.headers.remove(http::header::CONTENT_LENGTH);
    let half = stream::iter([Ok(Frame::data(whole.slice(..whole.len() / 2)))]);
    let end = stream::iter([Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))]);
    let body = StreamBody::new(half.chain(end)).boxed_unsync();
    Ok(Response::from_parts(head, body))
}

//! Requests to an API server, counted where they leave the client, watches and leases too: by verb, resource and answer.
//! It refuses to keep names of objects, and to touch a request or an answer.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tower::{Layer, Service};

/// What was asked, and what was said to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// As in a Role: get, list, watch, create, update, patch, delete; `other` for what has none.
    pub verb: &'static str,
    /// The plural, with a subresource behind a slash; `other` for what is no object.
    pub resource: String,
    /// The answer.
    pub answer: Answer,
}

/// What a server said to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// It did as asked.
    Done,
    /// There is no such object.
    NotFound,
    /// The object changed meanwhile, or is there already.
    Conflict,
    /// It does not do that, or not for this account.
    Refused,
    /// It could not.
    Failed,
    /// Nothing before the connection or the time limit ended.
    Missing,
}

impl Answer {
    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Answer::Done => "done",
            Answer::NotFound => "not_found",
            Answer::Conflict => "conflict",
            Answer::Refused => "refused",
            Answer::Failed => "failed",
            Answer::Missing => "missing",
        }
    }

    fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Answer::NotFound,
            StatusCode::CONFLICT => Answer::Conflict,
            _ if status.is_client_error() => Answer::Refused,
            _ if status.is_server_error() => Answer::Failed,
            _ => Answer::Done,
        }
    }
}

/// Counts of requests. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<BTreeMap<Asked, u64>>>);

impl Requests {
    /// All requests that are over, and watches that were begun.
    pub fn counts(&self) -> BTreeMap<Asked, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, asked: Asked) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(asked).or_default() += 1;
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, requests: self.clone() }
    }
}

/// A client whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    requests: Requests,
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (verb, resource) = words(request.method(), request.uri().path(), request.uri().query());
        let asked = Asked { verb, resource, answer: Answer::Missing };
        let mut open = Open { asked: Some(asked), requests: self.requests.clone() };
        let sent = self.inner.call(request);
        Box::pin(async move {
            let answer = sent.await;
            if let (Ok(answer), Some(asked)) = (&answer, &mut open.asked) {
                asked.answer = Answer::of(answer.status());
            }
            answer
        })
    }
}

/// A request that is under way: counted when it ends, also where its caller gave up.
struct Open {
    asked: Option<Asked>,
    requests: Requests,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.requests.count(asked);
        }
    }
}

/// Verb and resource of a request, as the server's audit log would name them.
fn words(method: &Method, path: &str, query: Option<&str>) -> (&'static str, String) {
    let mut parts = path.trim_start_matches('/').split('/');
    let version = match parts.next() {
        Some("api") => parts.next(),
        Some("apis") => parts.next().and(parts.next()),
        Some(_) | None => None,
    };
    let object = match (version, parts.next(), parts.next(), parts.next()) {
        (Some(_), Some("namespaces"), Some(_), Some(resource)) => Some((resource, parts.next())),
        _ => None,
    };
    let Some((resource, name)) = object else { return ("other", "other".to_owned()) };
    let watches = || query.is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
    let verb = match (method.as_str(), name) {
        ("GET", Some(_)) => "get",
        ("GET", None) if watches() => "watch",
        ("GET", None) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        _ => "other",
    };
    let part = name.and(parts.next()).map(|part| format!("/{part}")).unwrap_or_default();
    (verb, format!("{resource}{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(method: Method, address: &str) -> String {
        let (path, query) =
            address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
        let (verb, resource) = words(&method, path, query);
        format!("{verb} {resource}")
    }

    #[test]
    fn a_request_is_named_as_a_role_names_it_and_without_its_object() {
        let ours = "/apis/spanwire.dev/v1alpha1/namespaces/prod/gateways";
        let one = format!("{ours}/hub-a");
        assert_eq!(said(Method::GET, &format!("{ours}?limit=500")), "list gateways");
        assert_eq!(said(Method::GET, &format!("{ours}?&watch=true&timeoutSeconds=45")), "watch gateways");
        assert_eq!(said(Method::GET, &one), "get gateways");
        assert_eq!(said(Method::PATCH, &format!("{one}/status?force=true")), "patch gateways/status");
        assert_eq!(said(Method::DELETE, &one), "delete gateways");
        assert_eq!(said(Method::POST, "/api/v1/namespaces/prod/secrets?"), "create secrets");
        assert_eq!(said(Method::GET, "/api/v1/namespaces/prod/secrets/key"), "get secrets");
        for other in ["/version", "/api", "/apis/spanwire.dev/v1alpha1/gateways/hub-a"] {
            assert_eq!(said(Method::GET, other), "other other", "{other}");
        }
    }

    #[tokio::test]
    async fn every_request_is_counted_once_by_its_answer_also_one_that_was_given_up() {
        let requests = Requests::default();
        let mut client = requests.layer(Answers);
        let ask =
            |path: &str| Request::get(format!("/api/v1/namespaces/n/{path}")).body(Body::empty()).unwrap();
        for path in ["200/a", "200/b", "404/a", "409/a", "403/a", "500/a", "lost/a"] {
            let _ = client.call(ask(path)).await;
        }
        drop(client.call(ask("hangs/a")));
        let counts = requests.counts().into_iter().map(|(asked, count)| {
            format!("{} {} {} {count}", asked.verb, asked.resource, asked.answer.as_str())
        });
        let expected = [
            "get 200 done 2",
            "get 403 refused 1",
            "get 404 not_found 1",
            "get 409 conflict 1",
            "get 500 failed 1",
            "get hangs missing 1",
            "get lost missing 1",
        ];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    /// Answers with the status that the resource is called by.
    struct Answers;

    impl Service<Request<Body>> for Answers {
        type Response = Response<()>;
        type Error = &'static str;
        type Future = Pin<Box<dyn Future<Output = Result<Response<()>, &'static str>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let word = request.uri().path().split('/').nth(5).unwrap_or_default().to_owned();
            Box::pin(async move {
                match word.parse::<u16>() {
                    Ok(code) => Ok(Response::builder().status(code).body(()).unwrap()),
                    Err(_) if word == "lost" => Err("lost"),
                    Err(_) => std::future::pending().await,
                }
            })
        }
    }
}

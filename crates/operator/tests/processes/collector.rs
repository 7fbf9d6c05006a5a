//! A collector of spans: takes OTLP over HTTP and keeps what came, or takes it and never answers. It refuses to judge.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span,
};
use prost::Message as _;

/// See the module.
pub(crate) struct Collector {
    pub(crate) url: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    /// Answers every batch.
    pub(crate) fn on(listener: TcpListener) -> Self {
        Self::new(listener, true)
    }

    /// Takes every batch and says nothing.
    pub(crate) fn mute(listener: TcpListener) -> Self {
        Self::new(listener, false)
    }

    fn new(listener: TcpListener, answers: bool) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let spans: Arc<Mutex<Vec<Span>>> = Arc::default();
        let here = Arc::clone(&spans);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let here = Arc::clone(&here);
                thread::spawn(move || serve(&connection, &here, answers));
            }
        });
        Self { url, spans }
    }

    /// What came so far.
    pub(crate) fn take(&self) -> Vec<Span> {
        std::mem::take(&mut self.spans.lock().unwrap())
    }

    /// Whether anything came.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.lock().unwrap().is_empty()
    }
}

/// Requests of one connection, until it ends.
fn serve(connection: &TcpStream, spans: &Mutex<Vec<Span>>, answers: bool) -> Option<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        reader.read_line(&mut path).ok().filter(|read| *read > 0)?;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            if line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        assert!(path.starts_with("POST /v1/traces "), "{path}");
        let request = ExportTraceServiceRequest::decode(&*body).expect("a batch of spans");
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
        if answers {
            let mut connection = connection;
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
        }
    }
}

/// A field of a span in words; empty: it has none.
pub(crate) fn field(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|field| field.key == name);
    match found.and_then(|field| field.value.clone()).and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

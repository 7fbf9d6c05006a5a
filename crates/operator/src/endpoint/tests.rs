//! The server over real sockets of this host. The tests refuse a fixed port.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const ANY: &str = "127.0.0.1:0";
/// How long anything may take here.
const LONG: Duration = Duration::from_secs(20);

/// A server with these limits, and where it listens.
async fn served(health: &Health, limits: Limits) -> (SocketAddr, Endpoint) {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let address = listener.local_addr().unwrap();
    let pages = Arc::new(Pages { metrics: Metrics::of_worker(), health: health.clone() });
    (address, Endpoint { task: tokio::spawn(run(listener, pages, limits)) })
}

/// The whole answer to a request.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{request} HTTP/1.1\r\nhost: h\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(LONG, stream.read_to_string(&mut answer)).await.expect("in time").unwrap();
    answer
}

#[tokio::test]
async fn each_page_says_what_it_is_and_a_wrong_one_names_the_right_ones() {
    let health = Health::of_worker();
    let (address, _endpoint) = served(&health, LIMITS).await;
    let page = ask(address, "GET /metrics").await;
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("version=0.0.4"), "{page}");
    assert!(page.contains("\nspanwire_build_info{version="), "{page}");
    let page = ask(address, "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;q=1\r\nx:").await;
    assert!(page.contains("openmetrics-text; version=1.0.0") && page.ends_with("# EOF\n"), "{page}");
    let page = ask(address, "GET /readyz").await;
    assert!(page.starts_with("HTTP/1.1 503") && page.contains("no pass over records and host"), "{page}");
    health.looked();
    let page = ask(address, "GET /readyz").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("read by a pass\n"), "{page}");
    let page = ask(address, "GET /healthz").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("it starts\n"), "{page}");
    let page = ask(address, "GET /").await;
    assert!(page.starts_with("HTTP/1.1 404") && page.contains("/metrics, /healthz and /readyz"), "{page}");
    let page = ask(address, "POST /metrics").await;
    assert!(page.starts_with("HTTP/1.1 405") && page.contains("allow: GET, HEAD"), "{page}");
    let page = ask(address, "HEAD /healthz").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("\r\n\r\n"), "{page}");
}

#[tokio::test]
async fn who_sends_slowly_is_cut_off_and_makes_room_for_the_next() {
    let short = Duration::from_millis(200);
    let (address, _endpoint) =
        served(&Health::of_worker(), Limits { connections: 1, header: short, whole: LONG }).await;
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /met").await.unwrap();
    let page = ask(address, "GET /healthz").await;
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let mut rest = Vec::new();
    let _ = timeout(LONG, slow.read_to_end(&mut rest)).await.expect("it is cut off");
}

#[tokio::test]
async fn who_does_not_take_the_answer_is_cut_off() {
    let short = Duration::from_millis(200);
    let (address, _endpoint) =
        served(&Health::of_worker(), Limits { connections: 1, header: LONG, whole: short }).await;
    let mut mute = TcpStream::connect(address).await.unwrap();
    let mut rest = Vec::new();
    let _ = timeout(LONG, mute.read_to_end(&mut rest)).await.expect("it is cut off");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_the_flag() {
    let taken = TcpListener::bind(ANY).await.unwrap();
    let address = taken.local_addr().unwrap();
    let refused = open(Some(address), &Metrics::of_worker(), &Health::of_worker()).await.unwrap_err();
    let words = refused.to_string();
    assert!(words.contains(&address.to_string()) && words.contains("--metrics-listen"), "{words}");
    assert!(words.contains("another process"), "{words}");
    let strange = "192.0.2.77:9180".parse().unwrap();
    let refused = open(Some(strange), &Metrics::of_worker(), &Health::of_worker()).await.unwrap_err();
    assert!(refused.to_string().contains("check --metrics-listen"), "{refused}");
    assert!(open(None, &Metrics::of_worker(), &Health::of_worker()).await.unwrap().is_none());
}

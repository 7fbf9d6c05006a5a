//! A thousand links: recorded, read again, and nothing written by the pass that changes nothing.

use std::time::{Duration, Instant};

use spanwire_engine::port::{LocalStore, Written};

use crate::sandbox::{Sandbox, record};

#[tokio::test]
async fn a_thousand_links_at_rest_are_read_fast_and_write_nothing() {
    let sandbox = Sandbox::new();
    let store = sandbox.local();
    let steps: Vec<_> = (0..1000).map(|peer| record(&format!("peer-{peer}"))).collect();
    let start = Instant::now();
    for step in &steps {
        store.apply(step).await.unwrap();
    }
    let recorded = start.elapsed();
    let start = Instant::now();
    let fresh = sandbox.local();
    assert_eq!(fresh.read().await.unwrap().links.len(), 1000);
    let first = start.elapsed();
    let (before, start) = (sandbox.prints(), Instant::now());
    assert_eq!(fresh.read().await.unwrap().links.len(), 1000);
    let second = start.elapsed();
    let start = Instant::now();
    for step in &steps {
        assert_eq!(fresh.apply(step).await.unwrap(), Written::Same);
    }
    let repeated = start.elapsed();
    assert_eq!((sandbox.prints(), fresh.writes()), (before, 0));
    println!(
        "recorded {recorded:?}, first read {first:?}, second read {second:?}, repeated steps {repeated:?}"
    );
    assert!(second < Duration::from_secs(5), "{second:?}");
}

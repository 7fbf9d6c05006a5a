//! What a written object means when it is read again. It refuses to let absent, null and empty melt into one.
#![allow(clippy::unwrap_used, reason = "a test may fail here")]

use spanwire_api::{Object, WorkerSliceConfigSpec};

fn parse(peers: &str) -> WorkerSliceConfigSpec {
    let text = format!("sliceName: demo\ngateway: w1\n{peers}");
    serde_saphyr::from_str(&text).unwrap()
}

fn again(spec: &WorkerSliceConfigSpec) -> WorkerSliceConfigSpec {
    serde_saphyr::from_str(&serde_saphyr::to_string(spec).unwrap()).unwrap()
}

#[test]
fn p1_absent_peers_stay_absent() {
    let spec = parse("");
    assert_eq!((spec.peers.as_ref(), again(&spec)), (None, spec.clone()));
}

#[test]
fn p7_null_peers_are_absent() {
    for null in ["peers: null\n", "peers: ~\n", "peers:\n"] {
        assert_eq!(parse(null), parse(""), "{null}");
    }
}

#[test]
fn p3_empty_peers_stay_empty() {
    let spec = parse("peers: []\n");
    assert_eq!((spec.peers.clone(), again(&spec)), (Some(Vec::new()), spec));
}

#[test]
fn bare_intent_gets_the_documented_defaults() {
    let spec = parse("peers: [a, b]\n");
    let json = serde_json::to_value(&spec).unwrap();
    assert_eq!(json["hubChange"], serde_json::json!({"connectTimeout": "60s", "onTimeout": "Proceed"}));
    assert_eq!(json["tunnel"], serde_json::json!({"mode": "auto", "keepalive": "25s"}));
    assert_eq!(json["transit"], "Isolated");
}

#[test]
fn same_object_gives_the_same_bytes() {
    let mut object: Object<WorkerSliceConfigSpec> = Object::new(spanwire_api::Metadata::named("demo.w1"));
    object.metadata.labels = [("b".into(), "1".into()), ("a".into(), "2".into())].into();
    object.spec = Some(parse("peers: [b, a]\n"));
    let text = serde_saphyr::to_string(&object).unwrap();
    assert!(text.find("a: \"2\"").unwrap() < text.find("b: \"1\"").unwrap(), "{text}");
    assert_eq!(text, serde_saphyr::to_string(&object.clone()).unwrap());
}

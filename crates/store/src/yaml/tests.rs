//! What faults look like, and that what is written is read again. It refuses to pin the parser's own words.

use spanwire_api::{Condition, ConditionStatus, GatewayNetworkSpec, GatewaySpec, Object};

use super::*;

fn fault(spec: &str) -> String {
    let text = format!("apiVersion: v1\nkind: X\nmetadata: {{name: x}}\n{spec}");
    let read = parse(&text).and_then(|tree| read::<Object<GatewayNetworkSpec>>(&tree));
    match read {
        Ok(object) => panic!("{text} was read as {:?}", object.spec),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn unknown_fields_are_named_with_the_nearest() {
    for (spec, said) in [
        (
            "spec:\n  topology: mesh\n  memebers: [a]",
            "line 6, column 3: spec: unknown field \"memebers\", did you mean \"members\"?",
        ),
        (
            "spec:\n  standbyHub: [a]",
            "line 5, column 3: spec: unknown field \"standbyHub\", did you mean \"standbyHubs\"?",
        ),
        ("spce: {}", "line 4, column 1: unknown field \"spce\", did you mean \"spec\"?"),
        (
            "spec: {hubChange: {conectTimeout: 5s}}",
            "line 4, column 20: spec.hubChange: unknown field \"conectTimeout\", did you mean \"connectTimeout\"?",
        ),
        (
            "spec: {<<: {hub: a}}",
            "line 4, column 8: spec: unknown field \"<<\": use one of topology, hub, standbyHubs, members, cidr, transit, \
             hubChange, tunnel",
        ),
        (
            "spec:\n  transit: routed",
            "line 5, column 12: spec.transit: unknown value \"routed\", did you mean \"Routed\"?",
        ),
        (
            "spec:\n  transit: open",
            "line 5, column 12: spec.transit: unknown value \"open\": use one of Routed, Isolated",
        ),
    ] {
        assert_eq!(fault(spec), said, "{spec}");
    }
}

#[test]
fn wrong_types_are_named_with_their_place() {
    for (spec, said) in [
        (
            "spec:\n  topology: 5",
            "line 5, column 13: spec.topology: expected text, found the number 5: write it in quotes",
        ),
        (
            "spec:\n  members: [a, no, true]",
            "line 5, column 20: spec.members[2]: expected text, found the boolean true: write it in quotes",
        ),
        ("spec:\n  members: a", "line 5, column 12: spec.members: expected a list, found the text \"a\""),
        ("spec:\n  members: {a: b}", "line 5, column 12: spec.members: expected a list, found a mapping"),
        (
            "spec:\n  members:\n  - a\n  - b: c",
            "line 7, column 5: spec.members[1]: expected text, found a mapping",
        ),
        ("spec:\n  5: x", "line 5, column 3: spec: expected text, found the number 5: write it in quotes"),
        ("spec:\n  [a]: y", "line 5, column 3: spec: expected text, found a list"),
        (
            "spec:\n  tunnel: {mtu: \"1400\"}",
            "line 5, column 17: spec.tunnel.mtu: expected a whole number from 0 to 4294967295, found the text \"1400\"",
        ),
        (
            "spec:\n  tunnel: {mtu: -1}",
            "line 5, column 17: spec.tunnel.mtu: expected a whole number from 0 to 4294967295, found the number -1",
        ),
        (
            "spec:\n  hubChange: {connectTimeout: 60sec}",
            "line 5, column 31: spec.hubChange.connectTimeout: \"60sec\" is not a duration: write whole numbers with h, \
             m, s or ms, as in 60s or 1m30s",
        ),
    ] {
        assert_eq!(fault(spec), said, "{spec}");
    }
}

#[test]
fn broken_syntax_has_a_line() {
    for (spec, place) in [
        ("spec:\n  hub: a\n  hub: b", "line 6, column 3: the key \"hub\" is given twice"),
        (
            "spec: {}\n---\nkind: X",
            "line 6, column 1: a second document begins here: write one object a file",
        ),
        ("spec:\n  hub: a\n\tmembers: b", "line 5, "),
        ("spec:\n  members: [a, b", "line 5, "),
        ("spec:\n  hub: \"a", "line 5, "),
        ("spec: &a\n  members: [*b]", "line 5, "),
    ] {
        let said = fault(spec);
        assert!(said.starts_with(place), "{spec}: {said}");
        assert!(!said.contains("Options"), "advice for programmers: {said}");
    }
}

#[test]
fn an_object_has_to_be_there() {
    for (text, said) in [
        ("", "line 1, column 1: expected a mapping, found nothing"),
        ("# nothing\n", "expected a mapping, found nothing"),
        ("- a\n", "line 1, column 1: expected a mapping, found a list"),
        ("hello", "line 1, column 1: expected a mapping, found the text \"hello\""),
        ("kind: X\n", "line 1, column 1: the field \"apiVersion\" is missing"),
    ] {
        let read = parse(text).and_then(|tree| read::<Object<GatewaySpec>>(&tree));
        let fault = read.unwrap_err().to_string();
        assert!(fault.ends_with(said), "{text:?}: {fault}");
    }
}

#[test]
fn null_is_absent_and_aliases_are_followed() {
    let text =
        "apiVersion: v1\nkind: X\nmetadata: {name: x}\nspec: {hub: ~, members: [&a m, *a], topology: mesh}";
    let object: Object<GatewayNetworkSpec> = read(&parse(text).unwrap()).unwrap();
    let spec = object.spec.unwrap();
    assert_eq!((spec.hub, spec.members), (None, vec!["m".to_owned(), "m".to_owned()]));
}

#[test]
fn nests_of_aliases_end() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..12 {
        let aliases = vec![format!("*a{}", i - 1); 9].join(", ");
        text += &format!("a{i}: &a{i} [{aliases}]\n");
    }
    assert!(parse(&text).is_err());
}

#[test]
fn any_text_is_written_so_that_it_is_read_again() {
    let words = [
        "no",
        "y",
        "on",
        "~",
        "null",
        "true",
        "123",
        "1e3",
        "0x10",
        "1_000",
        "12:30:45",
        "2001:db8::/32",
        "",
        " a ",
        "a: b",
        "# c",
        "multi\nline\n",
        "\ttab",
        "\"quotes\" 'both'",
        "- x",
        "{x}",
        "*a",
        "&a",
        "!t",
        "%d",
        "@at",
        "`b",
        "ünï",
        "=",
        "<<",
        "2026-11-30T02:30:33Z",
        "\u{feff}bom",
        "nul\u{0}",
        "\u{85}nel",
        "\r\ncrlf",
    ];
    for word in words {
        let condition = Condition {
            type_: word.to_owned(),
            status: ConditionStatus::True,
            observed_generation: 1,
            last_transition_time: word.to_owned(),
            reason: word.to_owned(),
            message: word.repeat(60),
        };
        let text = write(&condition).unwrap();
        let again: Condition =
            read(&parse(&text).unwrap()).unwrap_or_else(|fault| panic!("{fault} in {text}"));
        assert_eq!(again, condition, "{text}");
        assert_eq!(write(&again).unwrap(), text);
    }
}

proptest::proptest! {
    #[test]
    fn every_text_survives(word in "\\PC*", odd in proptest::collection::vec(proptest::char::any(), 0..40)) {
        let message: String = odd.into_iter().collect();
        let condition = Condition {
            type_: word.clone(),
            status: ConditionStatus::False,
            observed_generation: i64::MIN,
            last_transition_time: format!("{word}\n"),
            reason: format!(" {word}"),
            message,
        };
        let text = write(&condition).unwrap();
        let again: Condition = read(&parse(&text).unwrap()).unwrap();
        proptest::prop_assert_eq!(again, condition);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*", yaml in "[ a-c:\\-\\[\\]{},&*!|>'\"#%\n\t0-9]{0,60}") {
        for text in [text, yaml] {
            if let Ok(tree) = parse(&text) {
                let _ = read::<Object<GatewayNetworkSpec>>(&tree);
                let _ = tree.at_path("spec.members[3].x");
            }
        }
    }
}

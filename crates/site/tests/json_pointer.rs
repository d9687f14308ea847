//! A pointer finds what a parser of the whole text finds, whatever the text, and nothing else in the beginning of one.

use baton_site::json_pointer::JsonPointer;
use proptest::prelude::*;
use serde_json::{Map, Value};

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "[ab\"\\\\/~é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    "[ab/~01]{0,2}"
}

fn pointer() -> impl Strategy<Value = String> {
    let token = prop_oneof![name(), (0..4_u8).prop_map(|index| index.to_string())];
    prop::collection::vec(token, 1..4).prop_map(|tokens| {
        tokens.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect()
    })
}

/// What the whole text has at the pointer.
fn expected(json: &Value, pointer: &str) -> Option<Vec<u8>> {
    match json.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone().into_bytes()),
        other => Some(other.to_string().into_bytes()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_pointer_finds_what_is_there(json in json(), pointer in pointer(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) }.unwrap();
        let parsed = JsonPointer::parse(&pointer).unwrap();
        let whole = parsed.find(text.as_bytes());
        // Read again: the parser rounds some numbers.
        let json: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&whole, &expected(&json, &pointer));
        for end in 0..text.len() {
            let of_beginning = parsed.find(&text.as_bytes()[..end]);
            prop_assert!(of_beginning.is_none() || of_beginning == whole, "{} of {}", end, text);
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..64), braces in "[\\[\\]{}:,\"0a ]{0,32}", pointer in pointer()) {
        let parsed = JsonPointer::parse(&pointer).unwrap();
        parsed.find(&bytes);
        parsed.find(braces.as_bytes());
    }
}

#[test]
fn a_deep_text_is_no_stack_overflow() {
    let pointer = JsonPointer::parse("/0/0").unwrap();
    assert_eq!(pointer.find(&[b'['; 65_536]), None);
    let deep = JsonPointer::parse(&"/0".repeat(10_000)).unwrap();
    assert_eq!(deep.find(&[b'['; 65_536]), None);
}

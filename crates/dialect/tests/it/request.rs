//! The request scanner against a full parser, at every kind of split.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use streamweld_dialect::{Dialect, RequestBody, RequestScan, RequestShape};

#[track_caller]
fn check(body: &str, stream: bool, model: Option<&str>) {
    let expected = RequestShape {
        stream,
        model: model.map(str::to_owned),
        ..RequestShape::default()
    };
    check_shape(body, &expected);
}

#[track_caller]
fn check_shape(body: &str, expected: &RequestShape) {
    assert_eq!(&scan(&[body.as_bytes()]), expected, "{body}");
    let bytewise: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    assert_eq!(&scan(&bytewise), expected, "bytewise: {body}");
}

#[track_caller]
fn check_n(value: &str, n: Option<u32>) {
    let expected = RequestShape {
        n,
        ..RequestShape::default()
    };
    check_shape(&format!("{{\"n\":{value}}}"), &expected);
    check_shape(&format!("{{\"n\":7, \"n\" : {value} }}"), &expected);
}

#[track_caller]
fn check_prompts(value: &str, prompts: Option<u32>) {
    let expected = RequestShape {
        prompts,
        ..RequestShape::default()
    };
    check_shape(&format!("{{\"prompt\":{value}}}"), &expected);
    let twice = format!("{{\"prompt\":[\"a\",\"b\"], \"prompt\" : {value} }}");
    check_shape(&twice, &expected);
}

fn scan(pieces: &[&[u8]]) -> RequestShape {
    let mut scan = RequestScan::new();
    for piece in pieces {
        scan.push(piece);
    }
    scan.finish()
}

#[test]
fn an_ordinary_request() {
    check(
        r#"{"model":"gpt","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
        true,
        Some("gpt"),
    );
    check(
        " { \"stream\" : true , \"model\" : \"m\" } \n",
        true,
        Some("m"),
    );
    check("{}", false, None);
}

#[test]
fn only_true_streams() {
    check(r#"{"stream":false}"#, false, None);
    check(r#"{"stream":"true"}"#, false, None);
    check(r#"{"stream":1}"#, false, None);
    check(r#"{"stream":null}"#, false, None);
    check(r#"{"stream":[true]}"#, false, None);
    check(r#"{"Stream":true}"#, false, None);
}

#[test]
fn only_true_is_in_the_background() {
    for (value, background) in [
        ("true", true),
        ("false", false),
        ("\"true\"", false),
        ("{}", false),
    ] {
        let expected = RequestShape {
            background,
            ..RequestShape::default()
        };
        check_shape(&format!("{{\"background\":{value}}}"), &expected);
        let twice = format!("{{\"background\":true,\"background\":{value}}}");
        check_shape(&twice, &expected);
    }
}

#[test]
fn only_the_top_level_counts() {
    check(
        r#"{"a":{"stream":true,"model":"x"},"b":[{"stream":true}]}"#,
        false,
        None,
    );
    check(r#"{"a":"\",\"stream\":true,\"","b":"\\"}"#, false, None);
    check(r#"{"a":["]}",{"b":"\\\"}"}],"stream":true}"#, true, None);
}

#[test]
fn of_two_the_last_counts() {
    check(r#"{"stream":true,"stream":false}"#, false, None);
    check(r#"{"stream":false,"stream":true}"#, true, None);
    check(r#"{"model":"a","model":"b"}"#, false, Some("b"));
    check(r#"{"model":"a","model":null}"#, false, None);
    check(r#"{"model":"a","model":{}}"#, false, None);
    check(r#"{"stream":true,"stream":{}}"#, false, None);
    check(r#"{"stream":true,"stream":"x"}"#, false, None);
}

#[test]
fn escapes_are_understood() {
    check(
        r#"{"str\u0065am":true,"\u006dodel":"a\"\\\/\n\u00e9\ud83d\ude00"}"#,
        true,
        Some("a\"\\/\né😀"),
    );
    check(r#"{"model":"\ud800"}"#, false, None);
}

#[test]
fn a_long_model_is_no_model() {
    let limit = RequestShape::MODEL_LIMIT;
    for (model, kept) in [("a".repeat(limit), true), ("a".repeat(limit + 1), false)] {
        let body = format!("{{\"model\":\"{model}\",\"stream\":true}}");
        check(&body, true, kept.then_some(model.as_str()));
        let escaped = "\\u0061".repeat(model.len());
        let body = format!("{{\"model\":\"{escaped}\",\"stream\":true}}");
        check(&body, true, kept.then_some(model.as_str()));
    }
    let long = "x".repeat(10_000);
    check(
        &format!("{{\"{long}\":\"{long}\",\"stream\":true}}"),
        true,
        None,
    );
}

#[test]
fn n_is_a_whole_number_that_an_engine_could_serve() {
    check_n("1", Some(1));
    check_n("2", Some(2));
    check_n("2.0", Some(2));
    check_n("2e0", Some(2));
    check_n("16384", Some(16384));
    for nothing in [
        "null",
        "true",
        "\"2\"",
        "\"\"",
        "[2]",
        "{\"n\":2}",
        "0",
        "-0",
        "-1",
        "1.5",
        "16385",
        "1e9",
        "1e300",
        "1000000000",
        "4294967297",
        "18446744073709551617",
    ] {
        check_n(nothing, None);
    }
    // A number that is cut off for its length must not be taken for another one.
    check_n(&format!("1.{}", "0".repeat(5000)), None);
    check_n(&format!("1{}", "0".repeat(5000)), None);
    check_shape(r#"{"N":2,"m":{"n":3}}"#, &RequestShape::default());
}

#[test]
fn prompts_are_counted() {
    check_prompts(r#"["a"]"#, Some(1));
    check_prompts(r#"["a","b"]"#, Some(2));
    check_prompts(r#" [ "a" , "[\"],[" , "\\" ] "#, Some(3));
    check_prompts("[1,2,3]", Some(1));
    check_prompts("[[1,2],[3]]", Some(2));
    check_prompts(r#"["a",[1,2],{"b":["c",1],"d":{}}]"#, Some(3));
    // Text and tokens of one prompt, as llama.cpp takes them.
    check_prompts(r#"[1,"a",2]"#, Some(1));
    check_prompts(r#"["a",1]"#, Some(1));
    for nothing in [
        "\"a\"",
        "null",
        "7",
        "{\"a\":[1,\"b\"],\"c\":\"d\"}",
        "[]",
        "[null]",
    ] {
        check_prompts(nothing, None);
    }
    check_shape(
        r#"{"prompts":["a","b"],"x":{"prompt":["a","b"]}}"#,
        &RequestShape::default(),
    );
}

#[test]
fn a_stream_is_asked_for_in_the_body_or_by_the_path() {
    for stream in [false, true] {
        let shape = RequestShape {
            stream,
            ..RequestShape::default()
        };
        for dialect in Dialect::ALL {
            let known = match dialect {
                Dialect::Gemini => true,
                Dialect::Mcp | Dialect::Generic => false,
                _ => stream,
            };
            assert_eq!(shape.is_known_to_stream(dialect), known, "{dialect}");
            let outlives = known || dialect == Dialect::Mcp;
            assert_eq!(shape.outlives_its_client(dialect), outlives, "{dialect}");
        }
    }
}

#[test]
fn choices_are_n_for_each_prompt_where_there_are_prompts() {
    let shape = |n, prompts| RequestShape {
        n,
        prompts,
        ..RequestShape::default()
    };
    for (shape, chat, completions) in [
        (shape(None, None), 1, 1),
        (shape(Some(2), None), 2, 2),
        (shape(None, Some(3)), 1, 3),
        (shape(Some(2), Some(3)), 2, 6),
        (shape(Some(2), Some(u32::MAX)), 2, u32::MAX as usize),
    ] {
        assert_eq!(shape.choices(Dialect::OpenAiChat), chat);
        assert_eq!(shape.choices(Dialect::OpenAiCompletions), completions);
        for dialect in [
            Dialect::OpenAiResponses,
            Dialect::AnthropicMessages,
            Dialect::Gemini,
            Dialect::Generic,
        ] {
            assert_eq!(shape.choices(dialect), 1);
        }
    }
}

#[test]
fn calls_of_mcp_are_counted_by_what_the_body_is() {
    let is = |body: &str, form, call: Option<&str>, calls| {
        let expected = RequestShape {
            body: form,
            call: call.map(str::to_owned),
            ..RequestShape::default()
        };
        check_shape(body, &expected);
        assert_eq!(expected.choices(Dialect::Mcp), calls, "{body}");
    };
    let (one, list, empty) = (RequestBody::One, RequestBody::List, RequestBody::Empty);
    is("", empty, None, 0);
    is(" \n", empty, None, 0);
    is(r#"[{"id":1},{"id":2}]"#, list, None, usize::MAX);
    is(" [", list, None, usize::MAX);
    is(
        r#"{"jsonrpc":"2.0","id":7,"method":"a"}"#,
        one,
        Some("7"),
        1,
    );
    is(r#"{"id" : -1.5e3 }"#, one, Some("-1.5e3"), 1);
    is(r#"{"id":"a\"\u00e9"}"#, one, Some(r#""a\"é""#), 1);
    is(r#"{"id":null}"#, one, None, 1);
    is(r#"{"id":true}"#, one, None, 1);
    is(r#"{"id":3,"id":{"id":4}}"#, one, None, 1);
    is(r#"{"params":{"id":4}}"#, one, None, 1);
    is("true", one, None, 1);
}

#[test]
fn what_is_no_whole_object_is_the_default() {
    for body in [
        "true",
        "\"stream\"",
        "stream=true",
        r#"{"stream":true"#,
        r#"{"stream":true,"#,
        r#"{"stream":true,}"#,
        r#"{"stream":true}}"#,
        r#"{"stream":true} x"#,
        r#"{"stream" true}"#,
        r#"{stream:true}"#,
        r#"{"a":1 2,"stream":true}"#,
        r#"{,"stream":true}"#,
        r#"{"stream":true,"a":nope}"#,
        r#"{"stream":true,"a":01}"#,
        r#"{"stream":true,"a":tru }"#,
        r#"{"a":,"stream":true}"#,
        r#"{"a" "b":1,"stream":true}"#,
        "{\"stream\":true,\"model\":\"m\",\"a\":[",
    ] {
        check(body, false, None);
    }
}

proptest! {
    #[test]
    fn equal_to_a_parser_at_any_split(body in body(), cuts in cuts()) {
        let parsed: Map<String, Value> = serde_json::from_str(&body).unwrap();
        let literal: BTreeMap<String, &RawValue> = serde_json::from_str(&body).unwrap();
        let expected = RequestShape {
            stream: parsed.get("stream") == Some(&Value::Bool(true)),
            background: parsed.get("background") == Some(&Value::Bool(true)),
            model: parsed.get("model").and_then(Value::as_str).map(str::to_owned),
            n: parsed.get("n").and_then(count),
            prompts: parsed.get("prompt").and_then(prompts),
            call: literal.get("id").and_then(|id| call(id)),
            body: RequestBody::One,
        };
        prop_assert_eq!(scan(&split(body.as_bytes(), &cuts)), expected);
    }

    #[test]
    fn garbage_is_read_alike_at_any_split(body in garbage(), cuts in cuts()) {
        prop_assert_eq!(scan(&split(&body, &cuts)), scan(&[&body]));
    }
}

/// A number is as it was written: a parser's value of it need not be written the same.
fn call(id: &RawValue) -> Option<String> {
    let value: Value = serde_json::from_str(id.get()).unwrap();
    match value {
        Value::Number(_) => Some(id.get().to_owned()),
        Value::String(text) if text.len() <= 256 => Some(Value::String(text).to_string()),
        _ => None,
    }
}

fn count(n: &Value) -> Option<u32> {
    let n = n.as_f64()?;
    (1..=16384).find(|whole| f64::from(*whole) == n)
}

fn prompts(prompt: &Value) -> Option<u32> {
    let elements = prompt.as_array()?;
    if elements.iter().any(Value::is_number) {
        return Some(1);
    }
    let literals = |element: &&Value| !matches!(element, Value::Null | Value::Bool(_));
    match elements.iter().filter(literals).count() {
        0 => None,
        some => u32::try_from(some).ok(),
    }
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0_usize..12, 1..20)
}

fn split<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

/// A JSON object as text: with repeated names, white space and escapes, as a parser takes it.
fn body() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        3 => Just("\"stream\"".to_owned()),
        3 => Just("\"background\"".to_owned()),
        3 => Just("\"model\"".to_owned()),
        3 => Just("\"n\"".to_owned()),
        3 => Just("\"prompt\"".to_owned()),
        3 => Just("\"id\"".to_owned()),
        1 => Just(r#""\u0073tream""#.to_owned()),
        1 => Just(r#""\u006e""#.to_owned()),
        1 => Just(r#""mod\u0065l""#.to_owned()),
        4 => any::<String>().prop_map(|name| Value::from(name).to_string()),
    ];
    let value = prop_oneof![
        2 => Just(Value::Bool(true)),
        2 => json(),
        1 => (0_i32..20_000).prop_map(Value::from),
        1 => (0_i32..4).prop_map(|n| Value::from(f64::from(n))),
        2 => prop::collection::vec(json(), 0..5).prop_map(Value::from),
        1 => prop::collection::vec("\\PC{0,6}", 0..5).prop_map(Value::from),
    ];
    let space = || prop::sample::select(vec!["", " ", "\n\t", " \r "]);
    let member = (space(), name, space(), space(), value, space())
        .prop_map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"));
    (prop::collection::vec(member, 0..6), space(), space()).prop_map(|(members, before, after)| {
        let members = members.join(",");
        format!("{before}{{{members}}}{after}")
    })
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(Value::from("\"}],{[\\")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Bytes that are more often than not nearly JSON.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        8 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\"stream\"", "true", "\"model\"", "\"m\"", " ", "-1e5",
            "\"n\"", "2", "\"prompt\"",
        ])
        .prop_map(|token| token.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

//! The one form in which events leave, and that no value breaks out of its line.

use proptest::prelude::*;
use streamweld_sse::{
    Decoder, HEARTBEAT, Limits, OneLine, Retry, encode_lines, write_data_lines, write_event_line,
    write_id_line,
};

use super::{check, naive};

/// The lines written for the one event in `input`.
fn encoded(input: &str, retry: Retry) -> String {
    let mut decoder = Decoder::new(Limits::default());
    let mut input = input.as_bytes();
    let event = decoder.decode(&mut input).unwrap().unwrap();
    let mut out = Vec::new();
    encode_lines(&event, retry, &mut out);
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(encoded(input, Retry::Keep), expected, "from {input:?}");
}

#[test]
fn every_line_is_field_colon_space_value_lf() {
    check("data: a\n\n", "data: a\n");
    check("data:a\n\n", "data: a\n");
    check("data: a\r\n\r\n", "data: a\n");
    check("data: a\r\r", "data: a\n");
    check("data\n\n", "data: \n");
    check("data:\n\n", "data: \n");
    check("data: \n\n", "data: \n");
    check("data:  a\n\n", "data:  a\n");
}

#[test]
fn the_name_comes_first_and_retry_last() {
    check(
        "retry: 1\ndata: a\nevent: e\n\n",
        "event: e\ndata: a\nretry: 1\n",
    );
    check("event: a\nevent: b\ndata: x\n\n", "event: b\ndata: x\n");
    check("event: \ndata: x\n\n", "data: x\n");
    check("event: e\rdata: x\n\n", "event: e\ndata: x\n");
    check("event: e\r\ndata: x\n\n", "event: e\ndata: x\n");
    check("event: e\ndata: x\n\n", "event: e\ndata: x\n");
    check("event\ndata: x\n\n", "data: x\n");
    check("retry: 007\n\n", "retry: 7\n");
}

#[test]
fn many_lines_stay_many() {
    check("data: a\ndata:\r\ndata:b\n\n", "data: a\ndata: \ndata: b\n");
}

#[test]
fn ids_comments_and_unknown_fields_are_dropped() {
    check("id: 1\ndata: a\n: c\nfoo: bar\n\n", "data: a\n");
    check("data: a\nid: 1\n\n", "data: a\n");
    check("id: 1\nfoo\n\n", "");
    check("data: a\nx\n\n", "data: a\n");
    check("data: a\n:\n\n", "data: a\n");
}

#[test]
fn retry_is_kept_or_dropped_as_told() {
    let input = "data: a\nretry: 5\n\n";
    assert_eq!(encoded(input, Retry::Keep), "data: a\nretry: 5\n");
    assert_eq!(encoded(input, Retry::Drop), "data: a\n");
}

#[test]
fn a_tail_is_encoded_as_if_it_had_ended() {
    for tail in ["data: a", "data: a\n", "data: a\r", "data:a\r\n"] {
        let mut decoder = Decoder::new(Limits::default());
        let mut input = tail.as_bytes();
        assert!(decoder.decode(&mut input).unwrap().is_none());
        let mut out = Vec::new();
        encode_lines(&decoder.tail_event().unwrap(), Retry::Drop, &mut out);
        assert_eq!(out, b"data: a\n", "from {tail:?}");
    }
}

#[test]
fn what_is_written_is_appended() {
    let mut out = b"kept".to_vec();
    write_data_lines("", &mut out);
    assert_eq!(out, b"keptdata: \n");
}

#[test]
fn a_block_written_by_hand() {
    let mut out = Vec::new();
    write_event_line(OneLine::new("error").unwrap(), &mut out);
    write_data_lines("a\nb", &mut out);
    write_id_line(OneLine::new("x:1").unwrap(), &mut out);
    assert_eq!(out, b"event: error\ndata: a\ndata: b\nid: x:1\n");
}

#[test]
fn data_is_split_at_every_line_end() {
    for (value, expected) in [
        ("", "data: \n"),
        ("a", "data: a\n"),
        ("a\n", "data: a\ndata: \n"),
        ("\n", "data: \ndata: \n"),
        ("a\rb\r\nc\nd", "data: a\ndata: b\ndata: c\ndata: d\n"),
        ("\n\r", "data: \ndata: \ndata: \n"),
        ("\r\r\n", "data: \ndata: \ndata: \n"),
        ("x\n\nid: 1", "data: x\ndata: \ndata: id: 1\n"),
        ("a\u{2028}b\u{85}c\u{b}d", "data: a\u{2028}b\u{85}c\u{b}d\n"),
    ] {
        let mut out = Vec::new();
        write_data_lines(value, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "from {value:?}");
    }
}

#[test]
fn a_line_value_has_no_line_end_and_no_nul() {
    for value in ["\n", "\r", "\0", "a\nb", "a\r\n", "a\0"] {
        assert!(OneLine::new(value).is_none(), "{value:?}");
    }
    for value in ["", " ", "a", "a:b", "é\u{2028}\u{85}", "\t"] {
        assert_eq!(OneLine::new(value).unwrap().as_str(), value);
    }
}

#[test]
fn a_heartbeat_is_no_event_and_no_part_of_one() {
    let stream = [
        HEARTBEAT,
        b"data: a\n",
        HEARTBEAT,
        b"data: b\n\n",
        HEARTBEAT,
    ]
    .concat();
    let outcome = check::run(&[&stream], Limits::default());
    assert_eq!(outcome.events.len(), 1);
    assert_eq!(outcome.events[0].data, "a\nb");
    assert_eq!(outcome.tail, b"");
}

proptest! {
    #[test]
    fn any_values_come_back(
        name in "[^\r\n\0]{0,8}",
        value in "([a:]|\r|\n|\r\n|\\PC){0,12}",
        id in "[^\r\n\0]{0,8}",
    ) {
        let mut out = Vec::new();
        write_event_line(OneLine::new(&name).unwrap(), &mut out);
        write_data_lines(&value, &mut out);
        write_id_line(OneLine::new(&id).unwrap(), &mut out);
        out.push(b'\n');
        let outcome = check::run(&[&out], Limits::default());
        let data = value.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(outcome.events, vec![naive::Event {
            name: Some(name).filter(|name| !name.is_empty()),
            data_lines: data.split('\n').map(str::to_owned).collect(),
            data,
            id: Some(id),
            retry: None,
            error: None,
        }]);
    }
}

//! The grammar, case by case: a stream, the events it must give, and the tail it must leave.
//!
//! `splits` runs the same table cut at every place.

use streamweld_sse::Limits;

use super::{check, naive};

/// One stream and what it decodes to.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) input: &'static [u8],
    events: &'static [Expected],
    tail: &'static [u8],
}

struct Expected {
    name: Option<&'static str>,
    data: &'static [&'static str],
    id: Option<&'static str>,
    retry: Option<u64>,
    error: Option<&'static str>,
}

/// An event of nothing but unknown fields.
const BARE: Expected = Expected {
    name: None,
    data: &[],
    id: None,
    retry: None,
    error: None,
};

const fn data(lines: &'static [&'static str]) -> Expected {
    Expected {
        data: lines,
        ..BARE
    }
}

const fn case(name: &'static str, input: &'static str, events: &'static [Expected]) -> Case {
    bytes(name, input.as_bytes(), events)
}

const fn bytes(name: &'static str, input: &'static [u8], events: &'static [Expected]) -> Case {
    Case {
        name,
        input,
        events,
        tail: b"",
    }
}

impl Case {
    const fn tail(self, tail: &'static [u8]) -> Self {
        Self { tail, ..self }
    }
}

pub(crate) const CASES: &[Case] = &[
    case("nothing", "", &[]),
    case("lf", "data: a\n\n", &[data(&["a"])]),
    case("cr", "data: a\r\r", &[data(&["a"])]),
    case("crlf", "data: a\r\n\r\n", &[data(&["a"])]),
    case("lf then cr", "data: a\n\r", &[data(&["a"])]),
    case("lf then crlf", "data: a\n\r\n", &[data(&["a"])]),
    case("crlf then lf", "data: a\r\n\n", &[data(&["a"])]),
    case("crlf then cr", "data: a\r\n\r", &[data(&["a"])]),
    case("one crlf is no blank line", "data: a\r\n", &[]).tail(b"data: a\r\n"),
    case(
        "cr blank line then a field",
        "data: a\r\rdata: b\r\r",
        &[data(&["a"]), data(&["b"])],
    ),
    case(
        "crlf blank line then a field",
        "data: a\r\n\r\ndata: b\r\n\r\n",
        &[data(&["a"]), data(&["b"])],
    ),
    case(
        "all three ends in one block",
        "data: a\ndata: b\rdata: c\r\ndata: d\n\n",
        &[data(&["a", "b", "c", "d"])],
    ),
    case(
        "many blank lines",
        "\n\r\r\n\n\rdata: a\n\n\n\r\n\r\rdata: b\n\n",
        &[data(&["a"]), data(&["b"])],
    ),
    // B13: each line end once came in two reads and was counted twice.
    case(
        "three lines of crlf are one event",
        "data: A\r\ndata: B\r\ndata: C\r\n\r\n",
        &[data(&["A", "B", "C"])],
    ),
    case("bom", "\u{feff}data: a\n\n", &[data(&["a"])]),
    case("only a bom", "\u{feff}", &[]),
    case(
        "bom then blank lines",
        "\u{feff}\n\ndata: a\n\n",
        &[data(&["a"])],
    ),
    case(
        "bom then comment",
        "\u{feff}: x\ndata: a\n\n",
        &[data(&["a"])],
    ),
    case(
        "only one bom is stripped",
        "\u{feff}\u{feff}data: a\n\n",
        &[BARE],
    ),
    case(
        "a bom after a blank line is data",
        "\n\u{feff}data: a\n\n",
        &[BARE],
    ),
    case(
        "a bom in a later event is data",
        "data: a\n\n\u{feff}data: b\n\n",
        &[data(&["a"]), BARE],
    ),
    case(
        "a bom in a value is data",
        "data: \u{feff}\n\n",
        &[data(&["\u{feff}"])],
    ),
    case(
        "a first letter that begins like a bom",
        "\u{feca}: a\n\n",
        &[BARE],
    ),
    bytes("a torn bom is no content", b"\xEF\xBB", &[]),
    case("one space after the colon", "data: a\n\n", &[data(&["a"])]),
    case("no space after the colon", "data:a\n\n", &[data(&["a"])]),
    case(
        "only one space is stripped",
        "data:  a \n\n",
        &[data(&[" a "])],
    ),
    case("a tab is not stripped", "data:\ta\n\n", &[data(&["\ta"])]),
    case(
        "a space before the colon is part of the name",
        "data : a\n\n",
        &[BARE],
    ),
    case(
        "a leading space is part of the name",
        " data: a\n\n",
        &[BARE],
    ),
    case("names are case-sensitive", "Data: a\nDATA: b\n\n", &[BARE]),
    case(
        "a longer name is another name",
        "database: a\ndata2:b\n\n",
        &[BARE],
    ),
    case(
        "a value may have colons",
        "data: a: b:c\n\n",
        &[data(&["a: b:c"])],
    ),
    case(
        "a value may begin with a colon",
        "data::\ndata: :\n\n",
        &[data(&[":", ":"])],
    ),
    case(
        "a field without a colon is empty",
        "data\n\n",
        &[data(&[""])],
    ),
    case(
        "two fields without a colon",
        "data\ndata\n\n",
        &[data(&["", ""])],
    ),
    case("empty data", "data:\n\n", &[data(&[""])]),
    case("empty data with a space", "data: \n\n", &[data(&[""])]),
    case(
        "empty lines within data",
        "data: a\ndata:\ndata\ndata: b\n\n",
        &[data(&["a", "", "", "b"])],
    ),
    case(
        "more lines than are remembered",
        "data: 1\ndata: 2\r\ndata: 3\rdata: 4\ndata: 5\r\ndata: 6\rdata: 7\n\n",
        &[data(&["1", "2", "3", "4", "5", "6", "7"])],
    ),
    case("a comment", ": a\n\n", &[]),
    case("an empty comment", ":\n\n", &[]),
    case("comments only", ":a\n:\r:b\r\n\r\n: c\n", &[]),
    case("a torn comment is no tail", ": OPENROUTER PROC", &[]),
    case(
        "heartbeats between events",
        ":\ndata: a\n\n:\n:\n\ndata: b\n\n: ping\n\n",
        &[data(&["a"]), data(&["b"])],
    ),
    case(
        "a comment inside a block",
        "data: a\n: data: x\ndata: b\n:\n\n",
        &[data(&["a", "b"])],
    ),
    case("a comment that looks like a field", ":data: a\n\n", &[]),
    bytes(
        "a comment before a block need not be utf-8",
        b": \xFF\ndata: a\n\n",
        &[data(&["a"])],
    ),
    case(
        "a name",
        "event: ping\ndata: a\n\n",
        &[Expected {
            name: Some("ping"),
            ..data(&["a"])
        }],
    ),
    case(
        "a name after the data",
        "data: a\nevent:ping\n\n",
        &[Expected {
            name: Some("ping"),
            ..data(&["a"])
        }],
    ),
    case(
        "the last name wins",
        "event: a\nevent: b\ndata: x\n\n",
        &[Expected {
            name: Some("b"),
            ..data(&["x"])
        }],
    ),
    case(
        "an empty name is none",
        "event: a\nevent\ndata: x\n\n",
        &[data(&["x"])],
    ),
    case(
        "a name does not reach the next event",
        "event: a\ndata: x\n\ndata: y\n\n",
        &[
            Expected {
                name: Some("a"),
                ..data(&["x"])
            },
            data(&["y"]),
        ],
    ),
    case(
        "a name alone",
        "event: a\n\n",
        &[Expected {
            name: Some("a"),
            ..BARE
        }],
    ),
    case(
        "an id",
        "id: 1\ndata: a\n\n",
        &[Expected {
            id: Some("1"),
            ..data(&["a"])
        }],
    ),
    case(
        "an id alone, and empty data: a priming event",
        "id: 1\ndata:\n\nid: 2\n\n",
        &[
            Expected {
                id: Some("1"),
                ..data(&[""])
            },
            Expected {
                id: Some("2"),
                ..BARE
            },
        ],
    ),
    case(
        "an empty id",
        "id: 1\nid\n\n",
        &[Expected {
            id: Some(""),
            ..BARE
        }],
    ),
    case(
        "an id with nul is ignored",
        "id: a\0b\ndata: x\n\n",
        &[data(&["x"])],
    ),
    case(
        "an id with nul does not undo another",
        "id: 1\nid: \0\ndata: x\n\n",
        &[Expected {
            id: Some("1"),
            ..data(&["x"])
        }],
    ),
    case("nul in data is data", "data: a\0b\n\n", &[data(&["a\0b"])]),
    case(
        "retry",
        "retry: 3000\n\n",
        &[Expected {
            retry: Some(3000),
            ..BARE
        }],
    ),
    case(
        "the last good retry wins",
        "retry: 1\nretry: 007\nretry: x\n\n",
        &[Expected {
            retry: Some(7),
            ..BARE
        }],
    ),
    case(
        "retry takes digits only",
        "retry: +1\nretry: -1\nretry: 1.5\nretry: 1s\nretry:  1\nretry: 1 \nretry: ١\nretry:\n\n",
        &[BARE],
    ),
    case(
        "a retry that does not fit is ignored",
        "retry: 18446744073709551615\nretry: 18446744073709551616\n\n",
        &[Expected {
            retry: Some(u64::MAX),
            ..BARE
        }],
    ),
    case("an unknown field", "foo: bar\n\n", &[BARE]),
    case(
        "a field named error",
        "error: {\"message\":\"a\"}\n\n",
        &[Expected {
            error: Some("{\"message\":\"a\"}"),
            ..BARE
        }],
    ),
    case(
        "a line of json is a field",
        "{\"error\": 1}\n\nerror\n\n",
        &[
            BARE,
            Expected {
                error: Some(""),
                ..BARE
            },
        ],
    ),
    // B14: other separators of text are not line ends here.
    case(
        "separators are data",
        "data: a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\u{1c}g\u{1e}h\n\n",
        &[data(&[
            "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\u{1c}g\u{1e}h",
        ])],
    ),
    // B15: characters of two, three and four bytes.
    case(
        "characters of many bytes",
        "data: {\"content\":\"é中文🦀\"}\n\n",
        &[data(&["{\"content\":\"é中文🦀\"}"])],
    ),
    case(
        "a family of joined characters",
        "event: 名\ndata: 👩‍👩‍👧\n\n",
        &[Expected {
            name: Some("名"),
            ..data(&["👩‍👩‍👧"])
        }],
    ),
    case("no blank line", "data: a\n\ndata: b\n", &[data(&["a"])]).tail(b"data: b\n"),
    case("no line end", "data: a\n\ndata: [DONE]", &[data(&["a"])]).tail(b"data: [DONE]"),
    case("torn in a name", "event: x\ndat", &[]).tail(b"event: x\ndat"),
    bytes("torn in a character", b"data: \xE4\xB8", &[]).tail(b"data: \xE4\xB8"),
    case(
        "a tail begins with its first field",
        "\n: x\n\ndata: a",
        &[],
    )
    .tail(b"data: a"),
    case("a tail keeps inner comments", "data: a\n: x\n", &[]).tail(b"data: a\n: x\n"),
    case(
        "a chat stream",
        ": hi\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
        &[
            data(&["{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}"]),
            data(&["[DONE]"]),
        ],
    ),
];

impl Expected {
    fn to_event(&self) -> naive::Event {
        naive::Event {
            name: self.name.map(str::to_owned),
            data_lines: self.data.iter().map(|&line| line.to_owned()).collect(),
            data: self.data.join("\n"),
            id: self.id.map(str::to_owned),
            retry: self.retry,
            error: self.error.map(str::to_owned),
        }
    }
}

#[test]
fn every_case_decodes_as_the_standard_says() {
    for case in CASES {
        let outcome = check::run(&[case.input], Limits::default());
        let expected: Vec<_> = case.events.iter().map(Expected::to_event).collect();
        assert_eq!(outcome.events, expected, "events of: {}", case.name);
        assert_eq!(outcome.tail, case.tail, "tail of: {}", case.name);
        assert_eq!(outcome.error, None, "error of: {}", case.name);
    }
}

/// The oracle has to be right before it can judge.
#[test]
fn the_oracle_agrees_on_every_case() {
    for case in CASES {
        let outcome = naive::decode(case.input, Limits::default());
        let expected: Vec<_> = case.events.iter().map(Expected::to_event).collect();
        assert_eq!(outcome.events, expected, "events of: {}", case.name);
        assert_eq!(outcome.tail, case.tail, "tail of: {}", case.name);
    }
}

#[test]
fn every_case_round_trips() {
    for case in CASES {
        check::round_trips(case.input);
    }
}

#[track_caller]
fn check_tail_event(input: &[u8], expected: Option<&Expected>) {
    let outcome = check::run(&[input], Limits::default());
    assert_eq!(outcome.tail_event, expected.map(Expected::to_event));
}

#[test]
fn a_tail_reads_as_an_event() {
    check_tail_event(b"", None);
    check_tail_event(b"data: a\n\n", None);
    check_tail_event(b": a", None);
    check_tail_event(b"data: [DONE]", Some(&data(&["[DONE]"])));
    check_tail_event(b"data: [DONE]\r", Some(&data(&["[DONE]"])));
    check_tail_event(b"data: a\ndata: b\r\n", Some(&data(&["a", "b"])));
    check_tail_event(b"data: a\ndat", Some(&data(&["a"])));
    check_tail_event(b"data: \xF0\x9F", None);
}

#[test]
fn no_field_has_an_empty_name_or_a_colon() {
    let mut input = &b":comment\na:b: c\n:x\n\n"[..];
    let mut decoder = streamweld_sse::Decoder::new(Limits::default());
    let event = decoder.decode(&mut input).unwrap().unwrap();
    assert_eq!(event.field("a"), Some("b: c"));
    assert_eq!(event.field("a:b"), None);
    assert_eq!(event.field(""), None);
}

#[test]
fn raw_is_the_block_as_it_came() {
    let mut input = &b": x\n\nfoo:1\r\n: y\ndata\r\r\ndata: z"[..];
    let mut decoder = streamweld_sse::Decoder::new(Limits::default());
    let event = decoder.decode(&mut input).unwrap().unwrap();
    assert_eq!(event.raw(), "foo:1\r\n: y\ndata\r");
    assert!(decoder.decode(&mut input).unwrap().is_none());
    assert_eq!(decoder.tail_event().unwrap().raw(), "data: z");
}

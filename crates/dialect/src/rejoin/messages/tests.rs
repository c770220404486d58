//! What a reader is shown of the events of a message behind a seam.

use proptest::prelude::*;
use streamweld_sse::{Decoder, Limits};

use super::super::{Rejoin, Rejoined};
use super::*;
use crate::{Dialect, Transcript};

const START: &str = r#"{"type":"message_start","message":{"id":"first","model":"m","usage":{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":5,"output_tokens":1}}}"#;
const TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const PING: &str = r#"{"type": "ping"}"#;
const AGAIN: &str =
    r#"{"type":"message_start","message":{"id":"second","usage":{"input_tokens":14}}}"#;

fn with_event<T>(data: &str, read: impl FnOnce(&Event<'_>) -> T) -> T {
    let value: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
    let name = value["type"].as_str().unwrap_or("x");
    let block = format!("event: {name}\ndata: {data}\n\n");
    let mut decoder = Decoder::new(Limits::default());
    read(&decoder.decode(&mut block.as_bytes()).unwrap().unwrap())
}

fn push(rejoin: &mut Rejoin, data: &str) -> Rejoined {
    with_event(data, |event| rejoin.event(event))
}

fn delta(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{text}}} }}"#
    )
}

fn shown(events: &[&str]) -> Transcript {
    let mut transcript = Transcript::new(Dialect::AnthropicMessages);
    for data in events {
        with_event(data, |event| transcript.push(event));
    }
    transcript
}

/// Behind a message of which `overlap` has to come again, and four tokens do not.
fn behind(overlap: &str) -> Rejoin {
    let before = Before {
        prompt_tokens: None,
        completion_tokens: 4,
    };
    Rejoin::behind(&shown(&[START, TEXT, &delta("It is")]), before, overlap)
}

#[track_caller]
fn shows(rejoin: &mut Rejoin, data: &str, expected: &str) {
    let Rejoined::Lines(lines) = push(rejoin, data) else {
        panic!("{data} is not shown");
    };
    let lines = String::from_utf8(lines).unwrap();
    let (name, data) = lines.split_once('\n').unwrap();
    assert_eq!(data, format!("data: {expected}\n"));
    assert!(name.starts_with("event: "), "{name}");
}

#[test]
fn there_is_one_beginning_and_the_rest_passes_to_the_byte() {
    let mut rejoin = behind("");
    for begin in [AGAIN, PING, TEXT, PING, &delta("")] {
        assert_eq!(push(&mut rejoin, begin), Rejoined::Nothing, "{begin}");
    }
    let odd = r#"{ "type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\u0061"},"x":1.50}"#;
    shows(&mut rejoin, odd, odd);
    let more =
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#;
    for data in [
        PING,
        &delta(""),
        r#"{"type":"content_block_stop","index":0}"#,
        more,
        r#"{"type":"brand_new","x":1}"#,
        r#"{"type":"message_stop"}"#,
    ] {
        shows(&mut rejoin, data, data);
    }
}

#[test]
fn the_overlap_is_swallowed_also_where_it_ends_within_a_delta() {
    let mut rejoin = behind(" is");
    assert_eq!(push(&mut rejoin, TEXT), Rejoined::Nothing);
    assert_eq!(push(&mut rejoin, &delta(" i")), Rejoined::Nothing);
    assert!(!rejoin.is_joined());
    shows(&mut rejoin, &delta("sis is"), &delta("is is"));
    shows(&mut rejoin, &delta(" is"), &delta(" is"));
    let mut rejoin = behind(" is");
    assert_eq!(push(&mut rejoin, &delta(" is")), Rejoined::Nothing);
    // A ping behind it is still ahead of anything new.
    assert_eq!(push(&mut rejoin, PING), Rejoined::Nothing);
    shows(&mut rejoin, &delta("x"), &delta("x"));
}

#[test]
fn counts_are_those_of_the_whole_message() {
    let mut rejoin = behind("");
    shows(
        &mut rejoin,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":12,"cache_creation_input_tokens":1,"cache_read_input_tokens":1,"output_tokens":6,"x":{"y":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":5,"output_tokens":10,"x":{"y":1}}}"#,
    );
    shows(
        &mut rejoin,
        r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":null,"output_tokens":6}}"#,
        r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":null,"output_tokens":10}}"#,
    );
    // Without a count at the beginning, what was given of the answer is taken off.
    let before = Before {
        prompt_tokens: None,
        completion_tokens: 4,
    };
    let mut rejoin = Rejoin::behind(&shown(&[TEXT, &delta("a")]), before, "");
    assert_eq!(push(&mut rejoin, AGAIN), Rejoined::Nothing);
    shows(
        &mut rejoin,
        r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":14,"output_tokens":1}}"#,
        r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":10,"output_tokens":5}}"#,
    );
}

#[test]
fn what_is_not_the_rest_breaks_the_seam() {
    let thinking = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#;
    let elsewhere =
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#;
    let with_text =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#;
    for begin in [thinking, elsewhere, with_text] {
        assert_eq!(push(&mut behind(""), begin), Rejoined::Broken, "{begin}");
    }
    let cited = r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#;
    for early in [
        &delta(" was"),
        &delta("  is"),
        cited,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
        r#"{"type":"brand_new"}"#,
        "no json",
    ] {
        let mut rejoin = behind(" is");
        assert_eq!(push(&mut rejoin, TEXT), Rejoined::Nothing);
        assert_eq!(push(&mut rejoin, early), Rejoined::Broken, "{early}");
    }
    let mut joined = behind("");
    shows(&mut joined, cited, cited);
    shows(&mut joined, "no json", "no json");
}

#[test]
fn a_beginning_that_was_not_shown_is_shown_once() {
    let restart = |events: &[&str]| Rejoin::behind(&shown(events), Before::default(), "");
    let mut rejoin = restart(&[START]);
    assert_eq!(push(&mut rejoin, AGAIN), Rejoined::Nothing);
    assert_eq!(push(&mut rejoin, PING), Rejoined::Nothing);
    shows(&mut rejoin, TEXT, TEXT);
    shows(&mut rejoin, PING, PING);
    let mut rejoin = restart(&[PING]);
    shows(&mut rejoin, AGAIN, AGAIN);
    shows(&mut rejoin, TEXT, TEXT);
    // It may turn out otherwise than it began.
    let mut rejoin = restart(&[START, TEXT]);
    let tool = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#;
    assert_eq!(push(&mut rejoin, tool), Rejoined::Broken);
}

proptest! {
    /// However an answer is cut into deltas, what is shown is what is behind the overlap; also where it repeats itself.
    #[test]
    fn nothing_is_lost_or_doubled(
        overlap in "(ha |0000|\\}\\n|[a-c潮]){0,3}",
        rest in "(ha |0000|\\}\\n|[a-c潮]){0,6}",
        cuts in prop::collection::vec(0usize..40, 0..6),
    ) {
        let whole = format!("{overlap}{rest}");
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| whole.is_char_boundary(*cut)).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let mut rejoin = behind(&overlap);
        let mut new = String::new();
        for pair in cuts.windows(2) {
            if let Rejoined::Lines(lines) = push(&mut rejoin, &delta(&whole[pair[0]..pair[1]])) {
                let lines = String::from_utf8(lines).unwrap();
                let data = lines.split_once("data: ").unwrap().1;
                let value: serde_json::Value = serde_json::from_str(data).unwrap();
                new.push_str(value["delta"]["text"].as_str().unwrap());
            }
        }
        prop_assert!(rejoin.is_joined());
        prop_assert_eq!(new, rest);
    }
}

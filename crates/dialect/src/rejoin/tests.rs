//! What a reader is shown of the chunks behind a seam.

use proptest::prelude::*;
use streamweld_sse::{Decoder, Limits};

use super::*;

const FIRST: &str =
    r#"{"id":"first","object":"chat.completion.chunk","created":7,"model":"m","choices":[]}"#;

fn push(rejoin: &mut Rejoin, data: &str) -> Rejoined {
    let block = format!("data: {data}\n\n");
    let mut input = block.as_bytes();
    let mut decoder = Decoder::new(Limits::default());
    let event = decoder.decode(&mut input).unwrap().unwrap();
    rejoin.event(&event)
}

fn behind(overlap: &str) -> Rejoin {
    let before = Before {
        prompt_tokens: Some(10),
        completion_tokens: 4,
    };
    Rejoin::new(Identity::of(FIRST), before, overlap)
}

#[track_caller]
fn shows(rejoin: &mut Rejoin, data: &str, expected: &str) {
    let lines = format!("data: {expected}\n").into_bytes();
    assert_eq!(push(rejoin, data), Rejoined::Lines(lines));
}

fn chat(content: &str) -> String {
    let content = serde_json::to_string(content).unwrap();
    format!(
        r#"{{"id":"second","created":9,"model":"n","choices":[{{"index":0,"delta":{{"content":{content}}}}}]}}"#
    )
}

#[test]
fn chunks_have_the_identity_of_the_first_part_and_nothing_else_changed() {
    let mut rejoin = behind("");
    shows(
        &mut rejoin,
        r#"{ "x":1.50, "id":"second","created":9,"model":"n", "choices":[{"delta":{"content":"\u0061b"},"index":0}],"system_fingerprint":"f"}"#,
        r#"{ "x":1.50, "id":"first","created":7,"model":"m", "choices":[{"delta":{"content":"\u0061b"},"index":0}],"system_fingerprint":"f"}"#,
    );
    // What the first part did not have is not made up.
    let mut rejoin = Rejoin::new(Identity::of("{}"), Before::default(), "");
    let data = r#"{"id":"second","choices":[{"text":"a"}]}"#;
    shows(&mut rejoin, data, data);
}

#[test]
fn without_a_count_of_the_prompt_what_was_given_of_the_answer_is_taken_off() {
    let before = Before {
        prompt_tokens: None,
        completion_tokens: 4,
    };
    let mut rejoin = Rejoin::new(Identity::of("{}"), before, "");
    shows(
        &mut rejoin,
        r#"{"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":5,"total_tokens":19}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19}}"#,
    );
}

#[test]
fn there_is_one_beginning() {
    let mut rejoin = behind("");
    for begin in [
        r#"{"id":"s","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"id":"s","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#,
    ] {
        assert_eq!(push(&mut rejoin, begin), Rejoined::Nothing);
    }
    shows(
        &mut rejoin,
        r#"{"id":"s","choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}"#,
        r#"{"id":"first","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
    );
}

#[test]
fn what_had_to_come_again_is_not_shown() {
    let mut rejoin = behind(" of the");
    assert_eq!(push(&mut rejoin, &chat(" of")), Rejoined::Nothing);
    assert_eq!(push(&mut rejoin, &chat("")), Rejoined::Nothing);
    assert!(!rejoin.is_joined());
    shows(
        &mut rejoin,
        &chat(" the sea"),
        r#"{"id":"first","created":7,"model":"m","choices":[{"index":0,"delta":{"content":" sea"}}]}"#,
    );
    assert!(rejoin.is_joined());
    // Looks repeated, and is not.
    shows(
        &mut rejoin,
        &chat(" of the"),
        r#"{"id":"first","created":7,"model":"m","choices":[{"index":0,"delta":{"content":" of the"}}]}"#,
    );
}

#[test]
fn another_text_breaks_the_seam() {
    for pieces in [&["x"][..], &[" of", "f"], &["of"], &[" of  "]] {
        let mut rejoin = behind(" of the");
        let last = pieces
            .iter()
            .map(|piece| push(&mut rejoin, &chat(piece)))
            .last();
        assert_eq!(last, Some(Rejoined::Broken), "{pieces:?}");
    }
}

#[test]
fn so_does_an_end_within_what_had_to_come_again() {
    for end in [
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":" of"},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]}}]}"#,
        "[DONE]",
    ] {
        let mut rejoin = behind(" of the");
        assert_eq!(push(&mut rejoin, end), Rejoined::Broken, "{end}");
    }
}

#[test]
fn an_end_with_the_last_of_it_is_one() {
    let mut rejoin = behind(" the");
    shows(
        &mut rejoin,
        r#"{"choices":[{"index":0,"delta":{"content":" the"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}"#,
    );
    shows(&mut rejoin, "[DONE]", "[DONE]");
}

#[test]
fn counts_add_up() {
    let mut rejoin = behind("");
    shows(
        &mut rejoin,
        r#"{"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":5,"total_tokens":19,"x":{"y":1}}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19,"x":{"y":1}}}"#,
    );
    shows(
        &mut rejoin,
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"usage":null}"#,
    );
}

#[test]
fn what_comes_again_is_counted_once() {
    let mut rejoin = behind(" of the");
    let counted = |content: &str, count: u64| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"{content}"}}}}],"usage":{{"prompt_tokens":12,"completion_tokens":{count},"total_tokens":{}}}}}"#,
            12 + count
        )
    };
    assert_eq!(push(&mut rejoin, &counted(" of", 1)), Rejoined::Nothing);
    assert_eq!(push(&mut rejoin, &counted(" the", 2)), Rejoined::Nothing);
    shows(
        &mut rejoin,
        &counted(" sea", 3),
        r#"{"choices":[{"delta":{"content":" sea"}}],"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17}}"#,
    );
}

#[test]
fn completions_are_joined_alike() {
    let mut rejoin = behind("ab");
    let chunk = |text: &str| {
        format!(r#"{{"id":"s","choices":[{{"index":0,"text":"{text}","finish_reason":null}}]}}"#)
    };
    assert_eq!(push(&mut rejoin, &chunk("a")), Rejoined::Nothing);
    shows(
        &mut rejoin,
        &chunk("bc"),
        r#"{"id":"first","choices":[{"index":0,"text":"c","finish_reason":null}]}"#,
    );
}

proptest! {
    /// However a continuation is cut into chunks, the reader's text is that of one answer.
    #[test]
    fn the_text_is_that_of_one_answer(
        text in "(ha |0000|\\}\\n|\"\\\\|[a-c潮é ]{1,6}|\\n\\n|\u{1F30A}){1,12}",
        at in any::<prop::sample::Index>(),
        shown in any::<prop::sample::Index>(),
        size in 1..5_usize,
    ) {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let (one, other) = (ends[at.index(ends.len())], ends[shown.index(ends.len())]);
        let (kept, shown) = (one.min(other), one.max(other));
        let mut rejoin = behind(&text[kept..shown]);
        let mut answer = text[..shown].to_owned();
        let rest: Vec<char> = text[kept..].chars().collect();
        for piece in rest.chunks(size) {
            let piece: String = piece.iter().collect();
            match push(&mut rejoin, &chat(&piece)) {
                Rejoined::Nothing => {}
                Rejoined::Broken => prop_assert!(false, "refused {:?}", piece),
                Rejoined::Lines(lines) => {
                    let line = String::from_utf8(lines).unwrap();
                    let chunk: serde_json::Value =
                        serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
                    answer += chunk["choices"][0]["delta"]["content"].as_str().unwrap();
                }
            }
        }
        prop_assert_eq!(answer, text);
    }
}

fn told(text: &str, ids: &[u32]) -> String {
    format!(r#"{{"choices":[{{"text":"{text}","token_ids":{ids:?},"prompt_token_ids":[8,9]}}]}}"#)
}

#[test]
fn ids_that_were_told_come_again_unseen() {
    for seen in [true, false] {
        let mut rejoin = behind("").with_again(&[5, 6], seen);
        assert_eq!(push(&mut rejoin, &told("", &[5])), Rejoined::Nothing);
        // What is new of the next is the rest of it. Its prompt is not that of the app.
        shows(
            &mut rejoin,
            &told("a", &[6, 7]),
            r#"{"choices":[{"text":"a","token_ids":[7],"prompt_token_ids":null}]}"#,
        );
        shows(
            &mut rejoin,
            r#"{"choices":[{"text":"","token_ids":[5]}]}"#,
            r#"{"choices":[{"text":"","token_ids":[5]}]}"#,
        );
    }
}

#[test]
fn ids_that_were_seen_have_to_be_the_same() {
    let mut rejoin = behind("").with_again(&[5, 6], true);
    assert_eq!(push(&mut rejoin, &told("", &[4])), Rejoined::Broken);
    let mut rejoin = behind("").with_again(&[5, 6], false);
    assert_eq!(push(&mut rejoin, &told("", &[4])), Rejoined::Nothing);
}

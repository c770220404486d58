//! What is told of tokens, chunk by chunk.

use super::*;

const PROMPT: &str =
    r#"{"prompt_token_ids":[9,8],"choices":[{"delta":{"role":"assistant","content":""}}]}"#;

fn chunk(text: &str, ids: &[u32]) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"token_ids":{ids:?}}}]}}"#)
}

#[track_caller]
fn check(chunks: &[String], expected: Result<(&[u32], u64, bool), NoIds>) {
    let mut trail = Trail::default();
    trail.push(PROMPT);
    for chunk in chunks {
        trail.push(chunk);
    }
    let ids = trail.ids();
    let ids = ids
        .as_ref()
        .map(|ids| (ids.all.as_slice(), ids.of_answer, ids.unsure));
    assert_eq!(ids, expected.as_ref().map(|ids| *ids), "{chunks:?}");
}

#[test]
fn prompt_and_answer_are_put_together() {
    check(
        &[chunk("a", &[1]), chunk("b", &[2])],
        Ok((&[9, 8, 1, 2], 2, false)),
    );
    // As completions have them.
    let mut trail = Trail::default();
    trail.push(r#"{"choices":[{"text":"a","token_ids":[1],"prompt_token_ids":[7]}]}"#);
    assert_eq!(trail.ids().unwrap().all, [7, 1]);
    assert_eq!((trail.prompt(), trail.told()), (Some(&[7][..]), 1));
}

#[test]
fn half_a_character_is_left_out_and_a_whole_one_is_not() {
    let half = [chunk("a", &[1]), chunk("", &[2]), chunk("", &[3])];
    check(&half, Ok((&[9, 8, 1], 1, false)));
    let whole = [&half[..], &[chunk("潮", &[4])]].concat();
    check(&whole, Ok((&[9, 8, 1, 2, 3, 4], 4, false)));
    check(
        &[chunk("a", &[1]), chunk("\u{fffd}", &[2])],
        Err(NoIds::WithinCharacter),
    );
}

#[test]
fn of_several_ids_the_last_may_be_half_a_character() {
    check(&[chunk("a", &[1, 2])], Ok((&[9, 8, 1, 2], 2, true)));
    check(
        &[chunk("a", &[1, 2]), chunk("b", &[3])],
        Ok((&[9, 8, 1, 2, 3], 3, false)),
    );
}

#[test]
fn holes_are_noticed() {
    check(&[chunk("a", &[1]), chunk("b", &[])], Err(NoIds::Missing));
    let counted = |count: u64| {
        let text = chunk("a", &[1]);
        text.replace(
            "{\"choices\"",
            &format!("{{\"usage\":{{\"completion_tokens\":{count}}},\"choices\""),
        )
    };
    check(&[counted(1)], Ok((&[9, 8, 1], 1, false)));
    check(&[counted(2)], Err(NoIds::Disagree));
    // Also those of before.
    check(&[counted(2), chunk("b", &[2])], Err(NoIds::Disagree));
    // Nor is the count believed then.
    let mut trail = Trail::default();
    trail.push(&counted(1));
    assert_eq!((trail.tokens(), trail.tokens_of(1)), (Some(1), Some(1)));
    trail.push(&counted(9));
    assert_eq!((trail.tokens(), trail.tokens_of(1)), (None, None));
}

#[test]
fn without_a_prompt_or_text_there_is_nothing() {
    check(&[], Err(NoIds::NoText));
    check(&[chunk("", &[1])], Err(NoIds::NoText));
    let mut trail = Trail::default();
    trail.push(&chunk("a", &[1]));
    assert_eq!(trail.ids(), Err(NoIds::NoPrompt));
    trail.push("[DONE]");
    trail.push(r#"{"choices":[]}"#);
    assert_eq!(trail.ids(), Err(NoIds::NoPrompt));
}

fn counted(text: &str, count: u64) -> String {
    format!(
        r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}],"timings":{{"predicted_n":{count}}}}}"#
    )
}

#[test]
fn tokens_are_counted_where_a_chunk_ends() {
    let mut trail = Trail::default();
    assert_eq!(trail.tokens(), Some(0));
    for chunk in [counted("ab", 1), counted("", 3), counted("潮", 4)] {
        trail.push(&chunk);
    }
    assert_eq!(trail.tokens(), Some(4));
    // What came behind a text is of the next one.
    assert_eq!(trail.tokens_of(2), Some(1));
    assert_eq!(trail.tokens_of(5), Some(4));
    for text in [1, 3, 4, 6] {
        assert_eq!(trail.tokens_of(text), None, "{text}");
    }
    assert_eq!(trail.tokens_of(0), Some(0));
    trail.push(r#"{"choices":[{"delta":{"content":"c"}}]}"#);
    assert_eq!(trail.tokens(), None);
    assert_eq!(trail.tokens_of(2), None);
}

#[test]
fn the_prompt_is_counted_once() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":50}}"#;
    let timings =
        r#"{"choices":[{"text":"a"}],"timings":{"prompt_n":2,"cache_n":41,"predicted_n":1}}"#;
    for (first, expected) in [(usage, 50), (timings, 43), (PROMPT, 2)] {
        let mut trail = Trail::default();
        trail.push(first);
        assert_eq!(trail.prompt_tokens(), Some(expected), "{first}");
        trail.push(usage);
        assert!(
            trail.prompt_tokens() == Some(expected) || expected == 2,
            "{first}"
        );
    }
    // What a later attempt counts has a part of the answer in it.
    for told in [None, Some(43)] {
        let mut trail = Trail::behind_text(told, 7, 20);
        trail.push(usage);
        trail.push(timings);
        assert_eq!(trail.prompt_tokens(), told);
    }
    let mut trail = Trail::behind_ids(vec![9, 8, 1], 1, 3, Vec::new());
    trail.push(usage);
    assert_eq!(trail.prompt_tokens(), Some(2));
}

#[test]
fn a_later_attempt_counts_on() {
    let mut trail = Trail::behind_text(None, 7, 20);
    assert_eq!((trail.tokens(), trail.tokens_of(20)), (Some(7), Some(7)));
    // Who speaks is no token, and tells of none.
    trail.push(r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#);
    assert_eq!(trail.tokens_of(20), Some(7));
    trail.push(&counted(" a", 1));
    assert_eq!((trail.tokens(), trail.tokens_of(22)), (Some(8), Some(8)));

    let mut trail = Trail::behind_ids(vec![9, 8, 1], 1, 3, vec![5, 6]);
    let nothing_new = trail.ids().unwrap();
    assert_eq!(
        (&nothing_new.all[..], nothing_new.of_answer),
        (&[9, 8, 1][..], 1)
    );
    // What was told already comes again.
    assert_eq!(trail.told_behind(), [5, 6]);
    trail.push(&chunk("", &[5]));
    assert_eq!(trail.told_behind(), [5, 6]);
    trail.push(&chunk("b", &[2]));
    let ids = trail.ids().unwrap();
    assert_eq!((&ids.all[..], ids.of_answer), (&[9, 8, 1, 5, 2][..], 3));
    assert!(trail.told_behind().is_empty());
    trail.push(&chunk("", &[7]));
    assert_eq!(trail.told_behind(), [7]);
}

#[test]
fn tokens_that_are_known_have_to_be_in_their_places() {
    let beside = |text: &str, id: u32, count: u64| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"{text}"}},"logprobs":{{"content":[{{"id":{id}}}]}}}}],"timings":{{"predicted_n":{count}}}}}"#
        )
    };
    let mut trail = Trail::default();
    assert!(!trail.is_cut_alike(&[9], &[9]));
    for chunk in [beside("a", 1, 1), beside("潮", 4, 4), beside("b", 5, 5)] {
        trail.push(&chunk);
    }
    let alike = |answer: &[u32]| trail.is_cut_alike(&[9, 8], &[&[9, 8], answer].concat());
    assert!(alike(&[1, 2, 3, 4, 5]));
    // Another token, one too few, one too many, and a prompt that is cut otherwise in front of it.
    assert!(!alike(&[1, 2, 3, 6, 5]));
    assert!(!alike(&[1, 2, 4, 5]));
    assert!(!alike(&[1, 2, 3, 4, 5, 6]));
    assert!(!trail.is_cut_alike(&[9, 8], &[9, 7, 1, 2, 3, 4, 5]));
    // What a second attempt adds is counted behind the first.
    let mut second = Trail::behind_text(Some(2), 5, 5).knowing(&trail);
    second.push(&beside("c", 6, 1));
    assert!(second.is_cut_alike(&[9], &[9, 1, 2, 3, 4, 5, 6]));
    assert!(!second.is_cut_alike(&[9], &[9, 1, 2, 3, 4, 4, 6]));
    // The last of them is not known.
    trail.push(&counted("d", 6));
    assert!(!trail.is_cut_alike(&[9], &[9, 1, 2, 3, 4, 5, 6]));
}

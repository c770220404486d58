//! What answers show, in the shapes that real engines were seen to send.

use streamweld_dialect::{BodyEnd, Dialect};

use super::super::Finding;
use super::*;

/// A chunk of vLLM with the ids of its tokens.
fn vllm(text: &str, ids: &[u32], reason: &str) -> String {
    let reason = match reason {
        "" => "null".to_owned(),
        reason => format!("{reason:?}"),
    };
    format!(
        "data: {{\"id\":\"chatcmpl-b20f\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\
         \"delta\":{{\"content\":{text:?}}},\"logprobs\":null,\"finish_reason\":{reason},\"token_ids\":{ids:?}}}]}}\n\n"
    )
}

fn first(prompt: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-b20f\",\"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\
         \"finish_reason\":null}}]{prompt}}}\n\n"
    )
}

fn counted(tokens: u64) -> String {
    format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":2,\"completion_tokens\":{tokens}}}}}\n\n"
    )
}

fn reply(chunks: &[String]) -> Reply {
    let body = format!("{}data: [DONE]\n\n", chunks.concat());
    Reply::read(Dialect::OpenAiChat, body.as_bytes(), BodyEnd::Clean).expect("a whole answer")
}

const PROMPT: &str = ",\"prompt_token_ids\":[1,2],\"prompt_text\":null";

/// "A tide 潮 is high.", in which one character takes three tokens.
fn tide() -> Vec<String> {
    vec![
        first(PROMPT),
        vllm("A", &[10], ""),
        vllm(" tide", &[11], ""),
        vllm("", &[12], ""),
        vllm("", &[13], ""),
        vllm(" 潮", &[14], ""),
        vllm(" is", &[15], ""),
        vllm(" high", &[16], ""),
        vllm(".", &[17], ""),
        vllm("", &[2], "stop"),
        counted(9),
    ]
}

#[track_caller]
fn check(judged: &Judged, finding: Finding, said: &str) {
    assert_eq!(judged.finding, finding, "{judged:?}");
    assert!(judged.evidence.contains(said), "{judged:?}");
}

#[test]
fn an_answer_is_cut_behind_a_character_of_several_tokens() {
    let cut = cut_ids(&reply(&tide())).expect("they are all there");
    assert_eq!(cut.ids.all, [1, 2, 10, 11, 12, 13, 14]);
    assert_eq!((cut.ids.of_answer, cut.shown), (5, "A tide 潮".len()));
}

#[test]
fn ids_have_to_be_all_there_and_as_many_as_were_counted() {
    let mut holes = tide();
    holes.drain(3..5);
    let judged = cut_ids(&reply(&holes)).unwrap_err();
    check(&judged, Finding::Problem, "told 7 ids of 9 tokens");

    let mut none = tide();
    none[0] = first("");
    let judged = cut_ids(&reply(&none)).unwrap_err();
    check(
        &judged,
        Finding::Problem,
        "did not tell the ids of the prompt",
    );

    let plain: Vec<String> = tide()
        .iter()
        .map(|chunk| chunk.replace('潮', "C"))
        .collect();
    // A model that writes no such character is cut where it can be.
    assert!(cut_ids(&reply(&plain)).is_ok());
}

#[test]
fn by_ids_the_rest_has_to_come_to_the_letter_behind_the_same_prompt() {
    let whole = reply(&tide());
    let cut = cut_ids(&whole).expect("they are all there");
    let rest = |prompt: &str, text: &str, reason: &str| {
        let judged = reply(&[first(prompt), vllm(text, &[15], ""), vllm("", &[2], reason)]);
        went_on_by_ids(&whole, &cut, &judged)
    };
    let back = ",\"prompt_token_ids\":[1,2,10,11,12,13,14]";
    check(&rest(back, " is high.", "stop"), Finding::Ok, "7 ids");
    for (prompt, text, reason, said) in [
        ("", " is high.", "stop", "did not tell which prompt"),
        (
            PROMPT,
            " is high.",
            "stop",
            "given 7 ids and went on with other 2",
        ),
        (
            back,
            " is low.",
            "stop",
            "\" is low.\" instead of \" is high.\"",
        ),
        (back, "A tide 潮 is high.", "stop", "instead of"),
        (back, " is high.", "length", "instead of"),
    ] {
        check(&rest(prompt, text, reason), Finding::Problem, said);
    }
}

#[test]
fn text_is_cut_in_front_of_a_word_in_its_middle() {
    let whole = reply(&tide());
    let cut = cut_text(&whole).expect("it has words");
    // Two chunks were "A" and " tide"; "潮" is asked for again.
    let expected = ByText {
        kept: "A tide",
        dropped: " 潮",
        tokens: 2,
    };
    assert_eq!(cut, expected);
    for text in ["", "word", "longword a", "  a b c d"] {
        let whole = reply(&[first(""), vllm(text, &[], ""), vllm("", &[], "stop")]);
        check(&cut_text(&whole).unwrap_err(), Finding::Unknown, "no word");
    }
}

#[test]
fn by_text_what_was_dropped_has_to_come_again_and_then_the_rest() {
    let whole = reply(&tide());
    let cut = cut_text(&whole).expect("it has words");
    let rest = |text: &str, reason: &str| {
        let judged = reply(&[first(""), vllm(text, &[], ""), vllm("", &[], reason)]);
        went_on_by_text(&whole, &cut, &judged)
    };
    for (text, reason) in [
        (" 潮 is high.", "stop"),
        // Its limit may allow more or less than was left.
        (" 潮 is high. And", "length"),
        (" 潮 is h", "length"),
    ] {
        check(&rest(text, reason), Finding::Ok, "wrote \" 潮\" again");
    }
    for (text, reason, said) in [
        (" 潮 is", "stop", "instead of"),
        (" 潮", "length", "instead of"),
        ("潮 is high.", "stop", "instead of"),
        (" 潮 was high.", "stop", "instead of"),
        ("A tide 潮 is high.", "stop", "repeats what it was given"),
    ] {
        check(&rest(text, reason), Finding::Problem, said);
    }
    let reasons = vllm("x", &[], "").replace("\"content\"", "\"reasoning_content\"");
    let judged = reply(&[reasons, vllm(" 潮 is high.", &[], "stop")]);
    check(
        &went_on_by_text(&whole, &cut, &judged),
        Finding::Problem,
        "else than text",
    );
}

#[test]
fn a_template_keeps_an_answer_behind_the_same_question() {
    let question = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
    for (rendered, finding, said) in [
        ("a word ", Finding::Ok, "as it is"),
        ("a word", Finding::Problem, "renders \"a word \" as"),
        ("a word <|im_end|>\n", Finding::Problem, "_end|>"),
    ] {
        let judged = keeps(question, "a word ", &format!("{question}{rendered}"));
        check(&judged, finding, said);
    }
    let judged = keeps(
        &format!("{question}<think>\n"),
        "a word",
        &format!("{question}a word"),
    );
    check(
        &judged,
        Finding::Problem,
        "\"\" ahead of an unfinished answer, and \"<think>\\n\" ahead",
    );
    check(&keeps(question, "a word", ""), Finding::Problem, "as \"\"");
}

#[test]
fn tokens_come_back_or_not() {
    check(&comes_back(&[1, 2], &[1, 2]), Finding::Ok, "2 ids");
    check(
        &comes_back(&[1, 2], &[1, 3]),
        Finding::Problem,
        "from id 2 on",
    );
    check(&comes_back(&[1, 2], &[1]), Finding::Problem, "from id 2 on");
}

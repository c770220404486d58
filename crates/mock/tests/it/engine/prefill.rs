//! Going on by text is exact where its tokens are those that were generated, and nowhere else.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Engine};

use super::{Answer, TEXT, answer, chat, chat_with, flags, request, script};

/// The text up to each chunk, from the first on.
fn cuts(engine: Engine) -> Vec<String> {
    let body = chat(&json!({"return_token_ids": false}));
    let whole = answer(&script(engine), Dialect::OpenAiChat, &body);
    let mut text = String::new();
    let mut cuts = Vec::new();
    for (more, _) in &whole.chunks {
        text.push_str(more);
        if !more.is_empty() && text != TEXT {
            cuts.push(text.clone());
        }
    }
    cuts
}

/// Where the tokeniser looks ahead: two line ends are one token here, and were two before the word that followed.
fn looks_ahead(prefix: &str) -> bool {
    prefix.ends_with("\n\n")
}

/// Where to go on from when the last word is left out, too.
fn word_border(prefix: &str) -> &str {
    let words = prefix.trim_end();
    let last = words.rfind(char::is_whitespace).unwrap_or(0);
    words[..last].trim_end()
}

type Way = fn(&str) -> (Dialect, Value);

/// The ways to give an engine a text to go on with.
fn ways(engine: Engine) -> Vec<Way> {
    let flagged = |prefix: &str| {
        let mut body = chat_with(prefix, &flags());
        body["return_token_ids"] = json!(false);
        (Dialect::OpenAiChat, body)
    };
    let completion = |prefix: &str| {
        let rendered = "<|im_start|>user\nWhy is it salty?<|im_end|>\n<|im_start|>assistant\n";
        let body = request(&json!({"prompt": format!("{rendered}{prefix}")}));
        (Dialect::OpenAiCompletions, body)
    };
    let plain = |prefix: &str| {
        (
            Dialect::OpenAiChat,
            chat_with(prefix, &json!({"return_token_ids": false})),
        )
    };
    match engine {
        Engine::Vllm | Engine::Sglang => vec![flagged, completion],
        Engine::LlamaCpp => vec![flagged, completion, plain],
        Engine::Anthropic => Vec::new(),
    }
}

#[test]
fn a_text_is_gone_on_with_exactly_but_behind_blank_lines() {
    for engine in Engine::OPENAI {
        let (mut exact, mut strays) = (0, 0);
        for way in ways(engine) {
            for prefix in cuts(engine) {
                let (dialect, body) = way(&prefix);
                let rest = answer(&script(engine), dialect, &body).text();
                let same = prefix.clone() + &rest == TEXT;
                assert_eq!(
                    same,
                    !looks_ahead(&prefix),
                    "{engine} behind {prefix:?}: {rest:?}"
                );
                if same {
                    exact += 1;
                } else {
                    assert!(rest.starts_with(' '), "a stray blank: {rest:?}");
                    strays += 1;
                }
            }
        }
        assert!(exact > 50 && strays > 5, "{engine}: {exact} {strays}");
    }
}

#[test]
fn behind_the_word_before_it_is_always_exact() {
    for engine in Engine::OPENAI {
        for way in ways(engine) {
            for prefix in cuts(engine) {
                let kept = word_border(&prefix);
                if kept.is_empty() {
                    continue;
                }
                let (dialect, body) = way(kept);
                let rest = answer(&script(engine), dialect, &body);
                assert_eq!(
                    kept.to_owned() + &rest.text(),
                    TEXT,
                    "{engine} behind {kept:?}"
                );
            }
        }
    }
}

#[test]
fn without_the_flags_the_answer_begins_anew() {
    for engine in [Engine::Vllm, Engine::Sglang] {
        let body = chat_with("The sea", &json!({"return_token_ids": false}));
        let again = answer(&script(engine), Dialect::OpenAiChat, &body);
        assert_eq!(again.text(), TEXT, "{engine}");
    }
}

#[test]
fn an_empty_answer_makes_llama_cpp_write_its_header() {
    let body = chat_with("", &flags());
    let odd = answer(&script(Engine::LlamaCpp), Dialect::OpenAiChat, &body);
    assert_eq!(odd.text(), format!("assistant\n{TEXT}"));
}

#[test]
fn counts_are_those_of_a_request_of_its_own() {
    let script = script(Engine::Vllm);
    let whole = answer(&script, Dialect::OpenAiChat, &chat(&json!({})));
    let body = chat_with("The sea", &flags());
    let rest = answer(&script, Dialect::OpenAiChat, &body);
    let prompt = |answer: &Answer| answer.usage["prompt_tokens"].as_u64().unwrap();
    assert_eq!(prompt(&rest), prompt(&whole) + 2);
    assert_eq!(rest.completion_tokens(), whole.completion_tokens() - 2);
}

//! Streams to the byte, member by member as the real engines were seen to write them.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Engine, Script};

use super::{ask, chat, request};

const CHAT: Dialect = Dialect::OpenAiChat;
const COMPLETIONS: Dialect = Dialect::OpenAiCompletions;

/// The data of each event, with `ID` for the id, `WHEN` for the time and `PROMPT` for the ids of the prompt.
fn data(engine: Engine, text: &str, dialect: Dialect, body: &Value) -> Vec<String> {
    let script = Script::text(text).engine(engine).id("ID");
    let wire = String::from_utf8(script.wire(&ask(dialect, body))).unwrap();
    wire.split_terminator("\n\n")
        .map(|event| {
            let data = event.strip_prefix("data: ").unwrap();
            let data = data.replace("1700000000", "WHEN");
            match data.split_once(r#""prompt_token_ids":["#) {
                Some((before, after)) => {
                    let after = after.split_once(']').unwrap().1;
                    format!(r#"{before}"prompt_token_ids":PROMPT{after}"#)
                }
                None => data,
            }
        })
        .collect()
}

fn vllm(object: &str, choices: &str, more: &str) -> String {
    format!(
        r#"{{"id":"ID","object":"{object}","created":WHEN,"model":"m","choices":[{choices}]{more}}}"#
    )
}

const FINGERPRINT: &str = r#","system_fingerprint":"vllm-0.32.0-mock""#;

#[test]
fn vllm_chat_with_ids_and_counts() {
    let body = chat(&json!({}));
    let prompt = 16;
    let chunk = |choice: &str, count: usize, more: &str| {
        let usage = format!(
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{count},"completion_tokens_details":null}}{more}"#,
            prompt + count
        );
        vllm(
            "chat.completion.chunk",
            &format!(r#"{{"index":0,"delta":{choice}}}"#),
            &usage,
        )
    };
    let text = |text: &str, id: u32, count| {
        let delta = format!(
            r#"{{"content":"{text}"}},"logprobs":null,"finish_reason":null,"token_ids":[{id}]"#
        );
        chunk(&delta, count, "")
    };
    let expected = [
        chunk(
            r#"{"role":"assistant","content":""},"logprobs":null,"finish_reason":null"#,
            0,
            r#","prompt_token_ids":PROMPT,"prompt_text":null"#,
        ),
        text("a", 225, 1),
        // é is two tokens.
        text("", 323, 2),
        text("é", 297, 3),
        chunk(
            r#"{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":[2]"#,
            4,
            "",
        ),
        vllm(
            "chat.completion.chunk",
            "",
            &format!(
                r#","usage":{{"prompt_tokens":{prompt},"total_tokens":20,"completion_tokens":4}}{FINGERPRINT}"#
            ),
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(Engine::Vllm, "aé", CHAT, &body), expected);
}

#[test]
fn vllm_chat_that_a_limit_cuts() {
    let body = json!({"model": "m", "stream": true, "max_tokens": 1, "messages": []});
    let chunk = |choice: &str, more: &str| {
        vllm(
            "chat.completion.chunk",
            &format!(r#"{{"index":0,"delta":{choice}}}"#),
            more,
        )
    };
    let expected = [
        chunk(
            r#"{"role":"assistant","content":""},"logprobs":null,"finish_reason":null"#,
            r#","prompt_token_ids":null,"prompt_text":null"#,
        ),
        chunk(
            r#"{"content":"a"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null"#,
            FINGERPRINT,
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(Engine::Vllm, "a b", CHAT, &body), expected);
}

#[test]
fn vllm_completions_with_ids_and_counts() {
    let body = request(&json!({"prompt": "Q:", "max_tokens": 2}));
    let chunk = |text: &str, reason: &str, prompt: &str, id: u32, count: usize| {
        let choice = format!(
            r#"{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{reason},"stop_reason":null,"prompt_token_ids":{prompt},"token_ids":[{id}]}}"#
        );
        let usage = format!(
            r#","usage":{{"prompt_tokens":2,"total_tokens":{},"completion_tokens":{count}}}"#,
            2 + count
        );
        vllm("text_completion", &choice, &usage)
    };
    let expected = [
        chunk("a", "null", "PROMPT", 225, 1),
        chunk(" b", r#""length""#, "null", 20_578, 2),
        vllm(
            "text_completion",
            "",
            &format!(
                r#","usage":{{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2}}{FINGERPRINT}"#
            ),
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(Engine::Vllm, "a b c", COMPLETIONS, &body), expected);
}

const TIMINGS: &str = r#""prompt_per_token_ms":1.0,"prompt_per_second":1000.0"#;

fn timings(prompt: usize, count: usize) -> String {
    format!(
        r#","timings":{{"cache_n":0,"prompt_n":{prompt},"prompt_ms":{prompt}.0,{TIMINGS},"predicted_n":{count},"predicted_ms":{}.0,"predicted_per_token_ms":10.0,"predicted_per_second":100.0}}"#,
        count * 10
    )
}

#[test]
fn llama_cpp_chat_with_holes() {
    let body = chat(&json!({"logprobs": true, "timings_per_token": true}));
    let prompt = 16;
    let chunk = |choices: &str, more: &str| {
        format!(
            r#"{{"choices":[{choices}],"created":WHEN,"id":"ID","model":"m","system_fingerprint":"b0-mock","object":"chat.completion.chunk"{more}}}"#
        )
    };
    let text = |text: &str, bytes: &str, id: u32, count| {
        let one = format!(r#""id":{id},"token":"{text}","bytes":[{bytes}],"logprob":0.0"#);
        let choice = format!(
            r#"{{"finish_reason":null,"index":0,"delta":{{"content":"{text}"}},"logprobs":{{"content":[{{{one},"top_logprobs":[{{{one}}}]}}]}}}}"#
        );
        chunk(&choice, &timings(prompt, count))
    };
    let usage = r#","usage":{"completion_tokens":4,"prompt_tokens":16,"total_tokens":20,"prompt_tokens_details":{"cached_tokens":0}}"#;
    let expected = [
        chunk(
            r#"{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}"#,
            "",
        ),
        text("a", "97", 225, 1),
        // The first id of the two is not told, and the count jumps.
        text("é", "195,169", 297, 3),
        chunk(
            r#"{"finish_reason":"stop","index":0,"delta":{}}"#,
            &timings(prompt, 4),
        ),
        chunk("", &format!("{usage}{}", timings(prompt, 4))),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(Engine::LlamaCpp, "aé", CHAT, &body), expected);
}

#[test]
fn llama_cpp_completions_count_in_the_finish() {
    let body = request(&json!({"prompt": "Q:", "max_tokens": 1}));
    let chunk = |choice: &str, usage: &str, more: &str| {
        format!(
            r#"{{"choices":[{choice}],"created":WHEN,"model":"m","system_fingerprint":"b0-mock","object":"text_completion"{usage},"id":"ID"{more}}}"#
        )
    };
    let usage = r#","usage":{"completion_tokens":1,"prompt_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}"#;
    let expected = [
        chunk(
            r#"{"text":"a","index":0,"logprobs":null,"finish_reason":null}"#,
            "",
            "",
        ),
        chunk(
            r#"{"text":"","index":0,"logprobs":null,"finish_reason":"length"}"#,
            usage,
            &timings(2, 1),
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(Engine::LlamaCpp, "a b", COMPLETIONS, &body), expected);
}

#[test]
fn sglang_tells_ids_in_completions_and_ends_chats_apart() {
    let chunk = |object: &str, choice: &str, usage: &str| {
        format!(
            r#"{{"id":"ID","object":"{object}","created":WHEN,"model":"m","choices":[{choice}],"usage":{usage}}}"#
        )
    };
    let body = json!({"model": "m", "stream": true, "prompt": "Q:", "max_tokens": 1, "return_token_ids": true});
    let expected = [
        chunk(
            "text_completion",
            r#"{"index":0,"text":"a","logprobs":null,"finish_reason":"length","matched_stop":null,"token_ids":[225],"prompt_token_ids":PROMPT}"#,
            "null",
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(Engine::Sglang, "a b", COMPLETIONS, &body), expected);

    let body = json!({"model": "m", "stream": true, "messages": []});
    let choice = |role: &str, content: &str, reason: &str, matched: &str| {
        let choice = format!(
            r#"{{"index":0,"delta":{{"role":{role},"content":{content},"reasoning_content":null,"tool_calls":null}},"logprobs":null,"finish_reason":{reason},"matched_stop":{matched}}}"#
        );
        chunk("chat.completion.chunk", &choice, "null")
    };
    let expected = [
        choice(r#""assistant""#, r#""""#, "null", "null"),
        choice("null", r#""a""#, "null", "null"),
        choice("null", "null", r#""stop""#, "2"),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(Engine::Sglang, "a", CHAT, &body), expected);
}

#[test]
fn tools_are_called_behind_the_text() {
    for engine in Engine::OPENAI {
        let script = Script::text("a")
            .engine(engine)
            .call("look", serde_json::Map::new());
        let body = chat(&json!({"return_token_ids": false}));
        let wire = String::from_utf8(script.wire(&ask(CHAT, &body))).unwrap();
        assert!(
            wire.contains(r#""delta":{"tool_calls":[{"index":0,"id":"call-0-0""#),
            "{wire}"
        );
        assert!(wire.contains(r#""finish_reason":"tool_calls""#), "{wire}");
    }
}

#[test]
fn every_choice_says_the_same() {
    for engine in Engine::OPENAI {
        let body = json!({"model": "m", "stream": true, "prompt": "Q:", "n": 2});
        let all = data(engine, "a b", COMPLETIONS, &body);
        for index in [0, 1] {
            let place = format!(r#""index":{index},"#);
            let own = all.iter().filter(|data| data.contains(&place));
            assert_eq!(own.count(), 3, "{engine}");
        }
    }
}

//! Requests that go on, to the byte.

use super::*;

const CHAT: &str = r#"{ "model":"m", "temperature":0.10,"messages": [{"role":"user","content":"\u0071"} ],"stream":true }"#;

fn go_on(so_far: SoFar<'_>, tokens: u64) -> Continuation<'_> {
    Continuation {
        engine: Engine::Vllm,
        so_far,
        tokens,
    }
}

#[track_caller]
fn check(dialect: Dialect, how: Continuation<'_>, first: &str, expected: &str) {
    let body = how.body(dialect, first).expect("it can be continued");
    assert_eq!(body, expected);
    serde_json::from_str::<serde_json::Value>(&body).expect("it is JSON");
}

#[test]
fn text_goes_behind_the_messages() {
    check(
        Dialect::OpenAiChat,
        go_on(SoFar::Text("It \"is\"\n潮"), 3),
        CHAT,
        r#"{ "model":"m", "temperature":0.10,"messages": [{"role":"user","content":"\u0071"} ,{"role":"assistant","content":"It \"is\"\n潮"}],"stream":true ,"continue_final_message":true,"add_generation_prompt":false}"#,
    );
}

#[test]
fn behind_nothing_it_is_the_first_request() {
    check(Dialect::OpenAiChat, go_on(SoFar::Text(""), 0), CHAT, CHAT);
    let prompt = r#"{"prompt":["a","b"],"max_tokens":5}"#;
    check(
        Dialect::OpenAiCompletions,
        go_on(SoFar::Text(""), 0),
        prompt,
        prompt,
    );
}

#[test]
fn members_that_are_there_already_are_changed_in_their_place() {
    check(
        Dialect::OpenAiChat,
        go_on(SoFar::Text("a"), 0),
        r#"{"add_generation_prompt":true,"messages":[{}]}"#,
        r#"{"add_generation_prompt":false,"messages":[{},{"role":"assistant","content":"a"}],"continue_final_message":true}"#,
    );
}

#[test]
fn ids_go_where_the_engine_takes_them() {
    let ids = SoFar::Ids(&[1, 2, 3]);
    check(
        Dialect::OpenAiChat,
        go_on(ids, 1),
        r#"{"messages":[{}]}"#,
        r#"{"messages":[{}],"kv_transfer_params":{"prompt_token_ids":[1,2,3]}}"#,
    );
    let at = |engine| Continuation {
        engine,
        ..go_on(ids, 1)
    };
    check(
        Dialect::OpenAiChat,
        at(Engine::Sglang),
        r#"{"messages":[{}]}"#,
        r#"{"messages":[{}],"input_ids":[1,2,3]}"#,
    );
    let none = at(Engine::LlamaCpp).body(Dialect::OpenAiChat, CHAT);
    assert_eq!(none, Err(NotContinued::Dialect));
    for engine in [Engine::Vllm, Engine::Sglang, Engine::LlamaCpp] {
        check(
            Dialect::OpenAiCompletions,
            at(engine),
            r#"{"prompt":"p","stream":true}"#,
            r#"{"prompt":[1,2,3],"stream":true}"#,
        );
    }
}

#[test]
fn text_goes_behind_the_messages_of_anthropic() {
    const MESSAGE: &str = r#"{"model":"m","max_tokens": 9, "messages": [{"role":"user","content":"\u0071"} ],"stream":true }"#;
    for engine in [Engine::Anthropic, Engine::LlamaCpp] {
        let at = |so_far, tokens| Continuation {
            engine,
            so_far,
            tokens,
        };
        check(
            Dialect::AnthropicMessages,
            at(SoFar::Text("It \"is\""), 3),
            MESSAGE,
            r#"{"model":"m","max_tokens": 6, "messages": [{"role":"user","content":"\u0071"} ,{"role":"assistant","content":"It \"is\""}],"stream":true }"#,
        );
        check(
            Dialect::AnthropicMessages,
            at(SoFar::Text(""), 0),
            MESSAGE,
            MESSAGE,
        );
        let spent = at(SoFar::Text("a"), 9).body(Dialect::AnthropicMessages, MESSAGE);
        assert_eq!(spent, Err(NotContinued::Spent));
        let ids = at(SoFar::Ids(&[1]), 1).body(Dialect::AnthropicMessages, MESSAGE);
        assert_eq!(ids, Err(NotContinued::Dialect));
    }
    // They take it for a turn that is over.
    for engine in [Engine::Vllm, Engine::Sglang] {
        let how = Continuation {
            engine,
            ..go_on(SoFar::Text("a"), 1)
        };
        let body = how.body(Dialect::AnthropicMessages, MESSAGE);
        assert_eq!(body, Err(NotContinued::Dialect), "{engine}");
    }
    let chat = Continuation {
        engine: Engine::Anthropic,
        ..go_on(SoFar::Text("a"), 1)
    };
    assert_eq!(
        chat.body(Dialect::OpenAiChat, CHAT),
        Err(NotContinued::Dialect)
    );
}

#[test]
fn text_goes_behind_a_prompt() {
    let how = go_on(SoFar::Text(" is\n"), 1);
    check(
        Dialect::OpenAiCompletions,
        how,
        r#"{"prompt":"\u0061"}"#,
        r#"{"prompt":"a is\n"}"#,
    );
    for first in [r#"{"prompt":[1]}"#, r#"{"prompt":["a"]}"#, "{}"] {
        let body = how.body(Dialect::OpenAiCompletions, first);
        assert!(matches!(body, Err(NotContinued::Missing(_))), "{first}");
    }
}

#[test]
fn limits_are_lowered_by_what_was_shown() {
    let how = go_on(SoFar::Ids(&[1]), 3);
    check(
        Dialect::OpenAiCompletions,
        how,
        r#"{"prompt":"","max_tokens":5,"min_tokens":2,"max_completion_tokens":4}"#,
        r#"{"prompt":[1],"max_tokens":2,"min_tokens":0,"max_completion_tokens":1}"#,
    );
    check(
        Dialect::OpenAiCompletions,
        how,
        r#"{"prompt":"","max_tokens":null}"#,
        r#"{"prompt":[1],"max_tokens":null}"#,
    );
    let spent = how.body(
        Dialect::OpenAiCompletions,
        r#"{"prompt":"","max_tokens":3}"#,
    );
    assert_eq!(spent, Err(NotContinued::Spent));
}

#[test]
fn what_cannot_be_relied_on_is_not_continued() {
    let how = go_on(SoFar::Text("a"), 0);
    for first in [
        "",
        "[]",
        "{",
        r#"{"a":1} x"#,
        r#"{"model":"a","model":"b","messages":[{}]}"#,
    ] {
        assert_eq!(
            how.body(Dialect::OpenAiChat, first),
            Err(NotContinued::NoObject),
            "{first}"
        );
    }
    for first in ["{}", r#"{"messages":[ ]}"#, r#"{"messages":"x"}"#] {
        let body = how.body(Dialect::OpenAiChat, first);
        assert_eq!(body, Err(NotContinued::Missing("messages")), "{first}");
    }
    let other = how.body(Dialect::Gemini, CHAT);
    assert_eq!(other, Err(NotContinued::Dialect));
}

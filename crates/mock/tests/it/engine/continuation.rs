//! Going on by token ids is exact, at every cut.

use serde_json::{Value, json};
use streamweld_mock::{Cut, Dialect, Engine, Faults, Mock, Script};

use super::{Answer, TEXT, answer, ask, chat, chat_with, flags, request, script};
use crate::client::{Client, End};

/// Goes on at every token of an answer, and compares with the whole.
#[track_caller]
fn check(engine: Engine, dialect: Dialect, whole: &Answer, body: impl Fn(&[u64]) -> Value) {
    // Half characters are exact, too, where the engine does not leak.
    let sound = script(engine).faults(Faults {
        leak: Some(false),
        ..Faults::default()
    });
    let all = whole.all_ids();
    let prompt = whole.prompt.as_ref().unwrap().len();
    for cut in prompt..=all.len() {
        let rest = answer(&sound, dialect, &body(&all[..cut]));
        // What was shown: the text of every chunk up to the cut.
        let shown: String = whole
            .chunks
            .iter()
            .filter(|(_, ids)| *ids <= cut - prompt)
            .map(|(text, _)| text.as_str())
            .collect();
        assert_eq!(shown + &rest.text(), TEXT, "{engine} {dialect} at {cut}");
        assert_eq!(rest.finish.as_deref(), Some("stop"));
        assert_eq!(rest.usage["prompt_tokens"], cut);
        let left = all.len() - cut + 1;
        assert_eq!(rest.completion_tokens(), left as u64);
        if rest.prompt.is_some() {
            assert_eq!(rest.prompt.as_deref(), Some(&all[..cut]));
        }
    }
}

#[test]
fn vllm_goes_on_by_ids_in_both_dialects() {
    let whole = answer(
        &script(Engine::Vllm),
        Dialect::OpenAiChat,
        &chat(&json!({})),
    );
    assert_eq!(whole.text(), TEXT);
    assert_eq!(whole.ids.len() as u64, whole.completion_tokens());
    check(Engine::Vllm, Dialect::OpenAiChat, &whole, |ids| {
        chat(&json!({"kv_transfer_params": {"prompt_token_ids": ids}}))
    });
    check(Engine::Vllm, Dialect::OpenAiCompletions, &whole, |ids| {
        request(&json!({"prompt": ids}))
    });
}

#[test]
fn sglang_goes_on_by_ids_in_both_dialects() {
    let completions = Dialect::OpenAiCompletions;
    let body = request(&json!({"prompt": "Why is it salty?"}));
    let whole = answer(&script(Engine::Sglang), completions, &body);
    assert_eq!(whole.text(), TEXT);
    check(Engine::Sglang, completions, &whole, |ids| {
        request(&json!({"prompt": ids}))
    });
    check(Engine::Sglang, Dialect::OpenAiChat, &whole, |ids| {
        chat(&json!({"input_ids": ids, "return_token_ids": false}))
    });
}

#[test]
fn llama_cpp_goes_on_by_ids_that_somebody_else_knows() {
    // Its own have holes.
    let whole = answer(
        &script(Engine::Vllm),
        Dialect::OpenAiChat,
        &chat(&json!({})),
    );
    check(
        Engine::LlamaCpp,
        Dialect::OpenAiCompletions,
        &whole,
        |ids| request(&json!({"prompt": ids})),
    );
}

#[test]
fn ids_that_are_not_asked_for_are_not_told() {
    for engine in Engine::OPENAI {
        for dialect in [Dialect::OpenAiChat, Dialect::OpenAiCompletions] {
            let body = json!({"stream": true, "prompt": "a"});
            let answer = answer(&script(engine), dialect, &body);
            assert_eq!((answer.ids.len(), &answer.prompt), (0, &None), "{engine}");
            assert_eq!(answer.text(), TEXT);
        }
    }
}

#[test]
fn both_limits_are_kept() {
    for engine in Engine::OPENAI {
        let say = |more: Value| {
            let body = request(&json!({"return_token_ids": false, "prompt": "Why?"}));
            let mut body = body.as_object().unwrap().clone();
            body.extend(more.as_object().unwrap().clone());
            let body = Value::Object(body);
            answer(
                &Script::text("a b c").engine(engine),
                Dialect::OpenAiCompletions,
                &body,
            )
        };
        let outcome = |answer: &Answer| {
            let finish = answer.finish.clone().unwrap();
            (answer.text(), finish, answer.completion_tokens())
        };
        let expected =
            |text: &str, finish: &str, count| (text.to_owned(), finish.to_owned(), count);
        assert_eq!(
            outcome(&say(json!({"max_tokens": 2}))),
            expected("a b", "length", 2)
        );
        // The end is a token, too.
        assert_eq!(
            outcome(&say(json!({"max_tokens": 3}))),
            expected("a b c", "length", 3)
        );
        assert_eq!(
            outcome(&say(json!({"max_tokens": 4}))),
            expected("a b c", "stop", 4)
        );
        assert_eq!(
            outcome(&say(json!({"max_completion_tokens": 1}))),
            expected("a", "length", 1)
        );
        assert_eq!(
            outcome(&say(json!({"min_tokens": 5}))),
            expected("a b c so so", "stop", 6)
        );
    }
}

#[test]
fn an_answer_that_is_cut_anywhere_is_as_far_the_same() {
    for engine in Engine::OPENAI {
        let ask = ask(
            Dialect::OpenAiChat,
            &chat(&json!({"return_token_ids": false})),
        );
        let script = Script::text("Sea 水.\n\nha ha").engine(engine);
        let events = script.expected(&ask);
        let whole = script.wire(&ask);
        let mut before = 0;
        for (number, event) in events.iter().enumerate() {
            for bytes in 0..event.len() {
                let cut = script.clone().fin_after((number, bytes));
                assert_eq!(
                    cut.wire(&ask),
                    &whole[..before + bytes],
                    "{engine} {number}+{bytes}"
                );
            }
            before += event.len();
        }
        assert_eq!(before, whole.len());
    }
}

#[tokio::test]
async fn an_answer_without_a_stream_says_the_same() {
    for engine in Engine::OPENAI {
        let mock = Mock::start(script(engine)).await.unwrap();
        let mut client = Client::connect(mock.addr()).await;
        let mut body = chat_with("The sea", &flags());
        body["stream"] = json!(false);
        client.post("/v1/chat/completions", &body.to_string()).await;
        let (status, chat) = client.json().await;
        let message = chat["choices"][0]["message"]["content"].as_str().unwrap();
        let rest = TEXT.strip_prefix("The sea").unwrap();
        // One of them repeats what it was given, but only here.
        let expected = if engine == Engine::LlamaCpp {
            TEXT
        } else {
            rest
        };
        assert_eq!((status, message), (200, expected), "{engine}");
        client
            .post(
                "/v1/completions",
                r#"{"prompt":"Why?","max_tokens":2,"return_token_ids":true}"#,
            )
            .await;
        let choice = client.json().await.1["choices"][0].take();
        assert_eq!(choice["text"], "The sea");
        let ids = choice["token_ids"].as_array().map(Vec::len);
        let prompt = choice["prompt_token_ids"].as_array().map(Vec::len);
        let told = (engine != Engine::LlamaCpp).then_some(2);
        assert_eq!((ids, prompt), (told, told), "{engine}");
    }
}

#[tokio::test]
async fn a_second_mock_goes_on_where_the_first_was_killed() {
    let first = script(Engine::Vllm).gate_after(12, "cut");
    let first = Mock::start(first).await.unwrap();
    let second = Mock::start(script(Engine::Vllm)).await.unwrap();
    let mut client = Client::connect(first.addr()).await;
    let body = chat(&json!({"max_tokens": 100}));
    client.post("/v1/chat/completions", &body.to_string()).await;
    first.gates().wait_arrived("cut", 1).await.unwrap();
    first.kill(Cut::Fin).await;
    let (wire, end) = client.body().await;
    assert_eq!(end, End::Fin);
    let cut = Answer::read(&wire);
    assert_eq!((cut.ids.len(), &cut.finish), (11, &None));

    let mut client = Client::connect(second.addr()).await;
    let ids = cut.all_ids();
    let body = chat(&json!({"kv_transfer_params": {"prompt_token_ids": ids}, "max_tokens": 89}));
    client.post("/v1/chat/completions", &body.to_string()).await;
    let rest = Answer::read(&client.body().await.0);
    assert_eq!(cut.text() + &rest.text(), TEXT);
    assert!(rest.done);

    // What it was asked can be looked at.
    let asked = second.recorder().request(0).unwrap();
    assert_eq!(asked.json()["max_tokens"], 89);
    let asked = asked.ask(Dialect::OpenAiChat);
    assert!(asked.token_ids && asked.continuous_usage);
    assert_eq!(asked.order.transferred_ids.unwrap().len(), ids.len());
}

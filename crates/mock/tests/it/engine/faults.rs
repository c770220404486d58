//! What goes wrong when an engine is told to go on.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Engine, Faults, Mock, Refuse, Script};

use super::{Answer, TEXT, answer, ask, chat, chat_with, flags, script};
use crate::client::Client;

const CHAT: Dialect = Dialect::OpenAiChat;

fn faulty(faults: Faults) -> Script {
    script(Engine::Vllm).faults(faults)
}

fn whole() -> Answer {
    answer(&script(Engine::Vllm), CHAT, &chat(&json!({})))
}

/// A continuation behind so many tokens of the answer.
fn behind(tokens: usize) -> Value {
    let whole = whole();
    let ids = &whole.all_ids()[..whole.prompt.as_ref().unwrap().len() + tokens];
    chat(&json!({"kv_transfer_params": {"prompt_token_ids": ids}}))
}

/// How many tokens there are up to half of the first character that has several.
fn half() -> usize {
    let whole = whole();
    let at = whole
        .chunks
        .iter()
        .position(|(text, _)| text == "海")
        .unwrap();
    whole.chunks[at].1 - 1
}

#[test]
fn a_prompt_that_ends_within_a_character_leaks_all_of_it() {
    let leak = answer(&script(Engine::Vllm), CHAT, &behind(half()));
    let said = TEXT.split_once('海').unwrap().0;
    // As it was seen: without the special tokens.
    let prompt = format!("user\nWhy is it salty?\nassistant\n{said}");
    assert!(
        leak.text().starts_with(&format!("{prompt}海水")),
        "{}",
        leak.text()
    );
    let sound = faulty(Faults {
        leak: Some(false),
        ..Faults::default()
    });
    let rest = answer(&sound, CHAT, &behind(half()));
    assert_eq!(said.to_owned() + &rest.text(), TEXT);
    // At a whole one nothing leaks.
    let rest = answer(&script(Engine::Vllm), CHAT, &behind(half() + 1));
    assert!(rest.text().starts_with('水'));
}

#[test]
fn ids_can_have_holes_and_counts_disagree() {
    let holes = faulty(Faults {
        id_holes: 3,
        ..Faults::default()
    });
    let holes = answer(&holes, CHAT, &chat(&json!({})));
    assert_eq!(holes.text(), TEXT);
    assert!(holes.ids.len() < whole().ids.len());
    let wrong = faulty(Faults {
        miscount: -1,
        ..Faults::default()
    });
    let wrong = answer(&wrong, CHAT, &chat(&json!({})));
    assert_eq!(wrong.completion_tokens() + 1, whole().completion_tokens());
    assert_eq!(wrong.ids, whole().ids);
}

#[test]
fn a_continuation_can_lie_about_its_prompt() {
    let lies = faulty(Faults {
        false_prompt_ids: true,
        ..Faults::default()
    });
    assert_eq!(answer(&lies, CHAT, &chat(&json!({}))), whole());
    let (lie, truth) = (
        answer(&lies, CHAT, &behind(3)),
        answer(&script(Engine::Vllm), CHAT, &behind(3)),
    );
    assert_ne!(lie.prompt, truth.prompt);
    assert_eq!(
        lie.prompt.as_ref().unwrap().len(),
        truth.prompt.as_ref().unwrap().len()
    );
    assert_eq!(lie.text(), truth.text());
}

#[test]
fn a_continuation_can_echo_what_it_was_given() {
    let echo = Faults {
        echo: true,
        ..Faults::default()
    };
    for body in [behind(2), chat_with("The sea", &flags())] {
        let echoed = answer(&faulty(echo.clone()), CHAT, &body);
        assert_eq!(echoed.chunks[1].0, "The sea");
        assert_eq!(echoed.text(), TEXT);
    }
    // The request can ask for it, too.
    let mut body = chat_with("The sea", &flags());
    body["echo"] = json!(true);
    assert_eq!(answer(&script(Engine::Vllm), CHAT, &body).text(), TEXT);
}

#[test]
fn a_template_can_trim_or_be_another() {
    let trims = faulty(Faults {
        trim: true,
        ..Faults::default()
    });
    let rest = answer(&trims, CHAT, &chat_with("The sea is ", &flags()));
    // It goes on behind the word and not behind the blank.
    assert!(rest.text().starts_with(" salt"), "{}", rest.text());
    let other = faulty(Faults {
        other_template: true,
        ..Faults::default()
    });
    let other = answer(&other, CHAT, &chat(&json!({})));
    assert_ne!(other.prompt, whole().prompt);
    assert_eq!(other.text(), TEXT);
}

#[test]
fn another_tokeniser_makes_nothing_of_these_ids() {
    let other = faulty(Faults {
        other_tokens: true,
        ..Faults::default()
    });
    assert_eq!(answer(&other, CHAT, &chat(&json!({}))).text(), TEXT);
    let rest = answer(&other, CHAT, &behind(5));
    let said = whole().chunks[1..6]
        .iter()
        .map(|(text, _)| text.as_str())
        .collect::<String>();
    assert_ne!(said + &rest.text(), TEXT);
}

#[test]
fn a_continuation_can_end_at_once() {
    let ends = faulty(Faults {
        eos_after: Some(1),
        ..Faults::default()
    });
    assert_eq!(answer(&ends, CHAT, &chat(&json!({}))).text(), TEXT);
    let rest = answer(&ends, CHAT, &chat_with("The", &flags()));
    assert_eq!(
        (rest.text(), rest.finish.as_deref()),
        (" sea".to_owned(), Some("stop"))
    );
}

#[test]
fn several_tokens_can_come_in_one_chunk() {
    let pairs = faulty(Faults {
        tokens_per_chunk: 2,
        ..Faults::default()
    });
    let pairs = answer(&pairs, CHAT, &chat(&json!({})));
    assert_eq!((pairs.text(), &pairs.ids), (TEXT.to_owned(), &whole().ids));
    assert_eq!(pairs.chunks[1], ("The sea".to_owned(), 2));
}

async fn status_of(script: Script, body: &Value) -> (u16, Value) {
    let mock = Mock::start(script).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.post("/v1/chat/completions", &body.to_string()).await;
    client.json().await
}

#[tokio::test]
async fn a_continuation_can_be_refused() {
    for status in [400, 404, 500] {
        let refuses = faulty(Faults {
            refuse: Some(Refuse::Status(status)),
            ..Faults::default()
        });
        assert_eq!(answer(&refuses, CHAT, &chat(&json!({}))).text(), TEXT);
        let body = chat_with("The sea", &flags());
        assert!(refuses.expected(&ask(CHAT, &body)).is_empty());
        assert!(refuses.wire(&ask(CHAT, &body)).is_empty());
        let (told, body) = status_of(refuses, &body).await;
        assert_eq!((told, &body["error"]["code"]), (status, &json!(status)));
    }
}

#[test]
fn a_continuation_can_be_taken_for_a_new_turn() {
    let new_turn = faulty(Faults {
        refuse: Some(Refuse::NewTurn),
        ..Faults::default()
    });
    for body in [behind(4), chat_with("The sea", &flags())] {
        assert_eq!(answer(&new_turn, CHAT, &body).text(), TEXT);
    }
}

#[tokio::test]
async fn engines_refuse_what_they_were_seen_to_refuse() {
    let half = json!({"continue_final_message": true});
    for (engine, body, status) in [
        (Engine::Vllm, chat_with("The sea", &half), 400),
        (Engine::LlamaCpp, chat_with("The sea", &half), 400),
        (Engine::Vllm, chat(&json!({"max_tokens": 0})), 400),
        (Engine::Vllm, chat(&json!({"max_tokens": 200_000})), 400),
        (Engine::Sglang, chat(&json!({})), 400),
    ] {
        let (told, error) = status_of(script(engine), &body).await;
        assert_eq!(told, status, "{engine} {error}");
        assert!(error.to_string().contains("\"message\":\""), "{error}");
    }
    // One takes a zero for a one.
    let one = chat(&json!({"max_tokens": 0}));
    let one = answer(&script(Engine::LlamaCpp), CHAT, &one);
    assert_eq!(
        (one.text(), one.finish.as_deref()),
        ("The".to_owned(), Some("length"))
    );
}

#[test]
fn ends_that_are_no_success_have_the_form_of_the_engine() {
    let tail = |script: Script| {
        let body = chat(&json!({"return_token_ids": false, "stream_options": null}));
        let wire = String::from_utf8(script.wire(&ask(CHAT, &body))).unwrap();
        wire.split_terminator("\n\n")
            .skip(3)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let error = |engine| tail(script(engine).end("error_after:3+sentinel".parse().unwrap()));
    let message = r#""message":"the mock engine failed""#;
    assert_eq!(
        error(Engine::Vllm)[0],
        format!(
            r#"data: {{"error":{{"code":500,{message},"param":null,"type":"InternalServerError"}}}}"#
        )
    );
    assert_eq!(
        error(Engine::Sglang)[0],
        format!(
            r#"data: {{"error":{{"code":500,{message},"object":"error","param":null,"type":"InternalServerError"}}}}"#
        )
    );
    assert_eq!(
        error(Engine::LlamaCpp)[0],
        format!(r#"data: {{"error":{{"code":500,{message},"type":"server_error"}}}}"#)
    );
    for engine in Engine::OPENAI {
        assert_eq!(error(engine)[1..], ["data: [DONE]"]);
        let abort = tail(script(engine).abort_after(3));
        assert!(
            abort[0].contains(r#""finish_reason":"abort""#),
            "{}",
            abort[0]
        );
        assert_eq!(abort[1..], ["data: [DONE]"]);
    }
    let counted = chat(&json!({}));
    let abort = script(Engine::Vllm).abort_after(3);
    let abort = answer(&abort, CHAT, &counted);
    assert_eq!((abort.ids.len(), abort.completion_tokens()), (2, 2));
}

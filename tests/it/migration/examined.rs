//! Backends that are examined before one may go on with what another began.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Engine, Faults, Mock, Script};
use streamweld_server::Config;
use streamweld_tests::{Client, End, Several, events};
use streamweld_upstream::fleet;

use super::answer::{CHAT, COMPLETIONS, request};
use super::served::backend;

const TEXT: &str = "Salt comes from rivers, which carry it from the rocks into the sea.";

/// Those that show the most and the least of themselves, and as what they are known.
const ENGINES: [(Engine, fleet::Engine); 2] = [
    (Engine::Vllm, fleet::Engine::Vllm),
    (Engine::LlamaCpp, fleet::Engine::LlamaCpp),
];

/// What is said of one that was examined and is not the same.
const OTHERWISE: &str = "is another model, or renders or tokenises otherwise";

/// An engine with other weights under the same name.
fn another() -> Script {
    Script {
        root: Some("/models/another".to_owned()),
        ..script(Engine::Vllm)
    }
}

/// Examined, not vouched for. The one that was cut does not go on itself: before that, time is up.
fn examined(config: &mut Config) {
    config.migration.vouched.clear();
    config.migration.wait = Duration::from_millis(200);
    let groups = &mut config.migration.groups;
    groups.insert("twins".to_owned(), Policy::Prefill);
}

fn script(engine: Engine) -> Script {
    Script::text(TEXT).engine(engine).model("m")
}

fn faulty(engine: Engine, faults: Faults) -> Script {
    script(engine).faults(faults)
}

fn is_examined(shown: &Value) -> bool {
    !shown["examined"].is_null()
}

/// A server in front of these, which has found out what each is.
async fn started(engine: fleet::Engine, scripts: &[Script]) -> Several {
    started_with(engine, scripts, |_| {}).await
}

async fn started_with(
    engine: fleet::Engine,
    scripts: &[Script],
    change: impl FnOnce(&mut Config) + Send,
) -> Several {
    let several = Several::start(engine, scripts.to_vec(), |config| {
        examined(config);
        change(config);
    })
    .await;
    let admin = &several.replica.admin;
    for name in ["a", "b"] {
        backend(admin, name, is_examined).await;
    }
    several
}

/// Asks `a` or `b`, which says this, for an answer, and cuts it in the middle. Gives the data of its events.
async fn cut(several: &Several, at: usize, says: &Script) -> (Vec<String>, End) {
    let body = json!({"model": "m", "stream": true, "temperature": 0, "user": "reader",
        "messages": [{"role": "user", "content": "q"}]});
    cut_of(several, at, says, CHAT, &body).await
}

/// The same for this request.
async fn cut_of(
    several: &Several,
    at: usize,
    says: &Script,
    path: &str,
    body: &Value,
) -> (Vec<String>, End) {
    let admin = &several.replica.admin;
    let other = ["b", "a"][at];
    let drain = format!("/admin/backends/{other}/drain?timeout=0s");
    assert_eq!(admin.send("POST", &drain, "").await.status, 200);
    let mock = &several.mocks[at];
    mock.gates().close("cut");
    mock.push_script(says.clone().gate_after(5, "cut").rst_after(5));
    let client = &several.replica.client;
    let mut response = client.send("POST", path, &body.to_string()).await;
    let mut shown = response.body.blocks(5).await;
    let undrain = format!("/admin/backends/{other}/undrain");
    assert_eq!(admin.send("POST", &undrain, "").await.status, 200);
    mock.gates().release("cut");
    let (rest, end) = response.body.rest().await;
    shown.extend_from_slice(&rest);
    (events(&shown), end)
}

fn text(shown: &[String]) -> String {
    let chunks = shown
        .iter()
        .filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks
        .filter_map(|chunk| {
            let choice = &chunk["choices"][0];
            let text = choice["delta"]["content"].as_str();
            Some(text.or(choice["text"].as_str())?.to_owned())
        })
        .collect()
}

/// Each goes on for the other.
async fn assert_go_on(several: &Several, scripts: &[Script]) {
    for (at, says) in scripts.iter().enumerate() {
        let (shown, end) = cut(several, at, says).await;
        assert_eq!(end, End::Proper, "{at}: {:?}", shown.last());
        assert_eq!(text(&shown), TEXT, "{at}");
    }
}

/// Neither goes on for the other, and the message says why: of an answer that `a` began, and of one that `b` did.
async fn assert_refused(several: &Several, scripts: &[Script], saw: [&str; 2]) {
    for (at, says) in scripts.iter().enumerate() {
        let (shown, end) = cut(several, at, says).await;
        let last = shown.last().expect("an error");
        assert_eq!(end, End::Fin, "{at}: {last}");
        let error: Value = serde_json::from_str(last).expect("JSON");
        assert_eq!(error["error"]["code"], "migration_refused", "{at}");
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.contains(saw[at]), "{at}: {message}");
        assert!(TEXT.starts_with(&text(&shown)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twins_that_were_examined_go_on_for_one_another() {
    for (engine, known) in ENGINES {
        let scripts = [script(engine), script(engine)];
        assert_go_on(&started(known, &scripts).await, &scripts).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_another_engine_than_was_said_goes_on_with_nothing() {
    let scripts = [script(Engine::LlamaCpp), script(Engine::LlamaCpp)];
    let several = started(fleet::Engine::Vllm, &scripts).await;
    let nobody = "compatibility (nobody knows which engine";
    assert_refused(&several, &scripts, [nobody; 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compatibility_refuses_another_tokeniser_another_template_and_another_model() {
    let tokens = Faults {
        other_tokens: true,
        ..Faults::default()
    };
    let template = Faults {
        other_template: true,
        ..Faults::default()
    };
    for (engine, known) in ENGINES {
        for faults in [&tokens, &template] {
            let scripts = [script(engine), faulty(engine, faults.clone())];
            assert_refused(&started(known, &scripts).await, &scripts, [OTHERWISE; 2]).await;
            // It is not the fault itself: two that have it are alike.
            let scripts = [
                faulty(engine, faults.clone()),
                faulty(engine, faults.clone()),
            ];
            assert_go_on(&started(known, &scripts).await, &scripts).await;
        }
    }
    let scripts = [script(Engine::Vllm), another()];
    let several = started(fleet::Engine::Vllm, &scripts).await;
    assert_refused(&several, &scripts, [OTHERWISE; 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_template_trims_goes_on_with_nothing_by_prefill() {
    let trims = Faults {
        trim: true,
        ..Faults::default()
    };
    let scripts = [
        faulty(Engine::LlamaCpp, trims.clone()),
        faulty(Engine::LlamaCpp, trims),
    ];
    let several = started(fleet::Engine::LlamaCpp, &scripts).await;
    // A word border has no white space that could be trimmed.
    assert_go_on(&several, &scripts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn template_refuses_what_would_be_given_through_it_and_changed() {
    let closes = |engine| {
        let faults = Faults {
            closes: true,
            ..Faults::default()
        };
        [faulty(engine, faults.clone()), faulty(engine, faults)]
    };
    let scripts = closes(Engine::LlamaCpp);
    let several = started(fleet::Engine::LlamaCpp, &scripts).await;
    let saw = ["b", "a"].map(|name| {
        format!("template (the template of {name} changes the end of an unfinished answer;")
    });
    assert_refused(&several, &scripts, [&saw[0], &saw[1]]).await;
    // A completion goes through none.
    let completion = request(COMPLETIONS, &json!({"temperature": 0}));
    for (at, says) in scripts.iter().enumerate() {
        let (shown, end) = cut_of(&several, at, says, COMPLETIONS, &completion).await;
        assert_eq!(
            (end, text(&shown).as_str()),
            (End::Proper, TEXT),
            "{shown:?}"
        );
    }
    // Nor do ids.
    let scripts = closes(Engine::Vllm);
    let several = started(fleet::Engine::Vllm, &scripts).await;
    assert_go_on(&several, &scripts).await;
}

/// What was asked before it was away may be the words of another.
#[tokio::test(flavor = "multi_thread")]
async fn an_examination_during_which_its_backend_was_away_is_not_believed() {
    let was = script(Engine::Vllm);
    let several = started_with(fleet::Engine::Vllm, &[was.clone(), was.clone()], |config| {
        config.fleet.probe_every = Duration::from_millis(50);
    })
    .await;
    let (mock, admin) = (&several.mocks[1], &several.replica.admin);
    let goes = async || {
        mock.set_healthy(false);
        backend(admin, "b", |shown| shown["state"] == "down").await;
    };
    let comes = async || {
        mock.set_healthy(true);
        backend(admin, "b", |shown| shown["state"] == "up").await;
    };
    goes().await;
    let says = Script::answer(200, models_of(was.clone()).await);
    mock.set_script_at("/v1/models", says.head_gate("told"));
    comes().await;
    let asked = mock.gates().wait_arrived("told", 1).await;
    asked.expect("it is asked");
    // Its answer is still awaited, and it comes back as another.
    goes().await;
    mock.set_script(another());
    let says = Script::answer(200, models_of(another()).await);
    mock.set_script_at("/v1/models", says);
    comes().await;
    mock.gates().release("told");
    backend(admin, "b", is_examined).await;
    assert_refused(&several, &[was, another()], [OTHERWISE; 2]).await;
}

/// What an engine with this script answers when it is asked for its models.
async fn models_of(script: Script) -> Value {
    let told = Mock::start(script).await.expect("a port");
    let client = Client::new(told.addr());
    client.get("/v1/models").await.json().await
}

/// It may be another, and nothing that it says, nor what others were found to be before, speaks for it. That holds for what
/// it begins as well.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_back_is_not_trusted_before_it_was_examined_again() {
    for back in [script(Engine::Vllm), another(), script(Engine::LlamaCpp)] {
        let was = script(Engine::Vllm);
        let several = started_with(fleet::Engine::Vllm, &[was.clone(), was.clone()], |config| {
            config.fleet.probe_every = Duration::from_millis(50);
        })
        .await;
        let (mock, admin) = (&several.mocks[1], &several.replica.admin);
        mock.set_healthy(false);
        backend(admin, "b", |shown| {
            shown["state"] == "down" && !is_examined(shown)
        })
        .await;
        // What it is now is not told before the gate.
        let models = models_of(back.clone()).await;
        mock.set_script(back.clone());
        mock.set_script_at("/v1/models", Script::answer(200, models).head_gate("told"));
        mock.set_healthy(true);
        backend(admin, "b", |shown| shown["state"] == "up").await;
        mock.gates()
            .wait_arrived("told", 1)
            .await
            .expect("it is asked");
        let scripts = [was, back.clone()];
        // It is waited for; and of what it has begun nobody knows by whom.
        let saw = [
            "backend_available (",
            "compatibility (whether a has the same model",
        ];
        assert_refused(&several, &scripts, saw).await;

        mock.gates().release("told");
        backend(admin, "b", is_examined).await;
        match (back.engine, back.root) {
            (Some(Engine::Vllm), None) => assert_go_on(&several, &scripts).await,
            (Some(Engine::Vllm), Some(_)) => {
                assert_refused(&several, &scripts, [OTHERWISE; 2]).await;
            }
            _ => {
                let saw = [
                    "compatibility (nobody knows which engine b is",
                    "compatibility (",
                ];
                assert_refused(&several, &scripts, saw).await;
            }
        }
    }
}

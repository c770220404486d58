//! Backends that are examined before one may go on with what another began.

use std::time::Duration;

use serde_json::json;
use streamweld_generation::migration::Policy;
use streamweld_mock::{Cut, Engine, Faults, Script};
use streamweld_server::Config;
use streamweld_tests::{End, Several, events, patience};
use streamweld_upstream::fleet;
use tokio::time::sleep;

const TEXT: &str = "Salt comes from rivers, which carry it from the rocks into the sea.";

/// Examined, not vouched for.
fn examined(config: &mut Config) {
    config.migration.vouched.clear();
    let groups = &mut config.migration.groups;
    groups.insert("twins".to_owned(), Policy::Prefill);
}

fn script(engine: Engine) -> Script {
    Script::text(TEXT).engine(engine).model("m")
}

/// A server in front of these, which has found out what each is.
async fn started(engine: fleet::Engine, scripts: Vec<Script>) -> Several {
    let several = Several::start(engine, scripts, examined).await;
    let examined = async {
        loop {
            let backends = several.replica.admin.get("/admin/backends").await;
            let backends = backends.json().await;
            let mut backends = backends["data"].as_array().expect("a list").iter();
            if backends.all(|backend| !backend["examined"].is_null()) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    patience(examined).await;
    several
}

/// Asks for an answer whose first backend dies in the middle. Gives the text of the last event.
async fn cut(several: &Several) -> (Vec<String>, End) {
    let asked = |several: &Several| -> Vec<usize> {
        let mocks = several.mocks.iter();
        mocks.map(|mock| mock.recorder().count()).collect()
    };
    let before = asked(several);
    let body = json!({"model": "m", "stream": true, "temperature": 0, "user": "reader",
        "messages": [{"role": "user", "content": "q"}]});
    let client = several.replica.client.with(
        "x-mock-script",
        r#"{"marks":[{"after":5,"do":{"gate":"cut"}}]}"#,
    );
    let mut response = client
        .send("POST", "/v1/chat/completions", &body.to_string())
        .await;
    let mut shown = response.body.blocks(5).await;
    let after = asked(several);
    let first = (0..after.len())
        .find(|&mock| after[mock] > before[mock])
        .expect("somebody was asked");
    for mock in &several.mocks {
        mock.gates().release("cut");
    }
    several.mocks[first].cut_connections(Cut::Rst).await;
    let (rest, end) = response.body.rest().await;
    shown.extend_from_slice(&rest);
    (events(&shown), end)
}

fn text(shown: &[String]) -> String {
    let chunks = shown
        .iter()
        .filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok());
    chunks
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn twins_that_were_examined_go_on_for_one_another() {
    for (engine, known) in [
        (Engine::Vllm, fleet::Engine::Vllm),
        (Engine::LlamaCpp, fleet::Engine::LlamaCpp),
    ] {
        let several = started(known, vec![script(engine), script(engine)]).await;
        let (shown, end) = cut(&several).await;
        assert_eq!(end, End::Proper, "{engine}: {:?}", shown.last());
        assert_eq!(text(&shown), TEXT, "{engine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_another_engine_than_was_said_goes_on_with_nothing() {
    let scripts = vec![script(Engine::LlamaCpp), script(Engine::LlamaCpp)];
    let several = started(fleet::Engine::Vllm, scripts).await;
    let (shown, end) = cut(&several).await;
    assert_eq!(end, End::Fin);
    let last = shown.last().expect("an error");
    assert!(
        last.contains("migration_refused") && last.contains("compatibility"),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_template_trims_goes_on_with_nothing_by_prefill() {
    let trimming = || {
        script(Engine::LlamaCpp).faults(Faults {
            trim: true,
            ..Faults::default()
        })
    };
    let several = started(fleet::Engine::LlamaCpp, vec![trimming(), trimming()]).await;
    let (shown, end) = cut(&several).await;
    // A word border has no white space that could be trimmed.
    assert_eq!((text(&shown), end), (TEXT.to_owned(), End::Proper));
}

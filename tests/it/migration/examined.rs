//! Backends that are examined before one may go on with what another began.

use serde_json::json;
use streamweld_generation::migration::Policy;
use streamweld_mock::{Cut, Engine, Faults, Script};
use streamweld_server::Config;
use streamweld_tests::{End, Several, blocks, events};
use streamweld_upstream::fleet;

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

/// Asks for an answer whose first backend dies in the middle. Gives the text of the last event.
async fn cut(several: &Several) -> (Vec<String>, End) {
    let asked = |several: &Several| -> Vec<usize> {
        let mocks = several.mocks.iter();
        mocks.map(|mock| mock.recorder().count()).collect()
    };
    let before = asked(several);
    let body = json!({"model": "m", "stream": true, "temperature": 0, "user": "reader",
        "messages": [{"role": "user", "content": "q"}]});
    let client = several
        .replica
        .client
        .with("x-mock-script", r#"{"marks":[{"after":5,"do":{"gate":"cut"}}]}"#);
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
    let _ = blocks(&shown);
    (events(&shown), end)
}

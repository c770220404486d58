//! What a client can make of the metrics: attack 26.

use std::collections::BTreeSet;

use streamweld_mock::Script;
use streamweld_tests::{End, Harness};
use tokio::task::JoinSet;

/// So many names of models are asked for.
const NAMES: usize = 10_000;
const ABREAST: usize = 16;

/// Every series that there is, and how many lines they are.
async fn series(harness: &Harness) -> BTreeSet<String> {
    let (text, _) = harness.admin.get("/metrics").await.all().await;
    let text = String::from_utf8(text).expect("text");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
        .collect()
}

async fn ask(harness: &Harness, names: std::ops::Range<usize>) {
    let mut asks = JoinSet::new();
    for first in 0..ABREAST {
        let client = harness.client.clone();
        let mine: Vec<_> = names.clone().skip(first).step_by(ABREAST).collect();
        asks.spawn(async move {
            for name in mine {
                let client = client
                    .with("authorization", &format!("Bearer {name}"))
                    .with("user-agent", &format!("agent {name}"));
                let body = format!(r#"{{"model":"model-{name}","stream":true}}"#);
                let path = "/v1/chat/completions";
                let answer = client.send("POST", path, &body).await;
                assert_eq!(answer.status, 200);
                assert_eq!(answer.all().await.1, End::Proper);
            }
        });
    }
    asks.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_26_ten_thousand_models_are_no_series_more() {
    let harness = Harness::start(Script::tokens(1)).await;
    // What there is once everything has happened that happens here.
    ask(&harness, 0..ABREAST).await;
    let before = series(&harness).await;
    ask(&harness, ABREAST..NAMES).await;
    let after = series(&harness).await;
    assert_eq!(after.difference(&before).collect::<Vec<_>>(), [""; 0]);
    for line in &after {
        let told = ["model-", "agent ", "Bearer"]
            .iter()
            .any(|it| line.contains(it));
        assert!(!told, "{line}");
    }
    assert_eq!(harness.mock.recorder().count(), NAMES);
}

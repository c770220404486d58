//! `streamweld doctor`: what it shows, and with which code it ends.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use streamweld_tests::Process;

use self::fake::{Fake, Flaw, Kind};

// The one that the library is tested against.
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "its other tests use all of it; a failed step fails the test"
)]
#[path = "../../crates/upstream/tests/it/examine/fake.rs"]
mod fake;

/// What it writes and the code that it ends with.
async fn doctor(arguments: &[&str]) -> (i32, String) {
    let process = Process::run(&[&["doctor"][..], arguments].concat());
    let (status, output) = process.ended().await;
    (status.code().expect("no signal"), output)
}

async fn report(arguments: &[&str]) -> (i32, Value) {
    let (code, output) = doctor(&[arguments, &["--format=json"]].concat()).await;
    let report = serde_json::from_str(&output);
    (
        code,
        report.unwrap_or_else(|error| panic!("{error}: {output}")),
    )
}

fn check<'a>(checks: &'a Value, name: &str) -> &'a Value {
    let mut all = checks.as_array().expect("a list").iter();
    all.find(|check| check["name"] == name)
        .expect("it is there")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_backend_is_shown_with_evidence_and_remedy() {
    let fake = Fake::start(Kind::LlamaCpp, Flaw::Nothing).await;
    let (code, table) = doctor(&[&fake.url]).await;
    assert_eq!(code, 0, "{table}");
    for said in [
        &fake.url["http://".len()..],
        "chat.prefill            ok       wrote",
        "chat.token_ids          PROBLEM  the backend did not tell",
        "-> allow prefill for its group",
        "messages.prefill        ok       wrote",
        "messages.count          ok       counts",
        "A chat that was cut can go on there, by prefill.",
        "A message that was cut can go on there, by prefill.",
    ] {
        assert!(table.contains(said), "{said:?} is not in {table}");
    }

    let (code, report) = report(&[&fake.url]).await;
    assert_eq!((code, &report["safe"]), (0, &Value::Bool(true)));
    let backend = &report["backends"][0];
    assert_eq!(backend["engine"], "llama_cpp");
    assert_eq!(backend["version"], "b1");
    assert_eq!(backend["methods"]["openai_chat"][0], "prefill");
    let ids = check(&backend["checks"], "chat.token_ids");
    assert_eq!(ids["finding"], "problem");
    assert!(ids["evidence"].is_string() && ids["remedy"].is_string());
    assert_eq!(report["pair"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_at_which_nothing_goes_on_is_3() {
    for (kind, flaw, engine) in [
        (Kind::Vllm, Flaw::Drifts, "vllm"),
        (Kind::Other, Flaw::Nothing, "unknown"),
    ] {
        let fake = Fake::start(kind, flaw).await;
        let (code, report) = report(&[&fake.url, "--engine", engine]).await;
        assert_eq!(
            (code, &report["safe"]),
            (3, &Value::Bool(false)),
            "{kind:?}"
        );
        let (code, table) = doctor(&[&fake.url]).await;
        assert_eq!(code, 3);
        assert!(
            table.contains("A chat that was cut cannot go on there."),
            "{table}"
        );
    }
}

/// Its answers cost money: it need not even be there.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_hosted_service_nothing_is_asked() {
    let fake = Fake::start(Kind::LlamaCpp, Flaw::Nothing).await;
    let (code, table) = doctor(&[&fake.url, "--engine", "anthropic"]).await;
    assert_eq!((code, fake.asked().len()), (3, 0), "{table}");
    for said in [
        "messages.prefill  unknown  models up to Claude 4.5 go on",
        "vouch for it (--vouched)",
        "A message that was cut cannot go on there.",
    ] {
        assert!(table.contains(said), "{said:?} is not in {table}");
    }
    let (_, report) = report(&[&fake.url, "--engine", "anthropic"]).await;
    let methods = &report["backends"][0]["methods"]["anthropic_messages"];
    assert_eq!(methods, &serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_are_compared() {
    let one = Fake::start(Kind::Vllm, Flaw::Nothing).await;
    let twin = Fake::start(Kind::Vllm, Flaw::Nothing).await;
    let (code, found) = report(&[&one.url, &twin.url]).await;
    assert_eq!(
        (code, &found["pair"]["same_model"]["openai_chat"]),
        (0, &"yes".into())
    );
    assert_eq!(found["pair"]["methods"]["openai_chat"][0], "token_ids");
    assert_eq!(
        found["backends"][0]["identity"],
        found["backends"][1]["identity"]
    );

    // Each of them goes on with its own answers, and not with the other's.
    let stranger = Fake::start(Kind::Vllm, Flaw::OtherWeights).await;
    let (code, found) = report(&[&one.url, &stranger.url]).await;
    assert_eq!(
        (code, &found["pair"]["same_model"]["openai_chat"]),
        (3, &"no".into())
    );
    let model = check(&found["pair"]["checks"], "pair.model");
    assert_eq!(model["evidence"], "tide: tide and other");
    let (code, table) = doctor(&[&one.url, &stranger.url]).await;
    assert_eq!(code, 3);
    assert!(
        table.contains("cannot go on from each of them at the other"),
        "{table}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_declared_and_which_model_is_meant_is_checked() {
    let fake = Fake::start(Kind::Vllm, Flaw::Nothing).await;
    let (code, found) = report(&[&fake.url, "--engine=sglang"]).await;
    let engine = check(&found["backends"][0]["checks"], "engine");
    assert_eq!((code, &engine["finding"]), (3, &"problem".into()));
    assert_eq!(found["safe"], false);
    let (code, table) = doctor(&[&fake.url, "--engine=sglang"]).await;
    assert_eq!(code, 3, "{table}");
    for said in [
        "declared as sglang, but it is vllm",
        "-> declare the engine that it is",
        "A chat that was cut cannot go on there.",
    ] {
        assert!(table.contains(said), "{said:?} is not in {table}");
    }
    let (code, found) = report(&[&fake.url, "--engine=vllm"]).await;
    assert_eq!((code, &found["safe"]), (0, &Value::Bool(true)));
    let (_, found) = report(&[&fake.url, "--model=adapter"]).await;
    assert_eq!(found["backends"][0]["model"], "adapter");
    let (code, found) = report(&[&fake.url, "--model=ebb"]).await;
    let model = check(&found["backends"][0]["checks"], "model");
    assert_eq!((code, &model["finding"]), (3, &"problem".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_says_nothing_is_1_and_named() {
    // Port 1 is nobody's.
    let (code, output) = doctor(&["http://127.0.0.1:1"]).await;
    assert_eq!(code, 1, "{output}");
    assert!(
        output.contains("backend 127.0.0.1:1 refused the connection"),
        "{output}"
    );
    let well = Fake::start(Kind::Vllm, Flaw::Nothing).await;
    let (code, output) = doctor(&[&well.url, "http://127.0.0.1:1"]).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("127.0.0.1:1"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_comes_from_a_file_and_is_not_shown() {
    let key = Key::new();
    let path = key.0.to_str().expect("text");
    let fake = Fake::start(Kind::Vllm, Flaw::WantsKey).await;
    let (code, output) = doctor(&[&fake.url]).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("it wants a credential"), "{output}");
    let (code, output) = doctor(&[&fake.url, "--credential-file", path]).await;
    assert_eq!(code, 0, "{output}");
    assert!(!output.contains("k3y"), "{output}");
}

/// A file with the key of the fake, gone with the test.
struct Key(PathBuf);

impl Key {
    fn new() -> Self {
        let name = format!("streamweld-doctor-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "k3y\n").expect("it can be written");
        Self(path)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

//! Keys of the callers and of the proxy, where another backend is to go on.

use std::fs;

use serde_json::json;
use streamweld_mock::Engine;
use streamweld_tests::{Twins, TwinsSetup};
use streamweld_upstream::fleet::{Credential, Family};

use super::answer::{CHAT, request};
use super::served::post;
use super::story::{SHOWN, Told, says};

/// A key of the proxy's own.
fn owned() -> Credential {
    let name = format!("streamweld-migration-key-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::write(&path, "sk-proxy\n").expect("it can be written");
    let owned = Credential::from_file(&path, Family::Openai).expect("a key");
    fs::remove_file(&path).expect("it is there");
    owned
}

/// Two engines of which the proxy has a key for `a`, while `b` is shown what the caller shows. One of them begins an answer to
/// this caller, and is cut.
async fn cut_at(begins: &str, caller: Option<&str>) -> (Twins, Told) {
    let owned = owned();
    let mut twins = TwinsSetup::new(says(Engine::Vllm))
        .specs(move |at, spec| {
            if at == 0 {
                spec.credential = owned.clone();
            }
        })
        .start()
        .await;
    if let Some(caller) = caller {
        let client = &twins.replica.client;
        twins.replica.client = client.with("authorization", caller);
    }
    let other = if begins == "a" { "b" } else { "a" };
    let admin = twins.replica.admin.clone();
    let drained = post(&admin, &format!("/admin/backends/{other}/drain")).await;
    assert_eq!(drained.1["drained"], true);
    twins.next([says(Engine::Vllm).gate_after(SHOWN, "cut").fin_after(SHOWN)]);
    let body = request(CHAT, &json!({}));
    let cut = async {
        twins.attempt(1).await;
        post(&admin, &format!("/admin/backends/{other}/undrain")).await;
        twins.mocks[0].gates().release("cut");
    };
    let (told, ()) = tokio::join!(Told::of(&twins, CHAT, &body), cut);
    (twins, told)
}

/// The key that each attempt was made with.
fn shown(twins: &Twins) -> Vec<Option<String>> {
    let attempts = twins.attempts();
    let keys = attempts
        .iter()
        .map(|request| request.header("authorization"));
    keys.map(|key| key.map(str::to_owned)).collect()
}

fn bearer(key: &str) -> Option<String> {
    Some(format!("Bearer {key}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn credential_refuses_a_backend_that_would_be_shown_none() {
    let (twins, told) = cut_at("a", None).await;
    let saw = told.assert_refused(&["credential"]);
    let said = "b is shown the caller's credential, which is not known here";
    assert!(
        saw[0].starts_with(said) && saw[0].contains("credential-file"),
        "{}",
        saw[0]
    );
    // Nor was it asked with the key of another.
    assert_eq!(shown(&twins), [bearer("sk-proxy")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_backend_that_goes_on_is_shown_the_key_that_is_meant_for_it() {
    for (begins, caller, keys) in [
        ("a", Some("Bearer sk-caller"), ["sk-proxy", "sk-caller"]),
        ("b", Some("Bearer sk-caller"), ["sk-caller", "sk-proxy"]),
        ("b", None, ["", "sk-proxy"]),
    ] {
        let (twins, told) = cut_at(begins, caller).await;
        told.assert_moved("token_ids");
        let keys = keys.map(|key| Some(key).filter(|key| !key.is_empty()).and_then(bearer));
        assert_eq!(shown(&twins), keys, "{begins} {caller:?}");
    }
}

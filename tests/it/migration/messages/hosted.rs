//! Who may go on with a message: engines that were examined, and services for which an operator vouches.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Dialect, Engine, Faults, Script};
use streamweld_tests::{End, Several, Twins, TwinsSetup};
use streamweld_upstream::fleet;

use super::message::{MESSAGES, Message, SHOWN, TEXT, Told, counts, request, says};
use crate::migration::served::{backend, post};

/// Its answers cost money, so it is not examined, and is believed where the operator says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_service_is_asked_for_nothing_and_goes_on_where_it_is_vouched_for() {
    let setup = TwinsSetup::new(says(Engine::Anthropic));
    let twins = setup
        .config(|config| {
            config.migration.vouched.clear();
            config.migration.wait = Duration::from_millis(200);
        })
        .start()
        .await;
    twins.next([says(Engine::Anthropic).fin_after(SHOWN)]);
    let told = Told::of(&twins, &json!({})).await;
    let saw = told.assert_refused(&["compatibility", "template", "seam"]);
    assert!(saw[0].ends_with("or vouch for its group"), "{}", saw[0]);
    assert_eq!(
        twins.mocks[0].recorder().count(),
        1,
        "the request of the app"
    );
}

/// What an operator is told beforehand, and a move that is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_moved_by_an_order_and_a_dry_run_says_so_before() {
    let twins: Twins = TwinsSetup::new(says(Engine::Anthropic)).start().await;
    twins.next([says(Engine::Anthropic).gate_after(SHOWN, "hold")]);
    let client = twins.replica.client.clone();
    let body = request(&json!({})).to_string();
    let mut response = client.send("POST", MESSAGES, &body).await;
    let id = response.id();
    let mut shown = response.body.blocks(SHOWN).await;
    let admin = &twins.replica.admin;
    let migrate = format!("/admin/streams/{id}/migrate");
    let (status, told) = post(admin, &format!("{migrate}?dry_run=true")).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(
        (&told["would_move"], &told["method"]),
        (&json!(true), &json!("prefill"))
    );
    assert_eq!((twins.attempts().len(), counts(&twins).len()), (1, 2));
    let (status, told) = post(admin, &migrate).await;
    assert_eq!(
        (status, &told["method"]),
        (200, &json!("prefill")),
        "{told}"
    );
    let (rest, end) = response.body.rest().await;
    shown.extend(rest);
    let message = Message::of(&shown);
    assert_eq!(
        (end, message.text.as_str(), message.done),
        (End::Proper, TEXT, true)
    );
}

/// A server in front of these, which has found out what each is.
async fn examined(scripts: &[Script]) -> Several {
    let several = Several::start(fleet::Engine::LlamaCpp, scripts.to_vec(), |config| {
        config.migration.vouched.clear();
        config.migration.wait = Duration::from_millis(200);
        config
            .migration
            .groups
            .insert("twins".to_owned(), Policy::Prefill);
    })
    .await;
    for name in ["a", "b"] {
        let is_examined = |shown: &Value| !shown["examined"].is_null();
        backend(&several.replica.admin, name, is_examined).await;
    }
    several
}

/// Asks `a` for a message, and cuts it.
async fn cut(several: &Several, says: &Script) -> (Message, End) {
    let admin = &several.replica.admin;
    assert_eq!(
        admin
            .send("POST", "/admin/backends/b/drain?timeout=0s", "")
            .await
            .status,
        200
    );
    let mock = &several.mocks[0];
    mock.gates().close("cut");
    mock.push_script(says.clone().gate_after(SHOWN, "cut").rst_after(SHOWN));
    let client = &several.replica.client;
    let body = request(&json!({})).to_string();
    let mut response = client
        .send("POST", Dialect::AnthropicMessages.path(), &body)
        .await;
    let mut shown = response.body.blocks(SHOWN).await;
    assert_eq!(
        admin
            .send("POST", "/admin/backends/b/undrain", "")
            .await
            .status,
        200
    );
    mock.gates().release("cut");
    let (rest, end) = response.body.rest().await;
    shown.extend_from_slice(&rest);
    (Message::of(&shown), end)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_examined_engines_go_on_where_they_are_alike() {
    let says = says(Engine::LlamaCpp).model("m");
    let several = examined(&[says.clone(), says.clone()]).await;
    let shown = backend(&several.replica.admin, "a", |_| true).await;
    assert_eq!(shown["examined"]["messages"], json!(["prefill"]));
    let (message, end) = cut(&several, &says).await;
    assert_eq!(
        (end, message.text.as_str(), message.done),
        (End::Proper, TEXT, true)
    );

    let other = says.clone().faults(Faults {
        other_template: true,
        ..Faults::default()
    });
    let several = examined(&[says.clone(), other]).await;
    let (message, end) = cut(&several, &says).await;
    assert_eq!((end, message.done), (End::Fin, false));
    let error = message.error.expect("an error");
    let said = error["message"].as_str().expect("a message");
    assert!(said.contains("compatibility (b is another model"), "{said}");
}

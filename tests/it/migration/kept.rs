//! Requests that are kept for another backend, and how many there may be (protocol.md 8.3, 8.7).

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::Engine;
use streamweld_tests::{End, TwinsSetup, metric, patience};
use tokio::time::sleep;

use super::served::Begun;
use super::story::{SHOWN, TEXT, says};

/// What requests and answers may take together; requests at most half of it.
const TOTAL: u64 = 4 << 20;

/// One of them has a place there, and no second.
const LONG: i64 = 3 << 19;

fn long() -> Value {
    json!({"user": "x".repeat(LONG.try_into().expect("above zero"))})
}

/// What the journal counts.
const COUNTED: &str = "streamweld_journal_bytes";

/// Whether an answer that was cut has become whole; else its request was not there.
async fn went_on(begun: Begun) -> bool {
    let (answer, end) = begun.ended().await;
    let Some(error) = answer.error else {
        assert_eq!((end, answer.text.as_str()), (End::Proper, TEXT));
        return true;
    };
    assert_eq!(error["code"], "migration_refused");
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("request_too_large") && message.contains("`journal-total`"),
        "{message}"
    );
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_kept_count_in_the_journal_and_fill_half_of_it_at_most() {
    let twins = TwinsSetup::new(says(Engine::Vllm))
        .config(|config| config.journal.total = TOTAL)
        .start()
        .await;
    let (client, admin) = (&twins.replica.client, &twins.replica.admin);
    for _ in 0..2 {
        let cut = says(Engine::Vllm).gate_after(SHOWN, "cut").fin_after(SHOWN);
        twins.mocks[0].gates().close("cut");
        twins.next([cut.clone(), cut.clone(), cut]);
        let first = Begun::chat(client, &long(), SHOWN).await;
        assert!(metric(admin, COUNTED).await >= LONG);
        let second = Begun::chat(client, &long(), SHOWN).await;
        let short = Begun::chat(client, &json!({}), SHOWN).await;
        assert!(metric(admin, COUNTED).await < 2 * LONG);
        twins.mocks[0].gates().release("cut");
        assert!(went_on(first).await);
        assert!(!went_on(second).await, "there was no room for it");
        assert!(went_on(short).await);
        // The next round finds the place free.
        let is_free = async {
            while metric(admin, COUNTED).await >= LONG {
                sleep(Duration::from_millis(5)).await;
            }
        };
        patience(is_free).await;
    }
}

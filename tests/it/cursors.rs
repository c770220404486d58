//! What a cursor may look like, and what each that may not is told (protocol.md 3.2, 4.1, 6.3, 11).

mod form;
mod paths;
mod place;

use streamweld_mock::Script;
use streamweld_tests::{CHAT, Client, Harness, Response};

/// A generation of ten events that has ended: its terminal is entry 12.
async fn ended() -> (Harness, String) {
    let harness = Harness::start(Script::tokens(7)).await;
    let response = harness.client.chat().await;
    let id = response.id();
    response.all().await;
    (harness, id)
}

const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";

#[track_caller]
fn expected(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Asks for a generation with this cursor: by the header, by both spellings of the query, and by the same request.
async fn by_each_way(client: &Client, id: &str, cursor: &str) -> Vec<Response> {
    let events = format!("/v1/streams/{id}/events");
    let escaped: String = cursor.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let by_header = client.with("last-event-id", cursor);
    vec![
        by_header.get(&events).await,
        client
            .get(&format!("{events}?last_event_id={escaped}"))
            .await,
        client.get(&format!("{events}?lastEventId={escaped}")).await,
        by_header.send("POST", "/v1/chat/completions", CHAT).await,
    ]
}

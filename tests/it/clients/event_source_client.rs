//! `eventsource-client`: an event source for any request, here the `POST` of a chat itself.
//!
//! It sends the whole request again with the last event ID, which must join the generation and not make another. It comes
//! back after every end, and stops at `204`.

use streamweld_mock::{Dialect, Script};
use streamweld_tests::{CHAT, Harness, blocks};

use super::cuts::{self, CUTS, Places, STREAMS};
use super::scene::{cut_behind, cutting, events_of, expected, first};
use super::seen::{Row, Seen};
use super::told::Told;

const PROGRAM: &str = "event_source_client.mjs";

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cuts_lose_and_double_nothing() {
    let script = cuts::script();
    let harness = Harness::start(script.clone()).await;
    let mut places = Places::new();
    let relays = places.relays(harness.client.addr, CUTS).await;
    let (client, streams) = cuts::run("eventsource-client", &cuts::chats(&relays)).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    cuts::assert_all_exact(&streams, &all, &places);
    assert_eq!(harness.mock.recorder().count(), STREAMS);
    let mut seen = Seen::by("event_source_client::two_hundred_cuts_lose_and_double_nothing");
    seen.row(&Row::new(
        &client,
        "`POST`s of 40 chats with an `Idempotency-Key`, 200 cuts at random bytes",
        "every event once; a `204` at the end of each, then closed; the backend was asked once for each",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_sees_an_error_and_stops() {
    let (twice, once) = tokio::join!(
        error("`POST` of a chat, backend fails", &[], 2),
        error(
            "`POST` of a chat, cut once, then the backend fails",
            &[2500],
            1
        ),
    );
    let mut seen = Seen::by("event_source_client::it_sees_an_error_and_stops");
    seen.row(&twice);
    seen.row(&once);
    seen.check();
}

/// A request without a cursor gets the error and an abort, at which this client comes back, with a cursor, and gets the
/// error with a clean end and an id, with which it is told that there is no more.
async fn error(story: &str, cuts: &[u64], errors: usize) -> Row {
    let script = Script::tokens(60).error_after(40);
    let harness = Harness::start(script.clone()).await;
    let relay = cutting(harness.client.addr, cuts).await;
    let path = Dialect::OpenAiChat.path();
    let told = Told::by(PROGRAM, relay.addr(), &["POST", path, CHAT]).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    assert_eq!(told.good(), all);
    assert_eq!(told.errors(), errors, "{told:?}");
    assert_eq!(told.statuses, [200, 200, 204], "{told:?}");
    assert!(told.resolved, "{told:?}");
    assert_eq!(harness.mock.recorder().count(), 1);
    let times = if errors == 1 { "once" } else { "twice" };
    let saw =
        format!("every event once, then the error {times}; 2 answers and a `204`, then closed");
    Row::new(&told.client, story, saw)
}

/// It takes an id together with the event.
#[tokio::test(flavor = "multi_thread")]
async fn it_loses_nothing_behind_an_id_line() {
    let script = Script::tokens(20);
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.chat().await;
    let path = events_of(&response.id());
    let torn = &blocks(&response.all().await.0)[7];
    let relay = cut_behind(&harness, &format!("GET {path} HTTP/1.1\r\n"), torn).await;
    let told = Told::by(PROGRAM, relay.addr(), &["GET", &path]).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    assert_eq!(told.data(), all);
    assert!(told.resolved, "{told:?}");
    let mut seen = Seen::by("event_source_client::it_loses_nothing_behind_an_id_line");
    let story = "cut between an id line and its blank line";
    seen.row(&Row::new(&told.client, story, "every event once"));
    seen.check();
}

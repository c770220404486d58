//! `@microsoft/fetch-event-source`: any request as an event source, here the `POST` of a chat itself.
//!
//! It sends the whole request again with the last event ID, which must join the generation and not make another. It
//! stops at a clean end, and at nothing else.

use streamweld_mock::{Dialect, FaultRelay, Script};
use streamweld_tests::{CHAT, Harness, blocks};

use super::cuts::{self, CUTS, Places, STREAMS};
use super::program::Program;
use super::scene::{cut_behind, cutting, expected, first};
use super::seen::{Row, Seen};
use super::told::Told;

const PROGRAM: &str = "fetch_event_source.mjs";
const CHAT_PATH: &str = "/v1/chat/completions";

/// Posts a chat as an application would.
async fn post(relay: &FaultRelay) -> Told {
    Told::by(PROGRAM, relay.addr(), &["POST", CHAT_PATH, CHAT]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_resumes_to_the_end_and_stops() {
    let script = Script::tokens(60);
    let harness = Harness::start(script.clone()).await;
    let relay = cutting(harness.client.addr, &[1500, 3000, 4100]).await;
    let told = post(&relay).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    assert_eq!(told.data(), all);
    assert!(told.resolved && told.cursors.len() == 4, "{told:?}");
    assert!(told.cursors[1..].iter().all(Option::is_some), "{told:?}");
    assert_eq!(harness.mock.recorder().count(), 1);
    let mut seen = Seen::by("fetch_event_source::it_resumes_to_the_end_and_stops");
    let saw = "every event once; 4 answers, then resolved; the backend was asked once";
    seen.row(&Row::new(
        &told.client,
        "`POST` of a chat, connection cut 3 times",
        saw,
    ));
    seen.check();
}

/// But for the one place where it loses an event by itself, which a cut in two hundred hardly hits.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cuts_lose_nothing_but_behind_an_id_line() {
    let script = cuts::script();
    let harness = Harness::start(script.clone()).await;
    let mut places = Places::new();
    let relays = places.relays(harness.client.addr, CUTS).await;
    let chats = cuts::chats(&relays);
    let (client, streams) = cuts::run("@microsoft/fetch-event-source", &chats).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    let mut lost = 0;
    for stream in &streams {
        let torn = stream.torn();
        let numbered = all.iter().enumerate();
        let whole: Vec<&String> = numbered
            .filter_map(|(at, data)| (!torn.contains(&at)).then_some(data))
            .collect();
        assert_eq!(stream.data(), whole, "{places:?}: {stream:?}");
        assert_eq!(stream.cursors.len(), CUTS + 1, "{places:?}: {stream:?}");
        lost += torn.len();
    }
    // There is one such place in a block, of some 250 bytes.
    assert!(lost <= 10, "{places:?}: {lost} of 200");
    println!("{places:?}: {lost} events lost behind their id lines");
    assert_eq!(streams.len(), STREAMS, "{places:?}");
    assert_eq!(harness.mock.recorder().count(), STREAMS);
    let mut seen =
        Seen::by("fetch_event_source::two_hundred_cuts_lose_nothing_but_behind_an_id_line");
    seen.row(&Row::new(
        &client,
        "`POST`s of 40 chats with an `Idempotency-Key`, 200 cuts at random bytes",
        "every event once, but one whose id line a cut fell right behind; resolved; the backend was asked once for each",
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
    let mut seen = Seen::by("fetch_event_source::it_sees_an_error_and_stops");
    seen.row(&twice);
    seen.row(&once);
    seen.check();
}

/// A request without a cursor gets the error and an abort, at which this client comes back, with a cursor, and gets the
/// error with a clean end, at which it stops.
async fn error(story: &str, cuts: &[u64], errors: usize) -> Row {
    let script = Script::tokens(60).error_after(40);
    let harness = Harness::start(script.clone()).await;
    let relay = cutting(harness.client.addr, cuts).await;
    let told = post(&relay).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    assert_eq!(told.good(), all);
    assert!(told.resolved && told.cursors.len() == 2, "{told:?}");
    assert_eq!(told.errors(), errors, "{told:?}");
    assert_eq!(harness.mock.recorder().count(), 1);
    let times = if errors == 1 { "once" } else { "twice" };
    let saw = format!("every event once, then the error {times}; 2 answers, then resolved");
    Row::new(&told.client, story, saw)
}

/// What it does with a 204 is its own: it takes it for trouble, and comes again.
#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_stop_at_204() {
    let (generic, late) = tokio::join!(generic_error(), late());
    let mut seen = Seen::by("fetch_event_source::it_does_not_stop_at_204");
    for row in [generic].iter().chain(&late) {
        seen.row(row);
    }
    seen.check();
}

/// In a generic stream an error has no form, so that its end can only be told by status.
async fn generic_error() -> Row {
    let script = Script::tokens(60).gate_after(40, "fail").rst_after(40);
    let harness = Harness::start(script.clone()).await;
    let args = ["POST", "/generic", CHAT];
    let to = harness.client.addr;
    let mut program = Program::start_with(PROGRAM, to, &args, &[("LIMIT", "3")]).await;
    for _ in 0..40 {
        program.until("data").await;
    }
    harness.mock.gates().release("fail");
    let told = Told::of(program).await;
    let all = expected(&script, &first(&harness), Dialect::Generic);
    assert_eq!(told.data(), all);
    assert_eq!(told.statuses, [200, 204, 204], "{told:?}");
    assert!(told.endless, "{told:?}");
    let saw = "every event once; then it asks once a second and for ever, and is answered `204`";
    Row::new(
        &told.client,
        "`POST` of a generic stream, backend fails",
        saw,
    )
}

/// So it is for whoever comes back to a whole answer with its last id; and how an application prevents it.
async fn late() -> [Row; 2] {
    let harness = Harness::start(Script::tokens(20)).await;
    let (body, _) = harness.client.chat().await.all().await;
    let last = blocks(&body).pop().expect("a block").id.expect("an id");
    let come_back = async |more| {
        let args = ["POST", CHAT_PATH, CHAT];
        let variables = [("CURSOR", last.as_str()), more];
        Told::of(Program::start_with(PROGRAM, harness.client.addr, &args, &variables).await).await
    };
    let told = come_back(("LIMIT", "2")).await;
    assert_eq!(told.statuses, [204, 204], "{told:?}");
    assert!(told.endless && told.events.is_empty(), "{told:?}");
    let story = "comes back with the last id of a whole answer";
    let saw = "asks once a second and for ever, and is answered `204`";
    let plain = Row::new(&told.client, story, saw);

    let told = come_back(("STOP_AT_204", "yes")).await;
    assert_eq!(told.statuses, [204], "{told:?}");
    assert!(told.resolved, "{told:?}");
    let story = "the same with an `onopen` that aborts at `204`";
    [
        plain,
        Row::new(&told.client, story, "resolved after one `204`"),
    ]
}

/// The id stands in the last line of its block, so that hardly a cut can fall between it and the blank line. When one
/// does, this client has taken the id and not the event.
#[tokio::test(flavor = "multi_thread")]
async fn it_loses_an_event_behind_an_id_line() {
    let script = Script::tokens(20);
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.chat().await;
    let start = format!("{}:1", response.id());
    let torn = &blocks(&response.all().await.0)[7];
    let head =
        format!("POST {CHAT_PATH} HTTP/1.1\r\ncontent-length: 0\r\nlast-event-id: {start}\r\n");
    let relay = cut_behind(&harness, &head, torn).await;
    let args = ["POST", CHAT_PATH, CHAT];
    let cursor = [("CURSOR", start.as_str())];
    let told = Told::of(Program::start_with(PROGRAM, relay.addr(), &args, &cursor).await).await;
    let mut all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    all.retain(|data| Some(data) != torn.data.as_ref());
    assert_eq!(told.data(), all);
    let mut seen = Seen::by("fetch_event_source::it_loses_an_event_behind_an_id_line");
    let story = "cut between an id line and its blank line";
    let saw = "this one event is lost: it takes an id before its event is complete";
    seen.row(&Row::new(&told.client, story, saw));
    seen.check();
}

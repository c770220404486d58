//! The npm package `eventsource`: an `EventSource` as pages have it, here on the resume URL and on durable feeds.
//!
//! It must see every event once and in order, however often the connection is cut, and must stop when the generation is
//! over. It is never told to close: its program ends only when it has nothing left to do.

use streamweld_mock::{Dialect, Script};
use streamweld_tests::{Harness, blocks};

use super::cuts::{self, CUTS, Places, STREAMS};
use super::program::Program;
use super::scene::{
    ANTHROPIC_EVENTS, cut_behind, cutting, events_of, expected, first, left_alone, with_feed,
};
use super::seen::{Row, Seen};
use super::told::{Told, assert_stopped_by_204};

#[tokio::test(flavor = "multi_thread")]
async fn it_resumes_to_the_end_and_stops() {
    let (resume, feed) = tokio::join!(cut_on_the_resume_url(), cut_on_a_feed());
    let mut seen = Seen::by("event_source::it_resumes_to_the_end_and_stops");
    seen.row(&resume);
    seen.row(&feed);
    seen.check();
}

/// It holds no credential: the URL is what lets it read.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cuts_lose_and_double_nothing() {
    let script = cuts::script();
    let harness = cuts::signing(script.clone()).await;
    let mut places = Places::new();
    let relays = places.relays(harness.client.addr, CUTS).await;
    let urls = cuts::urls(&harness, &relays).await;
    let (client, streams) = cuts::run("eventsource", &urls).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    cuts::assert_all_exact(&streams, &all, &places);
    assert_eq!(harness.mock.recorder().count(), STREAMS);
    let mut seen = Seen::by("event_source::two_hundred_cuts_lose_and_double_nothing");
    seen.row(&Row::new(
        &client,
        "signed resume URLs of 40 chats, 200 cuts at random bytes",
        "every event once; a `204` at the end of each, then closed; the backend was asked once for each",
    ));
    seen.check();
}

async fn cut_on_the_resume_url() -> Row {
    let script = Script::tokens(60);
    let harness = Harness::start(script.clone()).await;
    let id = left_alone(&harness, Dialect::OpenAiChat).await;
    let relay = cutting(harness.client.addr, &[1500, 3000, 4100]).await;
    let told = Told::by("event_source.mjs", relay.addr(), &[&events_of(&id)]).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    assert_eq!(told.data(), all);
    assert_stopped_by_204(&told, 5);
    let saw = "every event once; 4 answers and a `204`, then closed";
    Row::new(&told.client, "resume URL, connection cut 3 times", saw)
}

async fn cut_on_a_feed() -> Row {
    let script = Script {
        retry: Some(50),
        ..Script::tokens(200)
    };
    let harness = with_feed(&script).await;
    let relay = cutting(harness.client.addr, &[1500, 3000, 4100, 2000, 2500]).await;
    let told = Told::by("event_source.mjs", relay.addr(), &["/feed"]).await;
    let all = expected(&script, &first(&harness), Dialect::Generic);
    assert_eq!(told.data(), all);
    assert_stopped_by_204(&told, 7);
    assert_eq!(harness.mock.recorder().count(), 1);
    let saw = "every event once; 6 answers and a `204`, then closed; the backend was asked once";
    Row::new(
        &told.client,
        "durable `GET` feed, connection cut 5 times",
        saw,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn it_sees_an_error_once_and_stops() {
    let chat = "resume URL, chat, cut once, backend fails";
    let messages = "resume URL, Messages, cut once, backend fails";
    let (chat, messages, feed) = tokio::join!(
        error_on_the_resume_url(Dialect::OpenAiChat, chat),
        error_on_the_resume_url(Dialect::AnthropicMessages, messages),
        error_on_a_feed(),
    );
    let mut seen = Seen::by("event_source::it_sees_an_error_once_and_stops");
    for row in [chat, messages, feed] {
        seen.row(&row);
    }
    seen.check();
}

async fn error_on_the_resume_url(dialect: Dialect, story: &str) -> Row {
    let script = Script::tokens(60).error_after(40);
    let harness = Harness::start(script.clone()).await;
    let path = events_of(&left_alone(&harness, dialect).await);
    let relay = cutting(harness.client.addr, &[2500]).await;
    let args = [path.as_str()].into_iter().chain(ANTHROPIC_EVENTS);
    let args: Vec<&str> = args.collect();
    let told = Told::by("event_source.mjs", relay.addr(), &args).await;
    assert_eq!(told.good(), expected(&script, &first(&harness), dialect));
    assert_stopped_by_204(&told, 3);
    assert_eq!(told.errors(), 1, "{told:?}");
    let saw = "every event once, then the error once; 2 answers and a `204`, then closed";
    Row::new(&told.client, story, saw)
}

/// There an error has no form: what is over is over.
async fn error_on_a_feed() -> Row {
    let script = Script {
        retry: Some(50),
        ..Script::tokens(60)
    };
    let script = script.gate_after(40, "fail").rst_after(40);
    let harness = with_feed(&script).await;
    let mut program = Program::start("event_source.mjs", harness.client.addr, &["/feed"]).await;
    for _ in 0..40 {
        program.until("data").await;
    }
    harness.mock.gates().release("fail");
    let told = Told::of(program).await;
    let all = expected(&script, &first(&harness), Dialect::Generic);
    assert_eq!(told.data(), all);
    assert_stopped_by_204(&told, 2);
    assert_eq!(harness.mock.recorder().count(), 1);
    let saw = "every event once, no error event; an answer and a `204`, then closed";
    Row::new(&told.client, "durable `GET` feed, backend fails", saw)
}

/// It takes an id together with the event, so that nothing is lost where the two are torn apart.
#[tokio::test(flavor = "multi_thread")]
async fn it_loses_nothing_behind_an_id_line() {
    let script = Script::tokens(20);
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.chat().await;
    let path = events_of(&response.id());
    let torn = &blocks(&response.all().await.0)[7];
    let relay = cut_behind(&harness, &format!("GET {path} HTTP/1.1\r\n"), torn).await;
    let told = Told::by("event_source.mjs", relay.addr(), &[&path]).await;
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    assert_eq!(told.data(), all);
    assert_stopped_by_204(&told, 3);
    let mut seen = Seen::by("event_source::it_loses_nothing_behind_an_id_line");
    let story = "cut between an id line and its blank line";
    seen.row(&Row::new(&told.client, story, "every event once"));
    seen.check();
}

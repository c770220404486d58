//! Every fault, at its exact place.

use streamweld_mock::{Abort, Ask, Dialect, End as Ends, ErrorEvent, Mock, Outcome, Script};

use crate::client::{Client, End};

const CHAT: Dialect = Dialect::OpenAiChat;

/// Plays the script to a client; body, end, and how the mock saw it.
async fn play(script: &Script) -> (Vec<u8>, End, Outcome) {
    let mock = Mock::start(script.clone()).await.unwrap();
    let mut client = Client::stream_chat(mock.addr()).await;
    let (body, end) = client.body().await;
    let ending = mock.recorder().wait_closed(0).await.unwrap();
    (body, end, ending.outcome)
}

/// What the mock writes to the client of these tests.
fn ask() -> Ask {
    Ask {
        model: "m".to_owned(),
        ..Ask::stream(CHAT)
    }
}

/// Checks the wire bytes against `tail` appended to the first `events` good events.
#[track_caller]
fn check_body(script: &Script, body: &[u8], events: usize, tail: &str) {
    let good = Script {
        end: Ends::Done,
        marks: Vec::new(),
        ..script.clone()
    }
    .expected(&ask());
    let expected = [good[..events].concat(), tail.as_bytes().to_vec()].concat();
    assert_eq!(
        String::from_utf8_lossy(body),
        String::from_utf8_lossy(&expected)
    );
}

async fn check(script: Script, events: usize, tail: &str, end: End, outcome: Outcome) {
    let (body, ended, seen) = play(&script).await;
    check_body(&script, &body, events, tail);
    assert_eq!((ended, seen), (end, outcome));
    assert_eq!(script.expected(&ask()).len(), events);
    assert_eq!(script.wire(&ask()), body);
}

#[tokio::test]
async fn cut_with_fin_after_every_event() {
    for events in 0..7 {
        check(
            Script::tokens(4).fin_after(events),
            events,
            "",
            End::Fin,
            Outcome::Cut,
        )
        .await;
    }
}

#[tokio::test]
async fn cut_with_fin_inside_an_event() {
    check(
        Script::tokens(4).fin_after((2, 9)),
        2,
        "data: {\"i",
        End::Fin,
        Outcome::Cut,
    )
    .await;
}

#[tokio::test]
async fn cut_with_reset_after_a_gate() {
    let script = Script::tokens(4).gate_after(2, "read").rst_after((2, 3));
    let mock = Mock::start(script.clone()).await.unwrap();
    let mut client = Client::stream_chat(mock.addr()).await;
    client.head().await;
    let chunks = [client.chunk().await.unwrap(), client.chunk().await.unwrap()];
    check_body(&script, &chunks.concat(), 2, "");
    mock.gates().release("read");
    let (_, end) = client.chunks().await;
    assert_eq!(end, End::Rst);
    assert_eq!(
        mock.recorder().wait_closed(0).await.unwrap().outcome,
        Outcome::Cut
    );
}

#[tokio::test]
async fn a_clean_end_in_the_middle() {
    check(
        Script::tokens(4).clean_after(3),
        3,
        "",
        End::Clean,
        Outcome::Finished,
    )
    .await;
    check(
        Script::tokens(4).clean_after((3, 4)),
        3,
        "data",
        End::Clean,
        Outcome::Finished,
    )
    .await;
}

#[tokio::test]
async fn ends_that_lack_a_part() {
    // Role, four texts, finish, sentinel.
    let script = |end| Script::tokens(4).end(end);
    check(script(Ends::Done), 7, "", End::Clean, Outcome::Finished).await;
    check(
        script(Ends::NoSentinel),
        6,
        "",
        End::Clean,
        Outcome::Finished,
    )
    .await;
    check(script(Ends::NoFinish), 5, "", End::Clean, Outcome::Finished).await;
    check(
        script(Ends::TornLast(1)),
        6,
        "data: [DONE]\n",
        End::Clean,
        Outcome::Finished,
    )
    .await;
    check(
        script(Ends::TornLast(9)),
        6,
        "data:",
        End::Clean,
        Outcome::Finished,
    )
    .await;
    let (body, ..) = play(&script(Ends::SentinelOnly)).await;
    check_body(&script(Ends::SentinelOnly), &body, 5, "data: [DONE]\n\n");
}

#[tokio::test]
async fn an_error_event_with_and_without_a_sentinel() {
    let error = "data: {\"error\":{\"code\":500,\"message\":\"the mock engine failed\",\"param\":null,\"type\":\"InternalServerError\"}}\n\n";
    check(
        Script::tokens(4).error_after(2),
        2,
        error,
        End::Clean,
        Outcome::Finished,
    )
    .await;
    let end = ErrorEvent {
        events: 2,
        sentinel: true,
        ..ErrorEvent::default()
    };
    let tail = format!("{error}data: [DONE]\n\n");
    let script = Script::tokens(4).end(Ends::ErrorAfter(end));
    check(script, 2, &tail, End::Clean, Outcome::Finished).await;
}

#[tokio::test]
async fn an_error_event_of_anthropic_is_named() {
    let ask = Ask::stream(Dialect::AnthropicMessages);
    let wire = String::from_utf8(Script::new().error_after(4).wire(&ask)).unwrap();
    let error =
        r#"{"type":"error","error":{"type":"api_error","message":"the mock engine failed"}}"#;
    assert!(
        wire.ends_with(&format!("event: error\ndata: {error}\n\n")),
        "{wire}"
    );
}

#[tokio::test]
async fn an_aborted_finish() {
    for sentinel in [false, true] {
        let script = Script::tokens(4).end(Ends::AbortAfter(Abort {
            events: 2,
            sentinel,
        }));
        let (body, end, _) = play(&script).await;
        let text = String::from_utf8(body).unwrap();
        assert!(text.contains(r#""finish_reason":"abort""#));
        assert_eq!(text.ends_with("[DONE]\n\n"), sentinel);
        assert_eq!(end, End::Clean);
        assert_eq!(script.expected(&ask()).len(), 2);
    }
}

#[tokio::test]
async fn bad_utf8_stands_alone_and_the_stream_goes_on() {
    let (body, end, _) = play(&Script::tokens(4).bad_utf8_after(2)).await;
    assert!(body.windows(2).any(|pair| pair == b"\xff\xfe"));
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    assert_eq!(end, End::Clean);
}

#[tokio::test]
async fn a_huge_event_in_the_middle() {
    let script = Script::tokens(4).huge_event_after(2, 3 << 20);
    let (body, end, _) = play(&script).await;
    assert_eq!(end, End::Clean);
    assert_eq!(body, script.wire(&ask()));
    assert_eq!(script.expected(&ask()).len(), 8);
    assert!(script.expected(&ask())[2].len() > 3 << 20);
}

#[tokio::test]
async fn a_foreign_block_is_written_as_it_is() {
    let script = Script::tokens(1)
        .block_after(1, ": note\n\n")
        .block_after(2, "data: tool\n\n");
    let (body, ..) = play(&script).await;
    let text = String::from_utf8(body).unwrap();
    assert_eq!(text.matches(": note\n\n").count(), 1);
    let expected = script.expected(&ask());
    assert_eq!(expected[2].as_ref(), b"data: tool\n\n");
    assert_eq!(expected.len(), 5);
}

#[tokio::test]
async fn a_stall_lasts_until_the_client_leaves() {
    for script in [
        Script::tokens(4).stall_after(7),
        Script::tokens(4).end(Ends::SilenceAfterFinish),
    ] {
        let mock = Mock::start(script).await.unwrap();
        let mut client = Client::stream_chat(mock.addr()).await;
        client.head().await;
        for _ in 0..6 {
            client.chunk().await.unwrap();
        }
        assert_eq!(mock.recorder().request(0).unwrap().ending, None);
        drop(client);
        let ending = mock.recorder().wait_closed(0).await.unwrap();
        assert!(matches!(
            ending.outcome,
            Outcome::ClientClosed | Outcome::ClientReset
        ));
    }
}

#[tokio::test]
async fn a_bad_chunk_size() {
    let script = Script::tokens(4).mark(2, streamweld_mock::Deed::BadChunk);
    check(script, 2, "", End::BadChunk, Outcome::Cut).await;
}

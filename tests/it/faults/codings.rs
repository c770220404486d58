//! Content codings that nobody asked for (row 10).

use serde_json::json;
use streamweld_mock::{Dialect, Encoding, Raw, Script};
use streamweld_tests::{End, Harness, Shown, ask, blocks, events, patience, without_ids};

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_gzip_bomb() {
    let script = Script {
        encoding: Encoding::Gzip,
        ..Script::tokens(4)
    }
    .huge_event_after(3, 12 << 20);
    let harness = Harness::start(script).await;
    let shown = Shown::of(&harness, Dialect::OpenAiChat).await;
    let events = blocks(&shown.replay.0).len() - 1;
    assert_eq!(events, 3, "what came before the bomb");
    shown.assert_failed(&blocks(&shown.replay.0)[..events], "encoding_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_codings_nobody_asked_for_are_undone() {
    let script = Script::tokens(4).id("x");
    let harness = Harness::start(script.clone()).await;
    let (expected, _) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    harness.mock.set_script(Script {
        encoding: Encoding::Gzip,
        ..script
    });
    let (gzip, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(without_ids(&blocks(&gzip)), without_ids(&blocks(&expected)));

    let wire = b"data: a\n\ndata: b\n\n";
    for (coding, body) in [("deflate", zlib(wire)), ("deflate", stored(wire))] {
        harness.mock.set_script(coded(coding, &[&body]));
        let (shown, end) = ask(&harness.client, Dialect::Generic).await.all().await;
        assert_eq!(
            (events(&shown), end),
            (vec!["a".into(), "b".into()], End::Proper)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_coding_that_is_corrupt_or_breaks_off_is_an_error() {
    let whole = zlib(b"data: a\n\n");
    let mut corrupt = whole.clone();
    *corrupt.last_mut().expect("a checksum") ^= 1;
    let torn = &whole[..whole.len() - 2];
    for body in [&corrupt, torn] {
        // The event has been read before what is wrong comes.
        let (good, bad) = body.split_at(whole.len() - 4);
        let harness = Harness::start(coded("deflate", &[good, bad])).await;
        let shown = Shown::held(&harness, Dialect::Generic, 1, Some("rest")).await;
        shown.assert_failed(&blocks(b"data: a\n\n"), "encoding_error");
    }
    let harness = Harness::start(coded("gzip", &[b"\x1f\x8bno gzip at all"])).await;
    let shown = Shown::of(&harness, Dialect::Generic).await;
    shown.assert_failed(&[], "encoding_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_coding_nobody_knows_is_a_bad_response() {
    for codings in [
        &["br"][..],
        &["zstd"],
        &["gzip, br"],
        &["compress"],
        &["gzip", "br"],
        &["identity", "gzip"],
    ] {
        let script = codings.iter().fold(Script::tokens(1), |script, coding| {
            script.header("content-encoding", *coding)
        });
        let harness = Harness::start(script).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(
            response.error_code().await,
            (502, "backend_bad_response".to_owned())
        );
        let recorder = harness.mock.recorder();
        patience(recorder.wait_closed(0)).await.expect("is left");
        let list = harness.admin.get("/admin/streams").await.json().await;
        assert_eq!(list["data"], json!([]));
    }
    // `identity` is none.
    let harness = Harness::start(Script::tokens(1).header("content-encoding", "identity")).await;
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(response.all().await.1, End::Proper);
}

/// An event stream with a body in this coding, held at the gate `rest` before each part but the first.
fn coded(coding: &str, parts: &[&[u8]]) -> Script {
    let length = parts.concat().len();
    let mut raw = Raw::new().write(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: {coding}\r\ncontent-length: {length}\r\n\r\n"
    ));
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            raw = raw.gate("rest");
        }
        raw = raw.bytes(*part);
    }
    Script::raw(raw)
}

/// One stored block of raw deflate.
fn stored(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("short");
    let mut out = vec![1];
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(data);
    out
}

/// The same in the zlib format.
fn zlib(data: &[u8]) -> Vec<u8> {
    let (a, b) = data.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    let mut out = vec![0x78, 0x01];
    out.extend_from_slice(&stored(data));
    out.extend_from_slice(&((b << 16) | a).to_be_bytes());
    out
}

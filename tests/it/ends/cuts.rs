//! Cuts at every place, and what cannot be read on.

use std::time::Duration;

use streamweld_mock::{Dialect, Raw, Script};
use streamweld_tests::{Harness, Setup, Shown, blocks};

use super::{reason, shown, whole};

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_after_every_event_is_judged_by_what_came_before() {
    let cut = async |dialect| {
        let harness = Harness::start(whole()).await;
        let count = whole()
            .expected(&streamweld_mock::Ask::stream(dialect))
            .len();
        for rst in [false, true] {
            for k in 0..=count {
                let script = if rst {
                    whole().rst_after(k)
                } else {
                    whole().fin_after(k)
                };
                let script = script.gate_after(k, "cut");
                harness.mock.set_script(script.clone());
                // Held, because a reset may take with it what was sent just before. A stop reason waits for what is
                // behind it.
                let waits = dialect == Dialect::AnthropicMessages && k == count - 1;
                let before = k - usize::from(waits);
                let shown = Shown::held(&harness, dialect, before, Some("cut")).await;
                let events = shown.expected(&harness, &script);
                assert_eq!(events.len(), k);
                // Where the reason is not the sentinel it stands before it.
                let settles = !matches!(
                    dialect,
                    Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Generic
                );
                let ends = !matches!(dialect, Dialect::Gemini | Dialect::Generic);
                if ends && k == count {
                    shown.assert_done(&events, "sentinel", &[reason(dialect)]);
                } else if settles && k == count - 1 {
                    shown.assert_done(&events, "cut", &[reason(dialect)]);
                } else {
                    shown.assert_failed(&events, "truncated");
                }
            }
        }
    };
    for dialect in Dialect::ALL {
        cut(dialect).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_event_is_none() {
    for dialect in Dialect::ALL {
        // Its text may be whole: without the blank line it is no event.
        let one = whole().expected(&streamweld_mock::Ask::stream(dialect))[1].len();
        for bytes in [1, 10, one - 1] {
            let (shown, events) = shown(dialect, whole().clean_after((1, bytes))).await;
            assert_eq!(events.len(), 1);
            match dialect {
                Dialect::Generic => shown.assert_done(&events, "unknown", &[]),
                _ => drop(shown.assert_failed(&events, "truncated")),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_framing_is_a_cut() {
    for dialect in Dialect::ALL {
        let script = whole().mark(2, streamweld_mock::Deed::BadChunk);
        let (shown, events) = shown(dialect, script).await;
        assert_eq!(events.len(), 2);
        shown.assert_failed(&events, "truncated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8_is_never_journaled() {
    for dialect in Dialect::ALL {
        let (shown, events) = shown(dialect, whole().bad_utf8_after(2)).await;
        assert_eq!(events.len(), 2);
        shown.assert_failed(&events, "invalid_utf8");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_over_the_limit_is_never_journaled_nor_read_to_its_end() {
    for dialect in Dialect::ALL {
        let endless = Raw::new()
            .write(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            )
            .write("data: ")
            .repeat("x".repeat(64 << 10), 1024)
            .write("\n\n")
            .fin();
        let harness = Setup::new(Script::raw(endless).dialect(dialect))
            .config(|config| config.generation.max_event = 256 << 10)
            .start()
            .await;
        let shown = Shown::of(&harness, dialect).await;
        shown.assert_failed(&[], "event_too_large");
        let ending = harness
            .mock
            .recorder()
            .wait_closed(0)
            .await
            .expect("is closed");
        // What fits into the buffers of two sockets, and no more.
        assert!(ending.bytes < 32 << 20, "{ending:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_just_the_limit_passes() {
    let event = format!("data: {}\n\n", "x".repeat(1000));
    let limit = event.len();
    for (limit, passes) in [(limit, true), (limit - 1, false)] {
        let raw = Raw::new().stream_head().chunk(event.clone()).last_chunk();
        let harness = Setup::new(Script::raw(raw))
            .config(move |config| config.generation.max_event = limit)
            .start()
            .await;
        let shown = Shown::of(&harness, Dialect::Generic).await;
        if passes {
            shown.assert_done(&blocks(event.as_bytes()), "unknown", &[]);
        } else {
            shown.assert_failed(&[], "event_too_large");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_runs_for_too_long_is_ended() {
    for dialect in Dialect::ALL {
        let script = whole().stall_after(2);
        let harness = Setup::new(script.clone())
            .config(|config| config.generation.max_duration = Duration::from_millis(1500))
            .start()
            .await;
        let shown = Shown::of(&harness, dialect).await;
        shown.assert_failed(&shown.expected(&harness, &script), "max_duration");
        let recorder = harness.mock.recorder();
        recorder.wait_open_connections(0).await.expect("is closed");
    }
}

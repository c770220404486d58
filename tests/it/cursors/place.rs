//! Cursors that name no place, and ids that name no stream.

use streamweld_mock::Script;
use streamweld_tests::{CHAT, Harness};

use super::{UNKNOWN, by_each_way, ended, expected};

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_never_was_is_ahead_or_regressed() {
    let (harness, id) = ended().await;
    for (place, status, code) in [
        ("13", 409, "cursor_ahead"),
        ("18446744073709551615", 409, "cursor_ahead"),
        ("1~2", 409, "journal_regressed"),
        ("12~9223372036854775807", 409, "journal_regressed"),
        ("0~2", 409, "journal_regressed"),
    ] {
        for answer in by_each_way(&harness.client, &id, &format!("{id}:{place}")).await {
            assert_eq!(answer.error_code().await, expected(status, code), "{place}");
        }
    }
    for answer in by_each_way(&harness.client, &id, &format!("{id}:12")).await {
        assert_eq!(answer.status, 204, "the terminal itself is no place ahead");
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_epoch_is_regressed_however_far_ahead() {
    let (harness, id) = ended().await;
    for place in ["13~2", "18446744073709551615~2", "99~9223372036854775807"] {
        for answer in by_each_way(&harness.client, &id, &format!("{id}:{place}")).await {
            let regressed = expected(409, "journal_regressed");
            assert_eq!(answer.error_code().await, regressed, "{place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_ahead_of_a_running_generation_is_ahead() {
    let harness = Harness::start(Script::tokens(7).gate_after(4, "gate")).await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    first.body.blocks(4).await;
    for answer in by_each_way(&harness.client, &id, &format!("{id}:6")).await {
        assert_eq!(answer.error_code().await, expected(409, "cursor_ahead"));
    }
    for answer in by_each_way(&harness.client, &id, &format!("{id}:5")).await {
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_another_generation_than_the_path_is_a_mismatch() {
    let (harness, id) = ended().await;
    let other = harness
        .client
        .with("x-other", "1")
        .send("POST", "/v1/completions", CHAT)
        .await;
    let other_id = other.id();
    other.all().await;
    for cursor in [
        format!("{other_id}:1"),
        format!("{UNKNOWN}:1"),
        format!("{other_id}:99~7"),
    ] {
        let events = format!("/v1/streams/{id}/events");
        for answer in [
            harness
                .client
                .with("last-event-id", &cursor)
                .get(&events)
                .await,
            harness
                .client
                .get(&format!("{events}?last_event_id={cursor}"))
                .await,
            harness
                .client
                .get(&format!("{events}?lastEventId={cursor}"))
                .await,
        ] {
            assert_eq!(
                answer.error_code().await,
                expected(400, "cursor_mismatch"),
                "{cursor}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_existed_is_not_found_before_its_cursor_is_looked_at() {
    let (harness, _) = ended().await;
    for cursor in ["1", "x", "18446744073709551615"] {
        let client = harness.client.with("last-event-id", cursor);
        let answer = client.get(&format!("/v1/streams/{UNKNOWN}/events")).await;
        assert_eq!(
            answer.error_code().await,
            expected(404, "stream_not_found"),
            "{cursor}"
        );
    }
    for answer in [
        harness.client.get(&format!("/v1/streams/{UNKNOWN}")).await,
        harness
            .client
            .get(&format!("/v1/streams/{UNKNOWN}/events"))
            .await,
        harness
            .client
            .send("POST", &format!("/v1/streams/{UNKNOWN}/stop"), "")
            .await,
        harness
            .client
            .with("last-event-id", &format!("{UNKNOWN}:1"))
            .chat()
            .await,
        harness
            .client
            .with("last-event-id", &format!("{UNKNOWN}:1~2"))
            .get("/echo")
            .await,
    ] {
        assert_eq!(answer.error_code().await, expected(404, "stream_not_found"));
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_the_right_length_that_is_none_is_invalid() {
    let (harness, id) = ended().await;
    for wrong in [
        id.to_uppercase(),
        format!("{}i", &id[..25]),
        format!("{}l", &id[..25]),
        format!("{}o", &id[..25]),
        format!("{}u", &id[..25]),
        format!("8{}", &id[1..]),
        format!("{}-", &id[..25]),
        "%30arz3ndektsv4rrffq69g5fa".to_owned(),
        "..........................".to_owned(),
    ] {
        assert_eq!(wrong.len(), 26);
        for answer in [
            harness.client.get(&format!("/v1/streams/{wrong}")).await,
            harness
                .client
                .with("last-event-id", "x")
                .get(&format!("/v1/streams/{wrong}/events"))
                .await,
            harness
                .client
                .send("POST", &format!("/v1/streams/{wrong}/stop"), "")
                .await,
        ] {
            assert_eq!(
                answer.error_code().await,
                expected(400, "invalid_stream_id"),
                "{wrong}"
            );
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

//! Owners that are not dead, orders that come in between, and a log that is not what it was.

use std::time::Duration;

use streamweld_mock::Engine;
use streamweld_tests::{End, blocks, events, patience, state, texts, wait_end};
use tokio::time::sleep;

use super::scene::{LEASE, Scene, TEXT, assert_whole, entries};

/// Row 45 of the faults, with somebody who goes on.
#[tokio::test(flavor = "multi_thread")]
async fn readers_of_an_owner_that_stood_still_are_given_the_rest_where_they_are() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let mut begun = first.begin(&scene, 9).await;
    first.process.signal("STOP");
    wait_end(&second.client, &begun.id).await;
    assert_whole(&second.client, &begun).await;
    first.process.signal("CONT");
    let (rest, end) = patience(begun.response.body.rest()).await;
    assert_eq!(end, End::Proper);
    let whole = [&begun.shown[..], &rest].concat();
    assert_eq!(texts(&whole), TEXT);
    let (all, _) = second.client.events(&begun.id).await.all().await;
    assert_eq!(blocks(&whole), blocks(&all), "as it is everywhere");
    // What it had asked for itself is asked for no more.
    let closed = first.mock.recorder();
    let asked = closed.requests();
    let at = asked.iter().position(|request| request.method == "POST");
    let closed = closed.wait_closed(at.expect("it was asked")).await;
    assert_ne!(
        closed.expect("it closes").outcome,
        streamweld_mock::Outcome::Finished
    );
    assert_whole(&first.client, &begun).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_meets_a_takeover_has_one_end() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let third = scene.sidecar("c").await;
    let mut begun = Vec::new();
    for _ in 0..12 {
        begun.push(first.begin(&scene, 9).await);
    }
    first.die().await;
    let stops = begun.iter().enumerate().map(|(at, begun)| {
        let client = [&second.client, &third.client][at % 2].clone();
        let path = format!("/v1/streams/{}/stop", begun.id);
        // From before anybody judges to behind the end.
        let wait = LEASE * at as u32 / 6;
        async move {
            sleep(wait).await;
            loop {
                let answer = client.send("POST", &path, "").await;
                match answer.status {
                    // It is stopped, or was over.
                    200 | 409 => break,
                    status => assert_eq!(status, 503, "it may be asked again"),
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
    });
    let stops: Vec<_> = stops.map(tokio::spawn).collect();
    for stop in stops {
        patience(stop).await.expect("it is stopped, or was over");
    }
    for begun in &begun {
        let here = wait_end(&second.client, &begun.id).await;
        let there = wait_end(&third.client, &begun.id).await;
        assert_eq!(here["terminal"], there["terminal"]);
        let status = here["status"].as_str().expect("a status");
        assert!(["stopped", "done"].contains(&status), "{here}");
        let (all, _) = second.client.events(&begun.id).await.all().await;
        assert!(all == third.client.events(&begun.id).await.all().await.0);
        assert!(TEXT.starts_with(&texts(&all)), "{}", texts(&all));
        assert_eq!(events(&all).last().map(String::as_str), Some("[DONE]"));
    }
}

/// What was lost was seen under the numbers that others have now.
#[tokio::test(flavor = "multi_thread")]
async fn a_tail_that_was_lost_before_a_takeover_is_recognised() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let begun = first.begin(&scene, 20).await;
    first.process.signal("KILL");
    let log = format!("streamweld:{{{}}}:log", begun.id);
    let records = scene.redis.cli(&["XRANGE", &log, "-", "+"]).await;
    let ends = records
        .lines()
        .filter_map(|line| line.strip_prefix("1-")?.parse().ok());
    let ends: Vec<u64> = ends.collect();
    // As a failover leaves it that the last records had not reached.
    let stays = ends[ends.len() / 2];
    for lost in ends.iter().filter(|end| **end > stays) {
        scene.redis.cli(&["XDEL", &log, &format!("1-{lost}")]).await;
    }
    assert!((2..21).contains(&stays), "{ends:?}");
    let client = &second.client;
    wait_end(client, &begun.id).await;
    assert_eq!(state(client, &begun.id).await["status"], "done");
    let (all, _) = client.events(&begun.id).await.all().await;
    assert_eq!(texts(&all), TEXT);
    let moves = entries(client, &begun.id, "streamweld.migration").await;
    assert_eq!(moves[0]["seq"], stays + 1);
    for block in blocks(&begun.shown) {
        let (seq, id) = (block.seq(), block.id.expect("an id"));
        let back = client.with("last-event-id", &id).events(&begun.id).await;
        if seq > stays {
            let lost = (409, "journal_regressed".to_owned());
            assert_eq!(back.error_code().await, lost, "{id}");
        } else {
            assert_eq!(back.status, 200, "{id}");
        }
    }
}

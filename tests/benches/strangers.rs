//! How long it takes to be told that an id is unknown: one that never was, and one that is another tenant's.
//!
//! Neither is to show by its time which of them it is (docs/security.md). Each line is a place where somebody may ask:
//! the median of either, their difference, and the greatest difference of two medians of the *same* question, in eight
//! divisions of its answers: the noise. Questions come in random order on one connection.
#![allow(
    clippy::print_stdout,
    reason = "a benchmark's answer goes to standard output"
)]

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{Client, Harness, Over, Pair, Wire, question, wait_end};
use tokio::time::Instant;

const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";
const ASKS: usize = 4_000;

#[tokio::main]
async fn main() {
    println!("place | unknown | another's | difference | noise");
    println!("--- | --- | --- | --- | ---");
    let harness = Harness::start(Script::tokens(200)).await;
    let id = made(&harness.client, &harness.client).await;
    measure("in memory", &harness.client, &id).await;
    let pair = Pair::start(Over::Redis, Script::tokens(200)).await;
    let id = made(&pair.one.client, &pair.one.client).await;
    measure("Redis, where it was written", &pair.one.client, &id).await;
    measure("Redis, at another replica", &pair.other.client, &id).await;
    let id = made(&pair.one.client, &pair.other.client).await;
    measure("Redis, where it was read", &pair.other.client, &id).await;
}

/// An answer of another tenant, which has been read there.
async fn made(at: &Client, read: &Client) -> String {
    let tenant = |client: &Client| client.with("authorization", "Bearer another");
    let maker = tenant(at);
    let response = maker
        .send("POST", "/v1/chat/completions", &question())
        .await;
    let id = response.id();
    response.all().await;
    wait_end(&maker, &id).await;
    tenant(read).events(&id).await.all().await;
    id
}

async fn measure(place: &str, client: &Client, id: &str) {
    let stranger = client.with("authorization", "Bearer stranger");
    let request = |id: &str| stranger.request("GET", &format!("/v1/streams/{id}"), "");
    let requests = [request(UNKNOWN), request(id)];
    let mut wire = Wire::open(client, &requests[0]).await;
    wire.until("}}").await;
    let mut times = [Vec::new(), Vec::new()];
    // Any order will do that follows nothing else; this one is the same in each run.
    let mut order = 0x2545_f491_u32;
    while times.iter().any(|it| it.len() < ASKS) {
        order ^= order << 13;
        order ^= order >> 17;
        order ^= order << 5;
        let which = (order >> 16) as usize & 1;
        let begun = Instant::now();
        wire.send(&requests[which]).await;
        let told = wire.until("}}").await;
        let took = begun.elapsed();
        assert!(told.starts_with("HTTP/1.1 404 "), "{told}");
        times[which].push(took);
    }
    let [unknown, other] = times;
    let noise = (0..8).map(|draw| {
        let half = |part: usize| {
            let half = unknown.iter().enumerate();
            let half = half.filter(|(at, _)| (at >> draw) & 1 == part);
            median(half.map(|(_, it)| *it).collect())
        };
        half(0).abs_diff(half(1))
    });
    let noise = noise.max().unwrap_or_default();
    let (unknown, other) = (median(unknown), median(other));
    println!(
        "{place} | {unknown:.1?} | {other:.1?} | {:.1?} | {noise:.1?}",
        unknown.abs_diff(other)
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

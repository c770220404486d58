//! A replica that can reach neither the others nor Redis, and does not know whether it is alone. Row 52 of the faults.

use std::time::{Duration, Instant};

use streamweld_mock::{Cut, Engine, FaultRelay, Outcome};
use streamweld_tests::{Block, End, blocks, metric, patience, texts};

use super::scene::{LEASE, PATH, Scene, TEXT, assert_whole, body, entries};

/// What a busy machine may take beyond what is promised.
const SLACK: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_serves_its_own_and_is_fenced_when_it_is_back() {
    let scene = Scene::new(Engine::Vllm).await;
    let address = scene.redis.address().parse().expect("an address");
    let relay = FaultRelay::start(address).await.expect("a port");
    let through = format!("redis://{}", relay.addr());
    let first = scene.sidecar_at("a", &through).await;
    let second = scene.sidecar("b").await;
    let script = scene.script().gate_after(9, "go").gate_after(14, "never");
    first.mock.push_script(script);
    let mut begun = begun(&first.client, 9).await;
    let mut there = second.client.events(&begun.id).await;
    let mut shown = there.body.blocks(9).await;

    relay.pause();
    let cut = Instant::now();
    first.mock.gates().release("go");
    // Its own readers go on, and are told by what is missing that this is not in the log.
    let more = patience(begun.response.body.blocks(5)).await;
    let is_bare = |block: &Block| block.id.is_none();
    assert!(blocks(&more).iter().all(is_bare), "{:?}", blocks(&more));
    // Elsewhere the first event that is not its own comes a lease later, and not much more.
    shown.extend(patience(there.body.blocks(1)).await);
    let took = cut.elapsed();
    assert!(took > LEASE, "nobody is dead before a lease: {took:?}");
    assert!(took < LEASE * 2 + SLACK, "{took:?}");
    let (rest, end) = patience(there.body.rest()).await;
    shown.extend(rest);
    assert_eq!((end, texts(&shown).as_str()), (End::Proper, TEXT));
    let moves = entries(&second.client, &begun.id, "streamweld.migration").await;
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert_eq!(moves[0]["trigger"], "owner_lost");

    // It is back, and learns whose the answer is.
    relay.cut_connections(Cut::Rst);
    relay.resume();
    let (rest, end) = patience(begun.response.body.rest()).await;
    assert_ne!(end, End::Proper, "it comes back");
    assert_eq!(String::from_utf8_lossy(&rest), "");
    let asked = first.mock.recorder().requests();
    let asked = asked.iter().position(|request| request.method == "POST");
    let closed = first.mock.recorder().wait_closed(asked.expect("one")).await;
    assert_ne!(closed.expect("it closes").outcome, Outcome::Finished);
    for sidecar in [&first, &second] {
        patience(assert_whole(&sidecar.client, &begun)).await;
    }
    let (here, _) = first.client.events(&begun.id).await.all().await;
    assert!(here == shown, "one answer, wherever it is read");
    let fenced = r#"streamweld_append_failures_total{reason="fenced"}"#;
    assert_eq!(metric(&first.admin, fenced).await, 1);
    // It is as good as any other.
    let begun = first.begin(&scene, 9).await;
    first.die().await;
    patience(assert_whole(&second.client, &begun)).await;
}

/// An answer whose first events are read.
async fn begun(client: &streamweld_tests::Client, count: usize) -> super::scene::Begun {
    let mut response = client.send("POST", PATH, &body().to_string()).await;
    let (id, shown) = (response.id(), response.body.blocks(count).await);
    super::scene::Begun {
        id,
        shown,
        response,
    }
}

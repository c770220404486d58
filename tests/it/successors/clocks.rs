//! Replicas whose clocks are an hour apart. Row 49 of the faults.

use streamweld_mock::Engine;
use streamweld_tests::patience;

use super::scene::{Scene, assert_whole, entries};
use crate::machine::clock::Clock;

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn an_answer_is_as_old_as_its_owner_says() {
    // By the clock of whoever goes on it would be over.
    let scene = Scene::new(Engine::Vllm).await.option("--max-duration=10m");
    let mut begun = Vec::new();
    let mut owners = Vec::new();
    for (name, offset) in [("ahead", "+3600"), ("back", "-3600")] {
        let clock = Clock::new(offset);
        let owner = scene.sidecar_with(name, &clock.variables()).await;
        begun.push(owner.begin(&scene, 9).await);
        owners.push((owner, clock));
    }
    let heir = scene.sidecar("heir").await;
    // One is killed, and one hands over.
    let (back, _clock) = owners.pop().expect("two");
    let (ahead, _clock) = owners.pop().expect("two");
    back.die().await;
    ahead.process.signal("TERM");
    let (status, output) = patience(ahead.process.ended()).await;
    assert!(status.success(), "{output}");
    for begun in &begun {
        patience(assert_whole(&heir.client, begun)).await;
        let moves = entries(&heir.client, &begun.id, "streamweld.migration").await;
        assert_eq!(moves.len(), 1, "{moves:?}");
    }
}

//! Backends that get no new attempts.

use streamweld_upstream::fleet::{
    DrainEnd, HealthCheck, Spec, UnavailableReason, UnknownBackend, Wanted,
};

use super::{Streaming, attempt, fleet, spec};
use crate::raw::{client, drain, within};

#[tokio::test]
async fn a_drain_waits_for_the_last_body_and_is_the_same_when_asked_twice() {
    let backend = Streaming::start().await;
    let spec = Spec {
        health: HealthCheck::Off,
        ..backend.spec("a")
    };
    let fleet = fleet(vec![spec]);
    let client = client();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let (permit, response) = attempt(&fleet, &client, "/stream").await;
        streams.push((permit, response.unwrap()));
    }
    let mut first = fleet.drain("a").unwrap();
    let mut second = fleet.drain("a").unwrap();
    assert_eq!((first.left(), second.left()), (3, 3));
    let refused = fleet.pick(&Wanted::default()).unwrap_err();
    assert_eq!(refused.reason(), UnavailableReason::AllDraining);

    backend.finish.send_replace(true);
    let waiting = tokio::spawn(async move { first.ended().await });
    for left in [2, 1, 0] {
        // Whoever waits is given the chance to be wrong.
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        let (permit, mut response) = streams.pop().unwrap();
        assert_eq!(drain(response.body_mut()).await, ("one two".into(), None));
        drop(permit);
        assert_eq!(second.left(), left);
    }
    assert_eq!(within(waiting).await.unwrap(), DrainEnd::Drained);
    assert_eq!(within(second.ended()).await, DrainEnd::Drained);

    fleet.undrain("a").unwrap();
    fleet.undrain("a").unwrap();
    fleet.pick(&Wanted::default()).unwrap();
    assert_eq!(fleet.drain("b").unwrap_err(), UnknownBackend);
    assert_eq!(fleet.undrain("b"), Err(UnknownBackend));
}

#[tokio::test]
async fn who_waits_for_a_drain_is_told_that_it_was_taken_back() {
    let fleet = fleet(vec![Spec {
        health: HealthCheck::Off,
        ..spec("a", "http://engine.invalid")
    }]);
    let _permit = fleet.pick(&Wanted::default()).unwrap();
    let mut waiting = fleet.drain("a").unwrap();
    let waiting = tokio::spawn(async move { waiting.ended().await });
    tokio::task::yield_now().await;
    fleet.undrain("a").unwrap();
    assert_eq!(within(waiting).await.unwrap(), DrainEnd::Undrained);
}

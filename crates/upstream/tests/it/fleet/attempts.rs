//! What attempts show of a backend, and what is shown of them.

use streamweld_upstream::fleet::{DrainEnd, HealthCheck, MemberState, Spec, Wanted};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Streaming, attempt, fleet, shown, spec, until, watched};
use crate::raw::{Raw, client, within};

#[tokio::test]
async fn a_killed_backend_gets_no_second_attempt_while_another_is_there() {
    let backend = Streaming::start().await;
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let killed = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let mut specs = vec![spec("killed", &killed), backend.spec("alive")];
    for spec in &mut specs {
        spec.health = HealthCheck::Off;
    }
    let fleet = fleet(specs);
    let client = client();
    let mut failed = 0;
    for _ in 0..50 {
        let (permit, result) = attempt(&fleet, &client, "/400").await;
        match result {
            Ok(_) => assert_eq!(permit.member().name(), "alive"),
            Err(error) => {
                assert_eq!(error.kind().as_str(), "connect_refused");
                failed += 1;
            }
        }
    }
    assert_eq!(failed, 1);
    let tally = fleet.tally().into_iter();
    let tally: Vec<_> = tally
        .map(|tally| (tally.backend, tally.outcome, tally.count))
        .collect();
    let expected = [
        ("alive".to_owned(), "client_error", 49),
        ("killed".to_owned(), "connect_refused", 1),
    ];
    assert_eq!(tally, expected);
    let quarantined = shown(&fleet, "killed").unwrap();
    assert_eq!(quarantined.state, MemberState::Quarantined);
    let class = quarantined.last_failure.unwrap().class;
    assert_eq!(class.as_str(), "connect_refused");

    // Nobody else is left for this generation: a suspicion is no reason to refuse it.
    let alive = fleet.pick(&Wanted::default()).unwrap().member().id();
    let wanted = Wanted {
        exclude: &[alive],
        ..Wanted::default()
    };
    let last = fleet.pick(&wanted).unwrap();
    assert_eq!(last.member().name(), "killed");
}

#[tokio::test]
async fn server_errors_count_and_client_errors_do_not() {
    let backend = Streaming::start().await;
    let spec = Spec {
        health: HealthCheck::Off,
        ..backend.spec("a")
    };
    let fleet = fleet(vec![spec]);
    let client = client();
    for _ in 0..10 {
        let (_permit, response) = attempt(&fleet, &client, "/400").await;
        assert_eq!(response.unwrap().status(), 400);
    }
    let member = shown(&fleet, "a").unwrap();
    assert_eq!((member.state, member.last_failure), (MemberState::Up, None));
    for expected in [MemberState::Up, MemberState::Up, MemberState::Quarantined] {
        let (_permit, response) = attempt(&fleet, &client, "/500").await;
        assert_eq!(response.unwrap().status(), 500);
        assert_eq!(shown(&fleet, "a").unwrap().state, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn attempts_of_many_threads_are_all_counted() {
    let specs = ["a", "b", "c"].map(|name| Spec {
        health: HealthCheck::Off,
        ..spec(name, &format!("http://{name}.invalid"))
    });
    let fleet = fleet(specs.into());
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let fleet = fleet.clone();
        tasks.spawn(async move {
            let mut held = Vec::new();
            for round in 0..200 {
                held.push(fleet.pick(&Wanted::default()).unwrap());
                if round % 3 == 0 {
                    tokio::task::yield_now().await;
                    held.clear();
                }
            }
            held
        });
    }
    let held: Vec<_> = within(tasks.join_all())
        .await
        .into_iter()
        .flatten()
        .collect();
    let in_flight: usize = fleet.snapshot().iter().map(|member| member.in_flight).sum();
    assert_eq!(in_flight, held.len());
    let mut drains: Vec<_> = ["a", "b", "c"]
        .map(|name| fleet.drain(name).unwrap())
        .into();
    let left: usize = drains.iter().map(|drain| drain.left()).sum();
    assert_eq!(left, held.len());
    drop(held);
    for drain in &mut drains {
        assert_eq!(within(drain.ended()).await, DrainEnd::Drained);
    }
}

#[tokio::test]
async fn what_is_shown_holds_no_address_and_no_credential() {
    let raw = Raw::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let url = format!("http://127.0.0.1:{}/k3y", raw.port);
    let (fleet, _watch) = watched(vec![spec("a", &url)]);
    until(&fleet, "a", MemberState::Up).await;
    let permit = fleet.pick(&Wanted::default()).unwrap();
    let drain = fleet.drain("a").unwrap();
    let refused = fleet.pick(&Wanted::default()).unwrap_err();
    let text = format!(
        "{fleet:?} {permit:?} {:?} {drain:?} {refused:?} {refused} {:?}",
        permit.member(),
        fleet.snapshot()
    );
    for secret in ["k3y", "127.0.0.1", &raw.port.to_string()] {
        assert!(!text.contains(secret), "{text}");
    }
}

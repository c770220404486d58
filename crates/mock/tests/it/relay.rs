//! The fault relay, in front of a mock.

use std::time::Duration;

use streamweld_mock::{Cut, Direction, FaultRelay, Mock, RelayPlan, RelayStep, Script, Writes};

use crate::client::{Client, End};

async fn start(script: Script) -> (Mock, FaultRelay) {
    let mock = Mock::start(script).await.unwrap();
    let relay = FaultRelay::start(mock.addr()).await.unwrap();
    (mock, relay)
}

#[tokio::test]
async fn without_a_plan_everything_passes() {
    let (mock, relay) = start(Script::new()).await;
    let mut client = Client::stream_chat(relay.addr()).await;
    assert_eq!(client.body().await.1, End::Clean);
    assert_eq!((relay.accepted(), relay.open()), (1, 1));
    drop(client);
    relay.wait_open(0).await.unwrap();
    mock.recorder().wait_open_connections(0).await.unwrap();
    assert!(relay.passed(Direction::ToClient) > 1000);
}

#[tokio::test]
async fn a_cut_at_an_exact_byte() {
    for (cut, end) in [(Cut::Fin, End::Fin), (Cut::Rst, End::Rst)] {
        let (mock, relay) = start(Script::new()).await;
        let plan = RelayPlan::new()
            .to_client(RelayStep::Pass(333))
            .to_client(RelayStep::Gate("g".into()));
        relay.push_plan(plan.to_client(RelayStep::Cut(cut)));
        let mut client = Client::stream_chat(relay.addr()).await;
        let first = client.take(333).await.unwrap();
        assert!(first.starts_with(b"HTTP/1.1 200"));
        relay.gates().release("g");
        assert_eq!(client.rest().await, (Vec::new(), end));
        mock.recorder().wait_open_connections(0).await.unwrap();
        assert_eq!(relay.passed(Direction::ToClient), 333);
    }
}

#[tokio::test]
async fn split_discarded_and_flipped_bytes() {
    let (_mock, relay) = start(Script::answer(200, "abcdef")).await;
    let every = Duration::from_micros(10);
    let plan = RelayPlan::new()
        .to_client(RelayStep::Split { bytes: 1, every })
        .to_client(RelayStep::Pass(9))
        .to_client(RelayStep::Discard(3))
        .to_client(RelayStep::Flip(1));
    relay.set_plan(plan);
    let mut client = Client::connect(relay.addr()).await;
    client.post("/x", "").await;
    let got = client.take(14).await.unwrap();
    assert_eq!(got, [b"HTTP/1.1 ".as_slice(), &[!b' '], b"OK\r\n"].concat());
}

#[tokio::test]
async fn a_paused_relay_passes_nothing() {
    let (mock, relay) = start(Script::tokens(200).step_gate("tick")).await;
    let mut client = Client::stream_chat(relay.addr()).await;
    client.head().await;
    relay.pause();
    let before = relay.passed(Direction::ToClient);
    // Each round gives the relay its turn, so that one which did not pause would show it.
    for event in 1..=100 {
        mock.gates().step("tick");
        mock.gates().wait_arrived("tick", event + 1).await.unwrap();
    }
    assert_eq!(relay.passed(Direction::ToClient), before);
    relay.resume();
    for _ in 1..=100 {
        client.chunk().await.unwrap();
    }
}

#[tokio::test]
async fn half_closes_and_black_holes() {
    let (mock, relay) = start(Script::tokens(4).gate_after(1, "g")).await;
    relay.push_plan(RelayPlan::new().to_server(RelayStep::HalfClose));
    let mut client = Client::connect(relay.addr()).await;
    client.get("/feed").await;
    // The mock sees the end before a request; it closes, and the relay passes that on.
    assert_eq!(client.rest().await, (Vec::new(), End::Fin));
    assert_eq!(mock.recorder().count(), 0);

    relay.push_plan(RelayPlan::black_hole());
    let mut client = Client::stream_chat(relay.addr()).await;
    relay.wait_accepted(2).await.unwrap();
    relay.cut_connections(Cut::Fin);
    assert_eq!(client.rest().await, (Vec::new(), End::Fin));
    assert_eq!(mock.recorder().accepted_connections(), 1);

    relay.push_plan(RelayPlan::refuse());
    let mut client = Client::connect(relay.addr()).await;
    assert_eq!(client.fill().await, Err(End::Rst));
}

#[tokio::test]
async fn a_stopped_direction_fills_up_and_stays_open() {
    let (mock, relay) = start(Script::tokens(1_000_000).writes(Writes::Batch(64))).await;
    relay.set_plan(
        RelayPlan::new()
            .to_client(RelayStep::Pass(100))
            .to_client(RelayStep::Stop),
    );
    let mut client = Client::stream_chat(relay.addr()).await;
    client.take(100).await.unwrap();
    mock.recorder().wait_requests(1).await.unwrap();
    assert_eq!(mock.recorder().request(0).unwrap().ending, None);
    relay.cut_connections(Cut::Rst);
    assert_eq!(client.rest().await, (Vec::new(), End::Rst));
    mock.recorder().wait_closed(0).await.unwrap();
}

#[tokio::test]
async fn a_reset_of_the_server_is_passed_on() {
    let (mock, relay) = start(Script::tokens(4).gate_after(2, "g").rst_after(2)).await;
    let mut client = Client::stream_chat(relay.addr()).await;
    client.head().await;
    client.chunk().await.unwrap();
    client.chunk().await.unwrap();
    mock.gates().release("g");
    assert_eq!(client.chunk().await, Err(End::Rst));
}

#[tokio::test]
async fn the_target_can_change() {
    let (_first, relay) = start(Script::new()).await;
    let second = Mock::start(Script::new()).await.unwrap();
    relay.set_target(second.addr());
    let mut client = Client::connect(relay.addr()).await;
    client.get("/health").await;
    assert_eq!(client.json().await.0, 200);
    assert_eq!(second.recorder().count(), 1);
}

//! Backends that go silent.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Engine, FaultRelay, Mock, Recorder, Script};
use streamweld_server::Config;
use streamweld_tests::{
    Client, End, GROUP, Replica, Response, Several, TwinsSetup, engine, state, twins,
};
use streamweld_upstream::fleet::{self, HealthCheck, Spec};

use super::answer::{Answer, CHAT, request};
use super::served::{Begun, moves};
use super::story::{SHOWN, TEXT, Told, says};

const LIMIT: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_hangs_is_left_and_its_late_words_are_nobodys() {
    let setup = TwinsSetup::new(says(Engine::Vllm));
    let twins = setup
        .config(|config| config.migration.between_tokens = Some(LIMIT))
        .start()
        .await;
    twins.next([says(Engine::Vllm).gate_after(SHOWN, "hang")]);
    let told = Told::chat(&twins, &json!({})).await;
    told.assert_moved("token_ids");
    assert_eq!(told.payloads("migration")[0]["trigger"], "stalled");
    // It wakes up, and finds nobody.
    let recorder = twins.mocks[0].recorder();
    let number = twins.attempts()[0].index;
    twins.mocks[0].gates().release("hang");
    // Whether it notices before it has said all is its own matter.
    recorder.wait_closed(number).await.expect("it ends");
    let again = twins.replica.client.events(&told.id).await.all().await.0;
    assert_eq!(Answer::of(&again).text, TEXT);
}

/// Nothing comes through in either direction, and nobody says so.
#[tokio::test(flavor = "multi_thread")]
async fn row_06_a_half_open_engine_is_left_and_its_socket_is_closed() {
    let mocks = twins(says(Engine::Vllm), 2).await;
    let (mut relays, mut specs) = (Vec::new(), Vec::new());
    for name in ["a", "b"] {
        let relay = FaultRelay::start(mocks[specs.len()].addr()).await;
        let relay = relay.expect("a port");
        specs.push(Spec {
            group: Some(GROUP.to_owned()),
            // The only connection to it is that of the answer.
            health: HealthCheck::Off,
            ..Spec::new(
                name,
                relay.url().parse().expect("a URL"),
                fleet::Engine::Vllm,
            )
        });
        relays.push(relay);
    }
    let replica = Replica::in_front_of(specs, |config| {
        config.migration.vouched.insert(GROUP.to_owned());
        config.migration.between_tokens = Some(3 * LIMIT);
    })
    .await;
    mocks[0].push_script(says(Engine::Vllm).gate_after(SHOWN, "more"));
    let begun = Begun::chat(&replica.client, &json!({}), SHOWN).await;
    let id = begun.id.clone();
    let first = state(&replica.client, &id).await["backends"][0].clone();
    let relay = &relays[usize::from(first == "b")];
    relay.pause();
    mocks[0].gates().release("more");
    let (answer, end) = begun.ended().await;
    assert_eq!(
        (end, answer.text.as_str(), answer.done),
        (End::Proper, TEXT, true)
    );
    let moved = moves(&replica.client, &id).await;
    assert_eq!(moved.len(), 1);
    assert_eq!(
        (&moved[0]["trigger"], &moved[0]["from"]),
        (&json!("stalled"), &first)
    );
    assert_eq!(relay.open(), 1, "the network has heard of nothing");
    relay.resume();
    relay.wait_open(0).await.expect("its socket is not leaked");
}

/// An engine that writes comments has a server, and not a model, that is alive.
#[tokio::test(flavor = "multi_thread")]
async fn comments_are_no_progress() {
    let setup = TwinsSetup::new(says(Engine::LlamaCpp));
    let twins = setup
        .config(|config| config.migration.between_tokens = Some(Duration::from_millis(1500)))
        .start()
        .await;
    // It is asked for one each second.
    twins.next([says(Engine::LlamaCpp).gate_after(SHOWN, "hang")]);
    let told = Told::chat(&twins, &json!({"temperature": 0})).await;
    assert_eq!(twins.attempts()[0].json()["sse_ping_interval"], 1);
    told.assert_moved("prefill");
    assert_eq!(told.payloads("migration")[0]["trigger"], "stalled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_word_has_a_time_of_its_own() {
    // Nothing was said: whoever is asked next is asked anew.
    let setup = TwinsSetup::new(says(Engine::Vllm));
    let twins = setup
        .config(|config| config.migration.first_token = Some(LIMIT))
        .start()
        .await;
    twins.next([says(Engine::Vllm).gate_after(1, "hang")]);
    let told = Told::chat(&twins, &json!({})).await;
    told.assert_moved("restart");
    // An engine may hang before its head, too. Then nothing was shown of it.
    twins.next([says(Engine::Vllm).head_gate("never")]);
    let told = Told::chat(&twins, &json!({})).await;
    assert_eq!(told.answer.text, TEXT);
    assert_eq!(
        (&told.state["attempts"], &told.state["migrations"]),
        (&json!(2), &json!(0))
    );
    // Behind it that time counts for nothing.
    twins.next([says(Engine::Vllm).gate_after(SHOWN, "slow")]);
    left_alone(&twins.mocks[0], &twins.replica.client, 5 * LIMIT).await;
    assert_eq!(twins.attempts().len(), 5);

    // And the time between two does not count before.
    let setup = TwinsSetup::new(says(Engine::Vllm));
    let twins = setup
        .config(|config| config.migration.between_tokens = Some(LIMIT))
        .start()
        .await;
    twins.next([says(Engine::Vllm).gate_after(1, "slow")]);
    left_alone(&twins.mocks[0], &twins.replica.client, 5 * LIMIT).await;
    assert_eq!(twins.attempts().len(), 1);
}

/// An answer that stands still at the gate `slow` for this long, and is then whole.
async fn left_alone(mock: &Mock, client: &Client, silence: Duration) {
    let body = request(CHAT, &json!({})).to_string();
    let mut response = client.send("POST", CHAT, &body).await;
    mock.gates()
        .wait_arrived("slow", 1)
        .await
        .expect("it comes to the gate");
    let held = tokio::time::timeout(silence, response.body.rest()).await;
    assert!(held.is_err(), "it waits");
    mock.gates().release("slow");
    // What came before was read by the wait that was given up.
    let id = response.id();
    let (shown, end) = client.events(&id).await.all().await;
    assert_eq!((end, Answer::of(&shown).text.as_str()), (End::Proper, TEXT));
}

/// Asks one of two backends, which comes to the gate `hang`. Gives which it is.
async fn asked(several: &Several) -> (usize, Response) {
    let body = request(CHAT, &json!({})).to_string();
    let response = several.replica.client.send("POST", CHAT, &body).await;
    let asked = |mock: &Mock| {
        let requests = mock.recorder().requests();
        requests.iter().any(|request| request.path() == CHAT)
    };
    let at = several.mocks.iter().position(asked);
    let at = at.expect("one is asked");
    let arrived = several.mocks[at].gates().wait_arrived("hang", 1).await;
    arrived.expect("it comes to the gate");
    (at, response)
}

/// How many probes were answered.
fn probes(recorder: &Recorder) -> usize {
    let requests = recorder.requests();
    let probes = requests
        .iter()
        .filter(|request| request.path() == "/health");
    probes.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_down_and_silent_has_stalled() {
    let script = || says(Engine::Vllm).gate_after(SHOWN, "hang");
    let scripts = vec![script(), script()];
    let probed = |config: &mut Config| config.fleet.probe_every = Duration::from_millis(50);
    let several = Several::start(engine(&script()), scripts, probed).await;
    let (at, mut response) = asked(&several).await;
    several.mocks[1 - at].gates().release("hang");
    several.mocks[at].set_healthy(false);
    let (shown, end) = response.body.rest().await;
    let answer = Answer::of(&shown);
    assert_eq!(
        (end, answer.text.as_str(), answer.done),
        (End::Proper, TEXT, true)
    );
    let id = response.id();
    let state: Value = state(&several.replica.client, &id).await;
    assert_eq!(
        (&state["migrations"], &state["attempts"]),
        (&json!(1), &json!(2))
    );
}

/// How often a backend is asked about its health that has to be found out while it speaks.
const PROBED: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_down_and_still_speaks_is_left_alone() {
    let script = || {
        let slow = Script::tokens(300).engine(Engine::Vllm);
        slow.gate_after(2, "hang").pace(Duration::from_millis(10))
    };
    let scripts = vec![script(), script()];
    let several = Several::start(engine(&script()), scripts, |config| {
        config.fleet.probe_every = PROBED;
    })
    .await;
    let (at, mut response) = asked(&several).await;
    let mock = &several.mocks[at];
    mock.set_healthy(false);
    let before = probes(mock.recorder());
    // The other one's too: if it were asked after all, that should show.
    for mock in &several.mocks {
        mock.gates().release("hang");
    }
    let (shown, end) = response.body.rest().await;
    let answer = Answer::of(&shown);
    assert_eq!(
        (end, answer.text.split(' ').count(), answer.done),
        (End::Proper, 300, true)
    );
    // It was down for a good part of it.
    assert!(probes(mock.recorder()) > before + 6);
    assert_eq!(
        state(&several.replica.client, &response.id()).await["attempts"],
        1
    );
}

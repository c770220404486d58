//! A backend that is drained while hundreds of its answers are under way (protocol.md 12.2).

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Engine, Mock};
use streamweld_tests::{End, patience, state};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answer::CHAT;
use super::served::{Begun, Served, backend, post, with_tools};
use super::story::{SHOWN, TEXT, says};

/// How many answers one backend has under way.
const UNDER_WAY: usize = 200;

/// One of so many cannot leave.
const EACH: usize = 5;

const STAY: usize = UNDER_WAY / EACH;

const DRAIN: &str = "/admin/backends/a/drain";

/// The answers that one has been asked for.
fn asked(mock: &Mock) -> usize {
    let requests = mock.recorder().requests();
    let asked = requests.iter().filter(|request| request.path() == CHAT);
    asked.count()
}

/// Three engines, and answers in the middle of which all are at `a`.
async fn all_at_a() -> (Served, Vec<Begun>) {
    let served = Served::start(&says(Engine::Vllm).gate_after(SHOWN, "hold"), 3).await;
    for name in ["b", "c"] {
        let drained = post(&served.admin, &format!("/admin/backends/{name}/drain")).await;
        assert_eq!(drained.1["drained"], true);
    }
    let mut asking = JoinSet::new();
    for number in 0..UNDER_WAY {
        let client = served.client.clone();
        let stays = number % EACH == 0;
        let more = if stays { with_tools() } else { json!({}) };
        asking.spawn(async move { Begun::chat(&client, &more, SHOWN).await });
    }
    let begun = asking.join_all().await;
    assert_eq!(asked(&served.mocks[0]), UNDER_WAY);
    for name in ["b", "c"] {
        post(&served.admin, &format!("/admin/backends/{name}/undrain")).await;
        backend(&served.admin, name, |shown| shown["state"] == "up").await;
    }
    (served, begun)
}

/// What a call says that does not wait, once it is known what becomes of everybody.
async fn settled(served: &Served) -> Value {
    let settled = async {
        loop {
            let (_, told) = post(&served.admin, &format!("{DRAIN}?timeout=0s")).await;
            let remaining = told["remaining"].as_array().expect("a list");
            let count = |what: &str| told[what].as_u64().expect("a number");
            assert_eq!((count("left"), count("ended")), (0, 0), "none does");
            let counted = count("moved") + remaining.len() as u64;
            assert_eq!(counted, UNDER_WAY as u64, "each is in one place");
            // Of what is not known yet no gate is told; and what was left is closed a moment later.
            let is_known = remaining.iter().all(|one| one["gates"] != json!([]));
            if is_known && told["other_requests"] == 0 {
                return told;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    patience(settled).await
}

/// Checks that a call says of each what is so, and gives those that stay.
async fn assert_true(served: &Served, begun: &[Begun], told: &Value) -> BTreeSet<String> {
    assert_eq!(told["drained"], false);
    assert_eq!(
        (&told["moved"], &told["other_requests"]),
        (&json!(UNDER_WAY - STAY), &json!(0))
    );
    let mut stay = BTreeSet::new();
    for one in told["remaining"].as_array().expect("a list") {
        let reason = one["reason"].as_str().expect("a reason");
        assert!(reason.contains("tool_call"), "{one}");
        let gates = one["gates"].as_array().expect("a list");
        let refuses = |gate: &Value| gate["gate"] == "tool_call" && gate["open"] == false;
        assert!(gates.iter().any(refuses), "{one}");
        stay.insert(one["stream_id"].as_str().expect("an id").to_owned());
    }
    assert_eq!(stay.len(), STAY);
    for Begun { id, .. } in begun {
        let state = state(&served.client, id).await;
        let backends = state["backends"].as_array().expect("a list");
        let is_moved = !stay.contains(id);
        assert_eq!(state["migrations"], u32::from(is_moved), "{state}");
        assert_eq!(backends[0], "a", "{state}");
        if is_moved {
            assert!(backends.len() == 2 && backends[1] != "a", "{state}");
        } else {
            assert_eq!(
                (backends.len(), &state["status"]),
                (1, &json!("streaming")),
                "{state}"
            );
        }
    }
    let shown = backend(&served.admin, "a", |_| true).await;
    assert_eq!(
        (&shown["state"], &shown["generations"]),
        (&json!("draining"), &json!(STAY))
    );
    stay
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_answers_leave_or_stay_and_the_call_is_true() {
    let (served, begun) = all_at_a().await;
    // One that waits for all, and others beside it that join it.
    let admin = served.admin.clone();
    let waits = tokio::spawn(async move { post(&admin, &format!("{DRAIN}?timeout=10m")).await.1 });
    let told = settled(&served).await;
    let stay = assert_true(&served, &begun, &told).await;
    assert_eq!(
        served.mocks[1..].iter().map(asked).sum::<usize>(),
        UNDER_WAY - STAY
    );

    // Those that have moved end while `a` still stands, and those that stay go on to their end there.
    let (stayed, moved): (Vec<_>, Vec<_>) = begun
        .into_iter()
        .partition(|begun| stay.contains(&begun.id));
    for mock in &served.mocks[1..] {
        mock.gates().release("hold");
    }
    assert_whole(moved).await;
    assert!(!waits.is_finished());
    served.mocks[0].gates().release("hold");
    assert_whole(stayed).await;
    let emptied = patience(waits).await.expect("no panic");
    let expected = |moved: usize, ended: usize| {
        json!({"object": "streamweld.drain", "backend": "a", "drained": true, "moved": moved, "left": 0, "ended": ended,
               "remaining": [], "other_requests": 0, "warning": null})
    };
    assert_eq!(emptied, expected(UNDER_WAY - STAY, STAY));
    assert_eq!(post(&served.admin, DRAIN).await.1, expected(0, 0));
    assert_eq!(asked(&served.mocks[0]), UNDER_WAY);

    // And it is back.
    let (_, back) = post(&served.admin, "/admin/backends/a/undrain").await;
    assert_eq!(
        (&back["state"], &back["in_flight"]),
        (&json!("up"), &json!(0))
    );
    let asked_again = async {
        while asked(&served.mocks[0]) == UNDER_WAY {
            assert_whole(vec![Begun::chat(&served.client, &json!({}), 1).await]).await;
        }
    };
    patience(asked_again).await;
}

/// Checks that each of their readers is shown the whole answer, once.
async fn assert_whole(begun: Vec<Begun>) {
    for begun in begun {
        let (answer, end) = begun.ended().await;
        assert_eq!(
            (end, answer.text.as_str(), answer.done),
            (End::Proper, TEXT, true)
        );
        assert_eq!((answer.roles(), answer.finish()), (1, Some("stop")));
    }
}

//! One answer that an operator moves, or asks about (protocol.md 12.1).

use serde_json::{Value, json};
use streamweld_mock::{Engine, Script};
use streamweld_tests::{Client, End, Twins, TwinsSetup, blocks, patience, state};
use tokio::task::JoinSet;

use super::answer::Answer;
use super::served::{Begun, Served, backend, moves, post, with_tools};
use super::story::{SHOWN, TEXT, says};

fn held() -> Script {
    says(Engine::Vllm).gate_after(SHOWN, "hold")
}

fn migrate(id: &str, query: &str) -> String {
    format!("/admin/streams/{id}/migrate{query}")
}

/// How often it may move here.
const MOVES: u32 = 16;
const CALLS: usize = 20;

/// Of one that moves again and again: each backend says a few words of it.
fn long() -> String {
    TEXT.repeat(20)
}

/// From where to where.
fn pair(told: &Value) -> (String, String) {
    let name = |member: &str| told[member].as_str().expect("a name").to_owned();
    (name("from"), name("to"))
}

/// What the calls have said, once all have.
struct Called {
    /// Every move that one of them tells of.
    moved: Vec<(String, String)>,
    refused: usize,
    drained: Value,
}

/// Moves it so many times at once, and drains the backend that it is at. What comes first is under way while the others
/// come.
async fn call_at_once(twins: &Twins, id: &str, at: &str, drain_first: bool) -> Called {
    let admin = &twins.replica.admin;
    let ask = |path: String| {
        let admin = admin.clone();
        async move { post(&admin, &path).await }
    };
    let drain = ask(format!("/admin/backends/{at}/drain"));
    let mut calls = JoinSet::new();
    let drained = if drain_first {
        let drained = tokio::spawn(drain);
        twins.attempt(2).await;
        drained
    } else {
        calls.spawn(ask(migrate(id, "")));
        twins.attempt(2).await;
        let drained = tokio::spawn(drain);
        backend(admin, at, |shown| shown["state"] == "draining").await;
        drained
    };
    while calls.len() < CALLS {
        calls.spawn(ask(migrate(id, "")));
    }
    twins.mocks[0].gates().release("head");
    let calls = patience(calls.join_all()).await;
    let drained = patience(drained).await.expect("no panic");
    let mut called = Called {
        moved: Vec::new(),
        refused: 0,
        drained: drained.1,
    };
    for (status, told) in calls {
        if status == 200 {
            assert_eq!(
                (&told["moved"], &told["method"]),
                (&json!(true), &json!("token_ids"))
            );
            called.moved.push(pair(&told));
        } else {
            assert_eq!(
                (status, &told["error"]["code"]),
                (409, &json!("migration_refused")),
                "{told}"
            );
            assert_eq!(told["error"]["gates"][0]["gate"], "attempts", "{told}");
            called.refused += 1;
        }
    }
    called
}

#[tokio::test(flavor = "multi_thread")]
async fn row_54_orders_at_once_and_a_drain_are_met_one_after_the_other() {
    for drain_first in [true, false] {
        moved_again_and_again(drain_first).await;
    }
}

async fn moved_again_and_again(drain_first: bool) {
    let script = Script::text(long())
        .engine(Engine::Vllm)
        .gate_after(SHOWN, "hold");
    let twins = TwinsSetup::new(script.clone())
        .count(3)
        .config(|config| config.migration.moves = MOVES)
        .start()
        .await;
    twins.next([script.clone(), script.head_gate("head")]);
    let client = &twins.replica.client;
    let begun = Begun::chat(client, &json!({}), SHOWN).await;
    let id = begun.id.clone();
    let at = twins.name(&twins.attempts()[0]);
    let called = call_at_once(&twins, &id, &at, drain_first).await;

    // It has left the one that is drained, because of that or of the call that came first, and has not been back.
    let drained = &called.drained;
    let by_drain = usize::from(drain_first);
    assert_eq!(
        (&drained["drained"], &drained["remaining"]),
        (&json!(true), &json!([]))
    );
    let (moved, left) = if drain_first { (1, 0) } else { (0, 1) };
    assert_eq!(
        (&drained["moved"], &drained["left"], &drained["ended"]),
        (&json!(moved), &json!(left), &json!(0)),
        "{drained}"
    );
    assert_eq!(called.moved.len() + by_drain, MOVES as usize);
    assert_eq!(called.moved.len() + called.refused, CALLS);
    assert_eq!(state(client, &id).await["migrations"], MOVES);

    twins.mocks[0].gates().release("hold");
    let (answer, end) = begun.ended().await;
    assert_eq!((end, answer.text, answer.done), (End::Proper, long(), true));
    // Each began where the one before had ended, and they are those that the calls tell of.
    let shown = moves(client, &id).await;
    let mut shown: Vec<_> = shown.iter().map(pair).collect();
    let mut from = &at;
    for (left, taken) in &shown {
        assert_eq!((left, taken == &at), (from, false));
        from = taken;
    }
    for told in &called.moved {
        let place = shown.iter().position(|shown| shown == told);
        shown.remove(place.unwrap_or_else(|| panic!("{told:?} was not shown")));
    }
    assert_eq!(shown.len(), by_drain);
    assert_eq!(twins.attempts().len(), 1 + MOVES as usize);
}

/// Two answers in the middle, of which the second has tools and must stay.
async fn two(client: &Client) -> [Begun; 2] {
    let goes = Begun::chat(client, &json!({}), SHOWN).await;
    [goes, Begun::chat(client, &with_tools(), SHOWN).await]
}

/// Checks that an answer is whole.
async fn assert_whole(begun: Begun) {
    let (answer, end): (Answer, End) = begun.ended().await;
    assert_eq!(
        (end, answer.text.as_str(), answer.done),
        (End::Proper, TEXT, true)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_leaves_an_answer_as_it_was() {
    let twins = TwinsSetup::new(held()).start().await;
    let (client, admin) = (&twins.replica.client, &twins.replica.admin);
    let [goes, stays] = two(client).await;
    let before = [
        state(client, &goes.id).await,
        state(client, &stays.id).await,
    ];
    for _ in 0..3 {
        let (status, told) = post(admin, &migrate(&goes.id, "?dry_run=true")).await;
        assert_eq!((status, &told["would_move"]), (200, &json!(true)), "{told}");
        assert_eq!(told["method"], "token_ids");
        assert_ne!(told["target"], before[0]["backends"][0]);
        let (status, told) = post(admin, &migrate(&stays.id, "?dry_run=true")).await;
        assert_eq!(
            (status, &told["would_move"]),
            (200, &json!(false)),
            "{told}"
        );
        let gates = told["gates"].as_array().expect("a list");
        let tools = gates.iter().find(|gate| gate["gate"] == "tool_call");
        assert_eq!(tools.expect("the gate")["open"], false);
    }
    // The same, for one that stays, whether it was asked in earnest or not.
    let (status, told) = post(admin, &migrate(&stays.id, "")).await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (409, &json!("migration_refused"))
    );
    let after = [
        state(client, &goes.id).await,
        state(client, &stays.id).await,
    ];
    assert_eq!(after, before);
    assert_eq!(twins.attempts().len(), 2, "nobody was asked for anything");

    let mut feed = admin.get("/admin/watch").await;
    let (status, told) = post(admin, &migrate(&goes.id, "")).await;
    assert_eq!((status, &told["moved"]), (200, &json!(true)), "{told}");
    assert_eq!(told["from"], before[0]["backends"][0]);
    // Whoever follows is told of it.
    let followed = blocks(&feed.body.blocks(1).await).remove(0);
    assert_eq!(followed.event.as_deref(), Some("migrated"));
    let followed: Value = serde_json::from_str(&followed.data.expect("data")).expect("JSON");
    assert_eq!(followed["stream_id"], goes.id);
    assert_eq!(pair(&followed), pair(&told));
    assert_eq!(followed["trigger"], "operator");
    let moved = state(client, &goes.id).await;
    assert_eq!(
        (&moved["migrations"], &moved["attempts"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(moved["backends"], json!([told["from"], told["to"]]));
    let payloads = moves(client, &goes.id);
    twins.mocks[0].gates().release("hold");
    let payloads = payloads.await;
    assert_eq!(payloads.iter().map(pair).collect::<Vec<_>>(), [pair(&told)]);
    assert_eq!(payloads[0]["trigger"], "operator");
    assert_whole(goes).await;
    assert_whole(stays).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_says_by_its_code_whether_it_moves() {
    let served = Served::start(&held(), 2).await;
    let [goes, stays] = two(&served.client).await;
    let (here, id) = (state(&served.client, &goes.id).await, &goes.id);
    let from = here["backends"][0].as_str().expect("a name");
    let to = if from == "a" { "b" } else { "a" };

    let (code, output) = served.command(&["migrate", id, "--dry-run"]).await;
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains(&format!("{id}: would move to {to} by token_ids")),
        "{output}"
    );
    assert_eq!(state(&served.client, id).await, here);
    let (code, output) = served.command(&["migrate", id]).await;
    let expected = format!("{id}: moved from {from} to {to} by token_ids\n");
    assert_eq!((code, output), (0, expected));
    assert_eq!(state(&served.client, id).await["migrations"], 1);

    for arguments in [
        &["migrate", &stays.id, "--dry-run"][..],
        &["migrate", &stays.id],
    ] {
        let (code, output) = served.command(arguments).await;
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("tool_call"), "{output}");
    }
    assert_eq!(state(&served.client, &stays.id).await["migrations"], 0);
    for mock in &served.mocks {
        mock.gates().release("hold");
    }
    assert_whole(goes).await;
    assert_whole(stays).await;
}

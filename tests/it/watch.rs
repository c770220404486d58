//! The feed of what happens to generations, and the overview that it goes on from (protocol.md 12.4).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use streamweld_generation::HealBounds;
use streamweld_journal::Memory;
use streamweld_journal::faulty::Faulty;
use streamweld_mock::Script;
use streamweld_server::config::Secret;
use streamweld_tests::{
    Block, Client, End, Harness, Response, Setup, blocks, patience, wait_state,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// One event of the feed: its type, its place, its data.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    what: String,
    id: String,
    data: Value,
}

impl Told {
    fn of(block: Block) -> Self {
        let data = block.data.expect("data");
        Self {
            what: block.event.expect("a type"),
            id: block.id.expect("an id"),
            data: serde_json::from_str(&data).expect("JSON"),
        }
    }

    fn is_of(&self, stream: &str) -> bool {
        self.data["stream_id"] == stream
    }
}

/// Somebody who follows it.
struct Feed {
    response: Response,
    /// What has come together with what was asked for.
    ahead: VecDeque<Told>,
}

impl Feed {
    async fn of(admin: &Client) -> Self {
        let response = admin.get("/admin/watch").await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        Self {
            response,
            ahead: VecDeque::new(),
        }
    }

    /// From behind this place on.
    async fn behind(admin: &Client, cursor: &str) -> Self {
        Self::of(&admin.with("last-event-id", cursor)).await
    }

    async fn next(&mut self) -> Told {
        while self.ahead.is_empty() {
            let bytes = patience(self.response.body.blocks(1)).await;
            self.ahead.extend(blocks(&bytes).into_iter().map(Told::of));
        }
        self.ahead.pop_front().expect("some have come")
    }

    async fn told(&mut self, count: usize) -> Vec<Told> {
        let mut told = Vec::new();
        for _ in 0..count {
            told.push(self.next().await);
        }
        told
    }
}

fn types(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.what.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_is_told_turn_by_turn() {
    let harness = Harness::start(Script::tokens(3)).await;
    let mut feed = Feed::of(&harness.admin).await;
    let response = harness.client.chat().await;
    let id = response.id();
    assert_eq!(response.all().await.1, End::Proper);
    let told = feed.told(3).await;
    assert_eq!(types(&told), ["created", "first_event", "ended"]);
    assert!(told.iter().all(|told| told.is_of(&id)));
    let created = &told[0].data;
    let expected = json!({
        "stream_id": id,
        "time": created["time"],
        "model": "m",
        "dialect": "openai_chat",
        "backend": "llm",
        "durability": "durable",
        "taken_over": false,
    });
    assert_eq!(created, &expected);
    assert_eq!(told[2].data["status"], "done");
    assert_eq!(told[2].data["code"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_resumed_behind_any_of_its_events() {
    let harness = Harness::start(Script::tokens(2)).await;
    let mut whole = Feed::of(&harness.admin).await;
    for _ in 0..4 {
        harness.client.chat().await.all().await;
    }
    let whole = whole.told(12).await;
    for at in 0..12 {
        let mut rest = Feed::behind(&harness.admin, &whole[at].id).await;
        assert_eq!(rest.told(11 - at).await, whole[at + 1..]);
    }
}

/// What was told before the overview is in it, and what is told behind its cursor is not.
#[tokio::test(flavor = "multi_thread")]
async fn an_overview_and_what_follows_it_leave_nothing_out() {
    let harness = Setup::new(Script::tokens(30).pace(Duration::from_millis(2)));
    let harness = harness.start().await;
    let mut chats = JoinSet::new();
    for at in 0..60 {
        let client = harness.client.clone();
        chats.spawn(async move {
            sleep(Duration::from_millis(at * 5)).await;
            client.chat().await.all().await;
        });
    }
    for _ in 0..5 {
        chats
            .join_next()
            .await
            .expect("some are left")
            .expect("well");
    }
    let overview = harness.admin.get("/admin/overview").await.json().await;
    let cursor = overview["cursor"].as_str().expect("a cursor");
    let mut feed = Feed::behind(&harness.admin, cursor).await;
    // Each that runs is told of as over later; each that is told of as begun was not there.
    let mut runs: BTreeMap<String, bool> = BTreeMap::new();
    for stream in overview["streams"].as_array().expect("a list") {
        let id = stream["stream_id"].as_str().expect("an id");
        assert_eq!(runs.insert(id.to_owned(), true), None);
    }
    while chats.join_next().await.is_some() {}
    // Whoever reads has the last event a moment before its generation is over.
    let over = async {
        loop {
            let last = harness.admin.get("/admin/overview").await.json().await;
            if last["running"] == 0 {
                return last;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let last = patience(over).await;
    assert_eq!(last["streams"], json!([]));
    let last = last["cursor"].as_str().expect("a cursor");
    loop {
        let told = feed.next().await;
        let id = told.data["stream_id"].as_str().expect("an id").to_owned();
        match told.what.as_str() {
            // One that began while the overview was made may be in both.
            "created" => _ = runs.insert(id, true),
            "ended" => _ = runs.insert(id, false),
            _ => {}
        }
        if told.id == last {
            break;
        }
    }
    assert!(runs.values().all(|runs| !runs), "{runs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overview_shows_what_runs() {
    let harness = Harness::start(Script::tokens(5).gate_after(2, "go")).await;
    let mut response = harness.client.chat().await;
    let id = response.id();
    response.body.blocks(2).await;
    let overview = harness.admin.get("/admin/overview").await.json().await;
    assert_eq!(overview["object"], "streamweld.overview");
    assert_eq!(
        (&overview["ready"], &overview["running"]),
        (&json!(true), &json!(1))
    );
    let stream = &overview["streams"][0];
    assert_eq!(stream["stream_id"], id);
    assert_eq!(stream["model"], "m");
    assert_eq!(stream["readers"], 1);
    assert_eq!(stream["durability"], "durable");
    assert!(stream["last_seq"].as_u64() >= Some(3), "{stream}");
    assert_eq!(overview["backends"][0]["name"], "llm");
    assert_eq!(overview["journal"]["kind"], "memory");
    assert_eq!(overview["journal"]["wrong"], json!([]));
    // Nothing of what was said, nor of what was asked.
    assert!(!overview.to_string().contains("hi\""), "{overview}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_cannot_be_gone_on_from_is_told_so() {
    let harness = Harness::start(Script::tokens(2)).await;
    let other = Harness::start(Script::tokens(2)).await;
    let overview = other.admin.get("/admin/overview").await.json().await;
    let cursor = overview["cursor"].as_str().expect("a cursor");
    let admin = harness.admin.with("last-event-id", cursor);
    let answer = admin.get("/admin/watch").await.error_code().await;
    assert_eq!(answer, (410, "cursor_expired".to_owned()));
    let answer = harness
        .admin
        .get("/admin/watch?since=1")
        .await
        .error_code()
        .await;
    assert_eq!(answer, (400, "invalid_parameter".to_owned()));
    let answer = harness.admin.send("POST", "/admin/watch", "").await;
    assert_eq!(answer.header("allow"), Some("GET"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_fails_and_heals_is_told() {
    let journal = Arc::new(Faulty::new(Memory::default()));
    let faults = journal.faults();
    let mut heal = HealBounds::default();
    heal.patience = Duration::from_millis(50);
    let script = Script::tokens(20).gate_after(3, "one").gate_after(8, "two");
    let setup = Setup::new(script).journal(journal).heal(heal);
    let harness = setup.start().await;
    let mut feed = Feed::of(&harness.admin).await;
    let mut response = harness.client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    faults.set_down(true);
    harness.mock.gates().release("one");
    let so_far = feed.told(3).await;
    assert_eq!(types(&so_far), ["created", "first_event", "degraded"]);
    let overview = harness.admin.get("/admin/overview").await.json().await;
    assert_eq!(overview["streams"][0]["durability"], "degraded");
    faults.set_down(false);
    assert_eq!(types(&feed.told(1).await), ["healed"]);
    wait_state(&harness.client, &id, |state| {
        state["durability"] == "durable"
    })
    .await;
    harness.mock.gates().release("two");
    assert_eq!(types(&feed.told(1).await), ["ended"]);
    assert_eq!(response.body.rest().await.1, End::Proper);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_the_server_behind_all_that_happened() {
    let setup = Setup::new(Script::tokens(5).gate_after(2, "never"));
    let setup = setup.config(|config| config.shutdown_grace = Duration::from_millis(50));
    let mut harness = setup.start().await;
    let mut feed = Feed::of(&harness.admin).await;
    let mut response = harness.client.chat().await;
    response.body.blocks(1).await;
    harness.begin_shutdown();
    let told = feed.told(3).await;
    assert_eq!(types(&told), ["created", "first_event", "ended"]);
    assert_eq!(told[2].data["code"], "shutdown");
    let (rest, end) = feed.response.body.rest().await;
    assert_eq!(blocks(&rest), []);
    assert_ne!(end, End::Proper);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_for_operators() {
    let setup = Setup::new(Script::default());
    let setup = setup.config(|config| config.admin_token = Secret::new("token".to_owned()));
    let harness = setup.start().await;
    for path in ["/admin/watch", "/admin/overview"] {
        let answer = harness.admin.get(path).await.error_code().await;
        assert_eq!(answer, (401, "unauthorized".to_owned()));
        let admin = harness.admin.with("authorization", "Bearer token");
        assert_eq!(admin.get(path).await.status, 200);
    }
}

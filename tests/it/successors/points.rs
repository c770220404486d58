//! A replica that is killed at each point of what it does for an answer that another one has begun, or is to go on with: real
//! processes, and a relay to Redis at which the world stands still. Row 43 of the faults; the points of an answer that nobody
//! may go on with are in `redis_faults::killed`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use streamweld_journal_redis::testing::Server as Redis;
use streamweld_mock::{Ask, Dialect, Engine};
use streamweld_tests::{
    Block, Client, End, Halt, Response, Tap, blocks, events, is_command, patience, texts, wait_end,
};
use tokio::task::JoinSet;

use super::scene::{Begun, PATH, Scene, Sidecar, TEXT, assert_whole, body, entries};

/// What the world stands still at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A script of this name.
    Script(&'static str),
    /// An append to the log.
    Append,
}

const OPEN: Step = Step::Script("open.lua");
const KEEP: Step = Step::Script("keep.lua");
const ADOPT: Step = Step::Script("adopt.lua");
const FINISH: Step = Step::Script("finish.lua");

const HALTS: [Halt; 3] = [Halt::Before, Halt::Unanswered, Halt::Answered];

/// How many events of the answer its first owner has committed.
const BEGUN: usize = 9;

/// The names of the scripts that a server knows, which it does from now on.
type Scripts = HashMap<String, String>;

/// Makes all scripts known: else what stands still would be the question whether one is.
async fn scripts(redis: &Redis) -> Scripts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/journal-redis/src/scripts");
    let mut known = Scripts::new();
    for file in fs::read_dir(folder).expect("it is there").flatten() {
        let text = fs::read_to_string(file.path()).expect("a script");
        let hash = redis.cli(&["SCRIPT", "LOAD", &text]).await;
        known.insert(file.file_name().to_string_lossy().into_owned(), hash);
    }
    known
}

impl Step {
    /// The next one of this generation, or of any.
    fn halt(self, tap: &Tap, halt: Halt, known: &Scripts, id: &str) {
        let has = |wire: &[u8], text: &str| memchr::memmem::find(wire, text.as_bytes()).is_some();
        let id = id.to_owned();
        match self {
            Self::Script(name) => {
                let hash = known[name].clone();
                tap.halt(halt, move |wire| has(wire, &hash) && has(wire, &id));
            }
            Self::Append => {
                tap.halt(halt, move |wire| is_command(wire, "XADD") && has(wire, &id));
            }
        }
    }
}

/// One that a round leaves behind: it has one end, and tells of every move for whom it was.
async fn assert_one_end(client: &Client, id: &str) {
    let done = entries(client, id, "streamweld.done").await;
    let [done] = &done[..] else {
        panic!("not one end: {done:?}")
    };
    let state = wait_end(client, id).await;
    assert_eq!(done["seq"], state["last_seq"]);
    for moved in entries(client, id, "streamweld.migration").await {
        assert_eq!(moved["trigger"], "owner_lost");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_over_may_be_killed_at_each_step_of_it() {
    for step in [ADOPT, Step::Append, FINISH] {
        let mut rounds = JoinSet::new();
        for halt in HALTS {
            rounds.spawn(heir_is_killed(step, halt));
        }
        while let Some(round) = rounds.join_next().await {
            round.expect("every round holds");
        }
    }
}

/// The first dies, the second goes on with its answer and is killed as well, and the third is the one that remains.
async fn heir_is_killed(step: Step, halt: Halt) {
    let what = format!("{step:?} {halt:?}");
    let scene = Scene::new(Engine::Vllm).await;
    let known = scripts(&scene.redis).await;
    let tap = Tap::start(&scene.redis.address(), Duration::ZERO).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar_at("b", &tap.url()).await;
    let begun = first.begin(&scene, BEGUN).await;
    let mut there = second.client.events(&begun.id).await;
    let mut shown = there.body.blocks(BEGUN).await;
    step.halt(&tap, halt, &known, &begun.id);
    first.die().await;
    tap.halted().await;
    let third = scene.sidecar("c").await;
    second.die().await;
    // Its reader has seen a part, or, when it knew that the end stands, all of it.
    let (rest, end) = patience(there.body.rest()).await;
    shown.extend(rest);
    let may_end = matches!((step, halt), (FINISH, Halt::Unanswered | Halt::Answered));
    assert!(end != End::Proper || may_end, "{what}: a part is no whole");

    patience(assert_whole(&third.client, &begun)).await;
    let (all, _) = third.client.events(&begun.id).await.all().await;
    let (all, shown) = (blocks(&all), blocks(&shown));
    let numbered: Vec<&Block> = shown.iter().filter(|block| block.id.is_some()).collect();
    let stands = all.iter().take(numbered.len());
    assert!(
        numbered.iter().copied().eq(stands),
        "{what}: what it has shown does not stand: {shown:?} {all:?}"
    );
    assert_one_end(&third.client, &begun.id).await;
}

/// An answer of a replica that is behind a relay.
struct Owner {
    scene: Scene,
    known: Scripts,
    tap: Tap,
    first: Sidecar,
    second: Sidecar,
}

impl Owner {
    async fn new() -> Self {
        let scene = Scene::new(Engine::Vllm).await;
        let known = scripts(&scene.redis).await;
        let tap = Tap::start(&scene.redis.address(), Duration::ZERO).await;
        let first = scene.sidecar_at("a", &tap.url()).await;
        let second = scene.sidecar("b").await;
        Self {
            scene,
            known,
            tap,
            first,
            second,
        }
    }

    /// The ids of all logs there are.
    async fn logs(&self) -> Vec<String> {
        let keys = self.scene.redis.cli(&["KEYS", "streamweld:*:log"]).await;
        let ids = keys
            .lines()
            .filter_map(|key| Some(key.split_once('{')?.1.split_once('}')?.0.to_owned()));
        ids.collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_may_be_killed_while_it_opens_its_log() {
    let mut rounds = JoinSet::new();
    for halt in HALTS {
        rounds.spawn(opening_is_killed(halt));
    }
    while let Some(round) = rounds.join_next().await {
        round.expect("every round holds");
    }
}

async fn opening_is_killed(halt: Halt) {
    let owner = Owner::new().await;
    OPEN.halt(&owner.tap, halt, &owner.known, "");
    let (client, asked) = (&owner.first.client, body().to_string());
    let script = owner.scene.script().gate_after(BEGUN, "never");
    owner.first.mock.push_script(script);
    let stream = client.begin(&client.request("POST", PATH, &asked)).await;
    owner.tap.halted().await;
    if halt != Halt::Answered {
        // Whoever asked is answered all the same.
        let response = patience(Response::read(stream)).await.expect("an answer");
        let durability = response.header("x-streamweld-durability");
        assert_eq!(durability, Some("degraded"), "{halt:?}");
        owner.first.process.signal("KILL");
        let (part, end) = response.all().await;
        assert_ne!(end, End::Proper, "a part is no whole");
        assert!(blocks(&part).iter().all(|block| block.id.is_none()));
    } else {
        owner.first.process.signal("KILL");
    }
    let id = match (halt, &owner.logs().await[..]) {
        (Halt::Before, []) => return,
        (Halt::Unanswered | Halt::Answered, [id]) => id.clone(),
        (_, logs) => panic!("{halt:?}: {logs:?}"),
    };
    // Nobody but the journal may know of it, and it has an end.
    let state = wait_end(&owner.second.client, &id).await;
    let (all, _) = owner.second.client.events(&id).await.all().await;
    match state["status"].as_str() {
        Some("done") => assert_eq!(texts(&all), TEXT),
        _ => assert_eq!(state["terminal"]["code"], "owner_lost", "{halt:?}: {state}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_may_be_killed_while_it_keeps_the_request() {
    let mut rounds = JoinSet::new();
    for halt in HALTS {
        rounds.spawn(keeping_is_killed(halt));
    }
    while let Some(round) = rounds.join_next().await {
        round.expect("every round holds");
    }
}

async fn keeping_is_killed(halt: Halt) {
    let owner = Owner::new().await;
    KEEP.halt(&owner.tap, halt, &owner.known, "");
    let begun = owner.first.begin(&owner.scene, BEGUN).await;
    owner.tap.halted().await;
    let Owner { first, second, .. } = owner;
    first.die().await;
    if halt != Halt::Before {
        return patience(assert_whole(&second.client, &begun)).await;
    }
    let state: Value = wait_end(&second.client, &begun.id).await;
    assert_eq!(state["terminal"]["code"], "owner_lost", "{state}");
    let (all, end) = second.client.events(&begun.id).await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&all)[..BEGUN], blocks(&begun.shown));
}

/// Between the backend and the replica: ahead of the first event, and behind the last.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_may_be_killed_before_the_first_event_and_behind_the_last() {
    let scene = Scene::new(Engine::Vllm).await;
    let ask = Ask::read(Dialect::OpenAiChat, body().to_string().as_bytes(), 1);
    // The sentinel is no event of the answer.
    let whole = scene.script().expected(&ask).len() - 1;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let none = first.begin(&scene, 0).await;
    let all = first.begin(&scene, whole).await;
    first.die().await;
    let (shown, end) = patience(second.client.events(&none.id).await.all()).await;
    assert_eq!((end, texts(&shown).as_str()), (End::Proper, TEXT));
    assert_eq!(events(&shown).pop().as_deref(), Some("[DONE]"));
    // Nothing was left to be asked for, and nothing is made up: the sentinel is an end and no event.
    let last = blocks(&all.shown).pop().and_then(|block| block.id);
    let back = second.client.with("last-event-id", &last.expect("an id"));
    let rest = patience(back.events(&all.id).await.all()).await;
    assert_eq!((texts(&rest.0).as_str(), rest.1), ("", End::Proper));
    assert_eq!(texts(&all.shown), TEXT);
    let moves = entries(&second.client, &all.id, "streamweld.migration").await;
    assert!(moves.is_empty(), "{moves:?}");
    for Begun { id, .. } in [&none, &all] {
        assert_one_end(&second.client, id).await;
    }
}

//! A replica that is gone leaves nobody waiting, and one that only looks so loses nothing (protocol.md 8.5): real
//! processes, a real Redis, and signals.

use std::time::{Duration, Instant, SystemTime};

use streamweld_journal::{Adoption, Epoch, Journal, Outcome, Seq};
use streamweld_journal_redis::testing::{Server as Redis, Setup, until};
use streamweld_journal_redis::{Config as RedisConfig, RedisJournal, Target};
use streamweld_mock::{Ask, Cut, Dialect, FaultRelay, Mock, MockConfig, Script};
use streamweld_tests::{
    CHAT, Client, End, Process, Response, Way, blocks, events, numbered, patience, state, wait_end,
    wait_seq, wait_state,
};
use tokio::time::sleep;

const PATH: &str = "/v1/chat/completions";
const KEY: &str = "idempotency-key";
const REPLICAS: &str = "streamweld:{presence}:replicas";
/// Short, for stories that wait for one.
const LEASE: Duration = Duration::from_secs(2);
/// What a busy machine may take beyond what is promised.
const SLACK: Duration = Duration::from_secs(6);

/// Some replicas in front of one mock, over one Redis.
struct Scene {
    mock: Mock,
    redis: Redis,
    script: Script,
}

impl Scene {
    /// An answer that stands still after ten events until `go` opens, and after twenty until `end` does.
    async fn new(server: Setup) -> Self {
        let script = Script::tokens(30)
            .id("fixed")
            .gate_after(10, "go")
            .gate_after(20, "end");
        let config = MockConfig {
            default: script.clone(),
            ..MockConfig::default()
        };
        Self {
            mock: Mock::bind("127.0.0.1:0", config).await.expect("a port"),
            redis: server.start().await,
            script,
        }
    }

    async fn replica(&self) -> (Process, Client) {
        self.replica_with(&self.redis.url(), LEASE).await
    }

    async fn replica_with(&self, redis: &str, lease: Duration) -> (Process, Client) {
        let backend = format!("--backend={}", self.mock.url());
        let journal = format!("--journal={redis}");
        let lease = format!("--presence-lease={}ms", lease.as_millis());
        let mut process = Process::serve(&[&backend, &journal, &lease]);
        let client = process.client().await;
        (process, client)
    }

    /// What an uninterrupted reader is given, if nobody dies.
    fn whole(&self, id: &str) -> Vec<u8> {
        let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
        numbered(id, &self.script.expected(&ask))
    }

    /// The name of the replica that writes a generation.
    async fn owner(&self, id: &str) -> String {
        let meta = format!("streamweld:{{{id}}}:meta");
        self.redis.cli(&["HGET", &meta, "owner"]).await
    }

    async fn wait_replicas(&self, count: usize) {
        until("so many replicas are left", async || {
            self.redis.cli(&["ZCARD", REPLICAS]).await == count.to_string()
        })
        .await;
    }
}

/// Begins an answer that stands still after ten events.
async fn begin(client: &Client) -> (String, Response) {
    let mut response = client.durable_chat().await;
    let id = response.id();
    response.body.blocks(10).await;
    wait_seq(client, &id, 11).await;
    (id, response)
}

/// Whoever reads it at `client`, from the start, from the middle and with control events, is given the first `count`
/// events of `whole` and then the one end there is.
async fn assert_lost(client: &Client, id: &str, whole: &[u8], count: usize) -> Vec<u8> {
    let (body, end) = client.events(id).await.all().await;
    assert_eq!(end, End::Proper, "who resumes is told in form");
    let shown = blocks(&body);
    assert_eq!(shown[..count], blocks(whole)[..count]);
    let [form] = &shown[count..] else {
        panic!("more than an end: {shown:?}")
    };
    let data = form.data.as_deref().expect("data");
    assert!(data.contains("owner_lost"), "{data}");
    for way in Way::ALL {
        let cursor = format!("{id}:6");
        let (rest, end) = way.resume(client, &cursor, (PATH, CHAT)).await.all().await;
        assert_eq!((blocks(&rest), end), (shown[5..].to_vec(), End::Proper));
    }
    let control = client.with("x-streamweld-events", "control");
    let (control, end) = control.events(id).await.all().await;
    assert_eq!(end, End::Proper);
    let control = String::from_utf8(control).expect("text");
    assert_eq!(control.matches("event: streamweld.error\n").count(), 1);
    let state = state(client, id).await;
    assert_eq!(state["status"], "error");
    assert_eq!(state["terminal"]["code"], "owner_lost");
    assert_eq!(state["last_seq"], count + 2);
    body
}

/// What a reader that was there is given at the end, without an error form: it comes back.
async fn assert_broken_off(mut response: Response) -> Vec<u8> {
    let (rest, end) = response.body.rest().await;
    assert_ne!(end, End::Proper);
    let text = String::from_utf8(rest.clone()).expect("text");
    assert!(
        !text.contains("error") && !text.contains("[DONE]"),
        "{text}"
    );
    rest
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_replica_left_has_one_end_for_everybody_and_its_key_is_free() {
    let scene = Scene::new(Setup::new()).await;
    let (owner, one) = scene.replica().await;
    let (_second, other) = scene.replica().await;
    let (_third, another) = scene.replica().await;
    let (id, _first) = begin(&one.with(KEY, "k")).await;
    let mut live = other.events(&id).await;
    live.body.blocks(10).await;

    let killed = Instant::now();
    owner.signal("KILL");
    patience(owner.ended()).await;
    // Two that come back before anybody knows: they wait for what comes.
    let cursor = another.with("last-event-id", &format!("{id}:11"));
    let waits = [cursor.events(&id).await, cursor.chat().await];
    wait_end(&another, &id).await;
    let took = killed.elapsed();
    assert!(took < LEASE * 2 + SLACK, "{took:?}");
    assert!(took > LEASE, "nobody is dead before a lease: {took:?}");

    let whole = scene.whole(&id);
    let body = assert_lost(&other, &id, &whole, 10).await;
    assert!(assert_lost(&another, &id, &whole, 10).await == body);
    let form = blocks(&body)[10..].to_vec();
    for response in [live].into_iter().chain(waits) {
        let (rest, end) = response.all().await;
        assert_eq!((blocks(&rest), end), (form.clone(), End::Proper));
    }
    // Where the end stands, somebody may have seen an event that did not reach the journal.
    let end = form.iter().rev().find_map(|block| block.id.clone());
    let end = end.expect("the form has its cursor");
    assert!(end.starts_with(&format!("{id}:12~")), "{end}");
    for client in [&other, &another] {
        for (cursor, status) in [
            (format!("{id}:12"), 409),
            (end.clone(), 204),
            ("12".to_owned(), 204),
        ] {
            let answer = client.with("last-event-id", &cursor).events(&id).await;
            assert_eq!(answer.status, status, "{cursor}");
            if status == 409 {
                let regressed = (409, "journal_regressed".to_owned());
                assert_eq!(answer.error_code().await, regressed);
            }
        }
    }
    // The key begins afresh.
    for gate in ["go", "end"] {
        scene.mock.gates().release(gate);
    }
    let again = other.with(KEY, "k").chat().await;
    assert_ne!(again.id(), id);
    let (body, end) = again.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(scene.mock.recorder().count(), 2);
    scene.wait_replicas(2).await;
}

/// Who ends it has read no more of it than that takes.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_response_whose_owner_is_gone_has_the_next_number() {
    let scene = Scene::new(Setup::new()).await;
    let (owner, one) = scene.replica().await;
    let (_second, other) = scene.replica().await;
    let path = Dialect::OpenAiResponses.path();
    let mut response = one.send("POST", path, CHAT).await;
    let id = response.id();
    response.body.blocks(10).await;
    wait_seq(&one, &id, 11).await;
    owner.signal("KILL");
    patience(owner.ended()).await;
    wait_end(&other, &id).await;
    let (body, end) = other.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    let shown = blocks(&body);
    assert_eq!(shown.len(), 11);
    let form = shown[10].data.as_deref().expect("data");
    let form: serde_json::Value = serde_json::from_str(form).expect("JSON");
    assert_eq!(form["code"], "owner_lost");
    assert_eq!(form["sequence_number"], 10);
}

/// It need not be certain that the owner is dead: the log decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_for_an_owner_that_is_gone_is_a_stop() {
    let scene = Scene::new(Setup::new()).await;
    let (redis, long) = (scene.redis.url(), Duration::from_secs(600));
    let (owner, one) = scene.replica_with(&redis, long).await;
    let (_second, other) = scene.replica_with(&redis, long).await;
    let (_third, another) = scene.replica_with(&redis, long).await;
    let (id, _first) = begin(&one).await;
    let mut live = another.events(&id).await;
    live.body.blocks(10).await;
    owner.signal("KILL");
    patience(owner.ended()).await;
    let name = scene.owner(&id).await;
    // Its last sign of life would count for minutes.
    scene.redis.cli(&["ZADD", REPLICAS, "XX", "0", &name]).await;

    let path = format!("/v1/streams/{id}/stop");
    let answer = other.send("POST", &path, "").await;
    assert_eq!(answer.status, 200);
    let answer: serde_json::Value = answer.json().await;
    assert_eq!(answer["status"], "stopped");
    assert_eq!(answer["terminal"]["seq"], 12);
    assert!(answer["text"].as_str().is_some_and(|text| !text.is_empty()));
    // As every stop looks.
    let (rest, end) = live.all().await;
    assert_eq!(end, End::Proper);
    let rest = events(&rest);
    assert!(rest[0].contains(r#""finish_reason":"stop""#), "{rest:?}");
    assert_eq!(rest[1..], ["[DONE]"]);
    let bodies = [other.events(&id).await, another.events(&id).await];
    let [here, there] = bodies.map(Response::all);
    assert!(here.await == there.await);
    let again = another.send("POST", &path, "").await;
    assert_eq!(again.status, 200);
}

/// It dies between its adoption and the end.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_adopter_left_is_ended_by_the_next() {
    let scene = Scene::new(Setup::new()).await;
    let (owner, one) = scene.replica().await;
    let (_second, other) = scene.replica().await;
    let (id, _first) = begin(&one).await;
    let adopter = {
        let target = Target::parse(&scene.redis.url()).expect("a URL");
        let lease = LEASE;
        let config = RedisConfig {
            lease,
            ..RedisConfig::default()
        };
        RedisJournal::start(target, config)
    };
    let connected = adopter.connected(Duration::from_secs(10)).await;
    connected.expect("Redis is there");
    owner.signal("KILL");
    patience(owner.ended()).await;
    let stream = id.parse().expect("an id");
    let epoch = Epoch::new(2).expect("above zero");
    let adopted = adopter.adopt(
        stream,
        Adoption::new(Epoch::FIRST, Seq::new(11), epoch),
        SystemTime::now(),
    );
    assert_eq!(adopted.await, Outcome::Yes);
    drop(adopter);

    let died = Instant::now();
    wait_end(&other, &id).await;
    let took = died.elapsed();
    assert!(took < LEASE * 2 + SLACK, "{took:?}");
    assert_lost(&other, &id, &scene.whole(&id), 10).await;
    scene.wait_replicas(1).await;
}

/// Row 45 of the faults. Its backend says more meanwhile, or stays silent.
async fn check_stopped(says_more: bool) {
    let scene = Scene::new(Setup::new()).await;
    let (owner, one) = scene.replica().await;
    let (_second, other) = scene.replica().await;
    let (id, first) = begin(&one).await;
    owner.signal("STOP");
    if says_more {
        scene.mock.gates().release("go");
    }
    wait_end(&other, &id).await;
    let body = assert_lost(&other, &id, &scene.whole(&id), 10).await;

    owner.signal("CONT");
    // Its reader is given what stands now, and the backend's connection is closed.
    let (rest, _) = patience(first.all()).await;
    let rest = events(&rest);
    assert_eq!(
        rest,
        events(&body)[10..],
        "nothing that does not stand was shown"
    );
    let closed = scene.mock.recorder().wait_closed(0).await.expect("closes");
    assert_ne!(closed.outcome, streamweld_mock::Outcome::Finished);
    for client in [&one, &other] {
        wait_end(client, &id).await;
        assert!(client.events(&id).await.all().await == (body.clone(), End::Proper));
    }
    // It serves as before.
    scene.mock.gates().release("go");
    scene.mock.gates().release("end");
    let (next, end) = one.chat().await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&next).last().map(String::as_str), Some("[DONE]"));
    scene.wait_replicas(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stood_still_for_too_long_is_fenced() {
    check_stopped(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stood_still_is_fenced_while_its_backend_is_silent() {
    check_stopped(false).await;
}

/// Nobody dies of a Redis that comes back, whatever it did.
async fn check_alive(scene: Scene, clients: [&Client; 2], id: &str, first: Response) {
    // Long enough for whoever would judge too soon.
    sleep(LEASE * 2).await;
    for client in clients {
        let state = wait_state(client, id, |state| state["durability"] == "durable").await;
        assert_eq!(state["status"], "streaming");
    }
    let there = clients[1].events(id).await;
    scene.mock.gates().release("go");
    scene.mock.gates().release("end");
    let whole = scene.whole(id);
    assert!(there.all().await == (whole.clone(), End::Proper));
    let (rest, end) = first.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&rest), events(&whole)[10..]);
    for client in clients {
        assert_eq!(wait_end(client, id).await["status"], "done");
    }
    assert_eq!(scene.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_stands_still_for_longer_than_leases_ends_nothing() {
    let scene = Scene::new(Setup::new()).await;
    let ((_one, one), (_other, other)) = (scene.replica().await, scene.replica().await);
    let (id, first) = begin(&one).await;
    scene.redis.pause();
    sleep(LEASE * 3).await;
    scene.redis.resume();
    check_alive(scene, [&one, &other], &id, first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_for_longer_than_leases_ends_nothing() {
    let file = Setup::new()
        .config("appendonly", "yes")
        .config("appendfsync", "no");
    let mut scene = Scene::new(file).await;
    let ((_one, one), (_other, other)) = (scene.replica().await, scene.replica().await);
    let (id, first) = begin(&one).await;
    scene.redis.kill();
    sleep(LEASE * 3).await;
    scene.redis.restart().await;
    check_alive(scene, [&one, &other], &id, first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_cut_off_from_redis_is_fenced_when_it_is_back() {
    let scene = Scene::new(Setup::new()).await;
    let address = scene.redis.address().parse().expect("an address");
    let relay = FaultRelay::start(address).await.expect("a port");
    let through = format!("redis://{}", relay.addr());
    let (_owner, one) = scene.replica_with(&through, LEASE).await;
    let (_second, other) = scene.replica().await;
    let (id, mut first) = begin(&one).await;
    relay.pause();
    // Its own reader goes on, without ids.
    scene.mock.gates().release("go");
    let more = first.body.blocks(10).await;
    assert!(blocks(&more).iter().all(|block| block.id.is_none()));
    // Elsewhere it is taken over, for the owner cannot be told from a dead one.
    wait_end(&other, &id).await;
    let body = assert_lost(&other, &id, &scene.whole(&id), 10).await;
    // Whoever has read there is not told here that it was lost: who is out of touch cannot know.
    let ahead = one.with("last-event-id", &format!("{id}:12~2"));
    let answer = ahead.events(&id).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.error_code().await.1, "journal_unavailable");

    relay.cut_connections(Cut::Rst);
    relay.resume();
    assert_broken_off(first).await;
    scene.mock.recorder().wait_closed(0).await.expect("closes");
    for client in [&one, &other] {
        wait_end(client, &id).await;
        assert!(client.events(&id).await.all().await == (body.clone(), End::Proper));
    }
    scene.wait_replicas(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_shutdown_leaves_no_presence_behind() {
    let scene = Scene::new(Setup::new()).await;
    let ((one, client), (other, _)) = (scene.replica().await, scene.replica().await);
    scene.mock.gates().release("go");
    scene.mock.gates().release("end");
    assert_eq!(client.chat().await.all().await.1, End::Proper);
    scene.wait_replicas(2).await;
    for (process, left) in [(one, "1"), (other, "0")] {
        process.signal("TERM");
        let (status, output) = process.ended().await;
        assert!(status.success(), "{output}");
        assert_eq!(scene.redis.cli(&["ZCARD", REPLICAS]).await, left);
    }
    let left = scene.redis.cli(&["KEYS", "streamweld:{presence}:*"]).await;
    assert_eq!(left, "");
}

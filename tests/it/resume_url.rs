//! Resume URLs: who has one reads without the credential, and no more than it says (protocol.md 9.2).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use streamweld_generation::HealBounds;
use streamweld_journal::faulty::{Fault, Faulty, Op};
use streamweld_journal::{Memory, Refusal};
use streamweld_mock::Script;
use streamweld_server::Config;
use streamweld_tests::{
    CHAT, Client, End, Harness, Over, Pair, Response, Setup, Way, patience, wait_end, wait_seq,
};

const PATH: &str = "/v1/chat/completions";
const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";
const FIELD: &str = "x-streamweld-resume-url";
const SCOPE: &str = "x-streamweld-capability";

/// Signs with this key, or with several.
fn signing(config: &mut Config, keys: &[&str]) {
    config.edge.resume_urls.keys = keys.iter().map(|key| key.repeat(32)).collect();
}

/// A server that signs, and a client with a credential.
async fn start(script: Script) -> (Harness, Client) {
    let setup = Setup::new(script).config(|config| signing(config, &["a"]));
    let harness = setup.start().await;
    let maker = maker(&harness.client);
    (harness, maker)
}

fn maker(client: &Client) -> Client {
    client.with("authorization", "Bearer maker")
}

#[track_caller]
fn url(response: &Response) -> String {
    response.header(FIELD).expect("a resume URL").to_owned()
}

/// The same capability at another path of its generation.
fn at(url: &str, below: &str) -> String {
    url.replace("/events?", &format!("{below}?"))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_the_url_reads_without_the_credential() {
    let (harness, maker) = start(Script::tokens(8).step_gate("step")).await;
    harness.mock.gates().steps("step", 3);
    let mut first = maker.chat().await;
    let (id, url) = (first.id(), url(&first));
    assert!(
        url.starts_with(&format!("/v1/streams/{id}/events?cap=r.")),
        "{url}"
    );
    first.body.blocks(3).await;
    let page = harness.client.clone();
    let stranger = page.with("authorization", "Bearer another");
    let live = page.get(&url).await;
    assert!(live.is_durable());
    assert_eq!(live.header(FIELD), None, "it would renew itself");
    let other = stranger.get(&url).await;
    let after = page
        .with("last-event-id", &format!("{id}:3"))
        .get(&url)
        .await;
    let query = page.get(&format!("{url}&last_event_id=3")).await;
    let state = page.get(&at(&url, "")).await;
    assert_eq!((state.status, state.header(FIELD)), (200, None));
    assert_eq!(state.json().await["stream_id"], *id);
    harness.mock.gates().release("step");
    let whole = first.all().await;
    let replay = maker.events(&id).await.all().await;
    assert_eq!(live.all().await, replay);
    assert_eq!(other.all().await, replay);
    let rest = after.all().await;
    assert_eq!(query.all().await, rest);
    assert!(replay.0.ends_with(&rest.0) && rest.0.len() < replay.0.len());
    assert_eq!(whole.1, End::Proper);
    let last = wait_end(&maker, &id).await["last_seq"].clone();
    let over = page.with("last-event-id", &format!("{id}:{last}"));
    assert_eq!(over.get(&url).await.status, 204);
    // What it is good for is a URL; the data path wants the credential.
    let again = page.with("last-event-id", &format!("{id}:3"));
    let query = url.split_once('?').expect("a query").1;
    let again = again.send("POST", &format!("{PATH}?{query}"), CHAT).await;
    assert_eq!(
        again.error_code().await,
        (404, "stream_not_found".to_owned())
    );
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_to_its_maker_has_one() {
    let (harness, maker) = start(Script::tokens(4)).await;
    let keyed = maker.with("idempotency-key", "k");
    let first = keyed.chat().await;
    let id = first.id();
    let mut urls = vec![url(&first)];
    first.all().await;
    wait_end(&maker, &id).await;
    urls.push(url(&keyed.chat().await));
    urls.push(url(&maker.get(&format!("/v1/streams/{id}")).await));
    for way in Way::ALL {
        let reader = way.resume(&maker, &format!("{id}:1"), (PATH, CHAT)).await;
        urls.push(url(&reader));
    }
    for url in urls {
        assert_eq!(harness.client.get(&url).await.status, 200, "{url}");
    }
    // Nobody needs a credential where there was none.
    let bare = url(&harness.client.chat().await);
    let other = maker.get(&bare).await;
    assert_eq!((other.status, other.header(FIELD)), (200, None));

    let plain = Harness::start(Script::tokens(4)).await;
    assert_eq!(plain.client.chat().await.header(FIELD), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn to_stop_has_to_be_asked_for() {
    let (harness, maker) = start(Script::tokens(8).step_gate("step")).await;
    harness.mock.gates().steps("step", 3);
    let first = maker.with(SCOPE, "read").chat().await;
    let (id, reads) = (first.id(), url(&first));
    wait_seq(&maker, &id, 4).await;
    let page = harness.client.clone();
    let stop = |url: &str| {
        let (page, path) = (page.clone(), at(url, "/stop"));
        async move { page.send("POST", &path, "").await }
    };
    let refused = (403, "capability_scope".to_owned());
    assert_eq!(stop(&reads).await.error_code().await, refused);
    let both = maker.with(SCOPE, "read+stop");
    let stops = url(&both.events(&id).await);
    assert!(stops.contains("cap=rs."), "{stops}");
    assert_eq!(page.get(&at(&stops, "")).await.status, 200);
    let stopped = stop(&stops).await;
    assert_eq!(stopped.status, 200);
    assert_eq!(stopped.json().await["status"], "stopped");
    assert_eq!(stop(&reads).await.error_code().await, refused);
    assert_eq!(
        url(&both.get(&format!("/v1/streams/{id}")).await).len(),
        stops.len()
    );

    let bad = (400, "invalid_parameter".to_owned());
    let again = format!("{id}:1");
    for value in ["stop", "", "Read", "read, stop"] {
        let asks = maker.with(SCOPE, value);
        for answer in [
            asks.chat().await,
            asks.events(&id).await,
            asks.get(&format!("/v1/streams/{id}")).await,
            asks.with("last-event-id", &again).chat().await,
        ] {
            assert_eq!(answer.error_code().await, bad, "{value:?}");
        }
    }
    let twice = maker.with(SCOPE, "read").with(SCOPE, "read");
    assert_eq!(twice.chat().await.error_code().await, bad);
    assert_eq!(harness.mock.recorder().count(), 1);
    assert_eq!(harness.mock.recorder().requests()[0].header(SCOPE), None);
}

/// What an answer tells, but for the two ids and the time.
async fn told(answer: Response, id: &str) -> (u16, Vec<(String, String)>, String) {
    let status = answer.status;
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| name != "date" && name != "x-streamweld-request-id");
    let mut body: Value = answer.json().await;
    assert!(body["error"]["request_id"].take().is_string());
    (status, headers, body.to_string().replace(id, "(id)"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_was_not_given_is_of_a_stranger() {
    let (harness, maker) = start(Script::tokens(4).gate_after(2, "go")).await;
    let first = maker.with(SCOPE, "read+stop").chat().await;
    let (id, good) = (first.id(), url(&first));
    let (path, capability) = good.split_once("cap=").expect("a capability");
    let (elsewhere, _) = start(Script::tokens(4)).await;
    let of_another_key = Setup::new(Script::tokens(4))
        .config(|config| signing(config, &["b"]))
        .start()
        .await;
    let foreign = |url: String| url.split_once("cap=").expect("a capability").1.to_owned();
    let page = harness.client.clone();
    for forged in [
        String::new(),
        "x".to_owned(),
        capability.replacen("rs", "r", 1),
        capability.replacen("rs.1", "rs.2", 1),
        format!("{capability}A"),
        capability[..capability.len() - 1].to_owned(),
        // Good ones, of another generation, key or credential.
        foreign(url(&maker.chat().await)),
        foreign(url(&self::maker(&elsewhere.client).chat().await)),
        foreign(url(&self::maker(&of_another_key.client).chat().await)),
        // The first one counts.
        format!("x&cap={capability}"),
    ] {
        for below in ["", "/events", "/events?last_event_id=99", "/stop"] {
            let method = if below == "/stop" { "POST" } else { "GET" };
            let ask = async |id: &str| {
                let joint = if below.contains('?') { '&' } else { '?' };
                let target = format!("/v1/streams/{id}{below}{joint}cap={forged}");
                let answer = page.send(method, &target, "").await;
                assert_eq!(answer.status, 404, "{target}");
                told(answer, id).await
            };
            assert_eq!(ask(&id).await, ask(UNKNOWN).await);
        }
    }
    assert_eq!(
        page.get(&format!("{path}cap={capability}")).await.status,
        200
    );
    // With the credential it does not matter what else is there.
    assert_eq!(maker.get(&format!("{path}cap=x")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_expiry_only_its_holder_is_told_so() {
    let script = Script::tokens(4)
        .header("access-control-allow-origin", "*")
        .gate_after(2, "go");
    let setup = Setup::new(script).config(|config| {
        signing(config, &["a"]);
        config.edge.resume_urls.lifetime = Duration::from_secs(1);
    });
    let harness = setup.start().await;
    let (page, maker) = (harness.client.clone(), maker(&harness.client));
    let maker = maker.with(SCOPE, "read+stop");
    let first = maker.chat().await;
    let (id, state) = (first.id(), format!("/v1/streams/{}", first.id()));
    // A second may be over before its URL is used.
    let read = async || loop {
        let url = url(&maker.get(&state).await);
        let reader = page.get(&url).await;
        if reader.status == 200 {
            return (url, reader);
        }
    };
    let (old, reader) = patience(read()).await;
    let expired = async {
        loop {
            let answer = page.get(&at(&old, "")).await;
            if answer.status != 200 {
                return answer.error_code().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let over = (403, "capability_expired".to_owned());
    assert_eq!(patience(expired).await, over);
    let refused = page.get(&old).await;
    // The pages that may read the answer may read why they may not any more.
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    assert_eq!(refused.error_code().await, over);
    let stop = page.send("POST", &at(&old, "/stop"), "").await;
    assert_eq!(stop.error_code().await, over);
    let forged = page.get(&old.replacen("cap=rs", "cap=r", 1)).await;
    assert_eq!(forged.error_code().await.0, 404);
    // A fresh one, and who was reading reads on.
    patience(read()).await;
    harness.mock.gates().release("go");
    assert_eq!(reader.all().await, maker.events(&id).await.all().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_retention_its_holder_is_told_what_the_maker_is_told() {
    let setup = Setup::new(Script::tokens(4)).config(|config| {
        signing(config, &["a"]);
        config.journal.retention = Duration::from_secs(2);
    });
    let harness = setup.start().await;
    let first = maker(&harness.client).chat().await;
    let url = url(&first);
    first.all().await;
    let mut told = Vec::new();
    let forgotten = async {
        while told.last() != Some(&(404, "stream_not_found".to_owned())) {
            let answer = harness.client.get(&at(&url, "")).await;
            if answer.status != 200 {
                told.push(answer.error_code().await);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    patience(forgotten).await;
    told.dedup();
    assert_eq!(told[0], (410, "stream_expired".to_owned()), "{told:?}");
    assert_eq!(told.len(), 2, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_degraded_has_none() {
    let journal = Arc::new(Faulty::new(Memory::default()));
    let full = [Fault::Refuse(Refusal::Full)];
    journal.faults().script(Op::Open, full);
    let setup = Setup::new(Script::tokens(4))
        .journal(journal)
        .heal(HealBounds::default())
        .config(|config| signing(config, &["a"]));
    let harness = setup.start().await;
    let response = harness.client.chat().await;
    let durability = response.header("x-streamweld-durability");
    assert_eq!(
        (durability, response.header(FIELD)),
        (Some("degraded"), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_has_its_prefix_in_it() {
    let setup = Setup::new(Script::tokens(4)).config(|config| {
        signing(config, &["a"]);
        config.edge.resume_urls.prefix = "/llm".to_owned();
    });
    let harness = setup.start().await;
    let response = maker(&harness.client).chat().await;
    let (id, url) = (response.id(), url(&response));
    let behind = url.strip_prefix("/llm").expect("the prefix");
    assert!(
        behind.starts_with(&format!("/v1/streams/{id}/events?cap=")),
        "{url}"
    );
    assert_eq!(harness.client.get(behind).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_does_not_show_it_to_the_backend() {
    let (harness, maker) = start(Script::tokens(4)).await;
    let first = maker.chat().await;
    let (id, url) = (first.id(), url(&first));
    first.all().await;
    let asks = harness
        .client
        .with("origin", "https://app.example")
        .with("access-control-request-method", "GET");
    for target in [
        &url,
        &at(&url, ""),
        &at(&url, "/stop"),
        &format!("{url}&last_event_id=2"),
    ] {
        asks.send("OPTIONS", target, "").await.all().await;
    }
    let events = format!("/v1/streams/{id}/events");
    let state = format!("/v1/streams/{id}");
    let stop = format!("/v1/streams/{id}/stop");
    let seen = harness.mock.recorder().requests();
    let targets: Vec<_> = seen[1..].iter().map(|seen| seen.target.as_str()).collect();
    assert_eq!(targets, [&events, &state, &stop, &events]);
}

async fn on_each_replica(over: Over) {
    let script = Script::tokens(8).gate_after(4, "go");
    let pair = Pair::with(over, script, |config| signing(config, &["b", "a"])).await;
    let first = maker(&pair.one.client)
        .with(SCOPE, "read+stop")
        .durable_chat()
        .await;
    let (id, url) = (first.id(), url(&first));
    wait_seq(&maker(&pair.one.client), &id, 5).await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let readers = [one.get(&url).await, other.get(&url).await];
    let unknown = (404, "stream_not_found".to_owned());
    let forged = url.replacen("cap=rs", "cap=r", 1);
    for client in [one, other] {
        assert_eq!(client.get(&at(&url, "")).await.status, 200);
        assert_eq!(client.get(&forged).await.error_code().await, unknown);
    }
    let stopped = other.send("POST", &at(&url, "/stop"), "").await;
    assert_eq!(stopped.status, 200);
    let [one, other] = readers;
    assert_eq!(one.all().await, other.all().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_good_on_every_replica_that_has_the_key() {
    on_each_replica(Over::Link).await;
    on_each_replica(Over::Redis).await;
}

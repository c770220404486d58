//! All replicas are replaced, one after the other, each with its engine, while answers run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use streamweld_journal_redis::testing::until;
use streamweld_mock::{Cut, Engine};
use streamweld_tests::{Client, End, Response, blocks, texts};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::scene::{PATH, Scene, TEXT, body};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Answers under way.
const ANSWERS: usize = 300;
/// An answer lasts for as long as all of it takes.
const PACE: Duration = Duration::from_millis(400);

/// Where clients find the replicas, as a service would tell them.
type Service = Arc<Mutex<Vec<Client>>>;

/// One reader, which comes back with its last id whenever it is broken off. Gives the whole text, or the last block.
async fn read(service: Service, begun: Arc<AtomicUsize>, turn: usize) -> Result<String, String> {
    let until = Instant::now() + Duration::from_secs(120);
    let pick = |clients: &[Client], turn: usize| clients[turn % clients.len()].clone();
    let (id, mut shown, mut response) = loop {
        let client = pick(&service.lock().await, turn);
        let response = client.send("POST", PATH, &body().to_string()).await;
        if response.is_durable() {
            begun.fetch_add(1, Ordering::AcqRel);
            break (response.id(), Vec::new(), response);
        }
        assert!(Instant::now() < until, "it begins");
        sleep(Duration::from_millis(50)).await;
    };
    let mut turn = turn;
    loop {
        let (rest, end) = response.body.rest().await;
        shown.extend_from_slice(&rest);
        let last = blocks(&shown).pop();
        if end == End::Proper {
            return match last.and_then(|block| block.data).as_deref() {
                Some("[DONE]") => Ok(texts(&shown)),
                other => Err(format!("{other:?}")),
            };
        }
        let cursor = last.and_then(|block| block.id);
        response = loop {
            assert!(Instant::now() < until, "{id} is found again");
            turn += 1;
            let mut client = pick(&service.lock().await, turn);
            if let Some(cursor) = &cursor {
                client = client.with("last-event-id", cursor);
            }
            if let Some(response) = get(&client, &format!("/v1/streams/{id}/events")).await {
                if response.status == 200 {
                    break response;
                }
            }
            sleep(Duration::from_millis(50)).await;
        };
    }
}

/// A client whose replica may be gone.
async fn get(client: &Client, target: &str) -> Option<Response> {
    let mut stream = TcpStream::connect(client.addr).await.ok()?;
    stream
        .write_all(&client.request("GET", target, ""))
        .await
        .ok()?;
    Response::read(stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_lost_while_all_replicas_are_replaced() {
    let scene = Scene::new(Engine::Vllm).await.pace(PACE);
    let mut sidecars = Vec::new();
    for name in NAMES {
        sidecars.push(scene.sidecar(name).await);
    }
    let clients = sidecars.iter().map(|sidecar| sidecar.client.clone());
    let service = Service::new(Mutex::new(clients.collect()));
    let begun = Arc::new(AtomicUsize::new(0));
    let mut readers = JoinSet::new();
    for turn in 0..ANSWERS {
        readers.spawn(read(Arc::clone(&service), Arc::clone(&begun), turn));
    }
    until("all have begun", async || {
        begun.load(Ordering::Acquire) == ANSWERS
    })
    .await;
    for (at, name) in NAMES.into_iter().enumerate() {
        // As an orchestrator does it: out of the service, told to end, and a new one.
        service
            .lock()
            .await
            .retain(|client| client.addr != sidecars[at].client.addr);
        let sidecar = std::mem::replace(&mut sidecars[at], scene.sidecar(name).await);
        service.lock().await.push(sidecars[at].client.clone());
        sidecar.process.signal("TERM");
        let (status, output) = sidecar.process.ended().await;
        assert!(status.success(), "{output}");
        sidecar.mock.kill(Cut::Rst).await;
    }
    let mut exact = 0;
    while let Some(read) = readers.join_next().await {
        match read.expect("it is read to its end") {
            Ok(text) => {
                assert_eq!(text, TEXT);
                exact += 1;
            }
            Err(end) => panic!("neither whole nor refused: {end}"),
        }
    }
    assert_eq!(exact, ANSWERS);
}

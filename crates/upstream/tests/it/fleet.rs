//! Several backends, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Response;
use streamweld_upstream::fleet::{
    Config, Engine, Fleet, MemberSnapshot, MemberState, Permit, Spec, Wanted, Watch,
};
use streamweld_upstream::{Client, Source, UpstreamConfig, UpstreamError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::raw::{Raw, get, read_head, within};

mod addresses;
mod attempts;
mod drain;
mod probes;

const FIRST: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\none \r\n";
const LAST: &str = "3\r\ntwo\r\n0\r\n\r\n";

/// A backend that says whether it is well, and streams.
struct Streaming {
    raw: Raw,
    well: Arc<AtomicBool>,
    probes: Arc<AtomicUsize>,
    /// Streams end when this is true.
    finish: watch::Sender<bool>,
}

impl Streaming {
    async fn start() -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn start_on(listener: TcpListener) -> Self {
        let well = Arc::new(AtomicBool::new(true));
        let probes = Arc::new(AtomicUsize::new(0));
        let finish = watch::Sender::new(false);
        let (is_well, count, finished) = (well.clone(), probes.clone(), finish.clone());
        let raw = Raw::start_on(listener, move |mut stream, _| {
            let (is_well, count) = (is_well.clone(), count.clone());
            let mut finished = finished.subscribe();
            async move {
                while let Some(head) = read_head(&mut stream).await {
                    let status = match head.split(' ').nth(1).unwrap() {
                        "/health" => {
                            count.fetch_add(1, Ordering::SeqCst);
                            match is_well.load(Ordering::SeqCst) {
                                true => "200 OK",
                                false => "503 Service Unavailable",
                            }
                        }
                        "/400" => "400 Bad Request",
                        "/500" => "500 Internal Server Error",
                        _ => {
                            stream.write_all(FIRST.as_bytes()).await.unwrap();
                            finished.wait_for(|&finished| finished).await.unwrap();
                            stream.write_all(LAST.as_bytes()).await.unwrap();
                            continue;
                        }
                    };
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        });
        Self {
            raw,
            well,
            probes,
            finish,
        }
    }

    fn spec(&self, name: &str) -> Spec {
        spec(name, &format!("http://127.0.0.1:{}", self.raw.port))
    }
}

fn spec(name: &str, url: &str) -> Spec {
    Spec::new(name, url.parse().unwrap(), Engine::Vllm)
}

fn fleet(specs: Vec<Spec>) -> Fleet {
    let config = Config {
        probe_every: Duration::from_millis(20),
        probe_timeout: Duration::from_secs(10),
        lookup_every: Duration::from_millis(20),
        ..Config::default()
    };
    Fleet::new(specs, config).unwrap()
}

fn watched(specs: Vec<Spec>) -> (Fleet, Watch) {
    let fleet = fleet(specs);
    let watch = fleet.watch(&UpstreamConfig::default()).unwrap();
    (fleet, watch)
}

fn shown(fleet: &Fleet, name: &str) -> Option<MemberSnapshot> {
    let mut members = fleet.snapshot().into_iter();
    members.find(|member| member.name == name)
}

/// Waits until the member is shown so.
async fn until(fleet: &Fleet, name: &str, state: MemberState) -> MemberSnapshot {
    let mut changes = fleet.changes();
    within(async {
        loop {
            if let Some(member) = shown(fleet, name).filter(|member| member.state == state) {
                return member;
            }
            changes.changed().await;
        }
    })
    .await
}

/// An attempt at whoever is chosen: its permit, and what came of it.
async fn attempt(
    fleet: &Fleet,
    client: &Client,
    path: &str,
) -> (Permit, Result<Response<Source>, UpstreamError>) {
    let permit = fleet.pick(&Wanted::default()).unwrap();
    let result = within(client.send(permit.member().backend(), get(path))).await;
    match &result {
        Ok(response) => permit.answered(response.status()),
        Err(error) => permit.failed(error),
    }
    (permit, result)
}

//! Generated streams of every dialect, read through Streamweld and straight from their backend: the events are the same,
//! but for those that protocol.md drops, and the end is what the generator made it.
//!
//! A case is its seed and nothing else. `SEED=17` runs that one alone, `STREAMS=100000` as many as that:
//!
//! ```sh
//! SEED=17 cargo test -p streamweld-tests --test it differential::
//! ```

mod answers;
mod backend;
mod case;
mod decode;
mod random;
mod wire;

use std::env;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use streamweld_mock::{Dialect, Script};
use streamweld_tests::{Block, Client, End, Response, Setup, blocks, patience};
use streamweld_upstream::Backend as Upstream;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use self::backend::Backend;
use self::case::{Case, Outcome};

/// How many streams are read where nothing else is said.
const STREAMS: u64 = 10_000;
/// How many are read at the same time.
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_the_same_through_streamweld_and_without_it() {
    let number = |name| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let (from, to) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("STREAMS").unwrap_or(STREAMS)),
    };
    let backend = Backend::start().await;
    let url = backend.url().parse().expect("a plain URL");
    let setup = Setup::new(Script::default()).config(move |config| {
        config.backends = vec![Upstream::named("generated", url).into()];
        config.journal.total = 64 << 20;
        config.journal.per_generation = 4 << 20;
    });
    let harness = setup.start().await;
    let next = Arc::new(AtomicU64::new(from));
    let mut readers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let next = Arc::clone(&next);
        let places = (backend.addr(), harness.client.addr);
        readers.spawn(async move {
            let mut pair = Pair::new(places);
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= to {
                    return;
                }
                // A task of its own, so that whatever goes wrong in it is told with its seed.
                let one = tokio::spawn(async move {
                    pair.check(&Case::of(seed)).await;
                    pair
                });
                pair = match one.await {
                    Ok(pair) => pair,
                    Err(error) => panic!("SEED={seed}: {error}"),
                };
            }
        });
    }
    while let Some(reader) = readers.join_next().await {
        reader.expect("every stream is the same");
    }
}

/// Two connections that are kept from case to case: to the backend, and to Streamweld.
struct Pair {
    direct: Line,
    through: Line,
}

impl Pair {
    fn new((direct, through): (SocketAddr, SocketAddr)) -> Self {
        Self {
            direct: Line::new(direct),
            through: Line::new(through),
        }
    }

    async fn check(&mut self, case: &Case) {
        let (direct, _) = self.direct.ask(case).await;
        let events = decode::events(&direct.bytes);
        assert_eq!(
            events,
            case.written(),
            "the generator and the decoder disagree"
        );

        // On a busy machine a head may not have waited for its journal: then there is no id, and no state.
        let (shown, id) = loop {
            if let (shown, Some(id)) = self.through.ask(case).await {
                break (shown, id);
            }
        };
        let (state, _) = self.through.state(&id).await;
        let state: Value = serde_json::from_slice(&state.bytes).expect("JSON");
        let mut blocks = blocks(&shown.bytes);
        check_end(case, &state, shown.end, &mut blocks);
        let expected = case.shown();
        assert_eq!(
            blocks.len(),
            expected.len(),
            "{blocks:#?}, not {expected:#?}"
        );
        for (seq, (block, event)) in (2..).zip(blocks.iter().zip(&expected)) {
            assert_eq!(block.event, event.name);
            assert_eq!(block.data, event.data);
            let retry = event.retry.map(|retry| retry.to_string());
            assert_eq!(block.retry, retry);
            let plain = case.dialect == Some(Dialect::Gemini);
            let cursor = (!plain).then(|| format!("{id}:{seq}"));
            assert_eq!(block.id, cursor);
        }
        assert_eq!(state["dialect"], case.name());
        assert_eq!(state["terminal"]["seq"], 2 + expected.len(), "{state}");
    }
}

/// Checks the end, and takes the error form off the end of what was shown.
fn check_end(case: &Case, state: &Value, end: End, blocks: &mut Vec<Block>) {
    let terminal = &state["terminal"];
    match &case.outcome {
        Outcome::Done {
            end: done_by,
            reasons,
        } => {
            assert_eq!(terminal["kind"], "done", "{terminal}");
            assert_eq!(terminal["end"], *done_by);
            assert_eq!(terminal["reasons"], Value::from(reasons.clone()));
            assert_eq!(end, End::Proper);
        }
        Outcome::Failed { code } => {
            assert_eq!(terminal["kind"], "error", "{terminal}");
            assert_eq!(terminal["code"], *code, "{terminal}");
            assert_eq!(end, End::Fin);
            if !case.has_form() {
                return;
            }
            let form = blocks.pop().expect("a form");
            let text = form.data.as_ref().or(form.bare.as_ref());
            let data: Value = serde_json::from_str(text.expect("data")).expect("JSON");
            assert!(data["error"].is_object(), "{data}");
        }
    }
}

/// A body as it was read.
struct Read {
    bytes: Vec<u8>,
    end: End,
}

/// One connection for one request after the other, made anew when it has broken off.
struct Line {
    client: Client,
    kept: Option<TcpStream>,
}

impl Line {
    fn new(addr: SocketAddr) -> Self {
        Self {
            client: Client::new(addr),
            kept: None,
        }
    }

    async fn ask(&mut self, case: &Case) -> (Read, Option<String>) {
        // What MCP is recognised by. Elsewhere it would be misleading.
        let client = match case.dialect {
            None => &self.client.with("mcp-protocol-version", "2025-11-25"),
            Some(_) => &self.client,
        };
        let request = client.request("POST", &case.path(), &case.request());
        self.send(&request).await
    }

    async fn state(&mut self, id: &str) -> (Read, Option<String>) {
        let request = self.client.request("GET", &format!("/v1/streams/{id}"), "");
        self.send(&request).await
    }

    /// Gives the body and the stream id.
    async fn send(&mut self, request: &[u8]) -> (Read, Option<String>) {
        let stream = match self.kept.take() {
            Some(mut kept) => {
                kept.write_all(request).await.expect("is sent");
                kept
            }
            None => self.client.begin(request).await,
        };
        let mut response = patience(Response::read(stream)).await.expect("a response");
        assert_eq!(response.status, 200);
        let id = response.header("x-streamweld-stream-id").map(str::to_owned);
        let (bytes, end) = response.body.rest().await;
        self.kept = (end == End::Proper).then(|| response.body.into_stream());
        (Read { bytes, end }, id)
    }
}

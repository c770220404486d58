//! From the cut of a backend to the request that another one goes on with, and to the next event at the reader, beside
//! what an ordinary request takes from the client to the backend.
//!
//! Each round has two mock engines and a server of its own, in one process: what is measured is the proxy's part, not an
//! engine's prefill. Prints medians and the ratio.
#![allow(
    clippy::print_stdout,
    reason = "a benchmark's answer goes to standard output"
)]

use tokio::time::Instant;

use serde_json::json;
use streamweld_generation::migration::Policy;
use streamweld_mock::{Cut, Engine, Mock, Script};
use streamweld_server::Config;
use streamweld_tests::Several;
use streamweld_upstream::fleet;

const ROUNDS: usize = 51;
const WORDS: usize = 60;
/// Behind so many events, by turns.
const CUTS: [usize; 3] = [5, 20, 40];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    for (name, engine, known) in [
        ("token ids", Engine::Vllm, fleet::Engine::Vllm),
        ("prefill", Engine::LlamaCpp, fleet::Engine::LlamaCpp),
    ] {
        runtime.block_on(run(name, engine, known));
    }
}

async fn run(name: &str, engine: Engine, known: fleet::Engine) {
    let (mut asked, mut moved, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up and does not count.
    for round in 0..=ROUNDS {
        let [ask, dispatch, event] = once(engine, known, CUTS[round % CUTS.len()]).await;
        if round > 0 {
            asked.push(ask);
            moved.push(dispatch);
            shown.push(event);
        }
    }
    let (ask, dispatch) = (median(&mut asked), median(&mut moved));
    println!("{name}, {ROUNDS} rounds");
    println!("  a request, from the client to the backend  {ask:.2} ms");
    println!("  from the cut to the request that goes on   {dispatch:.2} ms");
    println!(
        "  ratio                                      {:.1}",
        dispatch / ask
    );
    println!(
        "  the longest of them                        {:.2} ms",
        moved[ROUNDS - 1]
    );
    println!(
        "  from the cut to the next event             {:.2} ms",
        median(&mut shown)
    );
}

/// Milliseconds: client to backend, cut to the other backend, cut to the reader.
async fn once(engine: Engine, known: fleet::Engine, cut: usize) -> [f64; 3] {
    let script = || {
        let text: String = (0..WORDS).map(|word| format!("word{word} ")).collect();
        Script::text(&text).engine(engine).gate_after(cut, "cut")
    };
    let several = Several::start(known, vec![script(), script()], |config: &mut Config| {
        let groups = &mut config.migration.groups;
        groups.insert("twins".to_owned(), Policy::Prefill);
    })
    .await;
    let body = json!({"model": "m", "stream": true, "temperature": 0,
        "messages": [{"role": "user", "content": "q"}]});
    let began = Instant::now();
    let client = &several.replica.client;
    let mut response = client
        .send("POST", "/v1/chat/completions", &body.to_string())
        .await;
    drop(response.body.blocks(cut).await);
    let first = several
        .mocks
        .iter()
        .position(|mock| asked_at(mock).is_some())
        .expect("somebody was asked");
    let (dying, other) = (&several.mocks[first], &several.mocks[1 - first]);
    let asked = asked_at(dying).expect("it was asked");
    other.gates().release("cut");
    let at = Instant::now();
    dying.cut_connections(Cut::Rst).await;
    drop(response.body.blocks(1).await);
    let shown = at.elapsed();
    let moved = asked_at(other).expect("it goes on");
    drop(response.body.rest().await);
    [asked - began, moved - at, shown].map(|time| time.as_secs_f64() * 1e3)
}

/// When a backend was asked for an answer; probes of its health do not count.
fn asked_at(mock: &Mock) -> Option<Instant> {
    let requests = mock.recorder().requests();
    let asked = requests.iter().find(|request| request.method == "POST");
    asked.map(|request| request.at)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

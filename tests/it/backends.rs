//! Several backends behind one server (protocol.md 8.7, 12.2).

use std::time::Duration;

use http::uri::PathAndQuery;
use serde_json::Value;
use streamweld_mock::{Mock, Request, Script};
use streamweld_server::Config;
use streamweld_tests::{CHAT, Client, Harness, Setup, patience};
use streamweld_upstream::fleet::{Engine, HealthCheck, Spec};
use tokio::time::sleep;

mod attempts;
mod commands;
mod credentials;
mod draining;
mod health;
mod operators;

/// A server in front of mocks with these scripts, which are called `a`, `b`, `c`. Nobody probes them.
struct Several {
    harness: Harness,
    mocks: Vec<Mock>,
}

impl Several {
    async fn start(scripts: Vec<Script>) -> Self {
        Self::with(scripts, |_| {}).await
    }

    async fn with(scripts: Vec<Script>, change: impl FnOnce(&mut Config) + Send + 'static) -> Self {
        let mut mocks = Vec::new();
        for script in scripts {
            mocks.push(Mock::start(script).await.expect("a port"));
        }
        let backends: Vec<Spec> = ["a", "b", "c"]
            .iter()
            .zip(&mocks)
            .map(|(name, mock)| spec(name, &mock.url()))
            .collect();
        let setup = Setup::new(Script::new()).config(move |config| {
            config.backends = backends;
            change(config);
        });
        let harness = setup.start().await;
        Self { harness, mocks }
    }

    fn client(&self) -> &Client {
        &self.harness.client
    }

    fn admin(&self) -> &Client {
        &self.harness.admin
    }

    /// How many requests of clients each has had.
    fn asked(&self) -> Vec<usize> {
        self.mocks.iter().map(|mock| asked(mock).len()).collect()
    }

    /// What the server says of a backend.
    async fn shown(&self, name: &str) -> Value {
        let path = format!("/admin/backends/{name}");
        self.admin().get(&path).await.json().await
    }

    /// Waits until it says so of a backend.
    async fn wait_shown(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let until = async {
            loop {
                let shown = self.shown(name).await;
                if holds(&shown) {
                    return shown;
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        patience(until).await
    }
}

fn spec(name: &str, url: &str) -> Spec {
    Spec::new(name, url.parse().expect("a URL"), Engine::Unknown)
}

/// Lets one be asked only when another has failed: no probe has said yet that it is well.
fn only_after_the_others(spec: &mut Spec, config: &mut streamweld_upstream::fleet::Config) {
    spec.health = HealthCheck::Path(PathAndQuery::from_static("/v1/never"));
    config.probe_every = Duration::from_secs(24 * 60 * 60);
}

/// The requests of clients that it has had.
fn asked(mock: &Mock) -> Vec<Request> {
    let mut requests = mock.recorder().requests();
    requests.retain(|request| request.header("user-agent") != Some("streamweld-probe"));
    requests
}

/// Where nobody listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// A generation that waits behind its first events, at this backend.
async fn held_at(several: &Several, name: &str) -> (String, streamweld_tests::Response) {
    let found = async {
        loop {
            let mut response = several.client().chat().await;
            let id = response.id();
            response.body.blocks(2).await;
            let path = format!("/admin/streams/{id}");
            let state = several.admin().get(&path).await.json().await;
            if state["backends"] == serde_json::json!([name]) {
                return (id, response);
            }
        }
    };
    patience(found).await
}

/// A chat request with a prompt of this size.
fn large(bytes: usize) -> String {
    CHAT.replace("hi", &"x".repeat(bytes))
}

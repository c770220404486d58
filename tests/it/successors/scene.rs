//! Replicas with an engine each, over one Redis.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_journal_redis::testing::{Server as Redis, Setup};
use streamweld_mock::{Cut, Engine, Mock, MockConfig, Script};
use streamweld_tests::{Client, End, Process, Response, blocks, events, texts};

pub(super) const PATH: &str = "/v1/chat/completions";
/// Short, for stories that wait for one.
pub(super) const LEASE: Duration = Duration::from_secs(2);
/// Slow enough for the journal to be given most events one by one.
const PACE: Duration = Duration::from_millis(5);
pub(super) const TEXT: &str = "A lighthouse keeper counts the ships that pass at night, and writes each of them down in a \
    book that nobody reads, until one evening a ship stops.";

/// One Redis, and what all engines of a story say.
pub(super) struct Scene {
    pub(super) redis: Redis,
    engine: Engine,
    pace: Duration,
    options: Vec<String>,
}

/// A replica and its engine, which go together.
pub(super) struct Sidecar {
    pub(super) process: Process,
    pub(super) client: Client,
    pub(super) admin: Client,
    pub(super) mock: Mock,
}

impl Scene {
    pub(super) async fn new(engine: Engine) -> Self {
        Self {
            redis: Setup::new().start().await,
            engine,
            pace: Duration::ZERO,
            options: Vec::new(),
        }
    }

    /// With engines that take so long for each event.
    pub(super) fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// With another option of `serve`.
    pub(super) fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// The whole answer.
    pub(super) fn script(&self) -> Script {
        Script::text(TEXT).engine(self.engine).pace(self.pace)
    }

    pub(super) async fn sidecar(&self, name: &str) -> Sidecar {
        self.sidecar_at(name, &self.redis.url()).await
    }

    /// One that knows Redis by another address.
    pub(super) async fn sidecar_at(&self, name: &str, redis: &str) -> Sidecar {
        self.start(name, redis, &[]).await
    }

    /// One with these variables.
    pub(super) async fn sidecar_with(&self, name: &str, variables: &[(&str, &str)]) -> Sidecar {
        self.start(name, &self.redis.url(), variables).await
    }

    async fn start(&self, name: &str, redis: &str, variables: &[(&str, &str)]) -> Sidecar {
        let config = MockConfig {
            default: self.script(),
            ..MockConfig::default()
        };
        let mock = Mock::bind("127.0.0.1:0", config).await.expect("a port");
        let engine = match self.engine {
            Engine::Vllm => "vllm",
            Engine::Sglang => "sglang",
            Engine::LlamaCpp => "llama_cpp",
            Engine::Anthropic => "anthropic",
        };
        let backend = format!(
            "--backend={},name={name},engine={engine},group=g",
            mock.url()
        );
        let journal = format!("--journal={redis}");
        let lease = format!("--presence-lease={}ms", LEASE.as_millis());
        let mut arguments = vec![&*backend, &journal, &lease, "--vouched=g"];
        let policy = self.options.iter().any(|it| it.starts_with("--migration="));
        if !policy {
            arguments.push("--migration=g=prefill");
        }
        arguments.extend(self.options.iter().map(String::as_str));
        let mut process = Process::serve_with(variables, &arguments);
        let client = process.client().await;
        let admin = process.admin().await;
        Sidecar {
            process,
            client,
            admin,
            mock,
        }
    }
}

impl Sidecar {
    /// An answer that stands still behind so many events, for ever.
    pub(super) async fn begin(&self, scene: &Scene, count: usize) -> Begun {
        self.begin_with(&self.client, scene, count, &body()).await
    }

    pub(super) async fn begin_with(
        &self,
        client: &Client,
        scene: &Scene,
        count: usize,
        body: &Value,
    ) -> Begun {
        self.mock
            .push_script(scene.script().pace(PACE).gate_after(count, "never"));
        let mut response = client.send("POST", PATH, &body.to_string()).await;
        assert_eq!(response.status, 200);
        let id = response.id();
        let shown = response.body.blocks(count).await;
        Begun {
            id,
            shown,
            response,
        }
    }

    /// The replica and its engine are gone at once, as with their machine.
    pub(super) async fn die(self) {
        self.process.signal("KILL");
        let _ = self.process.ended().await;
        self.mock.kill(Cut::Rst).await;
    }
}

/// An answer that stands still.
pub(super) struct Begun {
    pub(super) id: String,
    /// What its reader was given.
    pub(super) shown: Vec<u8>,
    pub(super) response: Response,
}

/// A request that an answer can be moved of.
pub(super) fn body() -> Value {
    json!({"model": "m", "stream": true, "temperature": 0, "messages": [{"role": "user", "content": "q"}]})
}

/// A reader that comes back at `client` with the last id it saw has one whole answer.
pub(super) async fn assert_whole(client: &Client, begun: &Begun) {
    let last = blocks(&begun.shown).pop().and_then(|block| block.id);
    let last = last.expect("blocks carry ids");
    let back = client.with("last-event-id", &last);
    let (rest, end) = back.events(&begun.id).await.all().await;
    assert_eq!(end, End::Proper, "{}", String::from_utf8_lossy(&rest));
    let whole = [&begun.shown[..], &rest].concat();
    assert_eq!(texts(&whole), TEXT, "{}", String::from_utf8_lossy(&whole));
    assert_eq!(events(&whole).pop().as_deref(), Some("[DONE]"));
    // Another device reads the same from the start.
    let (all, _) = client.events(&begun.id).await.all().await;
    assert_eq!(blocks(&all), blocks(&whole));
}

/// The entries of this kind.
pub(super) async fn entries(client: &Client, id: &str, kind: &str) -> Vec<Value> {
    let control = client.with("x-streamweld-events", "control");
    let (log, _) = control.events(id).await.all().await;
    let entries = blocks(&log).into_iter();
    let entries = entries.filter(|block| block.event.as_deref() == Some(kind));
    entries
        .map(|block| serde_json::from_str(&block.data.expect("data")).expect("JSON"))
        .collect()
}

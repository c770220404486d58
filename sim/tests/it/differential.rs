//! The fake Redis answers as a real one does: random commands, and every script of the journal over the same state.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use redis::{Cmd, Value};
use streamweld_journal_redis::testing::Setup;
use streamweld_sim::Random;
use streamweld_sim::redis::{Server, parse};

/// The scripts, as they are.
macro_rules! scripts {
    ($($name:literal $keys:literal)*) => {
        [$((include_str!(concat!("../../../crates/journal-redis/src/scripts/", $name, ".lua")), $keys)),*]
    };
}

/// With the kind of each key and of each argument; see [`Draw`].
const SCRIPTS: [(&str, &str); 17] = scripts! {
    "adopt" "log meta readers request | seq epoch text ms text channel publish"
    "alive" "replicas"
    "bind" "claim | text ms"
    "claim" "claim | text ms"
    "claim_body" "claim | text text"
    "finish" "log meta gone readers request | seq epoch text ms ms text channel publish text"
    "follow" "log meta readers | text ms"
    "forget" "replicas owned | text text text"
    "keep" "gone request | text ms"
    "leave" "meta readers | text"
    "look" "replicas owned | text ms ms"
    "open" "log meta gone | id text text ms access text owner text epoch text"
    "pending" "meta readers"
    "release" "claim | text"
    "stop" "log meta | flag"
    "take_back" "log | id text"
    "touch" "log | ms"
};

/// The commands that the journal sends by themselves.
const COMMANDS: [&str; 20] = [
    "XADD log NOMKSTREAM id r text",
    "XADD log NOMKSTREAM id r text t text",
    "XADD log id r text",
    "XRANGE log from + COUNT count",
    "XREVRANGE log + - COUNT count",
    "HSET meta label text",
    "HMGET meta access label owner epoch ended stop",
    "GET gone",
    "GET request",
    "SET request text PX ms",
    "DEL log meta",
    "DEL claim",
    "EXISTS log meta gone",
    "PEXPIRE log ms",
    "SADD owned text",
    "SREM owned text",
    "SMEMBERS owned",
    "ZADD replicas NX 0 text",
    "ZADD replicas XX 0 text",
    "ZSCORE replicas text",
];

/// Draws a word for each kind; other words stand for themselves. Few of each, so that they meet.
struct Draw(Random);

impl Draw {
    fn word(&mut self, kind: &str) -> String {
        let Self(random) = self;
        match kind {
            "log" | "meta" | "gone" | "readers" | "request" | "claim" | "replicas" | "owned" => {
                format!("{{k}}:{kind}")
            }
            "seq" => random.between(1, 6).to_string(),
            "epoch" => random.between(1, 3).to_string(),
            "id" => format!("{}-{}", random.between(1, 3), random.between(1, 6)),
            "from" => ["-", "2-3", "(1-4", "2"][random.below(4)].to_owned(),
            "count" => random.between(1, 4).to_string(),
            // Long: time passes differently in the two.
            "ms" => random.between(3_600_000, 7_200_000).to_string(),
            "text" => ["a", "b", "\r\n\u{e9}"][random.below(3)].to_owned(),
            "flag" => random.between(0, 1).to_string(),
            "channel" => "feed".to_owned(),
            "publish" => "PUBLISH".to_owned(),
            word => word.to_owned(),
        }
    }

    /// A command of a line of kinds, or a script with its keys and arguments.
    fn command(&mut self) -> Vec<String> {
        if self.0.chance(50) {
            let line = COMMANDS[self.0.below(COMMANDS.len())];
            return line.split(' ').map(|kind| self.word(kind)).collect();
        }
        let (text, kinds) = SCRIPTS[self.0.below(SCRIPTS.len())];
        let (keys, args) = kinds.split_once(" |").unwrap_or((kinds, ""));
        let count = keys.split(' ').count();
        let mut words = vec!["EVAL".to_owned(), text.to_owned(), count.to_string()];
        let all = keys.split(' ').chain(args.split_whitespace());
        words.extend(all.map(|kind| self.word(kind)));
        words
    }
}

/// The fake one, spoken to in its protocol.
struct Fake {
    server: Server,
    client: u64,
    now: u64,
}

impl Fake {
    fn new() -> Self {
        let mut server = Server::default();
        let (client, _) = server.connect();
        let now = 1_700_000_000_000;
        Self {
            server,
            client,
            now,
        }
    }

    fn ask(&mut self, command: &Cmd) -> Value {
        let mut input = BytesMut::from(&command.get_packed_command()[..]);
        let words: Vec<Bytes> = parse(&mut input).expect("a command").expect("all of it");
        self.now += 1;
        self.server.ask(self.client, self.now, &words);
        redis::parse_redis_value(&self.server.outbox(self.client)).expect("one answer")
    }
}

/// What is alike in both: sets have no order, times differ, and of an error its code counts.
fn alike(value: Value, is_unordered: bool) -> Value {
    match value {
        Value::ServerError(error) => Value::SimpleString(format!("error {}", error.code())),
        Value::Array(parts) if is_unordered => {
            let parts: BTreeSet<String> = parts.iter().map(|part| format!("{part:?}")).collect();
            Value::SimpleString(format!("{parts:?}"))
        }
        Value::Array(parts) => {
            Value::Array(parts.into_iter().map(|part| alike(part, false)).collect())
        }
        other => other,
    }
}

async fn check(seed: u64, real: &mut redis::aio::MultiplexedConnection) {
    redis::cmd("FLUSHALL")
        .exec_async(real)
        .await
        .expect("it is emptied");
    let (mut fake, mut draw) = (Fake::new(), Draw(Random::new(seed)));
    for step in 0..300 {
        let words = draw.command();
        let mut command = Cmd::new();
        command.arg(&words);
        let is_unordered = words[0] == "SMEMBERS";
        let expected = real
            .send_packed_command(&command)
            .await
            .unwrap_or_else(|error| {
                let code = error.code().map(str::to_owned);
                Value::SimpleString(format!(
                    "error {}",
                    code.unwrap_or_else(|| panic!("{words:?}: {error}"))
                ))
            });
        let found = fake.ask(&command);
        // Scores are times, and what is left of an expiry is one.
        if words[0] == "ZSCORE" && expected != Value::Nil {
            assert_ne!(found, Value::Nil, "step {step} of {seed}: {words:?}");
            continue;
        }
        assert_eq!(
            alike(found, is_unordered),
            alike(expected, is_unordered),
            "step {step} of {seed}: {words:?}"
        );
    }
}

#[tokio::test]
async fn the_fake_answers_as_a_real_server_does() {
    let server = Setup::new().start().await;
    let client = redis::Client::open(server.url()).expect("a URL");
    let connection = client.get_multiplexed_async_connection().await;
    let mut connection = connection.expect("it is there");
    for seed in 0..30 {
        check(seed, &mut connection).await;
    }
}

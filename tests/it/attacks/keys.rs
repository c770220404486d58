//! What clients could do to Redis by what they send, and whoever can write there to replicas: attacks 27 and 28.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{CHAT, End, Over, Pair, question, wait_end};

use super::assert_serves;

const ODD: [&str; 8] = [
    "{a}",
    "}{",
    "*",
    "?[a-z]",
    "a:b:log",
    "%0d%0aFLUSHALL",
    "\u{fc}\u{2028}",
    "$(x) ; |",
];

#[tokio::test(flavor = "multi_thread")]
async fn row_27_names_in_redis_are_made_of_our_own_characters() {
    let mut pair = Pair::start(Over::Redis, Script::tokens(2)).await;
    let client = pair.one.client.clone();
    for odd in ODD {
        let client = client
            .with("authorization", &format!("Bearer {odd}"))
            .with("x-api-key", odd)
            .with("mcp-session-id", odd)
            .with("x-request-id", odd)
            .with("user-agent", odd);
        // A key of visible characters is taken, another is refused.
        let key = client.with("idempotency-key", odd);
        let body = CHAT.replace(r#""m""#, &serde_json::json!(odd).to_string());
        for client in [&client, &key] {
            let answer = client.send("POST", "/v1/chat/completions", &body).await;
            assert!([200, 400].contains(&answer.status), "{odd}");
            answer.all().await;
        }
        let id = odd.replace(['%', '\u{2028}', ' '], "");
        for path in [
            format!("/v1/streams/{id}"),
            format!("/v1/responses/{id}?stream=true"),
        ] {
            client.get(&path).await.all().await;
        }
    }
    let keys = pair.redis().cli(&["--raw", "KEYS", "*"]).await;
    let ours = |name: &str| {
        let rest = name.strip_prefix("streamweld:");
        rest.is_some_and(|rest| {
            rest.bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b":{}".contains(&it))
        })
    };
    assert!(keys.lines().count() > ODD.len(), "{keys}");
    let others: Vec<_> = keys.lines().filter(|name| !ours(name)).collect();
    assert_eq!(others, [""; 0]);
}

/// What somebody does by hand to one of the keys of a generation.
struct Written {
    key: String,
    /// Nothing of what was there stays.
    replaces: bool,
    command: Vec<String>,
}

fn written(id: &str) -> Vec<Written> {
    let key = |what: &str| format!("streamweld:{{{id}}}:{what}");
    let (log, meta) = (key("log"), key("meta"));
    let huge = "\u{2}".repeat(100_000);
    let mut all = Vec::new();
    let mut write = |replaces, key: &str, words: &[&str]| {
        let rest = words[1..].iter().map(|&word| word.to_owned());
        let command = [words[0].to_owned(), key.to_owned()];
        all.push(Written {
            key: key.to_owned(),
            replaces,
            command: command.into_iter().chain(rest).collect(),
        });
    };
    for what in ["log", "meta", "gone", "readers", "request"] {
        for words in [
            &["SET", "x"][..],
            &["SET", &huge],
            // Of 8 MiB.
            &["SETRANGE", "8388608", "x"],
            &["RPUSH", "x"],
            &["HSET", "x", "y"],
            &["SADD", "x"],
            &["XADD", "1-1", "x", "y"],
        ] {
            write(true, &key(what), words);
        }
    }
    let last = "18446744073709551615-18446744073709551615";
    for record in [
        "",
        "\u{1}",
        "\u{2}",
        "\u{9}of a version to come",
        "{}",
        &huge,
    ] {
        for at in ["1-1", last] {
            write(true, &log, &["XADD", at, "r", record]);
        }
        write(false, &log, &["XADD", "9999-1", "r", record]);
    }
    for (field, value) in [
        ("access", ""),
        ("access", huge.as_str()),
        ("created", "-1"),
        ("created", "99999999999999999999999"),
        ("label", huge.as_str()),
        ("label", "{\"v\":999}"),
        ("epoch", "x"),
        ("owner", huge.as_str()),
        ("ended", "x"),
    ] {
        write(false, &meta, &["HSET", field, value]);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn row_28_what_others_write_there_is_an_error_at_worst() {
    let mut pair = Pair::with(Over::Redis, Script::tokens(3), |config| {
        config.edge.hold = Duration::from_millis(100);
        config.journal.retention = Duration::from_secs(120);
    })
    .await;
    let (maker, other) = (pair.one.client.clone(), pair.other.client.clone());
    let count = written("x").len();
    for at in 0..count {
        let answer = maker
            .send("POST", "/v1/chat/completions", &question())
            .await;
        let id = answer.id();
        let (whole, end) = answer.all().await;
        assert_eq!(end, End::Proper);
        wait_end(&maker, &id).await;
        let Written {
            key,
            replaces,
            command,
        } = written(&id).swap_remove(at);
        if replaces {
            pair.redis().cli(&["DEL", &key]).await;
        }
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        pair.redis().cli(&words).await;
        let told = format!("{:.200}", command.join(" "));
        // Where it was written it is in memory; the other one reads what stands there.
        let path = format!("/v1/streams/{id}");
        let events = other.events(&id).await;
        if events.status == 200 {
            let (body, end) = events.all().await;
            assert!(
                end != End::Proper || body == whole,
                "{told}: a part is no whole"
            );
        } else {
            let (status, _) = events.error_code().await;
            assert!([404, 410, 503].contains(&status), "{told}: {status}");
        }
        for answer in [
            other.get(&path).await,
            other.send("POST", &format!("{path}/stop"), "").await,
        ] {
            assert_ne!(answer.status, 500, "{told}");
            answer.json().await;
        }
    }
    // And of what all replicas share.
    for key in ["{presence}:replicas", "{presence}:owned:0"] {
        let key = format!("streamweld:{key}");
        for command in [["SET", &key, "x"], ["RPUSH", &key, "x"]] {
            pair.redis().cli(&["DEL", &key]).await;
            pair.redis().cli(&command).await;
            assert_serves(&maker).await;
            assert_serves(&other).await;
        }
        pair.redis().cli(&["DEL", &key]).await;
    }
    for replica in [&pair.one, &pair.other] {
        assert_serves(&replica.client).await;
        assert_eq!(replica.admin.get("/readyz").await.status, 200);
        assert_eq!(replica.admin.get("/admin/streams").await.status, 200);
    }
}

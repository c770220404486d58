//! What a settings file says, and what of it is refused.

use super::super::tests::{file, read};
use super::super::{Args, Command, Serve, Stands};

/// Serving by a file alone.
fn serve(text: &str) -> Result<Serve, String> {
    serve_with(text, &[])
}

fn serve_with(text: &str, more: &[&str]) -> Result<Serve, String> {
    let args = all(text, more)?;
    match args.command {
        Command::Serve(serve) => Ok(*serve),
        _ => panic!("another command"),
    }
}

fn all(text: &str, more: &[&str]) -> Result<Args, String> {
    let name = format!("{:x}.toml", sum(text));
    let path = file(&name, text);
    read(&[&["serve", "--config", &path], more].concat())
}

/// Tests run at once, each with files of its own.
fn sum(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[track_caller]
fn refused(text: &str, said: &[&str]) {
    let error = serve(text).expect_err("refused");
    for said in said {
        assert!(error.contains(said), "{said:?} is not said: {error}");
    }
}

const BACKEND: &str = "backend = [\"http://127.0.0.1:8000\"]\n";

#[test]
fn it_says_what_flags_say() {
    let text = format!(
        "{BACKEND}
        listen = '127.0.0.2:8080'
        journal_total = \"64MiB\"
        threads = 2
        backend_http2 = true
        heartbeat = \"3s\"
        log_level = \"debug\"
        compress = [\"gzip\", \"zstd\"]
        durable_get = [\"/feed\", \"/live/*\"]
        orphan_policy = \"cancel_after=5s\"
        "
    );
    let of_file = serve(&text).expect("well");
    let flags = [
        "serve",
        "--backend=http://127.0.0.1:8000",
        "--listen=127.0.0.2:8080",
        "--journal-total=64MiB",
        "--threads=2",
        "--backend-http2",
        "--heartbeat=3s",
        "--log-level=debug",
        "--compress=gzip,zstd",
        "--durable-get=/feed",
        "--durable-get=/live/*",
        "--orphan-policy=cancel_after=5s",
    ];
    let Command::Serve(of_flags) = read(&flags).expect("well").command else {
        panic!("another command")
    };
    let of_file = Serve {
        config: None,
        ..of_file
    };
    assert_eq!(format!("{of_file:?}"), format!("{of_flags:?}"));
}

#[test]
fn a_flag_wins() {
    let text =
        format!("{BACKEND}heartbeat = \"3s\"\nkeep_credentials = true\nbackend_http2 = true\n");
    let more = [
        "--heartbeat=4s",
        "--backend=http://127.0.0.1:9000",
        "--keep-credentials=false",
    ];
    let serve = serve_with(&text, &more).expect("well");
    assert_eq!(serve.heartbeat.as_secs(), 4);
    assert!(!serve.keep_credentials);
    assert!(serve.backend_http2);
    let ports: Vec<_> = serve.listed().map(|of| of.url.port()).collect();
    assert_eq!(ports, [9000]);
}

#[test]
fn a_value_that_a_flag_replaces_need_not_be_good() {
    let text = format!("{BACKEND}heartbeat = \"soon\"\n");
    refused(&text, &["heartbeat in ", ".toml:2", "15s"]);
    serve_with(&text, &["--heartbeat=4s"]).expect("well");
}

#[test]
fn backends_are_tables_or_what_a_flag_says() {
    let serve = serve(
        "[[backend]]
        url = 'http://127.0.0.1:8000'
        name = 'a'
        engine = 'vllm'
        group = 'g'
        weight = 3
        health = 'off'
        [[backend]]
        url = 'http://localhost:8001'
        name = 'b'
        engine = 'vllm'
        group = 'g'
        dns = true
        ",
    );
    let serve = serve.expect("well");
    let more = [
        "serve",
        "--backend=http://127.0.0.1:8000,name=a,engine=vllm,group=g,weight=3,health=off",
        "--backend=http://localhost:8001,name=b,engine=vllm,group=g,dns",
    ];
    let Command::Serve(of_flags) = read(&more).expect("well").command else {
        panic!("another command")
    };
    let both = [&serve, &of_flags].map(|serve| {
        let specs = serve.listed().map(|of| of.spec("default"));
        format!("{:?}", specs.collect::<Vec<_>>())
    });
    assert_eq!(both[0], both[1]);
}

#[test]
fn what_cannot_be_meant_is_named_with_its_line() {
    refused(
        &format!("{BACKEND}\njournal_totl = \"1GiB\"\n"),
        &[".toml:3", "journal_totl is no setting", "journal_total"],
    );
    refused(
        "[edge]\nheartbeat = '1s'",
        &[".toml:1", "edge is no setting"],
    );
    refused("config = 'a'", &["config is no setting"]);
    refused("help = true", &["help is no setting"]);
    refused("heartbeat = 15", &["heartbeat in ", ".toml:1", "15s"]);
    refused("heartbeat = 1.5", &[".toml:1", "heartbeat is a float"]);
    refused("heartbeat = ['1s']", &["heartbeat has several values"]);
    refused("threads = 0x10", &["threads is a integer"]);
    refused("heartbeat = \n", &[".toml:1", "no TOML"]);
    refused("listen = 'a'\nlisten = 'b'", &[".toml:2", "no TOML"]);
    refused("backend_http2 = 'perhaps'", &["backend_http2 in "]);
    refused("[backend]\nurl = 'http://a'", &["[[backend]]"]);
    refused("[[backend]]\nname = 'a'", &["backend has no url"]);
    refused(
        "[[backend]]\nurl = 'http://a'\ncredential_fil = 'x'",
        &["member credential_fil", "credential_file"],
    );
    refused(
        "[[backend]]\nurl = 'http://a'\nname = 'x,weight=7'",
        &["member name", "comma"],
    );
}

#[test]
fn every_fault_of_a_file_is_told_at_once() {
    refused("a = 1\nb = 2\n", &[".toml:1", ".toml:2"]);
}

#[test]
fn how_settings_go_together_names_their_lines() {
    refused(
        &format!("{BACKEND}journal_total = '1MiB'\njournal_per_generation = '2MiB'"),
        &[
            "journal_total in ",
            ".toml:2",
            "journal_per_generation in ",
            ".toml:3",
        ],
    );
}

#[test]
fn no_secret_is_repeated() {
    for text in [
        "journal = 'redis://:s3cret@/x y'",
        "backend = ['http://me:s3cret@127.0.0.1:8000']",
        "backend = ['http://127.0.0.1:8000,s3cret']",
        "[[backend]]\nurl = 'http://me:s3cret@127.0.0.1:8000'",
        "s = 's3cret",
    ] {
        let error = serve(text).expect_err("refused");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read(&["serve", "--config=/nowhere.toml"]).expect_err("refused");
    assert!(error.contains("/nowhere.toml cannot be read"), "{error}");
}

#[test]
fn a_backend_is_demanded_of_some_place() {
    let error = serve("heartbeat = '1s'").expect_err("refused");
    assert!(error.contains("--backend"), "{error}");
}

#[test]
fn where_each_value_stands_is_known() {
    let text = format!("{BACKEND}heartbeat = \"3s\"\njournal = \"redis://:s3cret@h/1\"\n");
    let args = all(&text, &["--threads=3"]).expect("well");
    let of = |name: &str| {
        let mut settings = args.settings.iter();
        settings
            .find(|setting| setting.name == name)
            .expect("there")
    };
    assert!(matches!(
        &of("heartbeat").stands,
        Stands::Line { line: 2, .. }
    ));
    assert_eq!(of("heartbeat").values, ["3s"]);
    assert_eq!(of("threads").stands, Stands::Flag("--threads".to_owned()));
    assert_eq!(of("listen").stands, Stands::Nowhere);
    assert_eq!(of("listen").values, ["127.0.0.1:8080"]);
    assert!(of("first_byte_timeout").values.is_empty());
    let journal = of("journal");
    assert!(journal.is_redacted && !journal.values[0].contains("s3cret"));
    assert!(args.settings.iter().all(|setting| setting.name != "config"));
}

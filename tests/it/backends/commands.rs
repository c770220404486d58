//! The commands of operators, as processes of their own.

use serde_json::Value;
use streamweld_mock::{Mock, Script};
use streamweld_tests::{Client, Process, wait_end};

use super::nowhere;

/// A served process in front of two mocks, and its admin listener's URL.
struct Served {
    process: Process,
    client: Client,
    admin: String,
    _mocks: [Mock; 2],
}

impl Served {
    async fn start(script: Script, more: &[&str]) -> Self {
        let mocks = [
            Mock::start(script.clone()).await.expect("a port"),
            Mock::start(script).await.expect("a port"),
        ];
        let a = format!("--backend={},name=a,group=g,weight=1000", mocks[0].url());
        let b = format!("--backend={},name=b,group=g", mocks[1].url());
        let mut process = Process::serve(&[&[&*a, &b, "--migration=g=prefill"], more].concat());
        let client = process.client().await;
        let admin = format!("http://{}", process.admin().await.addr);
        Self {
            process,
            client,
            admin,
            _mocks: mocks,
        }
    }

    /// Runs a command that asks it. Gives the exit code and what it has said.
    async fn ask(&self, arguments: &[&str]) -> (i32, String) {
        run(arguments, &[("STREAMWELD_ADMIN", &self.admin)]).await
    }
}

async fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let (status, output) = Process::run_with(arguments, variables).ended().await;
    (status.code().expect("an exit code"), output)
}

/// The words of each line.
fn words(output: &str) -> Vec<Vec<&str>> {
    output
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_listed_shown_and_stopped() {
    let served = Served::start(Script::tokens(9).gate_after(2, "go"), &[]).await;
    let mut response = served.client.chat().await;
    let id = response.id();
    response.body.blocks(2).await;
    for arguments in [
        &["streams"][..],
        &["streams", "list"],
        &["streams", "--status=streaming", "--model=m"],
        &["streams", "list", "--older-than=1ms", "--limit=5"],
    ] {
        let (code, output) = served.ask(arguments).await;
        let lines = words(&output);
        assert_eq!((code, lines.len()), (0, 2), "{output}");
        assert_eq!(lines[0][..3], ["STREAM", "STATUS", "MODEL"]);
        assert_eq!(lines[1][..3], [&id, "streaming", "m"]);
    }
    for arguments in [
        &["streams", "--status=done"][..],
        &["streams", "list", "--model=other"],
        &["streams", "list", "--backend=c"],
        &["streams", "list", "--older-than=1h"],
    ] {
        let (code, output) = served.ask(arguments).await;
        assert_eq!((code, words(&output).len()), (0, 1), "{output}");
    }
    let (code, output) = served.ask(&["streams", "show", &id]).await;
    assert_eq!(code, 0);
    assert!(
        words(&output).contains(&vec!["status", "streaming"]),
        "{output}"
    );
    let (code, output) = served.ask(&["streams", "stop", &id]).await;
    assert_eq!((code, output), (0, format!("{id}: stopped\n")));
    // What is over cannot move, and the exit code says so.
    let (code, output) = served.ask(&["migrate", &id, "--dry-run"]).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("already_terminal"), "{output}");
    // As JSON it is what the server has said.
    let (code, output) = served.ask(&["streams", "show", &id, "--format=json"]).await;
    let shown: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!((code, &shown), (0, &wait_end(&served.client, &id).await));
    let (code, output) = served.ask(&["--format=json", "migrate"]).await;
    assert_eq!(code, 2, "{output}");
    let (code, output) = served.ask(&["migrate", &id, "--format=json"]).await;
    let refused: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(
        (code, &refused["error"]["code"]),
        (1, &"already_terminal".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_are_listed_drained_and_undrained() {
    let mut served = Served::start(Script::tokens(9).gate_after(2, "go"), &[]).await;
    let mut held = Vec::new();
    // Of two that are as idle as the other, `a` is drawn nearly always.
    loop {
        let mut response = served.client.chat().await;
        response.body.blocks(2).await;
        held.push(response);
        let (code, output) = served.ask(&["backends"]).await;
        assert_eq!(code, 0, "{output}");
        let lines = words(&output);
        assert_eq!(lines[0][..2], ["BACKEND", "STATE"]);
        assert_eq!(lines[1][..2], ["a", "up"]);
        assert!(output.contains("prefill"), "{output}");
        // Weight, in flight, streams.
        if lines[1][7] != "0" {
            break;
        }
    }
    let (code, output) = served
        .ask(&["backends", "drain", "a", "--timeout=100ms"])
        .await;
    assert_eq!(code, 1, "{output}");
    assert!(output.starts_with("a: not drained; 0 moved, "), "{output}");
    let (code, output) = served.ask(&["backends", "undrain", "a"]).await;
    assert_eq!((code, output.as_str()), (0, "a: up\n"));
    for response in held {
        let id = response.id();
        assert_eq!(served.ask(&["streams", "stop", &id]).await.0, 0);
    }
    let (code, output) = served.ask(&["backends", "drain", "a"]).await;
    let drained = "a: drained; 0 moved, 0 left, 0 ended, 0 remaining, 0 other requests\n";
    assert_eq!((code, output.as_str()), (0, drained));
    let (code, output) = served.ask(&["backends", "drain", "nobody"]).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("backend_not_found"), "{output}");

    // All of it is in the log: who, what, of which, and what became of it.
    let log = served.process.wait_output("backend_not_found").await;
    let told = |what: &str, text: &str| {
        let line = log
            .lines()
            .find(|line| line.contains(what) && line.contains(text));
        let line = line.unwrap_or_else(|| panic!("{what:?} with {text:?} is not in {log}"));
        assert!(line.contains("peer=127.0.0.1:"), "{line}");
    };
    told(r#"what="drain" of="a""#, "an operator asks");
    told(
        r#"what="drain" of="a""#,
        "drained: false, moved: 0, left: 0, ended: 0, remaining: 1",
    );
    told(r#"what="drain" of="a""#, "drained: true");
    told(r#"what="undrain" of="a""#, "it is up");
    told(r#"what="stop""#, r#"outcome="stopped""#);
    told(r#"of="nobody""#, r#"outcome="backend_not_found""#);
    // And what it was started with.
    for said in [
        "group=\"g\" weight=1000",
        "{\"g\": \"prefill\"}",
        "attempts=3 migrations=3",
    ] {
        assert!(log.contains(said), "{said:?} is not in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_there_or_somebody_else_is_3() {
    let mock = Mock::start(Script::tokens(3)).await.expect("a port");
    for url in [nowhere(), mock.url()] {
        let admin = format!("--admin={url}");
        for command in [&["streams"][..], &["backends", "drain", "a"]] {
            let (code, output) = run(&[command, &[&admin]].concat(), &[]).await;
            assert_eq!(code, 3, "{output}");
            assert!(output.contains("--admin"), "{output}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_in_a_file() {
    let file = std::env::temp_dir().join(format!("streamweld-token-{}", std::process::id()));
    std::fs::write(&file, "the-token\n").expect("a file");
    let option = format!("--admin-token-file={}", file.display());
    let served = Served::start(Script::tokens(3), &[&option]).await;
    let (code, output) = served.ask(&["backends"]).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("unauthorized"), "{output}");
    let (code, output) = served.ask(&["backends", &option]).await;
    assert_eq!(code, 0, "{output}");
    assert!(!output.contains("the-token") && !served.process.output().contains("the-token"));
    std::fs::remove_file(&file).expect("it is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_wrongly_is_2_and_asks_nobody() {
    for (arguments, said) in [
        (&["streams", "show", "x"][..], "26 characters"),
        (&["streams", "--status=dnoe"], "streaming"),
        (
            &[
                "streams",
                "--status=done",
                "stop",
                "01jcv5t0q4e8x2m7n9p3r6s1ab",
            ],
            "list",
        ),
        (&["migrate"], "<ID>"),
        (&["backends", "drain"], "<NAME>"),
        (&["backends", "drain", "a b"], "streamweld backends"),
        (&["backends", "drain", "a", "--timeout=11m"], "10m"),
        (
            &["backends", "--admin=http://s3cret:s3cret@host"],
            "user information",
        ),
        (&["backends", "--admin-token-file=/nowhere"], "/nowhere"),
    ] {
        let (code, output) = run(arguments, &[]).await;
        assert_eq!(code, 2, "{output}");
        assert!(
            output.contains(said) && !output.contains("s3cret"),
            "{output}"
        );
    }
}

//! What the command refuses, how it says so, and with which code it exits (protocol.md 13.1).

use std::future::Future;
use std::time::Duration;

use streamweld_journal_redis::testing::{Fsync, Setup, free_port};
use streamweld_mock::{Mock, Script};
use streamweld_tests::{Process, metric, patience};
use tokio::net::TcpListener;
use tokio::time::sleep;

const BACKEND: &str = "--backend=http://127.0.0.1:8000";

/// It exits at once with this code, and says all of this.
#[track_caller]
fn check(
    arguments: &[&str],
    variables: &[(&str, &str)],
    code: i32,
    said: &[&str],
) -> impl Future<Output = String> {
    let place = std::panic::Location::caller();
    let process = Process::run_with(arguments, variables);
    async move {
        let (status, output) = process.ended().await;
        assert_eq!(status.code(), Some(code), "{place}: {output}");
        for said in said {
            assert!(
                output.contains(said),
                "{place}: {said:?} is not said: {output}"
            );
        }
        output
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_wrongly_is_2() {
    for (arguments, said) in [
        (&[][..], "Usage"),
        (&["serv"], "serve"),
        (&["serve"], "--backend"),
        (&["serve", BACKEND, "--heartbeet=5s"], "--heartbeat"),
        (&["serve", BACKEND, "--heartbeat=0s"], "--heartbeat"),
        (&["serve", "--backend=ftp://engine"], "--backend"),
        (&["serve", BACKEND, "--durable-get=foo"], "--durable-get"),
        (&["serve", BACKEND, "--dialect=/a=b"], "--dialect"),
        (&["serve", BACKEND, "--backend-name=a b"], "--backend-name"),
        (
            &["serve", BACKEND, "--journal-total=1KiB"],
            "--journal-total",
        ),
        (
            &["serve", BACKEND, "--listen=127.0.0.1:9090"],
            "--admin-listen",
        ),
        (
            &["serve", BACKEND, "--admin-token-file=/nowhere"],
            "/nowhere",
        ),
        (&["serve", BACKEND, "--backend-ca=/nowhere"], "/nowhere"),
        (&["serve", BACKEND, "--journal=memroy"], "--journal"),
        (&["serve", BACKEND, "--journal-file=/nowhere"], "/nowhere"),
        (&["mock", "--script={"], "--script"),
        (&["mock", "--script-file=/nowhere"], "/nowhere"),
        (&["mock", "--set=tokenz=5"], "tokenz"),
        (&["demo", "--backend=engine"], "--backend"),
        (&["demo", "--replicas=127.0.0.1:8081"], "--replicas"),
        (
            &["demo", "--replicas=127.0.0.1:1,127.0.0.1:2", BACKEND],
            "--replicas",
        ),
        (&["doctor"], "URL"),
        (&["doctor", "ftp://engine"], "URL is refused"),
        (&["doctor", "http://a", "http://u:p@b"], "URL2 is refused"),
        (&["doctor", "http://a", "--engine=vLLM"], "--engine"),
        (
            &["doctor", "http://a", "--credential-file=/nowhere"],
            "/nowhere",
        ),
    ] {
        check(arguments, &[], 2, &[said]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_or_fails_is_1() {
    let held = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let listen = format!("--listen={}", held.local_addr().expect("an address"));
    let said = ["cannot listen on", "in use"];
    let serve = ["serve", BACKEND, &listen, "--admin-listen=127.0.0.1:0"];
    check(&serve, &[], 1, &said).await;
    check(&["mock", &listen], &[], 1, &said).await;
    // A demonstration that shows the contrary.
    let mock = Mock::start(Script::error(500)).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    check(&["demo", &backend], &[], 1, &["500"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_journal_that_is_not_as_it_has_to_be_is_1() {
    let start = async |url: &str, more: &[&str]| {
        let journal = format!("--journal={url}");
        let ports = ["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"];
        let serve = ["serve", BACKEND, &journal, "--journal-required"];
        Process::run(&[&serve[..], &ports, more].concat())
    };
    let refused = async |url: &str, more: &[&str], said: &[&str]| {
        let (status, output) = start(url, more).await.ended().await;
        assert_eq!(status.code(), Some(1), "{output}");
        for said in said {
            assert!(output.contains(said), "{said:?} is not said: {output}");
        }
    };
    let nobody = format!("redis://127.0.0.1:{}", free_port());
    refused(&nobody, &[], &["required", "cannot be reached"]).await;
    // Each fault is named.
    let bad = Setup::new()
        .max_memory("100mb", "allkeys-lru")
        .start()
        .await;
    let said = ["eviction_policy", "noeviction", "persistence", "appendonly"];
    refused(&bad.url(), &[], &said).await;
    let good = Setup::new().append_only(Fsync::EverySecond).start().await;
    let level = ["--journal-durability=replicated:1"];
    refused(&good.url(), &level, &["replicas_missing"]).await;
    // Without faults it starts, and what goes wrong later changes nothing but the metrics.
    let mut process = start(&good.url(), &[]).await;
    let admin = process.admin().await;
    assert_eq!(admin.get("/readyz").await.status, 200);
    drop(good);
    let unreachable = r#"streamweld_journal_check{check="unreachable"}"#;
    let missed = async {
        while metric(&admin, unreachable).await != 1 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(missed).await;
    assert_eq!(admin.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_not_as_it_has_to_be_is_told_loudly() {
    let bad = Setup::new()
        .max_memory("100mb", "allkeys-lru")
        .start()
        .await;
    let journal = format!("--journal={}", bad.url());
    let mut process = Process::serve(&[BACKEND, &journal]);
    let output = process.wait_output("admin listener").await;
    let warned = |check: &str| {
        let is_warning = |line: &&str| line.contains("WARN") && line.contains(check);
        output.lines().filter(is_warning).count()
    };
    assert_eq!(
        (warned("eviction_policy"), warned("persistence")),
        (1, 1),
        "{output}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_end_is_0() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["serve", "--help"],
        &["demo"],
    ] {
        check(arguments, &[], 0, &[]).await;
    }
    // How `serve` ends at a signal is in the module `shutdown`.
    for signal in ["TERM", "INT"] {
        let mut mock = Process::run(&["mock", "--listen=127.0.0.1:0"]);
        mock.wait_output("mock listening on http://").await;
        mock.signal(signal);
        let (status, output) = patience(mock.ended()).await;
        assert_eq!(status.code(), Some(0), "{signal}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_help_of_the_mock_names_members_and_their_document() {
    let said = ["tokens=50", "end=rst_after:10", "docs/mock.md"];
    check(&["mock", "--help"], &[], 0, &said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_value_is_named_by_its_variable_where_it_came_from_one() {
    for (setting, value) in [
        ("BACKEND", "ftp://engine"),
        ("BACKEND", "http://a,name=a http://b"),
        ("BACKEND", "http://127.0.0.1:8000,wieght=3"),
        ("BACKEND_NAME", ""),
        ("BACKEND_CA", ""),
        ("BACKEND_CA", "/nowhere"),
        ("BACKEND_HTTP2", "maybe"),
        ("LISTEN", ":8080"),
        ("ADMIN_LISTEN", "127.0.0.1:8080"),
        ("ADMIN_TOKEN_FILE", "/nowhere"),
        ("JOURNAL", "http://engine"),
        ("JOURNAL_FILE", "/nowhere"),
        ("JOURNAL_DURABILITY", "safe"),
        ("JOURNAL_DURABILITY", "fsync"),
        ("JOURNAL_REQUIRED", "maybe"),
        ("JOURNAL_PER_GENERATION", "1GiB"),
        ("JOURNAL_TOTAL", "1KiB"),
        ("ATTEMPTS", "0"),
        ("MIGRATION", "g=exact"),
        ("MIGRATION", "g"),
        ("MIGRATIONS", "17"),
        ("MIGRATION_WAIT", "10"),
        ("FIRST_TOKEN_TIMEOUT", "0s"),
        ("BETWEEN_TOKENS_TIMEOUT", "0s"),
        ("HEALTH_EVERY", "1ms"),
        ("HEALTH_TIMEOUT", "0s"),
        ("HEALTH_FAILURES", "0"),
        ("HEALTH_SUCCESSES", "0"),
        ("ORPHAN_POLICY", "stop"),
        ("HEARTBEAT", "0s"),
        ("DURABLE_GET", "/feed,foo"),
        ("CREDENTIAL_HEADER", "x y"),
        ("THREADS", "0"),
        ("LOG_LEVEL", "loud"),
    ] {
        let variable = format!("STREAMWELD_{setting}");
        let flag = format!("--{}", setting.to_lowercase().replace('_', "-"));
        let backend = ("STREAMWELD_BACKEND", "http://127.0.0.1:8000");
        let variables = [backend, (&variable, value)];
        let output = check(&["serve"], &variables, 2, &[&variable]).await;
        // The usage at the end of some errors has flags of its own.
        let error = output.split("Usage:").next().unwrap_or_default();
        assert!(!error.contains(&flag), "{variable}: {output}");

        // A flag wins over the variable, and then is at fault.
        let argument = format!("{flag}={value}");
        if !matches!(flag.as_str(), "--backend-http2" | "--journal-required") {
            let good = [backend, (&variable, "nonsense")];
            let output = check(&["serve", &argument], &good, 2, &[&flag]).await;
            assert!(!output.contains(&variable), "{flag}: {output}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_a_flag_is_the_flags_whatever_the_variables_say() {
    let variables = [("STREAMWELD_HEARTBEAT", "0s")];
    let arguments = ["serve", BACKEND, "--retention=never"];
    let output = check(&arguments, &variables, 2, &["--retention"]).await;
    assert!(!output.contains("STREAMWELD_"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_bad_script_is_told_once() {
    let output = check(&["mock", "--set=end=foo"], &[], 2, &[]).await;
    assert_eq!(output.matches("unknown end").count(), 1, "{output}");
}

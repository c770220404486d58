//! `curl` in a loop of the shell, which sends the last id that it has a whole event of (`tests/clients/curl/resume.sh`).

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use streamweld_mock::{Dialect, Script};
use streamweld_tests::blocks;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::cuts::{self, Places};
use super::scene::{cutting, expected, first};
use super::seen::{Row, Seen};

const CLIENT: &str = "curl";
const CUTS: usize = 200;

/// Reads a URL to its end, with these arguments of curl. The loop of a test that failed ends with its server: it is refused then, or kept waiting for
/// a connection no longer than a moment.
pub(super) async fn read(args: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/curl/resume.sh");
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    let run = spawn_blocking(move || {
        Command::new("timeout")
            .args(["240", "bash"])
            .arg(script)
            .args(["--noproxy", "*"])
            .args(args)
            .env("WAIT", "0.01")
            .stdin(Stdio::null())
            .output()
            .expect("bash and curl are there: `make test` installs them")
    });
    let output = timeout(Duration::from_secs(250), run).await;
    output.expect("in time").expect("no panic")
}

/// Data and ids of what it wrote.
fn written(output: &Output) -> Vec<(String, String)> {
    let events = blocks(&output.stdout).into_iter();
    let whole = events.map(|block| (block.data.expect("data"), block.id.expect("an id")));
    whole.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cuts_lose_and_double_nothing() {
    let script = Script::tokens(1000).pace(Duration::from_millis(1));
    let harness = cuts::signing(script.clone()).await;
    let mut places = Places::new();
    let relay = places.relay(harness.client.addr, CUTS, 1000).await;
    let url = cuts::lent(&harness.client, Dialect::OpenAiChat).await;
    let output = read(&[&format!("{}{url}", relay.url())]).await;
    assert!(output.status.success(), "{places:?}: {output:?}");
    let seen = cuts::Stream {
        events: written(&output),
        cursors: Vec::new(),
        statuses: Vec::new(),
    };
    let all = expected(&script, &first(&harness), Dialect::OpenAiChat);
    seen.assert_exact(&all, &places);
    // Each cut was one connection, then came one that was whole, and the 204.
    assert_eq!(relay.accepted(), CUTS + 2, "{places:?}");
    assert_eq!(harness.mock.recorder().count(), 1);
    let mut seen = Seen::by("curl::two_hundred_cuts_lose_and_double_nothing");
    seen.row(&Row::new(
        CLIENT,
        "the loop of `resume.sh` on the signed resume URL of a chat, 200 cuts at random bytes",
        "every event once; a `204`, then the loop ends; the backend was asked once",
    ));
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_shown_an_error_and_stops() {
    let script = Script::tokens(60).error_after(40);
    let harness = cuts::signing(script.clone()).await;
    let url = cuts::lent(&harness.client, Dialect::OpenAiChat).await;
    let relay = cutting(harness.client.addr, &[2500]).await;
    let output = read(&[&format!("{}{url}", relay.url())]).await;
    assert!(output.status.success(), "{output:?}");
    let mut events = written(&output);
    let (error, _) = events.pop().expect("an event");
    assert!(error.contains("streamweld_error"), "{error}");
    let data: Vec<String> = events.into_iter().map(|(data, _)| data).collect();
    assert_eq!(
        data,
        expected(&script, &first(&harness), Dialect::OpenAiChat)
    );
    assert_eq!(relay.accepted(), 3);
    let refused = read(&[&format!("{}{}", relay.url(), url.replace("cap=r", "cap=x"))]).await;
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("status 404"));
    let mut seen = Seen::by("curl::it_is_shown_an_error_and_stops");
    seen.row(&Row::new(
        CLIENT,
        "the same, cut once, backend fails",
        "every event once, then the error once; a `204`, then the loop ends",
    ));
    seen.row(&Row::new(
        CLIENT,
        "the same, refused with 404",
        "nothing; the loop fails",
    ));
    seen.check();
}

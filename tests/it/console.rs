//! The console in Chromium: it shows, follows, acts, asks for the token, and is there again after a restart (protocol.md 12.5).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use streamweld_journal_redis::testing::free_port;
use streamweld_mock::{Engine, Mock, MockConfig, Script};
use streamweld_server::config::Secret;
use streamweld_tests::{CHAT, End, Harness, Process, Setup, TwinsSetup, patience};
use tokio::sync::{MutexGuard, mpsc};
use tokio::time::sleep;

use crate::clients::{BROWSER_TURN, command};

/// The console in a browser. It ends with its test.
struct Page {
    process: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    _turn: MutexGuard<'static, ()>,
}

impl Page {
    async fn open(admin: std::net::SocketAddr) -> Self {
        Self::open_as(&format!("http://{admin}/console"), (1280, 900), "light").await
    }

    async fn open_as(url: &str, (width, height): (u32, u32), scheme: &str) -> Self {
        let turn = BROWSER_TURN.lock().await;
        let mut process = command("page.mjs")
            .args([url, &width.to_string(), &height.to_string(), scheme])
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("`make test` installs what it needs");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (tx, lines) = mpsc::channel(16);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).expect("JSON");
                if tx.blocking_send(value).is_err() {
                    return;
                }
            }
        });
        let mut page = Self {
            input: process.stdin.take(),
            process,
            lines,
            _turn: turn,
        };
        assert_eq!(page.line().await, json!({ "ready": true }));
        page
    }

    async fn line(&mut self) -> Value {
        patience(self.lines.recv()).await.expect("it runs")
    }

    /// What an expression is in the page.
    async fn is(&mut self, expression: &str) -> Value {
        let input = self.input.as_mut().expect("it runs");
        writeln!(input, "{}", expression.replace('\n', " ")).expect("it reads");
        let mut told = self.line().await;
        assert_eq!(told.get("fault"), None, "{expression}");
        told["value"].take()
    }

    /// Waits until an expression is true.
    async fn until(&mut self, expression: &str) {
        let what = format!("!!({expression})");
        let reached = async {
            while self.is(&what).await != true {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let place = format!("{expression} does not become true");
        tokio::time::timeout(Duration::from_secs(60), reached)
            .await
            .expect(&place);
    }

    /// Presses the button of this name in what the expression names.
    async fn press(&mut self, place: &str, name: &str) {
        let button = format!(
            "[...{place}.querySelectorAll('button')].find((one) => one.textContent === '{name}' && !one.hidden)"
        );
        self.until(&button).await;
        self.is(&format!("{button}.click()")).await;
    }

    /// Nothing was thrown, and nothing was asked for that the policy of the page forbids.
    async fn close(mut self) {
        drop(self.input.take());
        assert_eq!(self.line().await, json!({ "faults": [] }));
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // It ends its browser, and itself, when its input ends; a bound of its own sees to it that it does.
        drop(self.input.take());
        _ = self.process.wait();
    }
}

/// The row of a generation.
fn row(id: &str) -> String {
    format!("document.querySelector('tr[data-stream=\"{id}\"]')")
}

const DIALOG: &str = "document.getElementById('ask')";

#[tokio::test(flavor = "multi_thread")]
async fn it_shows_follows_and_acts() {
    let script = Script::tokens(40)
        .engine(Engine::Vllm)
        .gate_after(6, "hold");
    let twins = TwinsSetup::new(script).start().await;
    let (client, admin) = (&twins.replica.client, &twins.replica.admin);
    let mut first = client.chat().await;
    let one = first.id();
    first.body.blocks(4).await;
    let mut page = Page::open(admin.addr).await;
    page.until(&row(&one)).await;
    page.until("document.getElementById('link').textContent === 'live'")
        .await;
    assert_eq!(
        page.is("document.getElementById('running').textContent")
            .await,
        "1"
    );
    page.until(&format!("{}.textContent.includes('durable')", row(&one)))
        .await;
    let rows = "document.querySelectorAll('#backends tbody tr').length";
    assert_eq!(page.is(rows).await, 2);

    // One that begins is there at once, and is found by what it is.
    let mut second = client
        .send(
            "POST",
            "/v1/chat/completions",
            &CHAT.replace("\"m\"", "\"<b>other</b>\""),
        )
        .await;
    let other = second.id();
    second.body.blocks(4).await;
    page.until(&row(&other)).await;
    let model = format!("{}.querySelector('[data-label=model]')", row(&other));
    page.until(&format!("{model}.textContent === '<b>other</b>'"))
        .await;
    assert_eq!(page.is(&format!("{model}.childElementCount")).await, 0);
    let filter = |text: &str| {
        format!(
            "{{ const filter = document.getElementById('filter'); filter.value = '{text}'; \
             filter.dispatchEvent(new Event('input')) }}"
        )
    };
    page.is(&filter("OTHER")).await;
    page.until(&format!("!{} && {}", row(&one), row(&other)))
        .await;
    page.is(&filter("")).await;
    page.until(&row(&one)).await;

    // What every gate says.
    page.press(&row(&one), "Dry run").await;
    page.until(&format!("{DIALOG}.querySelectorAll('li').length > 15"))
        .await;
    assert_eq!(
        page.is(&format!("{DIALOG}.textContent.includes('tool_call')"))
            .await,
        true
    );
    page.press(DIALOG, "Close").await;

    // A stop is asked for twice.
    page.press(&row(&other), "Stop").await;
    page.press(DIALOG, "Cancel").await;
    assert!(page.is(&format!("!!{}", row(&other))).await == true);
    page.press(&row(&other), "Stop").await;
    page.press(DIALOG, "Stop it").await;
    page.until(&format!("{DIALOG}.textContent.includes('It has ended.')"))
        .await;
    page.press(DIALOG, "Close").await;
    page.until(&format!("!{}", row(&other))).await;
    assert_eq!(second.body.rest().await.1, End::Proper);
    let turns = "document.getElementById('turns').textContent";
    page.until(&format!(
        "{turns}.includes('stopped') && {turns}.includes('{other}')"
    ))
    .await;

    // A drain moves what is there, and can be taken back.
    let at = page
        .is(&format!(
            "{}.querySelector('[data-label=backend]').textContent",
            row(&one)
        ))
        .await;
    let at = at.as_str().expect("a name").to_owned();
    let backend = format!(
        "[...document.querySelectorAll('#backends tr')].find((row) => row.firstElementChild.textContent === '{at}')"
    );
    page.press(&backend, "Drain").await;
    page.press(DIALOG, "Drain it").await;
    page.until(&format!("{DIALOG}.textContent.includes('moved,')"))
        .await;
    page.press(DIALOG, "Close").await;
    page.press(&backend, "Undrain").await;
    page.press(DIALOG, "Undrain it").await;
    page.until(&format!("{DIALOG}.textContent.includes('It is up.')"))
        .await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_asks_for_the_token_and_keeps_it_for_the_tab() {
    let setup = Setup::new(Script::tokens(3));
    let setup = setup.config(|config| config.admin_token = Secret::new("the-token".to_owned()));
    let harness: Harness = setup.start().await;
    let mut page = Page::open(harness.admin.addr).await;
    let login = |token: &str| {
        format!(
            "{{ document.getElementById('token').value = '{token}'; \
             document.getElementById('login-form').requestSubmit() }}"
        )
    };
    page.until("document.getElementById('login').open").await;
    page.is(&login("another")).await;
    page.until("document.getElementById('login-fault').textContent === 'This is not the token.'")
        .await;
    page.is(&login("the-token")).await;
    page.until("document.getElementById('link').textContent === 'live'")
        .await;
    assert_eq!(
        page.is("document.getElementById('login').open").await,
        false
    );
    assert_eq!(
        page.is("Object.keys(localStorage).length + document.cookie.length")
            .await,
        0
    );
    // The files themselves hold nothing of anybody, and may ask nobody else.
    for path in ["/console", "/console/app.js", "/console/style.css"] {
        let file = harness.admin.get(path).await;
        assert_eq!(file.status, 200);
        let policy = file.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    }
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_there_again_after_a_restart_of_the_proxy() {
    let config = MockConfig {
        default: Script::tokens(400).pace(Duration::from_millis(50)),
        ..MockConfig::default()
    };
    let mock = Mock::bind("127.0.0.1:0", config).await.expect("a port");
    let listen = format!("127.0.0.1:{}", free_port());
    let backend = format!("--backend={}", mock.url());
    let serve = || {
        Process::run(&[
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen",
            &listen,
            &backend,
        ])
    };
    let mut before = serve();
    let id = before.client().await.durable_chat().await.id();
    let mut page = Page::open(before.admin().await.addr).await;
    page.until(&row(&id)).await;
    before.signal("KILL");
    before.ended().await;
    page.until("document.getElementById('link').dataset.state === 'away'")
        .await;
    let mut after = serve();
    let id = after.client().await.durable_chat().await.id();
    page.until("document.getElementById('link').dataset.state === 'live'")
        .await;
    page.until(&row(&id)).await;
    // What the old process ran is not shown as if it went on.
    let rows = "document.querySelectorAll('#streams tbody tr').length";
    page.until(&format!("{rows} === 1")).await;
    page.close().await;
}

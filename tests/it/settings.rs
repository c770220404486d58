//! Settings in a file, and settings that change while it runs (protocol.md 13.2).

use std::path::{Path, PathBuf};
use std::time::Duration;

use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_tests::{Client, End, Process, metric, patience};
use tokio::time::sleep;

/// A folder of one test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("streamweld-settings-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Writes a file as an editor does: whole, under another name, and then in its place.
    fn write(&self, name: &str, text: &str) -> String {
        let (path, aside) = (self.0.join(name), self.0.join("aside"));
        std::fs::write(&aside, text).expect("a temporary file");
        std::fs::rename(&aside, &path).expect("the same folder");
        shown(&path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shown(path: &Path) -> String {
    path.to_str().expect("plain").to_owned()
}

fn script(json: &str) -> Script {
    Script::from_json(json).expect("a script")
}

async fn mock(script: Script) -> Mock {
    let config = MockConfig {
        default: script,
        ..MockConfig::default()
    };
    Mock::bind("127.0.0.1:0", config)
        .await
        .expect("a port for the mock")
}

async fn until(admin: &Client, line: &str, value: i64) {
    let reached = async {
        while metric(admin, line).await != value {
            sleep(Duration::from_millis(20)).await;
        }
    };
    patience(reached).await;
}

const TAKEN: &str = "streamweld_config_last_reload_successful";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_checked_and_starts_nothing() {
    let folder = Folder::new("check");
    let file = folder.write("a.toml", "backend = ['http://127.0.0.1:1']\n");
    let (status, output) = Process::run(&["check-config", "--config", &file])
        .ended()
        .await;
    assert_eq!(status.code(), Some(0), "{output}");
    assert_eq!(output, format!("{file} is well\n"));
    let file = folder.write(
        "a.toml",
        "backend = ['http://127.0.0.1:1']\n\nlisten = 'here'\nport = 3\n",
    );
    for command in ["check-config", "serve"] {
        let (status, output) = Process::run(&[command, "--config", &file]).ended().await;
        assert_eq!(status.code(), Some(2), "{output}");
        assert!(
            output.contains(&format!("{file}:4: port is no setting")),
            "{output}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_is_a_file_that_says_the_same() {
    let folder = Folder::new("show");
    let file = folder.write(
        "a.toml",
        "heartbeat = '3s'
        durable_get = ['/a', '/b*']
        journal = 'redis://:s3cret@127.0.0.1/2'
        [[backend]]
        url = 'http://127.0.0.1:1'
        name = 'one'",
    );
    let variables = [("STREAMWELD_THREADS", "2")];
    let arguments = ["config", "show", "--config", &file, "--retention=1m"];
    let (status, shown) = Process::run_with(&arguments, &variables).ended().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    for line in [
        &format!("heartbeat = \"3s\" # {file}:1"),
        &format!("durable_get = [\"/a\", \"/b*\"] # {file}:2"),
        &format!("backend = [\"http://127.0.0.1:1,name=one\"] # {file}:4"),
        "threads = 2 # STREAMWELD_THREADS",
        "retention = \"1m\" # --retention",
        "# backend_http2 = false # default",
        "# first_byte_timeout has no value",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("# journal = \"redis://"), "{shown}");
    // Shown again from what was shown, every value is the same; where it stands is not.
    let again = folder.write("b.toml", &shown);
    let (status, again) = Process::run(&["config", "show", "--config", &again])
        .ended()
        .await;
    assert_eq!(status.code(), Some(0), "{again}");
    let values = |shown: &str| -> Vec<String> {
        let settings = shown.lines().filter(|line| !line.starts_with('#'));
        let settings = settings.map(|line| line.rsplit_once(" # ").expect("a place").0.to_owned());
        // It was redacted, so it is the default now.
        settings
            .filter(|line| !line.starts_with("journal "))
            .collect()
    };
    assert_eq!(values(&again), values(&shown));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_listed_no_more_ends_what_it_has_begun() {
    let folder = Folder::new("backends");
    let paced = script(r#"{"tokens":300,"pace":"5ms"}"#);
    let (old, new) = (mock(paced).await, mock(script(r#"{"text":"new"}"#)).await);
    let list =
        |mock: &Mock, name: &str| format!("[[backend]]\nurl = '{}'\nname = '{name}'\n", mock.url());
    let file = folder.write("a.toml", &list(&old, "old"));
    let mut process = Process::serve(&["--config", &file]);
    let (client, admin) = (process.client().await, process.admin().await);
    let mut running = client.durable_chat().await;
    let begun = running.body.blocks(3).await;
    folder.write("a.toml", &list(&new, "new"));
    process.signal("HUP");
    process.wait_output("the settings were read again").await;
    let (body, end) = client.chat().await.all().await;
    assert_eq!(end, End::Proper);
    assert!(String::from_utf8_lossy(&body).contains("new"));
    // The old one is on its way out with what it has, and is gone after it.
    let of_old = r#"streamweld_backend_in_flight{backend="old"}"#;
    assert_eq!(metric(&admin, of_old).await, 1);
    let (rest, end) = running.body.rest().await;
    assert_eq!(end, End::Proper);
    let whole = [begun, rest].concat();
    assert!(String::from_utf8_lossy(&whole).contains("[DONE]"));
    let listed = async {
        let listed = admin.get("/admin/backends").await.json().await;
        listed["data"].as_array().expect("a list").len()
    };
    assert_eq!(listed.await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_51_a_bad_file_changes_nothing_and_is_told() {
    let folder = Folder::new("bad");
    let mock = mock(Script::default()).await;
    let well = format!("backend = ['{}']\n", mock.url());
    let file = folder.write("a.toml", &well);
    let mut process = Process::serve(&["--config", &file]);
    let (client, admin) = (process.client().await, process.admin().await);
    assert_eq!(metric(&admin, TAKEN).await, 1);
    for bad in [
        "heartbeat = 'soon'\n",
        "heartbeet = '3s'\n",
        "heartbeat = \n",
        "journal = 'redis://:s3cret@/x y'\n",
    ] {
        folder.write("a.toml", &format!("{well}{bad}"));
        process.signal("HUP");
        until(&admin, TAKEN, 0).await;
        assert_eq!(client.chat().await.all().await.1, End::Proper);
        folder.write("a.toml", &well);
        process.signal("HUP");
        until(&admin, TAKEN, 1).await;
    }
    let output = process.output();
    assert!(output.contains("a.toml:2"), "{output}");
    assert!(output.contains("did you mean heartbeat?"), "{output}");
    assert!(!output.contains("s3cret"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_51_a_token_that_is_replaced_counts_at_once() {
    let folder = Folder::new("token");
    let token = folder.write("token", "first-token\n");
    let file = format!("--admin-token-file={token}");
    let mut process = Process::serve(&["--backend=http://127.0.0.1:1", &file]);
    let admin = process.admin().await;
    let status = async |token: &str| {
        let admin = admin.with("authorization", &format!("Bearer {token}"));
        admin.get("/admin/streams").await.status
    };
    assert_eq!(status("first-token").await, 200);
    // Nobody tells it.
    folder.write("token", "second-token\n");
    patience(async {
        while status("second-token").await != 200 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(status("first-token").await, 401);
    // One that is no token is no reason to let anybody in, or to lock everybody out.
    folder.write("token", "two words\n");
    process.signal("HUP");
    until(&admin, TAKEN, 0).await;
    assert_eq!(status("second-token").await, 200);
    assert_eq!(status("two words").await, 401);
    let output = process.output();
    assert!(
        !output.contains("two words") && !output.contains("second-token"),
        "{output}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_from_the_next_start_on_is_named() {
    let folder = Folder::new("later");
    let backend = "backend = ['http://127.0.0.1:1']\n";
    let file = folder.write("a.toml", &format!("{backend}retention = '1m'\n"));
    let mut process = Process::serve(&["--config", &file]);
    process.admin().await;
    folder.write(
        "a.toml",
        &format!("{backend}retention = '2m'\nheartbeat = '2s'\n"),
    );
    process.signal("HUP");
    let output = process.wait_output("hold from the next start on").await;
    let line = |said: &str| {
        let line = output.lines().find(|line| line.contains(said));
        line.unwrap_or_else(|| panic!("{said}: {output}"))
            .to_owned()
    };
    assert!(line("hold from the next start on").contains("retention"));
    let taken = line("the settings were read again");
    assert!(
        taken.contains("heartbeat") && !taken.contains("retention"),
        "{taken}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_level_of_the_log_changes_while_it_runs() {
    let folder = Folder::new("level");
    let mock = mock(Script::default()).await;
    let backend = format!("backend = ['{}']\n", mock.url());
    let file = folder.write("a.toml", &backend);
    let mut process = Process::serve(&["--config", &file]);
    let (client, admin) = (process.client().await, process.admin().await);
    // What is refused is told at the level debug.
    assert_eq!(
        client
            .get("/v1/streams/01arz3ndektsv4rrffq69g5fav")
            .await
            .status,
        404
    );
    folder.write("a.toml", &format!("{backend}log_level = 'debug'\n"));
    process.signal("HUP");
    process.wait_output("the settings were read again").await;
    assert!(!process.output().contains("DEBUG"));
    assert_eq!(
        client
            .get("/v1/streams/01arz3ndektsv4rrffq69g5fav")
            .await
            .status,
        404
    );
    process.wait_output("DEBUG").await;
    assert_eq!(metric(&admin, TAKEN).await, 1);
}

/// The three steps of docs/security.md: the new key behind the old one, then in front of it, then alone.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_sign_urls_are_rotated_while_it_serves() {
    let folder = Folder::new("rotated");
    let (old, new) = ("o".repeat(40), "n".repeat(40));
    let keys = folder.write("keys", &format!("{old}\n"));
    let mock = mock(Script::tokens(3)).await;
    let backend = format!("--backend={}", mock.url());
    let mut server = Process::serve(&[&backend, &format!("--url-signing-key-file={keys}")]);
    let client = server.client().await;
    let maker = client.with("authorization", "Bearer a");
    let made = maker.chat().await;
    let path = format!("/v1/streams/{}/events", made.id());
    let first = made.header("x-streamweld-resume-url").expect("is given");
    let first = first.to_owned();
    assert_eq!(made.all().await.1, End::Proper);
    let status = |url: String| {
        let client = client.clone();
        async move { client.get(&url).await.status }
    };
    assert_eq!(status(first.clone()).await, 200);
    folder.write("keys", &format!("{new}\n{old}\n"));
    server.signal("HUP");
    let taken = "the settings were read again";
    server.wait_output(taken).await;
    assert_eq!(
        status(first.clone()).await,
        200,
        "the old one is good still"
    );
    let again = maker.get(&path).await;
    let second = again.header("x-streamweld-resume-url").expect("is given");
    let second = second.to_owned();
    folder.write("keys", &format!("{new}\n"));
    server.signal("HUP");
    let refused = async {
        while status(first.clone()).await != 404 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    patience(refused).await;
    assert_eq!(status(second).await, 200, "the new one has signed it");
}

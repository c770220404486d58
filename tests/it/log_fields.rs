//! What a line of the log says of generations and requests, by the same names in both forms (protocol.md 13).

use serde_json::Value;
use streamweld_mock::{Engine, Mock, MockConfig, Raw, Script};
use streamweld_tests::{Process, Response, patience, wait_end};

const TEXT: &str =
    "Bridges move with the heat of the day, and those who built them know by how much.";
const PATH: &str = "/v1/chat/completions";
const BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}]}"#;

/// A line that has to be there.
struct Line {
    says: &'static str,
    /// The generation that it is about.
    stream: Option<String>,
    /// The request that it is about.
    request: Option<String>,
}

fn line(says: &'static str, stream: Option<&str>, request: Option<&str>) -> Line {
    Line {
        says,
        stream: stream.map(str::to_owned),
        request: request.map(str::to_owned),
    }
}

fn request_id(response: &Response) -> String {
    let id = response.header("x-streamweld-request-id");
    id.expect("an id").to_owned()
}

/// A run in which answers move, are stopped, resumed and refused, and requests come to nothing.
async fn run(format: &str) -> (String, Vec<Line>) {
    let script = || Script::text(TEXT).engine(Engine::Vllm);
    let config = MockConfig {
        default: script(),
        ..MockConfig::default()
    };
    let first = Mock::bind("127.0.0.1:0", config).await.expect("a port");
    let second = first.twin().await.expect("a port");
    let of = |name: char, mock: &Mock| {
        format!("--backend={},name={name},engine=vllm,group=g", mock.url())
    };
    let (a, b) = (of('a', &first), of('b', &second));
    let format = format!("--log-format={format}");
    let mut process = Process::serve(&[
        &a,
        &b,
        "--migration=g=prefill",
        "--vouched=g",
        "--health-every=1h",
        "--log-level=debug",
        &format,
    ]);
    let (client, admin) = (process.client().await, process.admin().await);
    let mut lines = Vec::new();

    // Asked of another, and moved.
    first.push_script(Script::error(503));
    first.push_script(script().rst_after(5));
    let moved = client.send("POST", PATH, BODY).await;
    let (id, request) = (moved.id(), request_id(&moved));
    moved.all().await;
    for says in [
        "another backend is asked",
        "another backend goes on",
        "generation ended",
    ] {
        lines.push(line(says, Some(&id), Some(&request)));
    }
    // A resume that is refused.
    let beyond = client.with("last-event-id", &format!("{id}:999"));
    let refused = beyond.events(&id).await;
    lines.push(line("refused", Some(&id), Some(&request_id(&refused))));
    // An operator stops one.
    first.push_script(script().gate_after(4, "never"));
    let mut stopped = client.send("POST", PATH, BODY).await;
    let id = stopped.id();
    stopped.body.blocks(4).await;
    let by = admin
        .send("POST", &format!("/admin/streams/{id}/stop"), "")
        .await;
    for says in ["an operator asks", "an operator is answered"] {
        lines.push(line(says, Some(&id), Some(&request_id(&by))));
    }
    patience(wait_end(&client, &id)).await;
    let request = request_id(&stopped);
    lines.push(line("generation ended", Some(&id), Some(&request)));
    // A body that passes through breaks off.
    let half = Raw::new()
        .write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        .fin();
    for mock in [&first, &second] {
        mock.set_script_at("/v1/files", Script::raw(half.clone()));
    }
    let passed = client.get("/v1/files").await;
    let request = request_id(&passed);
    passed.all().await;
    lines.push(line("the backend's body broke off", None, Some(&request)));
    // Nobody answers.
    first.shutdown().await;
    second.shutdown().await;
    let unanswered = client.send("POST", PATH, BODY).await;
    assert_eq!(unanswered.status, 502);
    let request = request_id(&unanswered);
    lines.push(line("the backend gave no answer", None, Some(&request)));
    process.signal("TERM");
    let (status, output) = process.ended().await;
    assert!(status.success(), "{output}");
    (output, lines)
}

/// What every line that is about one says of it.
const ABOUT_GENERATIONS: [&str; 4] = [
    "generation ended",
    "another backend is asked",
    "another backend goes on",
    "gave no answer",
];

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_json_have_them_as_members() {
    let (output, expected) = run("json").await;
    let lines: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    for Line {
        says,
        stream,
        request,
    } in expected
    {
        let is = |line: &&Value| {
            let is = |name: &str, value: &Option<String>| {
                value.is_none() || line[name].as_str() == value.as_deref()
            };
            line["message"] == says && is("stream_id", &stream) && is("request_id", &request)
        };
        assert!(
            lines.iter().any(|line| is(&line)),
            "{says} {stream:?} {request:?}: {output}"
        );
    }
    for line in &lines {
        let says = line["message"].as_str().unwrap_or_default();
        if ABOUT_GENERATIONS.iter().any(|about| says.contains(about)) {
            assert!(
                line["stream_id"].is_string() && line["request_id"].is_string(),
                "{line}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_text_have_them_by_the_same_names() {
    let (output, expected) = run("text").await;
    for Line {
        says,
        stream,
        request,
    } in expected
    {
        // Some values are shown as text is in Rust, and others as they are.
        let has = |line: &str, name: &str, value: &Option<String>| {
            value.as_ref().is_none_or(|value| {
                line.contains(&format!("{name}={value}"))
                    || line.contains(&format!("{name}=\"{value}\""))
            })
        };
        let is = |line: &str| {
            line.contains(says)
                && has(line, "stream_id", &stream)
                && has(line, "request_id", &request)
        };
        assert!(
            output.lines().any(is),
            "{says} {stream:?} {request:?}: {output}"
        );
    }
}

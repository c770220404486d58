//! The SDKs of OpenAI and Anthropic. They read a stream once, from its beginning, and never resume: an answer that
//! was cut must raise, and the one repeat that they do make by themselves must not be paid for twice.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use streamweld_mock::{Ask, Cut, Dialect, Direction, End as BackendEnd, FaultRelay, Script};
use streamweld_tests::{Client, Harness, Setup, patience};

use super::program::{End, Program, Run};
use super::seen::{Row, Seen};

/// Words, characters of several bytes, and what a lenient splitter takes for a line end.
const TEXT: &str = "The tide comes in\nand goes out, 潮の満ち引き, as it has 🌊 for ever;\u{2028}nobody asked it to.";

/// An SDK and the ways of asking for a stream that it has.
struct Sdk {
    program: &'static str,
    ways: &'static [(&'static str, Dialect)],
}

const OPENAI_PYTHON: Sdk = Sdk {
    program: "openai_sdk.py",
    ways: &[
        ("chat", Dialect::OpenAiChat),
        ("chat_async", Dialect::OpenAiChat),
        ("chat_helper", Dialect::OpenAiChat),
        ("chat_helper_async", Dialect::OpenAiChat),
        ("completions", Dialect::OpenAiCompletions),
        ("completions_async", Dialect::OpenAiCompletions),
    ],
};

const ANTHROPIC_PYTHON: Sdk = Sdk {
    program: "anthropic_sdk.py",
    ways: &[
        ("messages", Dialect::AnthropicMessages),
        ("messages_async", Dialect::AnthropicMessages),
        ("helper", Dialect::AnthropicMessages),
        ("helper_async", Dialect::AnthropicMessages),
    ],
};

const OPENAI_JAVASCRIPT: Sdk = Sdk {
    program: "openai_sdk.mjs",
    ways: &[
        ("chat", Dialect::OpenAiChat),
        ("chat_helper", Dialect::OpenAiChat),
        ("completions", Dialect::OpenAiCompletions),
    ],
};

const RESPONSES_PYTHON: Sdk = Sdk {
    program: "openai_sdk.py",
    ways: &[
        ("responses", Dialect::OpenAiResponses),
        ("responses_async", Dialect::OpenAiResponses),
    ],
};

const RESPONSES_JAVASCRIPT: Sdk = Sdk {
    program: "openai_sdk.mjs",
    ways: &[("responses", Dialect::OpenAiResponses)],
};

impl Sdk {
    /// A program that asks in each way so many times.
    async fn start(&self, to: SocketAddr, times: usize) -> Program {
        let ways: Vec<&str> = self
            .ways
            .iter()
            .flat_map(|(way, _)| std::iter::repeat_n(*way, times))
            .collect();
        Program::start(self.program, to, &ways).await
    }
}

fn finish(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::AnthropicMessages => "end_turn",
        Dialect::OpenAiResponses => "completed",
        _ => "stop",
    }
}

/// Events before the text, with the text, and in all.
fn measure(dialect: Dialect) -> (usize, usize, usize) {
    let script = Script::text(TEXT);
    let opening = dialect.events_before_text(&script);
    let all = script.expected(&Ask::stream(dialect)).len();
    let cut_short = Script::text(TEXT).end(BackendEnd::NoFinish);
    (
        opening,
        cut_short.expected(&Ask::stream(dialect)).len(),
        all,
    )
}

/// A way in which a backend ends an answer that is not whole.
#[derive(Clone, Copy)]
enum Fault {
    Reset,
    Close,
    CleanEnd,
    ErrorEvent,
    Abort,
    BareSentinel,
}

impl Fault {
    const ALL: [Self; 6] = [
        Self::Reset,
        Self::Close,
        Self::CleanEnd,
        Self::ErrorEvent,
        Self::Abort,
        Self::BareSentinel,
    ];

    fn story(self) -> &'static str {
        match self {
            Self::Reset => "backend resets the connection",
            Self::Close => "backend closes the connection",
            Self::CleanEnd => "body ends cleanly, without a finish reason",
            Self::ErrorEvent => "backend sends an error event",
            Self::Abort => "finish reason `abort`, then the sentinel",
            Self::BareSentinel => "sentinel without a finish reason",
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Reset | Self::Close | Self::CleanEnd | Self::BareSentinel => "truncated",
            Self::ErrorEvent => "upstream_error",
            Self::Abort => "aborted",
        }
    }

    fn script(self, dialect: Dialect, after: usize) -> Script {
        let script = Script::text(TEXT);
        match self {
            Self::Reset => script.rst_after(after),
            Self::Close => script.fin_after(after),
            Self::CleanEnd => script.clean_after(after),
            Self::ErrorEvent => script.error_after(after),
            Self::Abort => script.abort_after(after),
            Self::BareSentinel => script
                .block_after(
                    after,
                    match dialect {
                        Dialect::AnthropicMessages => {
                            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
                        }
                        _ => "data: [DONE]\n\n",
                    },
                )
                .clean_after(after),
        }
    }
}

/// Every way of an SDK sees the whole answer, with heartbeats in the middle of it.
async fn whole(sdk: &Sdk) -> Vec<Row> {
    let harness = Setup::new(Script::text(TEXT))
        .config(|config| config.edge.heartbeat = Duration::from_millis(20))
        .start()
        .await;
    let relay = FaultRelay::start(harness.client.addr)
        .await
        .expect("a port");
    for (_, dialect) in sdk.ways {
        let (opening, _, _) = measure(*dialect);
        let script = Script::text(TEXT).gate_after(opening + 3, "rest");
        harness.mock.push_script(script);
    }
    let mut program = sdk.start(relay.addr(), 1).await;
    for (way, dialect) in sdk.ways {
        let mut run = Run::default();
        // Three tokens have passed through the relay, so that only heartbeats can come next.
        program
            .read(&mut run, |run| run.text.split_inclusive(' ').count() == 3)
            .await;
        assert_eq!(run.end, End::None, "{way}: {run:?}");
        let passed = relay.passed(Direction::ToClient);
        let five_heartbeats = 5 * "2\r\n:\n\r\n".len() as u64;
        relay
            .wait_passed(Direction::ToClient, passed + five_heartbeats)
            .await
            .expect("heartbeats");
        harness.mock.gates().step("rest");
        program.read(&mut run, |_| false).await;
        assert_eq!(run.text, TEXT, "{way}");
        assert_eq!(
            run.end,
            End::Whole(Some(finish(*dialect).to_owned())),
            "{way}"
        );
        if !way.starts_with("chat_helper") {
            let id = run.id.expect("the head can be read");
            assert_eq!(id.len(), 26, "{way}: {id}");
        }
    }
    let ways = match sdk.ways.len() {
        1 => "1 way".to_owned(),
        ways => format!("{ways} ways"),
    };
    let saw = format!("the whole text, heartbeats or not; stream id in the head; {ways}");
    let row = Row::new(&program.client, "whole answer", saw);
    program.ended().await;
    vec![row]
}

/// Whatever cuts an answer, wherever it does: each way of an SDK raises, with the message of the error form.
async fn cut(sdk: &Sdk) -> Vec<Row> {
    let harness = Harness::start(Script::text(TEXT)).await;
    let mut told = Vec::new();
    for (way, dialect) in sdk.ways {
        let (opening, end, _) = measure(*dialect);
        for fault in Fault::ALL {
            for after in [0, opening + 4, end] {
                harness.mock.push_script(fault.script(*dialect, after));
                told.push((*way, fault, after));
            }
        }
    }
    let each = Fault::ALL.len() * 3;
    let mut program = sdk.start(harness.client.addr, each).await;
    let mut runs = Vec::new();
    for _ in &told {
        runs.push(program.run().await);
    }
    let client = program.client.clone();
    program.ended().await;

    assert_eq!(
        harness.mock.recorder().count(),
        told.len(),
        "no request was repeated"
    );
    let list = harness
        .admin
        .get("/admin/streams?limit=1000")
        .await
        .json()
        .await;
    let states: Vec<&Value> = list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .collect();
    assert_eq!(states.len(), told.len());
    let mut rows = Vec::new();
    for fault in Fault::ALL {
        let mut classes = BTreeSet::new();
        for (((way, _, after), run), state) in told
            .iter()
            .zip(&runs)
            .zip(&states)
            .filter(|(((_, one, _), _), _)| one.story() == fault.story())
        {
            let place = format!("{way}, {} after {after} events: {run:?}", fault.story());
            let End::Raised { class, message } = &run.end else {
                panic!("a short answer was taken for a whole one: {place}");
            };
            assert!(TEXT.starts_with(&run.text), "{place}");
            let terminal = &state["terminal"];
            assert_eq!(terminal["code"], fault.code(), "{place}");
            let said = terminal["message"].as_str().expect("a message");
            assert!(message.contains(said), "{place} does not say {said:?}");
            classes.insert(format!("`{class}`"));
        }
        let classes: Vec<String> = classes.into_iter().collect();
        let saw = format!(
            "raised {} with our message, at the start, in the middle and at the end",
            classes.join(", ")
        );
        rows.push(Row::new(&client, fault.story(), saw));
    }
    rows
}

/// Stopped from outside, each way of an SDK sees a proper end with the text so far.
async fn stopped(sdk: &Sdk) -> Vec<Row> {
    let harness = Harness::start(Script::text(TEXT)).await;
    for (_, dialect) in sdk.ways {
        let (opening, _, _) = measure(*dialect);
        let script = Script::text(TEXT).gate_after(opening + 3, "never");
        harness.mock.push_script(script);
    }
    let mut program = sdk.start(harness.client.addr, 1).await;
    for (number, (way, dialect)) in sdk.ways.iter().enumerate() {
        let mut run = Run::default();
        program
            .read(&mut run, |run| run.text.split_inclusive(' ').count() == 3)
            .await;
        assert_eq!(run.end, End::None, "{way}: {run:?}");
        let list = harness
            .admin
            .get("/admin/streams?limit=1")
            .await
            .json()
            .await;
        let id = list["data"][0]["stream_id"].as_str().expect("an id");
        assert!(run.id.as_deref().is_none_or(|shown| shown == id), "{way}");
        let answer = same_credential(&harness, number)
            .send("POST", &format!("/v1/streams/{id}/stop"), "")
            .await
            .json()
            .await;
        program.read(&mut run, |_| false).await;
        assert_eq!(answer["text"].as_str(), Some(run.text.as_str()), "{way}");
        assert_eq!(
            run.end,
            End::Whole(Some(finish(*dialect).to_owned())),
            "{way}"
        );
    }
    let saw = "a proper end, finish as of a whole answer, the text so far";
    let row = Row::new(&program.client, "stopped from outside", saw);
    program.ended().await;
    vec![row]
}

/// A client with the credential of a request that the mock saw.
fn same_credential(harness: &Harness, number: usize) -> Client {
    let request = harness.mock.recorder().request(number).expect("it came");
    ["authorization", "x-api-key"]
        .iter()
        .filter_map(|name| Some((name, request.header(name)?)))
        .fold(harness.client.clone(), |client, (name, value)| {
            client.with(name, value)
        })
}

/// When the connection is lost before an SDK saw a byte of the answer, it asks again, and the backend is asked once.
async fn retried(sdk: &Sdk) -> Vec<Row> {
    let harness = Harness::start(Script::text(TEXT)).await;
    let relay = FaultRelay::start(harness.client.addr)
        .await
        .expect("a port");
    let patient = Duration::from_secs(120);
    let recorder = harness.mock.recorder().with_deadline(patient);
    let gates = harness.mock.gates();
    let moments = [Moment::BeforeTheHead, Moment::BehindTheHead];
    for _ in sdk.ways {
        for _ in moments {
            let script = Script::text(TEXT).head_gate("head").gate_after(0, "body");
            harness.mock.push_script(script);
        }
    }
    let mut program = sdk.start(relay.addr(), moments.len()).await;
    let mut requests = 0;
    for (way, dialect) in sdk.ways {
        for moment in moments {
            requests += 1;
            recorder.wait_requests(requests).await.expect("the request");
            let accepted = relay.accepted();
            match moment {
                Moment::BeforeTheHead => relay.cut_connections(Cut::Rst),
                Moment::BehindTheHead => {
                    // The head comes as far as the relay, which passes nothing on until the connection is gone.
                    relay.pause();
                    gates.step("head");
                    let written = gates.wait_arrived("body", requests).await;
                    written.expect("the head");
                    relay.cut_connections(Cut::Fin);
                }
            }
            patience(async { while relay.wait_accepted(accepted + 1).await.is_err() {} }).await;
            relay.resume();
            if moment == Moment::BeforeTheHead {
                gates.step("head");
            }
            gates.step("body");
            let run = program.run().await;
            assert_eq!(run.text, TEXT, "{way}, {moment:?}");
            let whole = End::Whole(Some(finish(*dialect).to_owned()));
            assert_eq!(run.end, whole, "{way}, {moment:?}");
        }
    }
    let client = program.client.clone();
    program.ended().await;
    assert_eq!(recorder.count(), requests, "the backend was asked again");
    let saw = "the whole text, after a repeat of its own that the backend never saw";
    vec![Row::new(&client, "connection lost before the answer", saw)]
}

/// When the connection is lost, seen from the backend: while it still thinks, or when its head is on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    BeforeTheHead,
    BehindTheHead,
}

/// Tells a story with each of the SDKs, all at once, and checks its rows.
async fn each(test: &'static str, story: impl AsyncFn(&Sdk) -> Vec<Row>) {
    let (first, second, third) = tokio::join!(
        story(&OPENAI_PYTHON),
        story(&ANTHROPIC_PYTHON),
        story(&OPENAI_JAVASCRIPT)
    );
    check(test, &[first, second, third]);
}

/// The same with those that know Responses.
async fn each_of_responses(test: &'static str, story: impl AsyncFn(&Sdk) -> Vec<Row>) {
    let (first, second) = tokio::join!(story(&RESPONSES_PYTHON), story(&RESPONSES_JAVASCRIPT));
    check(test, &[first, second]);
}

#[track_caller]
fn check(test: &'static str, rows: &[Vec<Row>]) {
    let mut seen = Seen::by(test);
    for row in rows.iter().flatten() {
        seen.row(row);
    }
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_is_whole_and_heartbeats_do_no_harm() {
    each(
        "sdks::a_whole_answer_is_whole_and_heartbeats_do_no_harm",
        whole,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_answer_always_raises() {
    each("sdks::a_cut_answer_always_raises", cut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_response_is_whole_and_heartbeats_do_no_harm() {
    each_of_responses(
        "sdks::a_whole_response_is_whole_and_heartbeats_do_no_harm",
        whole,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_response_always_raises() {
    each_of_responses("sdks::a_cut_response_always_raises", cut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_from_outside_is_a_proper_end() {
    each("sdks::a_stop_from_outside_is_a_proper_end", stopped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_the_sdk_joins() {
    each("sdks::a_repeat_of_the_sdk_joins", retried).await;
}

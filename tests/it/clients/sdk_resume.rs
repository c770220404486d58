//! The SDKs of OpenAI resume a response by calls of their own, which know its id and the number of an event.

use serde_json::Value;
use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::Harness;

use super::program::Program;
use super::scene::cutting;
use super::seen::{Row, Seen};

const RESPONSES: Dialect = Dialect::OpenAiResponses;

/// The numbers of all events that the application was given.
fn numbers(told: &[Value]) -> Vec<u64> {
    told.iter()
        .filter_map(|line| line["number"].as_u64())
        .collect()
}

fn find<'a>(told: &'a [Value], member: &str) -> Option<&'a Value> {
    told.iter().find_map(|line| line.get(member))
}

async fn resumed(program: &str, way: &str) -> Row {
    let script = Script::tokens(30);
    let harness = Harness::start(script.clone()).await;
    let relay = cutting(harness.client.addr, &[3000]).await;
    let program = Program::start(program, relay.addr(), &[way]).await;
    let client = program.client.clone();
    let told = program.ended().await;
    let count = script.expected(&Ask::stream(RESPONSES)).len() as u64;
    let raised = told.iter().position(|line| line.get("raised").is_some());
    let raised = raised.unwrap_or_else(|| panic!("it was cut: {told:?}"));
    let before = numbers(&told[..raised]);
    assert!((5..count - 1).contains(&(before.len() as u64)), "{told:?}");
    // Each once, to the end, and nothing behind it.
    assert_eq!(numbers(&told), Vec::from_iter(0..count), "{way}: {told:?}");
    assert_eq!(find(&told, "whole"), Some(&Value::from("completed")));
    assert_eq!(find(&told, "again"), Some(&Value::from(count - 1)));
    assert_eq!(find(&told, "over"), Some(&Value::from(true)), "{told:?}");
    assert_eq!(
        harness.mock.recorder().count(),
        1,
        "the backend was asked once"
    );
    let story = format!("response cut in the middle, then `{way}`");
    let saw = "every event once, to the end; behind the last one none; the backend was asked once";
    Row::new(&client, &story, saw)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_sdk_resumes_a_response_by_its_own_call() {
    let mut seen = Seen::by("sdk_resume::an_sdk_resumes_a_response_by_its_own_call");
    for (program, ways) in [
        (
            "openai_resume.py",
            &["retrieve", "retrieve_async", "stream"][..],
        ),
        ("openai_resume.mjs", &["retrieve", "stream"]),
    ] {
        for way in ways {
            seen.row(&resumed(program, way).await);
        }
    }
    seen.check();
}

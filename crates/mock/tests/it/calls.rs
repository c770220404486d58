//! Calls of tools, in the shapes of the real servers.

use serde_json::{Value, json};
use streamweld_mock::{Ask, Dialect, Script};

fn script() -> Script {
    let Value::Object(arguments) = json!({"place": "Brest harbour"}) else {
        unreachable!("it is an object");
    };
    Script::text("Let me see").call("tide", arguments)
}

/// The data of the events behind the text.
fn behind_the_text(script: &Script, dialect: Dialect) -> Vec<Value> {
    let events = script.expected(&Ask::stream(dialect)).concat();
    let events = String::from_utf8(events).unwrap();
    let data = events
        .split("\n\n")
        .filter_map(|event| Some(event.split_once("data: ")?.1));
    let data = data.filter_map(|data| serde_json::from_str(data).ok());
    data.skip(dialect.events_before_text(script) + 3).collect()
}

#[test]
fn chat_names_a_call_and_streams_its_arguments() {
    let chunks = behind_the_text(&script(), Dialect::OpenAiChat);
    let call = |chunk: &Value| chunk["choices"][0]["delta"]["tool_calls"][0].clone();
    assert_eq!(
        call(&chunks[0]),
        json!({"index": 0, "id": "call-0-0", "type": "function",
               "function": {"name": "tide", "arguments": ""}})
    );
    let pieces: Vec<Value> = chunks[1..chunks.len() - 1].iter().map(call).collect();
    assert!(pieces.len() > 1, "{pieces:?}");
    let arguments: String = pieces
        .iter()
        .map(|piece| piece["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(arguments, r#"{"place":"Brest harbour"}"#);
    assert_eq!(
        chunks.last().unwrap()["choices"][0]["finish_reason"],
        "tool_calls"
    );
}

#[test]
fn anthropic_has_a_block_for_each_call() {
    let events = behind_the_text(&script(), Dialect::AnthropicMessages);
    assert_eq!(events[0], json!({"type": "content_block_stop", "index": 0}));
    assert_eq!(
        events[1],
        json!({"type": "content_block_start", "index": 1,
               "content_block": {"type": "tool_use", "id": "toolu-1", "name": "tide", "input": {}}})
    );
    let [deltas @ .., stop, reason, end] = &events[2..] else {
        panic!("{events:?}");
    };
    let arguments: String = deltas
        .iter()
        .map(|event| event["delta"]["partial_json"].as_str().unwrap())
        .collect();
    assert_eq!(arguments, r#"{"place":"Brest harbour"}"#);
    assert_eq!(*stop, json!({"type": "content_block_stop", "index": 1}));
    assert_eq!(reason["delta"]["stop_reason"], "tool_use");
    assert_eq!(end["type"], "message_stop");
}

#[test]
fn responses_have_an_item_for_each_call_and_count_on() {
    let script = script();
    let before = Dialect::OpenAiResponses.events_before_text(&script) as u64 + 3;
    let events = behind_the_text(&script, Dialect::OpenAiResponses);
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (before..before + events.len() as u64).collect::<Vec<_>>()
    );
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let (deltas, others): (Vec<&str>, Vec<&str>) = kinds
        .iter()
        .partition(|kind| kind.ends_with("arguments.delta"));
    assert!(deltas.len() > 1, "{deltas:?}");
    assert_eq!(
        others,
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(output[0]["type"], "message");
    assert_eq!(
        output[1],
        json!({"id": format!("fc-{}-1", events.last().unwrap()["response"]["id"].as_str().unwrap()),
               "type": "function_call", "status": "completed", "call_id": "call-1", "name": "tide",
               "arguments": r#"{"place":"Brest harbour"}"#})
    );
}

#[test]
fn gemini_has_a_part_for_each_call() {
    let events = behind_the_text(&script(), Dialect::Gemini);
    let [call, last] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(
        call["candidates"][0]["content"]["parts"],
        json!([{"functionCall": {"name": "tide", "args": {"place": "Brest harbour"}}}])
    );
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn an_answer_that_a_limit_cut_and_a_completion_have_no_calls() {
    let short = Ask {
        max_tokens: Some(2),
        ..Ask::stream(Dialect::OpenAiChat)
    };
    let events = script().expected(&short).concat();
    let events = String::from_utf8(events).unwrap();
    assert!(
        !events.contains("tool_calls") && events.contains("\"length\""),
        "{events}"
    );
    let completion = script()
        .expected(&Ask::stream(Dialect::OpenAiCompletions))
        .concat();
    assert!(!String::from_utf8(completion).unwrap().contains("tide"));
}

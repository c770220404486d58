//! Endings of ours: exact bytes, and strings that cannot break out of them.

use streamweld_dialect::{
    BodyEnd, Dialect, Ending, Judge, Mark, Transcript, Verdict, error_ending, stopped_ending,
};
use streamweld_sse::{Decoder, Limits};

#[track_caller]
fn check(ending: &Ending, expected: &str) {
    assert_eq!(String::from_utf8_lossy(&ending.bytes), expected);
    let at = expected.len().checked_sub(1);
    assert_eq!(ending.id_at, at, "an id line goes before the blank line");
}

#[test]
fn an_error_is_what_the_clients_of_the_dialect_raise() {
    let openai = "data: {\"error\":{\"message\":\"upstream ended\",\"type\":\"streamweld_error\",\
                  \"param\":null,\"code\":\"truncated\"}}\n\n";
    let error = |dialect| error_ending(dialect, "truncated", "upstream ended");
    check(&error(Dialect::OpenAiChat), openai);
    check(&error(Dialect::OpenAiCompletions), openai);
    check(
        &error(Dialect::AnthropicMessages),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\
         \"message\":\"upstream ended\",\"code\":\"truncated\"}}\n\n",
    );
    check(&error(Dialect::Generic), "");
}

#[test]
fn a_message_stays_inside_its_string() {
    let message = "a\"b\\\r\n\ndata: [DONE]\n\n\u{2028}é\u{0}";
    for dialect in [Dialect::OpenAiChat, Dialect::AnthropicMessages] {
        let ending = error_ending(dialect, "c", message);
        let mut events = 0;
        each_event(&ending.bytes, |event| {
            events += 1;
            let data: serde_json::Value = serde_json::from_str(&event.data()).unwrap();
            assert_eq!(data["error"]["message"], message);
        });
        assert_eq!(events, 1);
    }
}

#[test]
fn an_error_of_ours_reads_as_an_upstream_error() {
    for dialect in Dialect::ALL {
        let mut judge = Judge::new(dialect);
        each_event(&error_ending(dialect, "c", "m").bytes, |event| {
            assert!(matches!(judge.event(event), Mark::Failed { .. }));
        });
    }
}

#[test]
fn a_stop_of_nothing_is_a_whole_answer() {
    for dialect in Dialect::ALL {
        let ending = stopped_ending(&Transcript::new(dialect));
        let mut judge = Judge::new(dialect);
        each_event(&ending.bytes, |event| {
            judge.event(event);
        });
        let verdict = judge.end(BodyEnd::Clean, None);
        assert!(
            matches!(verdict, Verdict::Done(_)),
            "{dialect}: {verdict:?}"
        );
    }
}

#[test]
fn a_stopped_answer_reads_as_a_whole_one_of_the_same_identity() {
    let begun = "data: {\"id\":\"x\",\"object\":\"o\",\"created\":5,\"model\":\"m\",\
                 \"choices\":[{\"index\":2,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let mut transcript = Transcript::new(Dialect::OpenAiChat);
    let mut judge = Judge::new(Dialect::OpenAiChat);
    each_event(begun.as_bytes(), |event| {
        transcript.push(event);
        judge.event(event);
    });
    let ending = stopped_ending(&transcript);
    check(
        &ending,
        "data: {\"id\":\"x\",\"object\":\"o\",\"created\":5,\"model\":\"m\",\"choices\":\
         [{\"index\":2,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\n\
         data: [DONE]\n\n",
    );
    each_event(&ending.bytes, |event| {
        judge.event(event);
        transcript.push(event);
    });
    assert!(matches!(judge.end(BodyEnd::Clean, None), Verdict::Done(_)));
    check(&stopped_ending(&transcript), "");
}

fn each_event(mut bytes: &[u8], mut with: impl FnMut(&streamweld_sse::Event<'_>)) {
    let mut decoder = Decoder::new(Limits::default());
    while let Some(event) = decoder.decode(&mut bytes).unwrap() {
        with(&event);
    }
    assert!(decoder.tail().is_empty(), "endings are whole blocks");
}

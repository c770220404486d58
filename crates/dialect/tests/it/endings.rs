//! Endings of ours: exact bytes, and strings that cannot break out of them.

use streamweld_dialect::{
    Behind, BodyEnd, Dialect, Ending, Judge, Mark, Transcript, Verdict, as_shown, error_ending,
    stopped_ending,
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
    let error = |dialect| error_ending(dialect, "truncated", "upstream ended", Behind::default());
    check(&error(Dialect::OpenAiChat), openai);
    check(&error(Dialect::OpenAiCompletions), openai);
    check(
        &error(Dialect::AnthropicMessages),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\
         \"message\":\"upstream ended\",\"code\":\"truncated\"}}\n\n",
    );
    check(
        &error(Dialect::OpenAiResponses),
        "event: error\ndata: {\"type\":\"error\",\"code\":\"truncated\",\"message\":\"upstream ended\",\
         \"param\":null,\"sequence_number\":0,\"error\":{\"type\":\"streamweld_error\",\
         \"code\":\"truncated\",\"message\":\"upstream ended\",\"param\":null}}\n\n",
    );
    check(
        &error(Dialect::Gemini),
        "data: {\"error\":{\"code\":500,\"message\":\"upstream ended\",\"status\":\"INTERNAL\",\
         \"details\":[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\
         \"reason\":\"truncated\",\"domain\":\"streamweld\"}]}}\n\n",
    );
    check(&error(Dialect::Generic), "");
    check(&error(Dialect::Mcp), "");
    let call = Behind {
        last: None,
        call: Some("\"c-7\""),
    };
    check(
        &error_ending(Dialect::Mcp, "truncated", "upstream ended", call),
        "data: {\"jsonrpc\":\"2.0\",\"id\":\"c-7\",\"error\":{\"code\":-32603,\"message\":\"upstream ended\",\
         \"data\":{\"type\":\"streamweld_error\",\"code\":\"truncated\"}}}\n\n",
    );
}

#[test]
fn an_error_of_a_response_has_the_next_number() {
    for (last, number) in [
        (
            "data: {\"type\":\"keepalive\",\"sequence_number\":41}\n\n",
            42,
        ),
        ("data: {\"type\":\"keepalive\"}\n\n", 0),
        ("event: streamweld.open\ndata: {\"seq\":1}\n\n", 0),
    ] {
        each_event(last.as_bytes(), |last| {
            let ending = error_ending(
                Dialect::OpenAiResponses,
                "c",
                "m",
                Behind {
                    last: Some(last),
                    call: None,
                },
            );
            each_event(&ending.bytes, |event| {
                let data: serde_json::Value = serde_json::from_str(&event.data()).unwrap();
                assert_eq!(data["sequence_number"], number);
            });
        });
    }
}

#[test]
fn who_is_shown_no_ids_is_shown_an_error_of_gemini_that_is_no_event() {
    for dialect in Dialect::ALL {
        let ending = error_ending(dialect, "c", "m", Behind::default()).bytes;
        let shown = as_shown(dialect, &ending);
        if dialect == Dialect::Gemini {
            assert_eq!(shown, &ending["data: ".len()..]);
            let json: serde_json::Value = serde_json::from_slice(shown).unwrap();
            assert_eq!(json["error"]["message"], "m");
            each_event(shown, |event| {
                let mark = Judge::new(dialect).event(event);
                assert!(matches!(mark, Mark::Failed { .. }));
            });
        } else {
            assert_eq!(shown, ending);
        }
    }
}

#[test]
fn a_message_stays_inside_its_string() {
    let message = "a\"b\\\r\n\ndata: [DONE]\n\n\u{2028}é\u{0}";
    for dialect in Dialect::ALL {
        if dialect == Dialect::Generic {
            continue;
        }
        let call = Behind {
            last: None,
            call: Some("1"),
        };
        let ending = error_ending(dialect, "c", message, call);
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
        each_event(
            &error_ending(dialect, "c", "m", Behind::default()).bytes,
            |event| {
                assert!(matches!(judge.event(event), Mark::Failed { .. }));
            },
        );
    }
}

#[test]
fn a_stop_of_nothing_is_a_whole_answer() {
    for dialect in Dialect::ALL {
        let mut transcript = Transcript::new(dialect);
        transcript.answers(Some("1".to_owned()));
        let ending = stopped_ending(&transcript);
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

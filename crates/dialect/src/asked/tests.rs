//! What requests are found to ask for, member by member.

use serde_json::json;

use super::*;

fn read(dialect: Dialect, members: Value) -> Asked {
    let Value::Object(mut body) = members else {
        panic!("not an object")
    };
    body.insert("model".into(), "m".into());
    body.insert("stream".into(), true.into());
    let body = serde_json::to_vec(&body).expect("it is JSON");
    Asked::read(dialect, &body).expect("it is an object")
}

fn chat(members: Value) -> Asked {
    read(Dialect::OpenAiChat, members)
}

#[track_caller]
fn is_plain(dialect: Dialect, members: Value) {
    let asked = read(dialect, members.clone());
    assert!(
        asked.hazards.is_empty() && asked.unknown.is_empty(),
        "{members}: {asked:?}"
    );
}

#[track_caller]
fn is_hazard(dialect: Dialect, members: Value, hazard: Hazard) {
    let asked = read(dialect, members.clone());
    assert_eq!(asked.hazards, BTreeSet::from([hazard]), "{members}");
    assert!(asked.unknown.is_empty(), "{members}: {asked:?}");
}

#[test]
fn a_plain_question_has_no_hazards() {
    is_plain(
        Dialect::OpenAiChat,
        json!({
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": [{"type": "text", "text": "q"}]},
            ],
            "temperature": 0.7, "top_p": 0.9, "max_tokens": 64, "n": 1, "stop": null, "user": "u",
            "stream_options": {"include_usage": true}, "logprobs": false, "tools": [],
            "presence_penalty": 0, "frequency_penalty": 0.0, "repetition_penalty": 1,
            "response_format": {"type": "text"}, "logit_bias": {"7": -1},
        }),
    );
    for prompt in [json!("p"), json!(["p"]), json!([1, 2]), json!([[1, 2]])] {
        is_plain(
            Dialect::OpenAiCompletions,
            json!({"prompt": prompt, "max_tokens": 8, "echo": false, "best_of": 1}),
        );
    }
}

#[test]
fn what_steers_a_chat_is_a_hazard_of_its_kind() {
    for (members, hazard) in [
        (json!({"n": 2}), Hazard::Choices),
        (json!({"use_beam_search": true}), Hazard::Choices),
        (json!({"tools": [{"type": "function"}]}), Hazard::Tools),
        (
            json!({"tools": [{"type": "function"}], "tool_choice": "auto"}),
            Hazard::Tools,
        ),
        (json!({"functions": [{"name": "f"}]}), Hazard::Tools),
        (json!({"web_search_options": {}}), Hazard::ServerTools),
        (json!({"store": true}), Hazard::EngineState),
        (json!({"chat_template": "x"}), Hazard::EngineState),
        (json!({"documents": [{}]}), Hazard::EngineState),
        // Any JSON at all is a format, too.
        (json!({"json_schema": {}}), Hazard::StructuredOutput),
        (json!({"guided_json": {}}), Hazard::StructuredOutput),
        (json!({"guided_choice": []}), Hazard::StructuredOutput),
        (json!({"grammar": ""}), Hazard::StructuredOutput),
        (json!({"structured_outputs": {}}), Hazard::StructuredOutput),
        (
            json!({"response_format": {"type": "json_object"}}),
            Hazard::StructuredOutput,
        ),
        (json!({"guided_regex": "a+"}), Hazard::StructuredOutput),
        (
            json!({"structured_outputs": {"choice": ["a"]}}),
            Hazard::StructuredOutput,
        ),
        (json!({"stop": "\n"}), Hazard::StopSequence),
        (json!({"stop": ["a", "b"]}), Hazard::StopSequence),
        (json!({"presence_penalty": 0.1}), Hazard::Penalties),
        (json!({"repetition_penalty": 1.1}), Hazard::Penalties),
        (json!({"dry_multiplier": 0.8}), Hazard::Penalties),
        (json!({"seed": 0}), Hazard::Seed),
        (json!({"reasoning_effort": "low"}), Hazard::Reasoning),
        (
            json!({"chat_template_kwargs": {"enable_thinking": true}}),
            Hazard::Reasoning,
        ),
        (json!({"logprobs": true}), Hazard::Logprobs),
        (json!({"echo": true}), Hazard::Echo),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            Hazard::Media,
        ),
        (json!({"modalities": ["text", "audio"]}), Hazard::Media),
        (json!({"truncate_prompt_tokens": 9}), Hazard::Truncation),
        (
            json!({"kv_transfer_params": {"prompt_token_ids": [1]}}),
            Hazard::EngineState,
        ),
        (json!({"continue_final_message": true}), Hazard::EngineState),
    ] {
        is_hazard(Dialect::OpenAiChat, members, hazard);
    }
}

#[test]
fn so_does_what_steers_completions() {
    for (members, hazard) in [
        (json!({"prompt": ["a", "b"]}), Hazard::Choices),
        (json!({"prompt": [[1], [2]]}), Hazard::Choices),
        (json!({"best_of": 3}), Hazard::Choices),
        (json!({"logprobs": 0}), Hazard::Logprobs),
        (json!({"echo": true}), Hazard::Echo),
        (json!({"suffix": "s"}), Hazard::EngineState),
        (json!({"prompt_embeds": "x"}), Hazard::EngineState),
    ] {
        is_hazard(Dialect::OpenAiCompletions, members, hazard);
    }
}

#[test]
fn what_steers_a_message_is_a_hazard_of_its_kind() {
    let messages = Dialect::AnthropicMessages;
    is_plain(
        messages,
        json!({
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "q"},
            ],
            "system": [{"type": "text", "text": "s"}], "max_tokens": 64, "temperature": 0, "top_k": 5, "top_p": 0.9,
            "metadata": {"user_id": "u"}, "service_tier": "auto", "stop_sequences": [], "tools": [],
            "thinking": {"type": "disabled"}, "output_config": {"effort": "low", "format": null}, "mcp_servers": [],
            "container": null, "betas": [],
        }),
    );
    is_plain(messages, json!({"system": "s"}));
    let tool = json!([{"name": "f", "input_schema": {}}]);
    is_plain(
        messages,
        json!({"tools": tool, "tool_choice": {"type": "none"}}),
    );
    let image = json!([{"role": "user", "content": [{"type": "image", "source": {}}]}]);
    let turns = |content: Value| json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": content}]);
    for (members, hazard) in [
        (json!({"tools": tool}), Hazard::Tools),
        (
            json!({"tools": tool, "tool_choice": {"type": "auto"}}),
            Hazard::Tools,
        ),
        (json!({"tools": tool, "tool_choice": "none"}), Hazard::Tools),
        (json!({"mcp_servers": [{"url": "u"}]}), Hazard::ServerTools),
        (json!({"container": "c"}), Hazard::ServerTools),
        (json!({"stop_sequences": ["x"]}), Hazard::StopSequence),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            Hazard::Reasoning,
        ),
        (json!({"thinking": {"type": "adaptive"}}), Hazard::Reasoning),
        (
            json!({"output_config": {"format": {"type": "json_schema"}}}),
            Hazard::StructuredOutput,
        ),
        (
            json!({"output_format": {"type": "json_schema"}}),
            Hazard::StructuredOutput,
        ),
        (
            json!({"context_management": {"edits": []}}),
            Hazard::Truncation,
        ),
        (json!({"messages": image}), Hazard::Media),
        (json!({"system": [{"type": "image"}]}), Hazard::Media),
        (json!({"messages": turns(json!("a"))}), Hazard::Prefilled),
        (
            json!({"messages": turns(json!([{"type": "text", "text": "a"}]))}),
            Hazard::Prefilled,
        ),
        (json!({"betas": ["b"]}), Hazard::EngineState),
    ] {
        is_hazard(messages, members, hazard);
    }
    let asked = read(
        messages,
        json!({"max_tokens": 9, "temperature": 0, "seed": 1}),
    );
    assert_eq!((asked.max_tokens, asked.greedy), (Some(9), true));
    assert_eq!(asked.unknown.into_iter().collect::<Vec<_>>(), ["seed"]);
}

#[test]
fn tools_that_may_not_be_called_are_none() {
    is_plain(
        Dialect::OpenAiChat,
        json!({"tools": [{"type": "function"}], "tool_choice": "none"}),
    );
}

#[test]
fn an_answer_that_the_app_began_itself_is_a_hazard() {
    let messages =
        |last: &str| json!([{"role": "user", "content": "q"}, {"role": last, "content": "a"}]);
    is_hazard(
        Dialect::OpenAiChat,
        json!({"messages": messages("assistant")}),
        Hazard::Prefilled,
    );
    is_plain(Dialect::OpenAiChat, json!({"messages": messages("tool")}));
}

#[test]
fn a_value_of_the_wrong_kind_is_not_harmless() {
    for members in [
        json!({"n": "1"}),
        json!({"stop": 5}),
        json!({"echo": "false"}),
        json!({"presence_penalty": "0"}),
        json!({"messages": "hello"}),
        json!({"response_format": "text"}),
    ] {
        assert_eq!(chat(members.clone()).hazards.len(), 1, "{members}");
    }
}

#[test]
fn members_that_nobody_knows_are_named() {
    let asked = chat(json!({"my_sampler": 1, "their_sampler": 2, "mirostat": null}));
    assert_eq!(
        asked.unknown.into_iter().collect::<Vec<_>>(),
        ["my_sampler", "their_sampler"]
    );
    // Each dialect has its own.
    let asked = read(Dialect::OpenAiCompletions, json!({"messages": []}));
    assert_eq!(asked.unknown.len(), 1);
}

#[test]
fn the_smaller_of_two_limits_holds() {
    let limits = |members| {
        let asked = chat(members);
        (asked.min_tokens, asked.max_tokens)
    };
    assert_eq!(limits(json!({})), (None, None));
    assert_eq!(limits(json!({"max_tokens": 9})), (None, Some(9)));
    assert_eq!(
        limits(json!({"max_tokens": 9, "max_completion_tokens": 7, "min_tokens": 2})),
        (Some(2), Some(7))
    );
    assert_eq!(limits(json!({"min_tokens": 0})), (None, None));
}

#[test]
fn greedy_is_what_says_so() {
    assert!(chat(json!({"temperature": 0})).greedy);
    assert!(chat(json!({"top_k": 1, "temperature": 1})).greedy);
    assert!(!chat(json!({"temperature": 0.1})).greedy);
    assert!(!chat(json!({})).greedy);
    // Cold only where the temperature is looked at, and nothing takes the most probable token away.
    for (more, expected) in [
        (json!({"samplers": ["top_k", "temperature"]}), true),
        (json!({"samplers": ["top_k"]}), false),
        (json!({"samplers": []}), false),
        (json!({"samplers": "kt"}), true),
        (json!({"samplers": "k"}), false),
        (json!({"samplers": 1}), false),
        (json!({"xtc_probability": 0}), true),
        (json!({"xtc_probability": 0.5}), false),
    ] {
        let mut request = more.clone();
        request["temperature"] = json!(0);
        assert_eq!(chat(request).greedy, expected, "{more}");
    }
    assert!(!chat(json!({"top_k": 1, "samplers": ["temperature"]})).greedy);
}

#[test]
fn what_is_no_object_says_nothing() {
    let read = |body: &[u8]| Asked::read(Dialect::OpenAiChat, body);
    for body in [&b""[..], b"[]", b"{", b"null", b"{\"a\":1} x"] {
        assert_eq!(read(body), Err(Unreadable::NoObject));
    }
    let other = Asked::read(Dialect::Generic, b"{}");
    assert_eq!(other, Err(Unreadable::Dialect));
}

#[test]
fn each_member_stands_in_one_table_once() {
    for (own, more) in [
        (members::CHAT, members::COMMON),
        (members::COMPLETIONS, members::COMMON),
        (messages::MESSAGES, &[]),
    ] {
        let names: Vec<&str> = own.iter().chain(more).map(|(name, _)| *name).collect();
        let different: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), different.len());
        assert!(
            own.windows(2).all(|pair| pair[0].0 < pair[1].0),
            "they are sorted"
        );
    }
}

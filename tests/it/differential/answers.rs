//! What backends say in each dialect: whole, and cut short in every way that protocol.md 7.2 has a class for.

use serde_json::{Value, json};
use streamweld_mock::Dialect;

use super::case::{Answer, BodyEnd, Event, Outcome, Told};
use super::random::Random;

/// An answer of this dialect; none is MCP.
pub(super) fn answer(random: &mut Random, dialect: Option<Dialect>) -> Answer {
    let mut teller = Teller::new(random);
    match dialect {
        Some(Dialect::OpenAiChat) => chat(&mut teller, true),
        Some(Dialect::OpenAiCompletions) => chat(&mut teller, false),
        Some(Dialect::OpenAiResponses) => responses(&mut teller),
        Some(Dialect::AnthropicMessages) => messages(&mut teller),
        Some(Dialect::Gemini) => gemini(&mut teller),
        Some(Dialect::Generic) => generic(&mut teller),
        None => mcp(&mut teller),
    }
    teller.answer
}

/// Now and then one of the events that are shown is no UTF-8.
pub(super) fn spoil(random: &mut Random, answer: &mut Answer) {
    if !random.one_in(25) || answer.events.is_empty() {
        return;
    }
    let at = random.below(answer.events.len());
    if !matches!(answer.events[at].1, Told::Whole) || answer.events[at].0.data.is_none() {
        return;
    }
    for (_, told) in &mut answer.events[at..] {
        *told = Told::Nothing;
    }
    // A stop reason waits for what is behind it.
    if let Some((before, told)) = at.checked_sub(1).map(|at| &mut answer.events[at]) {
        let data = before.data.as_deref().unwrap_or_default();
        if before.name.as_deref() == Some("message_delta") || data.contains("\"message_delta\"") {
            *told = Told::Nothing;
        }
    }
    let event = &mut answer.events[at].0;
    event.data = Some("half a character".to_owned());
    event.damaged = true;
    answer.outcome = Outcome::Failed {
        code: "invalid_utf8",
    };
}

struct Teller<'a> {
    random: &'a mut Random,
    answer: Answer,
    /// The answer is over: nothing more is shown.
    over: bool,
}

impl<'a> Teller<'a> {
    fn new(random: &'a mut Random) -> Self {
        Self {
            random,
            answer: Answer {
                events: Vec::new(),
                torn: None,
                end: BodyEnd::Clean,
                outcome: Outcome::Failed { code: "truncated" },
                choices: 1,
            },
            over: false,
        }
    }

    fn tell(&mut self, event: Event) {
        let told = if self.over {
            Told::Nothing
        } else {
            Told::Whole
        };
        self.answer.events.push((event, told));
    }

    fn json(&mut self, value: &Value) {
        let text = self.written(value);
        self.tell(Event::data(text));
    }

    fn typed(&mut self, value: &Value) {
        let text = self.written(value);
        let kind = value["type"].as_str().expect("a type");
        // Some copies leave the name out.
        let event = match self.random.below(8) {
            0 => Event::data(text),
            _ => Event::named(kind, text),
        };
        self.tell(event);
    }

    /// As servers write JSON: close together, or with line ends in it.
    fn written(&mut self, value: &Value) -> String {
        if self.random.one_in(6) {
            format!("{value:#}")
        } else {
            value.to_string()
        }
    }

    /// An event that is not shown, and ends it. What it carried is shown without its failure, if it is given.
    fn fails(&mut self, code: &'static str, event: Event, instead: Option<String>) {
        let told = instead.map_or(Told::Nothing, Told::Instead);
        self.answer.events.push((event, told));
        self.ends(Outcome::Failed { code });
    }

    /// What was told last is not shown: a failure came behind it.
    fn withhold(&mut self) {
        if let Some((_, told)) = self.answer.events.last_mut() {
            *told = Told::Nothing;
        }
    }

    fn ends(&mut self, outcome: Outcome) {
        self.answer.outcome = outcome;
        self.over = true;
    }

    fn done(&mut self, end: &'static str, reasons: &[&str]) {
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        self.ends(Outcome::Done { end, reasons });
    }

    fn cut(&mut self) {
        self.answer.end = BodyEnd::Cut;
    }

    /// Words, with what has confused readers before; rarely very many.
    fn text(&mut self) -> String {
        const WORDS: [&str; 20] = [
            "a",
            " the",
            "error",
            "\"error\":{}",
            "[DONE]",
            "data: x\n\n",
            "日本語",
            "🦀",
            "\u{2028}",
            "\u{85}\u{b}\u{c}",
            "\\",
            "\"",
            "finish_reason",
            "\"index\":3",
            "result",
            "response.completed",
            " ",
            "\r\n",
            "é",
            "\u{0}",
        ];
        let words = match self.random.below(3000) {
            0 => 20_000,
            1..30 => 600,
            _ => self.random.below(6),
        };
        (0..words).map(|_| *self.random.pick(&WORDS)).collect()
    }

    fn some(&mut self) -> usize {
        if self.random.one_in(50) {
            self.random.below(200)
        } else {
            self.random.below(6)
        }
    }
}

fn chunk(chat: bool, index: usize, text: &str, reason: Value) -> Value {
    let mut choice = json!({"index": index, "finish_reason": reason});
    if chat {
        choice["delta"] = json!({"content": text});
    } else {
        choice["text"] = text.into();
    }
    let object = if chat {
        "chat.completion.chunk"
    } else {
        "text_completion"
    };
    json!({"id": "c", "object": object, "created": 1, "model": "m", "choices": [choice]})
}

fn chat(teller: &mut Teller<'_>, chat: bool) {
    let choices = if teller.random.one_in(5) {
        1 + teller.random.below(3)
    } else {
        1
    };
    teller.answer.choices = choices;
    if teller.random.one_in(4) {
        teller.json(&json!({"object": "chat.completion.chunk", "choices": []}));
    }
    if chat {
        for index in 0..choices {
            let delta = json!({"role": "assistant", "content": ""});
            let choice = json!({"index": index, "delta": delta});
            teller.json(&json!({"id": "c", "choices": [choice]}));
        }
    }
    for _ in 0..teller.some() {
        let index = teller.random.below(choices);
        let text = teller.text();
        let reason = if teller.random.one_in(9) {
            "".into()
        } else {
            Value::Null
        };
        teller.json(&chunk(chat, index, &text, reason));
    }
    let how = teller.random.below(16);
    if how < 8 {
        let reasons: Vec<&str> = (0..choices)
            .map(|_| *teller.random.pick(&["stop", "length", "content_filter"]))
            .collect();
        for (index, reason) in reasons.iter().enumerate() {
            teller.json(&chunk(chat, index, "", (*reason).into()));
        }
        if teller.random.one_in(3) {
            let usage = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
            teller.json(&json!({"id": "c", "choices": [], "usage": usage}));
        }
        match how {
            0..=3 => {
                teller.tell(Event::data("[DONE]"));
                teller.done("sentinel", &reasons);
                if teller.random.one_in(5) {
                    teller.json(&chunk(chat, 0, "late", Value::Null));
                }
            }
            4 => teller.done("eof", &reasons),
            5 => {
                teller.cut();
                teller.done("cut", &reasons);
            }
            6 => {
                teller.answer.torn = Some("data: [DON".to_owned());
                teller.done("eof", &reasons);
            }
            _ => error(teller),
        }
        return;
    }
    match how {
        8 => {}
        9 => teller.cut(),
        10 => teller.fails("truncated", Event::data("[DONE]"), None),
        11 => error(teller),
        12 => {
            let text = teller.text();
            let bad = *teller
                .random
                .pick(&["abort", "cancelled", "error", "network_error"]);
            let data = teller.written(&chunk(chat, 0, &text, bad.into()));
            let kept = data.replace(&format!("\"{bad}\""), "null");
            // Text that is one of these words would be replaced with it.
            let kept = (!text.is_empty() && text != bad).then_some(kept);
            if text != bad {
                teller.fails("aborted", Event::data(data), kept);
                teller.tell(Event::data("[DONE]"));
            }
        }
        13 => {
            teller.answer.torn = Some("data: {\"id\":\"c\",\"choi".to_owned());
            teller.cut();
        }
        14 => {
            let field = Event {
                error_field: Some("{\"message\":\"slot failed\"}".to_owned()),
                ..Event::default()
            };
            teller.fails("upstream_error", field, None);
            teller.tell(Event::data("[DONE]"));
        }
        _ => teller.fails("upstream_error", Event::named("error", "it broke"), None),
    }
}

/// An error as most write it, and the sentinel behind it all the same.
fn error(teller: &mut Teller<'_>) {
    let error = json!({"message": "engine died", "type": "server_error", "code": 500});
    let data = teller.written(&json!({"error": error}));
    teller.fails("upstream_error", Event::data(data), None);
    if teller.random.one_in(2) {
        teller.tell(Event::data("[DONE]"));
    }
}

fn messages(teller: &mut Teller<'_>) {
    let message = json!({"id": "m", "type": "message", "model": "m", "usage": {"input_tokens": 3}});
    teller.typed(&json!({"type": "message_start", "message": message}));
    let how = teller.random.below(11);
    let blocks = 1 + teller.random.below(3);
    for index in 0..blocks {
        let block = *teller.random.pick(&["text", "thinking", "tool_use"]);
        teller.typed(&json!({"type": "content_block_start", "index": index, "content_block": {"type": block}}));
        for _ in 0..teller.some() {
            let member = match block {
                "text" => "text",
                "thinking" => "thinking",
                _ => "partial_json",
            };
            let delta = json!({"type": "a_delta", member: teller.text()});
            teller.typed(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        if teller.random.one_in(4) {
            teller.typed(&json!({"type": "ping"}));
        }
        if how == 5 && index + 1 == blocks {
            return;
        }
        if how == 6 {
            return teller.cut();
        }
        teller.typed(&json!({"type": "content_block_stop", "index": index}));
    }
    let stop = json!({"type": "message_stop"});
    let delta = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}});
    match how {
        7 => {
            let stop = teller.written(&stop);
            return teller.fails("truncated", Event::named("message_stop", stop), None);
        }
        8 => {
            let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
            let error = teller.written(&error);
            return teller.fails("upstream_error", Event::named("error", error), None);
        }
        9 => {
            let delta = teller.written(&delta("abort"));
            teller.fails("aborted", Event::named("message_delta", delta), None);
            return teller.typed(&stop);
        }
        _ => {}
    }
    let reason = *teller
        .random
        .pick(&["end_turn", "max_tokens", "tool_use", "refusal"]);
    teller.typed(&delta(reason));
    match how {
        10 => {
            teller.withhold();
            let error = json!({"type": "error", "error": {"type": "api_error", "message": "m"}});
            let error = teller.written(&error);
            teller.fails("upstream_error", Event::named("error", error), None);
        }
        0..=2 => {
            teller.typed(&stop);
            teller.done("sentinel", &[reason]);
        }
        3 => {
            teller.answer.torn =
                Some("event: message_stop\ndata: {\"type\":\"message_sto".to_owned());
            teller.done("eof", &[reason]);
        }
        _ => {
            teller.cut();
            teller.done("cut", &[reason]);
        }
    }
}

fn responses(teller: &mut Teller<'_>) {
    let mut number = 0;
    let mut numbered = |mut event: Value| {
        event["sequence_number"] = number.into();
        number += 1;
        event
    };
    let response =
        |status: &str| json!({"id": "r", "object": "response", "status": status, "error": null});
    teller.typed(&numbered(
        json!({"type": "response.created", "response": response("in_progress")}),
    ));
    for _ in 0..teller.some() {
        let text = teller.text();
        let kind = *teller.random.pick(&[
            "response.output_text.delta",
            "response.reasoning_text.delta",
            "response.function_call_arguments.delta",
            "keepalive",
        ]);
        teller.typed(&numbered(
            json!({"type": kind, "output_index": 0, "delta": text}),
        ));
    }
    let how = teller.random.below(11);
    let mut end =
        |kind: &str, response: Value| numbered(json!({"type": kind, "response": response}));
    match how {
        0..=2 => {
            teller.typed(&end("response.completed", response("completed")));
            teller.done("sentinel", &["completed"]);
            if how == 2 {
                teller.cut();
            }
        }
        3 => {
            let mut response = response("incomplete");
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
            teller.typed(&end("response.incomplete", response));
            teller.done("sentinel", &["max_output_tokens"]);
            teller.tell(Event::data("[DONE]"));
        }
        4 => {}
        5 => teller.cut(),
        6 => teller.fails("truncated", Event::data("[DONE]"), None),
        7 => {
            let error =
                json!({"type": "error", "code": "server_error", "message": "m", "param": null});
            let error = teller.written(&error);
            teller.fails("upstream_error", Event::named("error", error), None);
        }
        8 | 9 => {
            let (kind, status, code) = if how == 8 {
                ("response.failed", "failed", "upstream_error")
            } else {
                ("response.completed", "cancelled", "aborted")
            };
            let data = teller.written(&end(kind, response(status)));
            teller.fails(code, Event::named(kind, data), None);
        }
        _ => {
            teller.answer.torn =
                Some("event: response.completed\ndata: {\"type\":\"response.comple".to_owned());
        }
    }
}

fn gemini(teller: &mut Teller<'_>) {
    let part = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "index": 0}], "modelVersion": "m"});
    for _ in 0..teller.some() {
        let text = teller.text();
        teller.json(&part(&text));
    }
    let how = teller.random.below(10);
    let finish = |reason: &str| {
        let mut last = part("x");
        last["candidates"][0]["finishReason"] = reason.into();
        last
    };
    match how {
        0..=2 => {
            let reason = *teller.random.pick(&["STOP", "MAX_TOKENS", "SAFETY"]);
            teller.json(&finish(reason));
            if how == 1 {
                teller.json(&json!({"usageMetadata": {"totalTokenCount": 9}}));
            }
            if how == 2 {
                teller
                    .answer
                    .events
                    .push((Event::data("[DONE]"), Told::Nothing));
            }
            teller.done("eof", &[reason]);
        }
        3 => {
            teller.json(&finish("STOP"));
            teller.cut();
        }
        4 => {
            teller.json(&finish("STOP"));
            let text = teller.text();
            teller.json(&part(&text));
        }
        5 => {
            let data = teller.written(&finish("abort"));
            let kept = data.replace("\"abort\"", "null");
            teller.fails("aborted", Event::data(data), Some(kept));
        }
        6 => error(teller),
        7 => {
            teller.answer.torn =
                Some("{\"error\":{\"code\":503,\"message\":\"overloaded\"}}".to_owned());
            teller.ends(Outcome::Failed {
                code: "upstream_error",
            });
        }
        8 => teller.cut(),
        _ => {
            if !teller.answer.events.is_empty() {
                return;
            }
            teller.json(&json!({"promptFeedback": {"blockReason": "SAFETY"}}));
            teller.done("eof", &["SAFETY"]);
        }
    }
}

fn mcp(teller: &mut Teller<'_>) {
    let resumable = teller.random.one_in(3);
    if resumable {
        let retry = teller.random.one_in(2).then_some(50);
        teller.tell(Event {
            id: Some("u-0".to_owned()),
            retry,
            ..Event::data("")
        });
    }
    for _ in 0..teller.some() {
        let text = teller.text();
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"error": null, "result": text}});
        let text = teller.written(&progress);
        teller.tell(Event {
            id: resumable.then(|| "u-1".to_owned()),
            ..Event::named("message", text)
        });
    }
    let how = teller.random.below(7);
    if how == 6 {
        // An answer to another call.
        teller.json(&json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    }
    let (answer, reason) = if teller.random.one_in(3) {
        (
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "m"}}),
            "error",
        )
    } else {
        (
            json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}),
            "result",
        )
    };
    match how {
        0..=2 => {
            teller.json(&answer);
            teller.done("eof", &[reason]);
        }
        3 => {
            teller.json(&answer);
            teller.cut();
            teller.done("cut", &[reason]);
        }
        _ => {
            if how == 4 {
                teller.cut();
            }
            if resumable {
                teller.done("resumable", &[]);
            }
        }
    }
}

fn generic(teller: &mut Teller<'_>) {
    for _ in 0..teller.some() {
        let text = teller.text().replace("\r\n", "\n");
        let text = if teller.random.one_in(5) {
            String::new()
        } else {
            text
        };
        let name = *teller
            .random
            .pick(&[None, Some("a"), Some("error"), Some("message")]);
        let event = Event {
            name: name.map(str::to_owned),
            retry: teller.random.one_in(6).then_some(1500),
            id: teller.random.one_in(3).then(|| "theirs".to_owned()),
            ..Event::data(text)
        };
        teller.tell(event);
    }
    if teller.random.one_in(4) {
        teller.answer.torn = Some("data: torn".to_owned());
    }
    if teller.random.one_in(3) {
        teller.cut();
    } else {
        teller.done("unknown", &[]);
    }
}

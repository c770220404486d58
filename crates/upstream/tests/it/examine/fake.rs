//! A backend that behaves as an engine does, and as wrongly as a test wants. Its model says always the same, its tokens
//! are bytes, and so most characters beyond ASCII have several.
//!
//! It stands by itself, so that the stories of the command have it too.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Whose behaviour it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Vllm,
    Sglang,
    LlamaCpp,
    /// One that nobody knows.
    Other,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Nothing,
    /// Ids of the first bytes of a character are not told.
    Holes,
    /// Ids are taken, and something else gone on with.
    IgnoresIds,
    /// What it went on with is not told.
    HidesPrompt,
    /// A continuation by ids begins with the prompt.
    LeaksPrompt,
    /// The text that it is given comes again.
    Echoes,
    /// The text that it is given is taken for a turn that is over.
    BeginsAnew,
    /// The last message may not be the assistant's.
    NoPrefill,
    /// What comes behind a seam is another text.
    Drifts,
    /// The template takes white space off the end of a message.
    Trims,
    /// The template begins each new answer with reasoning.
    OpensReasoning,
    /// The answer begins with reasoning.
    Reasons,
    /// Only the paths of the API are to be had.
    OnlyV1,
    /// How it tokenises and renders is not told.
    NoTokenizer,
    /// Another template.
    OtherTemplate,
    /// Another name of the weights.
    OtherWeights,
    /// It wants a key.
    WantsKey,
    /// It takes no request for an answer now.
    Busy,
    /// It never answers one.
    Silent,
    /// It closes each connection at its second request, without a word.
    ClosesLate,
    /// It breaks its answers off.
    BreaksOff,
    /// Its list of models has no end.
    Endless,
}

pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Fake {
    pub(crate) async fn start(kind: Kind, flaw: Flaw) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = Arc::clone(&asked);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let engine = Engine { kind, flaw };
                connections.spawn(serve(stream, engine, Arc::clone(&record)));
            }
        });
        Self {
            url,
            asked,
            _tasks: tasks,
        }
    }

    /// The heads of its requests.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, engine: Engine, record: Arc<Mutex<Vec<String>>>) {
    let mut answered = false;
    while let Some((head, body)) = read(&mut stream).await {
        if std::mem::replace(&mut answered, true) && engine.flaw == Flaw::ClosesLate {
            return;
        }
        record.lock().unwrap().push(head.clone());
        let path = head.split(' ').nth(1).unwrap();
        let answer = engine.answer(path, &head, &body);
        let (status, body) = match answer {
            Answer::Json(body) => ("200 OK", body.to_string()),
            Answer::Status(status, why) => (status, json!({"error": {"message": why}}).to_string()),
            Answer::Stream(body) => ("200 OK", body),
            Answer::Cut(body) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n";
                let _ = stream.write_all([head, &body].concat().as_bytes()).await;
                return;
            }
            Answer::Endless => {
                let head = "HTTP/1.1 200 OK\r\n\r\n";
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(&[b' '; 4096]).await;
                }
                return;
            }
            Answer::Nothing => {
                // Until the other side goes.
                let _ = stream.read_u8().await;
                return;
            }
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

enum Answer {
    Json(Value),
    Stream(String),
    Cut(String),
    Endless,
    Nothing,
    Status(&'static str, &'static str),
}

#[derive(Clone, Copy)]
struct Engine {
    kind: Kind,
    flaw: Flaw,
}

const ABSENT: Answer = Answer::Status("404 Not Found", "no such route");
const BEGIN: &str = "<|im_start|>";
const END: &str = "<|im_end|>";
const CHAT: &str = "The tide 潮 is high 潮 now";
const LIST: &str = ", seven 7 潮, eight 8 潮, nine 9 潮, ten 10 潮";

impl Engine {
    fn answer(self, path: &str, head: &str, body: &str) -> Answer {
        let has_key = head.to_lowercase().contains("authorization: bearer k3y");
        if self.flaw == Flaw::WantsKey && !has_key {
            return Answer::Status("401 Unauthorized", "wrong key");
        }
        let request: Value = serde_json::from_str(body).unwrap_or_default();
        match (path, self.kind) {
            ("/v1/models", _) if self.flaw == Flaw::Endless => Answer::Endless,
            ("/v1/models", _) => Answer::Json(self.models()),
            ("/v1/chat/completions" | "/v1/completions", _) => self.generate(path, &request),
            ("/v1/messages", Kind::LlamaCpp) => self.message(&opened(request)),
            ("/v1/messages/count_tokens", Kind::LlamaCpp) => {
                let prompt = self.render(&opened(request));
                Answer::Json(json!({"input_tokens": tokens(&prompt).len()}))
            }
            _ if self.flaw == Flaw::OnlyV1 => ABSENT,
            ("/version", Kind::Vllm) => Answer::Json(json!({"version": "0.33.0"})),
            ("/get_server_info", Kind::Sglang) => {
                Answer::Json(json!({"version": "0.5.23", "api_key": "s3cret"}))
            }
            ("/props", Kind::LlamaCpp) => Answer::Json(json!({
                "build_info": "b1", "default_generation_settings": {"n_ctx": 2048},
            })),
            ("/tokenize" | "/detokenize" | "/apply-template", _)
                if self.flaw == Flaw::NoTokenizer =>
            {
                ABSENT
            }
            ("/tokenize", Kind::Vllm) if request["messages"].is_array() => {
                Answer::Json(json!({"tokens": tokens(&self.render(&request))}))
            }
            ("/tokenize", _) => {
                let text = request["prompt"].as_str().or(request["content"].as_str());
                Answer::Json(json!({"tokens": tokens(text.unwrap())}))
            }
            ("/detokenize", _) => Answer::Json(json!({"prompt": text(&ids(&request["tokens"]))})),
            ("/apply-template", Kind::LlamaCpp) => {
                Answer::Json(json!({"prompt": self.render(&request)}))
            }
            _ => ABSENT,
        }
    }

    fn models(self) -> Value {
        let owner = match self.kind {
            Kind::Vllm => "vllm",
            Kind::Sglang => "sglang",
            Kind::LlamaCpp => "llamacpp",
            Kind::Other => "somebody",
        };
        let root = match self.flaw {
            Flaw::OtherWeights => "/models/other",
            _ => "/models/tide",
        };
        json!({"data": [
            {"id": "tide", "owned_by": owner, "root": root, "max_model_len": 2048},
            {"id": "adapter", "owned_by": owner, "root": "/adapters/a", "parent": "tide"},
        ]})
    }

    fn render(self, request: &Value) -> String {
        let continues = request["continue_final_message"] == true && self.flaw != Flaw::BeginsAnew;
        let mut out = String::new();
        if self.flaw == Flaw::OtherTemplate {
            out.push_str("Be brief.\n");
        }
        for message in request["messages"].as_array().unwrap() {
            let content = message["content"].as_str().unwrap();
            let content = match self.flaw {
                Flaw::Trims => content.trim_end(),
                _ => content,
            };
            let role = message["role"].as_str().unwrap();
            out.push_str(&format!("{BEGIN}{role}\n{content}{END}\n"));
        }
        if continues {
            out.truncate(out.len() - END.len() - 1);
        } else {
            out.push_str(&format!("{BEGIN}assistant\n"));
            if self.flaw == Flaw::OpensReasoning {
                out.push_str("<think>\n");
            }
        }
        out
    }

    fn generate(self, path: &str, request: &Value) -> Answer {
        let is_chat = path == "/v1/chat/completions";
        match self.flaw {
            Flaw::Busy => return Answer::Status("503 Service Unavailable", "later"),
            Flaw::Silent => return Answer::Nothing,
            Flaw::NoPrefill if request["continue_final_message"] == true => {
                return Answer::Status("400 Bad Request", "the last message is not the user's");
            }
            _ => {}
        }
        let given = match (self.kind, is_chat) {
            (Kind::Vllm, true) => &request["kv_transfer_params"]["prompt_token_ids"],
            (Kind::Sglang, true) => &request["input_ids"],
            _ => &request["prompt"],
        };
        let by_ids = given.is_array() && self.flaw != Flaw::IgnoresIds;
        let prompt = match (by_ids, is_chat) {
            (true, _) => text(&ids(given)),
            (false, true) => self.render(request),
            (false, false) => request["prompt"].as_str().unwrap_or("?").to_owned(),
        };
        let all = if is_chat { CHAT } else { LIST };
        // As much of it as the prompt ends with is said already.
        let mut said = (0..=all.len()).rev().filter(|&at| all.is_char_boundary(at));
        let said = said.find(|&at| prompt.ends_with(&all[..at])).unwrap();
        let mut rest = all[said..].to_owned();
        if said > 0 {
            match self.flaw {
                Flaw::Drifts => {
                    rest = rest.chars().take(rest.len() / 4).collect();
                    rest.push_str("! Another text.");
                }
                Flaw::LeaksPrompt if by_ids => rest.insert_str(0, &prompt),
                Flaw::Echoes if !by_ids => rest.insert_str(0, &all[..said]),
                _ => {}
            }
        }
        let told = self.tells_ids(is_chat) && request["return_token_ids"] == true;
        let stream = Stream {
            engine: self,
            is_chat,
            told,
            counts: request["stream_options"]["continuous_usage_stats"] == true,
            prompt: tokens(&prompt),
        };
        let most = request["max_tokens"].as_u64().unwrap() as usize;
        let body = stream.of(&rest, most);
        match self.flaw {
            Flaw::BreaksOff => Answer::Cut(body[..body.len() / 2].to_owned()),
            _ => Answer::Stream(body),
        }
    }

    /// The answer to a chat in the events of Anthropic.
    fn message(self, request: &Value) -> Answer {
        let body = match self.generate("/v1/chat/completions", request) {
            Answer::Stream(body) => body,
            other => return other,
        };
        let input = tokens(&self.render(request)).len();
        let mut events = vec![
            json!({"type": "message_start", "message": {"usage": {"input_tokens": input, "output_tokens": 0}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ];
        let chunks = body.lines().filter_map(|line| line.strip_prefix("data: {"));
        for chunk in chunks {
            let chunk: Value = serde_json::from_str(&format!("{{{chunk}")).unwrap();
            let choice = &chunk["choices"][0];
            if let Some(text) = choice["delta"]["content"]
                .as_str()
                .filter(|text| !text.is_empty())
            {
                let delta = json!({"type": "text_delta", "text": text});
                events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            }
            if let Some(thought) = choice["delta"]["reasoning_content"].as_str() {
                let delta = json!({"type": "thinking_delta", "thinking": thought});
                events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            }
            if let Some(reason) = choice["finish_reason"].as_str() {
                let reason = if reason == "length" {
                    "max_tokens"
                } else {
                    "end_turn"
                };
                events.push(json!({"type": "content_block_stop", "index": 0}));
                events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}));
                events.push(json!({"type": "message_stop"}));
            }
        }
        let write = |event: &Value| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        };
        Answer::Stream(events.iter().map(write).collect())
    }

    fn tells_ids(self, is_chat: bool) -> bool {
        match self.kind {
            Kind::Vllm => true,
            Kind::Sglang => !is_chat,
            Kind::LlamaCpp | Kind::Other => false,
        }
    }
}

struct Stream {
    engine: Engine,
    is_chat: bool,
    told: bool,
    counts: bool,
    prompt: Vec<u32>,
}

impl Stream {
    fn of(&self, text: &str, most: usize) -> String {
        let mut chunks = Vec::new();
        if self.is_chat {
            let mut first =
                json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]});
            if self.told && self.engine.flaw != Flaw::HidesPrompt {
                first["prompt_token_ids"] = json!(self.prompt);
            }
            chunks.push(first);
        }
        let mut pending = Vec::new();
        let mut count = 0;
        for byte in text.bytes().take(most) {
            count += 1;
            pending.push(byte);
            let whole = std::str::from_utf8(&pending).unwrap_or_default().to_owned();
            if !whole.is_empty() {
                pending.clear();
            } else if self.engine.kind == Kind::LlamaCpp || self.engine.flaw == Flaw::Holes {
                continue;
            }
            chunks.push(self.chunk(&whole, Some(byte.into()), None, count));
        }
        let reason = if text.len() > most { "length" } else { "stop" };
        let end = (reason == "stop").then_some(300);
        count += usize::from(end.is_some());
        chunks.push(self.chunk("", end, Some(reason), count));
        if self.counts {
            chunks.push(json!({"choices": [], "usage": self.usage(count)}));
        }
        if !self.is_chat && self.told && self.engine.flaw != Flaw::HidesPrompt {
            chunks[0]["choices"][0]["prompt_token_ids"] = json!(self.prompt);
        }
        let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        events.chain(["data: [DONE]\n\n".to_owned()]).collect()
    }

    fn chunk(&self, text: &str, id: Option<u32>, reason: Option<&str>, count: usize) -> Value {
        let text_member = match self.engine.flaw {
            Flaw::Reasons => "reasoning_content",
            _ => "content",
        };
        let mut choice = if self.is_chat {
            json!({"index": 0, "delta": {text_member: text}, "finish_reason": reason})
        } else {
            json!({"index": 0, "text": text, "finish_reason": reason})
        };
        if self.told {
            choice["token_ids"] = id.into_iter().collect();
        }
        let mut chunk = json!({"choices": [choice]});
        if self.counts && self.engine.kind != Kind::LlamaCpp {
            chunk["usage"] = self.usage(count);
        }
        chunk
    }

    fn usage(&self, count: usize) -> Value {
        json!({"prompt_tokens": self.prompt.len(), "completion_tokens": count})
    }
}

/// The request, with what a message of the assistant behind all others asks for without a word.
fn opened(mut request: Value) -> Value {
    let last = request["messages"].as_array().and_then(|all| all.last());
    let is_open = last.is_some_and(|last| last["role"] == "assistant");
    request["continue_final_message"] = is_open.into();
    request
}

fn ids(value: &Value) -> Vec<u32> {
    let ids = value.as_array().unwrap().iter();
    ids.map(|id| id.as_u64().unwrap() as u32).collect()
}

/// Bytes, but for the two tokens that stand around a message.
fn tokens(text: &str) -> Vec<u32> {
    let mut rest = text;
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let control = [(END, 300), (BEGIN, 301)];
        let control = control.iter().find(|(name, _)| rest.starts_with(name));
        let length = match control {
            Some(&(name, id)) => {
                tokens.push(id);
                name.len()
            }
            None => {
                let bytes = rest[..first.len_utf8()].bytes();
                tokens.extend(bytes.map(u32::from));
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

fn text(ids: &[u32]) -> String {
    let mut out = Vec::new();
    for id in ids {
        match id {
            300 => out.extend_from_slice(END.as_bytes()),
            301 => out.extend_from_slice(BEGIN.as_bytes()),
            id => out.push(u8::try_from(*id).unwrap()),
        }
    }
    String::from_utf8(out).unwrap()
}

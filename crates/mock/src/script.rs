//! A script: everything a streamed or plain answer of the mock can be told to do, as plain data.
//!
//! Tests build it with methods; people and other programs write it as JSON, where every member has
//! a default (`{}` is an ordinary, whole answer). The same script and the same request give the
//! same bytes, so [`Script::expected`] can say beforehand what a correct reader must see.
//!
//! A script has six parts: what is said, by whom, when, how it is written, what the head looks like, and
//! what goes wrong. Faults that the stream survives are [`Mark`]s; the [`End`] is how it ends;
//! [`Raw`] replaces everything.
//!
//! ```
//! use std::time::Duration;
//! use streamweld_mock::{End, ErrorEvent, Raw, Script, Writes};
//!
//! // An engine that is killed: whole events, then FIN, or a reset inside the sixth.
//! Script::tokens(50).fin_after(20);
//! Script::tokens(50).rst_after((5, 30));
//! // vLLM on SIGTERM: an error event, then the success sentinel all the same.
//! let error = ErrorEvent { events: 20, sentinel: true, ..ErrorEvent::default() };
//! Script::tokens(50).end(End::ErrorAfter(error));
//! // llama.cpp on SIGTERM: silence, one comment, FIN.
//! Script::tokens(50)
//!     .pause_after(20, Duration::from_secs(30))
//!     .block_after(20, ":\n\n")
//!     .fin_after(20);
//! // A truncated answer that looks whole, and one cut by an intermediary's time limit.
//! Script::tokens(50).end(End::NoFinish);
//! Script::tokens(50).end(End::SentinelOnly);
//! // A character torn over writes.
//! Script::text("日本語").writes(Writes::Bytes(1));
//! // An overloaded server.
//! Script::error(503).header("retry-after", "3");
//! // What no well-formed script can say.
//! Script::raw(Raw::new().write("HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n").fin());
//! ```
//!
//! The same in JSON: `{"tokens": 50, "end": "rst_after:5+30"}`,
//! `{"text": "日本語", "writes": {"bytes": 1}}`,
//! `{"marks": [{"after": 20, "do": {"pause": "30s"}}], "end": "fin_after:20"}`.

mod build;
mod call;
mod end;
mod expect;
mod mark;
mod patch;
mod raw;
pub(crate) mod span;
mod wire;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Dialect, Engine, Faults};

pub use call::Call;
pub use end::{Abort, End, ErrorEvent, Point, UnknownEnd};
pub use mark::{Deed, Mark};
pub use patch::BadScript;
pub use raw::{Raw, RawStep};
pub use wire::{Cut, Encoding, Framing, LineEnd, UsageChunk, Writes};

/// What the mock answers. See the module for the overview, [`Script::new`] for the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    // What is said.
    /// The dialect. Default: what the path says.
    pub dialect: Option<Dialect>,
    /// The text of the answer, cut into word-sized tokens. Default: numbered words, `t1 t2 t3 …`.
    pub text: Option<String>,
    /// How many tokens. A given text is cut short or repeated to it. Default: the whole text, or 16
    /// numbered words.
    pub tokens: Option<usize>,
    /// The finish reason. Default: what the dialect says of a whole answer (`stop`, `end_turn`, `completed`,
    /// `STOP`), of one that calls a tool (`tool_calls`, `tool_use`), or of one that the request's token limit cut. Of Responses it decides which event ends it.
    pub finish: Option<String>,
    /// The tools that a streamed answer calls, behind its text. Not in an answer that a limit cut, and not in legacy
    /// Completions or a generic stream, which have no calls.
    pub calls: Vec<Call>,
    /// How many choices an OpenAI answer has. Default: the request's `n`, else 1.
    pub choices: Option<usize>,
    /// The model name in the answer. Default: the request's.
    pub model: Option<String>,
    /// The id in the answer. Default: made from the number of the request, counted by the mock.
    pub id: Option<String>,
    /// The `created` time in the answer, fixed so that runs compare.
    pub created: u64,
    /// Whether an OpenAI chat stream begins with a chunk that only names the role.
    pub role_chunk: bool,
    /// When the usage chunk of the OpenAI dialects is sent.
    pub usage: UsageChunk,
    /// Whether the request's token limit is kept to.
    pub obey_limits: bool,
    /// Whether a request that carries the beginning of this answer (an assistant prefill with
    /// `continue_final_message`, or token ids) is answered with the rest only.
    pub continues: bool,

    // Who says it.
    /// The inference engine that the mock is, for chat, completions and messages. Default: none.
    pub engine: Option<Engine>,
    /// What goes wrong when the engine is told to go on.
    pub faults: Faults,
    /// Where the engine says that its model came from. Default: made from the name of the model.
    pub root: Option<String>,
    /// How many tokens fit into the model, prompt and answer together.
    pub max_model_len: usize,

    // When.
    /// Time before the head is written.
    #[serde(with = "span")]
    pub head_delay: Duration,
    /// Gate before the head is written.
    pub head_gate: Option<String>,
    /// Time before the first text event.
    #[serde(with = "span")]
    pub first_token_delay: Duration,
    /// Time between two writes (so between two events, unless `writes` says otherwise).
    #[serde(with = "span")]
    pub pace: Duration,
    /// Gate at which every event waits; [`Gates::step`](crate::Gates::step) lets one pass.
    pub step_gate: Option<String>,

    // How it is written.
    /// How many bytes go into one write.
    pub writes: Writes,
    /// The line end of the event stream.
    pub line_end: LineEnd,
    /// Whether the body begins with a byte order mark.
    pub bom: bool,
    /// A comment before every so many events; 0 for none.
    pub comment_every: usize,
    /// The text of that comment, after its colon.
    pub comment: String,
    /// Gives each event an `id:` line, counting from this number.
    pub upstream_ids: Option<u64>,
    /// Gives the first event a `retry:` line.
    pub retry: Option<u64>,
    /// Leaves out the space after `data:`.
    pub no_space: bool,

    // The head.
    /// The status. Anything but 200 is a plain answer with the dialect's error object.
    pub status: u16,
    /// Further header lines, appended as they are. A `content-length` here stands beside the
    /// mock's own framing: that is how contradictory framing is made.
    pub headers: Vec<(String, String)>,
    /// Replaces `text/event-stream; charset=utf-8`, or `application/json` of a plain answer.
    pub content_type: Option<String>,
    /// Interim answers (100, 102, 103) before the head.
    pub interim: Vec<u16>,
    /// How the end of the body is told.
    pub framing: Framing,
    /// The content coding.
    pub encoding: Encoding,
    /// Closes the connection after the answer.
    pub close: bool,
    /// Answers as soon as the request's head is there, without its body or a `100 Continue`, and
    /// closes. Only for the script of a path; its streams are as for an empty request.
    pub early: bool,
    /// Trailer fields after the last chunk.
    pub trailers: Vec<(String, String)>,
    /// Makes a plain answer with this body: a string as it is, anything else as JSON.
    pub body: Option<Value>,

    // What goes wrong.
    /// Happenings in the middle of the stream.
    pub marks: Vec<Mark>,
    /// How the stream ends.
    pub end: End,
    /// Bytes written after the end of a whole body, where the next answer should begin.
    pub after_end: Option<String>,
    /// Replaces the whole answer, head included.
    pub raw: Option<Raw>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            dialect: None,
            text: None,
            tokens: None,
            finish: None,
            calls: Vec::new(),
            choices: None,
            model: None,
            id: None,
            created: 1_700_000_000,
            role_chunk: true,
            usage: UsageChunk::Asked,
            obey_limits: true,
            continues: true,
            engine: None,
            faults: Faults::default(),
            root: None,
            max_model_len: 131_072,
            head_delay: Duration::ZERO,
            head_gate: None,
            first_token_delay: Duration::ZERO,
            pace: Duration::ZERO,
            step_gate: None,
            writes: Writes::WholeEvent,
            line_end: LineEnd::Lf,
            bom: false,
            comment_every: 0,
            comment: " ping".to_owned(),
            upstream_ids: None,
            retry: None,
            no_space: false,
            status: 200,
            headers: Vec::new(),
            content_type: None,
            interim: Vec::new(),
            framing: Framing::Chunked,
            encoding: Encoding::Identity,
            close: false,
            early: false,
            trailers: Vec::new(),
            body: None,
            marks: Vec::new(),
            end: End::Done,
            after_end: None,
            raw: None,
        }
    }
}

impl Script {
    /// Whether this answer is plain (a status, a body), whatever the request asks for.
    pub(crate) fn is_plain(&self) -> bool {
        self.status != 200 || self.body.is_some()
    }
}

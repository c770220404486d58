//! What each upstream API's event stream means: where an answer ends, what is an error, what its
//! text is, and how an ending of ours is written in it.
//!
//! Pure and synchronous: complete events in, facts out. No sockets, clocks or journal, and nothing
//! of how a stream is stored or sent.
//!
//! | | [`OpenAiChat`], [`OpenAiCompletions`] | [`OpenAiResponses`] | [`AnthropicMessages`] | [`Gemini`] | [`Mcp`] | [`Generic`] |
//! |---|---|---|---|---|---|---|
//! | recognised by `POST` and a path ending in | `/chat/completions`, `/completions` | `/responses` | `/messages` | `:streamGenerateContent`, with `alt=sse` | the fields of MCP, up to its version of 2025-11-25 | anything else |
//! | an answer is whole when | every started choice has a success reason, and, unless the sentinel came, as many were started as were asked for | its terminal says so | a success `stop_reason`, every block closed | the last event of every started candidate has a known reason, then upstream ended cleanly | the call is answered | upstream ended cleanly |
//! | success reasons | `stop`, `length`, `tool_calls`, `content_filter`, `function_call`; of engines `repetition`, `stop_sequence`, `eos_token` | `completed`, and why it is incomplete | `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `pause_turn`, `refusal`, `model_context_window_exceeded` | all that the API knows; a block reason | `result`, `error` | none |
//! | any other reason | failed, `aborted`, the reason as its code | the same | the same | the same | none | none |
//! | sentinel, committed only when it ends a success | `[DONE]` | `response.completed`, `response.incomplete` | `message_stop` | none | none | none |
//! | a failure in the stream | a truthy top-level `error`, `event: error`, a field line `error:` | the same, or `type: error`, `response.failed`, `response.cancelled` | the same, or `type: error` | the same as of chat, or bare JSON with an `error` | none | none |
//! | clean end without the above | failed | failed | failed | failed | failed, but `resumable` with an id to come back with | done, `unknown` |
//! | text | `delta.content` or `text` of choice 0 | all output text in order | all text blocks in order | text parts of candidate 0 but thoughts | none | none |
//! | reasoning | `reasoning_content` or `reasoning` of choice 0 | all of it, and summaries | all thinking blocks | thoughts of candidate 0 | none | none |
//! | tool calls, by | choice | item | block | candidate | none | none |
//! | token counts | `usage`, else estimated | `usage` of the terminal, else estimated | cumulative `usage`, else estimated | cumulative `usageMetadata`, else estimated | none | none |
//! | blocks with empty data | dropped | dropped | dropped | dropped | kept | kept |
//! | `retry:` from upstream | dropped | dropped | dropped | dropped | kept | kept |
//! | its clients read ids and comments | yes | yes | yes | no | yes | yes |
//! | error ending | `data: {"error":…}` | `event: error` | `event: error` | `{"error":…}` without `data:` | an error for the call | none |
//! | stopped ending | finish `stop` per open choice, `[DONE]` | `response.incomplete` | blocks closed, `end_turn`, `message_stop` | finish `STOP` per open candidate | an error for the call | none |
//!
//! ```
//! use streamweld_dialect::{BodyEnd, Dialect, End, Judge, Mark, Verdict};
//! use streamweld_sse::{Decoder, Limits};
//!
//! let body = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"}}]}\n\n\
//!              data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
//! let mut input = body.as_slice();
//! let mut decoder = Decoder::new(Limits::default());
//! let mut judge = Judge::new(Dialect::OpenAiChat);
//! while let Some(event) = decoder.decode(&mut input)? {
//!     assert_eq!(judge.event(&event), Mark::Event);
//! }
//! // The sentinel is lost, but the only choice has its reason.
//! let Verdict::Done(done) = judge.end(BodyEnd::Cut, decoder.tail_event().as_ref()) else {
//!     panic!("the answer is whole");
//! };
//! assert_eq!((done.end, done.reasons), (End::Cut, vec!["stop".to_owned()]));
//! # Ok::<(), streamweld_sse::DecodeError>(())
//! ```
//!
//! # Limits
//!
//! - How many choices were asked for has to be told ([`Judge::expect`]). Before that, and at the
//!   sentinel, an answer is judged by the choices that began.
//! - The byte tests of the hot path know the member names as they are always written. A name
//!   written with escapes (`"\u0065rror"`) is seen only in an event that is parsed for another
//!   reason; an unseen finish reason ends in a failure, never in a false success.
//! - JSON that the standard does not allow (`NaN`) is passed on, but no finish is read from it.
//! - An upstream that itself invents a finish for a cut answer cannot be told from a whole one.
//!
//! [`OpenAiChat`]: Dialect::OpenAiChat
//! [`OpenAiCompletions`]: Dialect::OpenAiCompletions
//! [`OpenAiResponses`]: Dialect::OpenAiResponses
//! [`AnthropicMessages`]: Dialect::AnthropicMessages
//! [`Gemini`]: Dialect::Gemini
//! [`Mcp`]: Dialect::Mcp
//! [`Generic`]: Dialect::Generic

mod anthropic;
mod asked;
mod beginning;
mod continuation;
mod counted;
mod detect;
mod dialect;
mod edit;
mod ending;
mod engine;
mod fault;
mod gemini;
mod generic;
mod mark;
mod mcp;
mod members;
mod object;
mod openai;
mod probe;
mod reasons;
mod recognise;
mod recurring;
mod rejoin;
mod request;
mod responses;
mod told;
mod trail;
mod transcript;
mod verdict;

pub use asked::{Asked, Hazard, Unreadable};
pub use beginning::is_beginning;
pub use continuation::{Continuation, NotContinued, SoFar};
pub use counted::{Added, Shown};
pub use detect::{detect, is_durable_mcp, model_in_path};
pub use dialect::{Dialect, UnknownDialect};
pub use ending::{Behind, Ending, as_shown, error_ending, stopped_ending};
pub use engine::{Engine, Method};
pub use mark::{BodyEnd, Judge, Mark};
pub use recognise::recognise;
pub use rejoin::{Before, Identity, Rejoin, Rejoined};
pub use request::{RequestBody, RequestScan, RequestShape};
pub use told::{
    BadReply, COUNT, Description, MODELS, Question, Reply, Served, ask_chat, ask_completion,
    ask_count, ask_message, model_of, prompt_of, read_count, read_refusal, read_text, read_tokens,
};
pub use trail::{Ids, NoIds, Trail, prompt_ids, text_of};
pub use transcript::{Part, ToolCall, Transcript, Usage};
pub use verdict::{Done, End, Failure, FailureClass, Verdict};

//! What each upstream API's event stream means: where an answer ends, what is an error, what its
//! text is, and how an ending of ours is written in it.
//!
//! Pure and synchronous: complete events in, facts out. No sockets, clocks or journal, and nothing
//! of how a stream is stored or sent.
//!
//! | | [`OpenAiChat`] | [`OpenAiCompletions`] | [`AnthropicMessages`] | [`Generic`] |
//! |---|---|---|---|---|
//! | recognised by `POST` and a path ending in | `/chat/completions` | `/completions` | `/messages` | anything else |
//! | an answer is whole when | every started choice has a success reason, and, unless the sentinel came, as many were started as were asked for | the same | a success `stop_reason`, every block closed | upstream ended cleanly |
//! | success reasons | `stop`, `length`, `tool_calls`, `content_filter`, `function_call`; of engines `repetition`, `stop_sequence`, `eos_token` | the same | `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `pause_turn`, `refusal`, `model_context_window_exceeded` | none |
//! | any other reason | failed, `aborted`, the reason as its code | the same | the same | none |
//! | sentinel, committed only when it ends a success | `[DONE]` | `[DONE]` | `message_stop` | none |
//! | a failure in the stream | a truthy top-level `error`, `event: error`, a field line `error:` | the same | the same, or `type: error` | none |
//! | clean end without the above | failed | failed | failed | done, `unknown` |
//! | text | `delta.content` of choice 0 | `text` of choice 0 | all text blocks in order | none |
//! | token counts | `usage`, else estimated | `usage`, else estimated | cumulative `usage`, else estimated | none |
//! | blocks with empty data | dropped | dropped | dropped | kept |
//! | `retry:` from upstream | dropped | dropped | dropped | kept |
//! | error ending | `data: {"error":…}` | the same | `event: error` | none |
//! | stopped ending | finish `stop` per open choice, `[DONE]` | the same | blocks closed, `end_turn`, `message_stop` | none |
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
//! [`AnthropicMessages`]: Dialect::AnthropicMessages
//! [`Generic`]: Dialect::Generic

mod anthropic;
mod detect;
mod dialect;
mod edit;
mod ending;
mod fault;
mod generic;
mod mark;
mod openai;
mod probe;
mod recurring;
mod request;
mod transcript;
mod verdict;

pub use detect::detect;
pub use dialect::{Dialect, UnknownDialect};
pub use ending::{Ending, error_ending, stopped_ending};
pub use mark::{BodyEnd, Judge, Mark};
pub use request::{RequestScan, RequestShape};
pub use transcript::{Part, Transcript, Usage};
pub use verdict::{Done, End, Failure, FailureClass, Verdict};

//! A scriptable LLM backend and a TCP fault relay.
//!
//! [`Mock`] is an honest peer: it speaks OpenAI Chat Completions, OpenAI legacy Completions,
//! Anthropic Messages and plain event streams the way real engines do, and a [`Script`] makes it
//! misbehave at an exact event or byte. Streamed answers are written by hand over a TCP connection
//! the mock owns, so that it can reset, cut, tear and contradict itself, which no HTTP library
//! lets one do. [`FaultRelay`] does the same to any TCP connection between two others.
//!
//! The same script and the same request give the same bytes; [`Script::expected`] tells them
//! beforehand. [`Gates`] hold a stream at an exact event, and the [`Recorder`] tells what arrived
//! and how each answer ended, so tests need no sleeps.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use streamweld_mock::{Mock, Script};
//! let mock = Mock::start(Script::tokens(20).gate_after(5, "five").rst_after((9, 10))).await?;
//! // … send a request to mock.url() …
//! mock.gates().wait_arrived("five", 1).await?; // five events are written, none more
//! mock.gates().release("five");
//! let ending = mock.recorder().wait_closed(0).await?;
//! # Ok(()) }
//! ```
//!
//! With [`Script::engine`] it is an inference engine: vLLM, SGLang, llama.cpp or Anthropic as seen from outside, with
//! token ids, a chat template and a model that can be told to go on with an answer.
//!
//! What it serves: the dialects on their usual paths (any prefix), `/feed` and `/generic` as plain
//! event streams, `/health`, `/v1/models`, what its engine serves besides, `/echo…` for transparency tests, `/upgrade` as an
//! HTTP/1.1 upgrade to an echo protocol. It is no sandbox and no load balancer: it trusts its
//! clients, and with the `x-mock-script` header they tell it what to do.

mod ask;
mod backlog;
mod body;
mod conn;
mod dialects;
mod dress;
mod engine;
mod frame;
mod gates;
mod h2;
mod head;
mod io;
mod mock;
mod plain;
mod player;
mod recorder;
mod relay;
mod routes;
mod score;
mod script;
mod service;
mod text;

pub use ask::{Ask, Prefix};
pub use backlog::FullBacklog;
pub use dialects::{Dialect, UnknownDialect};
pub use engine::{Engine, Faults, Message, Order, Refuse};
pub use gates::Gates;
pub use io::Wire;
pub use mock::{Mock, MockConfig, Protocol};
pub use recorder::{Ending, Outcome, Recorder, Request, TimedOut};

pub use relay::{Direction, FaultRelay, RelayPlan, RelayStep, Welcome};
pub use script::{
    Abort, BadScript, Call, Cut, Deed, Encoding, End, ErrorEvent, Framing, LineEnd, Mark, Point,
    Raw, RawStep, Script, UnknownEnd, UsageChunk, Writes,
};
pub use service::Service;

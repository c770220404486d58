//! Talking to a backend.
//!
//! One request goes to one [`Backend`]; where there are several, a [`fleet`] chooses. What comes
//! back is a response head and a [`Source`], the seam through which the body is read. The seam is
//! narrow on purpose: bytes, trailers, and then exactly one of *end* (the framing said so) and *cut*
//! (it did not). Above it nobody knows which HTTP implementation stands behind.
//!
//! Promises:
//! - The target comes from the configured backend only, never from the request.
//! - A response whose end cannot be trusted is refused, and its connection is never used again
//!   (`head` lists which responses).
//! - A body that stopped early is never reported as ended.
//! - Redirects are not followed, and a request that may have reached the backend is not repeated.
//! - No error text shows an address or a credential; a backend is known by its name only.
//! - What is learned of a backend's health decides who gets new requests, and ends none.
//!
//! This crate does not know that streams are durable. What it carries it does not read: it knows no
//! journal, and of dialects only [`examine`] knows, which reads answers that it has itself asked for.
//! It strips no headers in either direction (whoever forwards does), and decides no
//! retries beyond the one that is invisible (see [`Client::send`]).

mod backend;
mod client;
mod config;
mod connect;
mod connection;
mod cut;
mod decode;
mod dial;
mod error;
pub mod examine;
pub mod fleet;
mod h1;
mod head;
mod http2;
mod pool;
mod request_body;
mod source;
mod task;
mod transport;
mod upgrade;

pub use backend::{Backend, BackendUrl, BackendUrlError};
pub use client::Client;
pub use config::{ConfigError, Protocol, UpstreamConfig};
pub use cut::CutKind;
pub use decode::{Coding, DecodeError, Decoder};
pub use dial::{Dialer, Stream};
pub use error::{ErrorKind, Phase, UpstreamError};
pub use source::{BodyCut, Piece, Read, Source, SourceBody};
pub use upgrade::{Upgraded, upgrade};

/// An error of any kind, as the end of a chain that goes to the log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

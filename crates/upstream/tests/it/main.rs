//! The client against real sockets.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step fails the test, in helpers too"
)]

mod decode;
mod errors;
mod examine;
mod fleet;
mod heads;
mod http2;
mod hyper_alone;
mod raw;
mod request;
mod reuse;
mod source;
mod tls;
mod upgrade;

//! The HTTP edge of Streamweld.
//!
//! ```text
//!              ┌─ cursor of ours ──────────────> attach ──┐
//!  listener ─> edge ─ /v1/streams/… ──> streams ──────────┼─> stream_body ─> socket
//!              ├─ candidate ──> durable ──> Producer ─────┘
//!              └─ anything else ──> forward ──────────────> pass_body ───> socket
//! ```
//!
//! Status codes and the public shape of errors occur here and nowhere below. What a client may rely on is
//! written in `protocol.md`.

mod accept;
mod admin;
mod app;
mod attach;
mod attempts;
mod backends;
mod body;
mod caller;
mod capability;
mod client_body;
mod coding;
mod compressed;
pub mod config;
mod connection;
mod console;
mod counted;
mod cross_origin;
mod descriptors;
mod dispatch;
mod durable;
mod edge;
mod elsewhere;
mod error;
mod examined;
mod facts;
mod feed;
mod followed;
mod forward;
mod framing;
mod gates;
mod head;
mod heirs;
mod idempotency;
mod io;
mod kept;
mod leaving;
pub mod listen;
mod metrics;
mod orders;
mod owned_here;
mod ownerless;
mod pace;
mod panics;
mod patience;
mod process;
mod query;
mod read_on;
mod reattach;
mod request_body;
mod responses;
mod route;
mod secure;
mod sending;
mod server;
mod sessions;
mod settings;
mod source;
mod state;
mod stream_body;
mod streams;
#[cfg(test)]
mod testing;
mod traced;
mod unhealthy;
mod upgrade;

pub use self::config::Config;
pub use self::error::ErrorCode;
pub use self::owned_here::{Owned, OwnedHere};
pub use self::server::{BindError, Control, Server};

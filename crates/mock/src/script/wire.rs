//! How the bytes of an answer are put on the wire.

use serde::{Deserialize, Serialize};

/// How many bytes go into one write. Each write is also one HTTP chunk where the body is chunked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// One event per write, as the engines do it.
    #[default]
    WholeEvent,
    /// So many events per write.
    Batch(usize),
    /// So many bytes per write, wherever that tears an event or a character.
    Bytes(usize),
    /// Everything up to the next pause, gate or end in one write, and the head with it.
    AllAtOnce,
}

/// The line end of the event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    /// LF, as everybody does it.
    #[default]
    Lf,
    /// CR LF.
    Crlf,
    /// CR alone.
    Cr,
}

/// How the end of the body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// `Transfer-Encoding: chunked`; to an HTTP/1.0 client as `Http10`.
    #[default]
    Chunked,
    /// `Content-Length`, counted from the script's whole body. A stall or cut then leaves it short.
    Length,
    /// The body ends with the connection, in HTTP/1.1.
    Close,
    /// The body ends with the connection, and the status line says HTTP/1.0.
    Http10,
}

/// The content coding of the answer, applied whether or not the client asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// None.
    #[default]
    Identity,
    /// `Content-Encoding: gzip`, flushed at every write.
    Gzip,
}

/// When a usage report is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageChunk {
    /// When the request asks for it (`stream_options.include_usage`).
    #[default]
    Asked,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// With a reset.
    Rst,
    /// With a close, in the middle of whatever was going on.
    Fin,
}

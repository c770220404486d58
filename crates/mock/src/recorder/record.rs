//! One recorded request and the end of its answer.

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use crate::{Ask, Dialect};

/// A request as the mock saw it.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its number at this mock, from 0.
    pub index: usize,
    /// The number of its connection, from 1: equal numbers mean a reused connection.
    pub connection: usize,
    /// When its head and body had been read.
    pub at: Instant,
    /// The method.
    pub method: Method,
    /// The request target, byte for byte.
    pub target: String,
    /// The HTTP version: 10, 11 or 20.
    pub version: u8,
    /// The header lines in their order; values byte for byte where they are UTF-8.
    pub headers: Vec<(String, String)>,
    /// The body, up to the configured bound.
    pub body: Bytes,
    /// The size of the whole body.
    pub body_len: u64,
    /// The SHA-256 of the whole body, in hex.
    pub body_sha256: String,
    /// How the answer ended, once it has.
    pub ending: Option<Ending>,
}

impl Request {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self
            .headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// The path of the target, without its query.
    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(&self.target, |(path, _)| path)
    }

    /// The body as JSON; null where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What the request asks for, in this dialect.
    pub fn ask(&self, dialect: Dialect) -> Ask {
        let mut ask = Ask::read(dialect, &self.body, self.index as u64 + 1);
        ask.stream &= !self.path().ends_with(":generateContent");
        ask
    }
}

/// How an answer ended, seen from the mock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// What ended it.
    pub outcome: Outcome,
    /// How many good events had been written. Where a write ends inside an event, that one counts.
    pub events: usize,
    /// How many body bytes had been written, before content coding and framing.
    pub bytes: u64,
}

/// What ended an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was written to its clean end.
    Finished,
    /// The script cut it.
    Cut,
    /// The client closed the connection, or its half of it, before the end.
    ClientClosed,
    /// The client reset the connection before the end.
    ClientReset,
    /// The mock was shut down or told to cut its connections.
    Dropped,
}

//! What happens to one relayed connection.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Cut, script::span};

/// Which way bytes flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// The steps of one connection, in each direction. The two directions run on their own.
///
/// ```
/// use streamweld_mock::{Cut, RelayPlan, RelayStep};
/// let plan = RelayPlan::new()
///     .to_client(RelayStep::Pass(700))
///     .to_client(RelayStep::Cut(Cut::Rst));
/// # let _ = plan;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelayPlan {
    /// What happens when the client connects.
    pub welcome: Welcome,
    /// The steps on the way to the server.
    pub to_server: Vec<RelayStep>,
    /// The steps on the way to the client.
    pub to_client: Vec<RelayStep>,
}

/// What happens when a client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Welcome {
    /// The server is connected to. If that fails, the client is reset.
    #[default]
    Connect,
    /// The connection is accepted, read from for ever, and never answered.
    BlackHole,
    /// The connection is reset at once.
    Refuse,
}

/// One step in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayStep {
    /// Passes so many bytes on before the next step.
    Pass(u64),
    /// Swallows so many bytes.
    Discard(u64),
    /// Passes so many bytes on with all their bits inverted.
    Flip(u64),
    /// Waits; what comes meanwhile waits too.
    Delay(#[serde(with = "span")] Duration),
    /// Waits until the gate of this name is released.
    Gate(String),
    /// From here on, writes at most so many bytes at once, with a pause after each write.
    Split {
        /// The most bytes in one write.
        bytes: usize,
        /// The pause.
        #[serde(with = "span")]
        every: Duration,
    },
    /// From here on, passes on about so many bytes a second.
    Throttle(u32),
    /// Closes this direction (FIN) and leaves the other as it is. What still comes is swallowed.
    HalfClose,
    /// Reads and passes on nothing more, and closes nothing.
    Stop,
    /// Cuts the connection on both sides.
    Cut(Cut),
}

impl RelayPlan {
    /// Passes everything on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts the connection and never answers; the server is not connected to.
    pub fn black_hole() -> Self {
        Self {
            welcome: Welcome::BlackHole,
            ..Self::default()
        }
    }

    /// Resets the connection at once.
    pub fn refuse() -> Self {
        Self {
            welcome: Welcome::Refuse,
            ..Self::default()
        }
    }

    /// Adds a step on the way to the server.
    pub fn to_server(mut self, step: RelayStep) -> Self {
        self.to_server.push(step);
        self
    }

    /// Adds a step on the way to the client.
    pub fn to_client(mut self, step: RelayStep) -> Self {
        self.to_client.push(step);
        self
    }
}

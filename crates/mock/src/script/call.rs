//! A call of a tool in an answer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// In JSON: `{"name": "tide", "arguments": {"place": "Brest"}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The name of the tool.
    pub name: String,
    /// What it is called with. Where the dialect streams arguments, their JSON comes in word-sized pieces.
    pub arguments: Map<String, Value>,
}

//! Lengths of time in a script: `"20ms"`, `"1s 500ms"`, or a bare number of milliseconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_duration(*span))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Span {
        Millis(u64),
        Text(String),
    }
    match Span::deserialize(from)? {
        Span::Millis(millis) => Ok(Duration::from_millis(millis)),
        Span::Text(text) => humantime::parse_duration(&text).map_err(D::Error::custom),
    }
}

//! Changing a script from a request: the `x-mock-script` header and `mock.*` query parameters.
//!
//! Both replace top-level members of the script that would have answered anyway, so
//! `?mock.tokens=5&mock.end=rst_after:3` keeps everything else.

use serde_json::{Map, Value};

use super::Script;

/// A script, or a change to one, was not understood. The source says why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadScript {
    /// It is no JSON, or has a member that a script has not.
    #[error("bad script")]
    Json(#[from] serde_json::Error),
    /// A member has a value that it cannot have.
    #[error("bad value of the script member `{name}`")]
    Member {
        /// Which.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl BadScript {
    /// Everything on one line, for an answer that has no log beside it.
    pub(crate) fn chain(&self) -> String {
        let (Self::Json(source) | Self::Member { source, .. }) = self;
        format!("{self}: {source}")
    }
}

impl Script {
    /// Reads a script from JSON.
    pub fn from_json(json: &str) -> Result<Self, BadScript> {
        Ok(serde_json::from_str(json)?)
    }

    /// This script with some members replaced.
    pub fn patched(&self, patch: &Map<String, Value>) -> Result<Self, BadScript> {
        let Value::Object(mut members) = serde_json::to_value(self)? else {
            unreachable!("a struct serialises to an object");
        };
        for (name, value) in patch {
            // One at a time: an error about a value in memory does not tell where it stands.
            let known = members.insert(name.clone(), value.clone()).is_some();
            let one = Map::from_iter([(name.clone(), value.clone())]);
            if let Err(source) = serde_json::from_value::<Self>(Value::Object(one)) {
                return Err(if known {
                    let name = name.clone();
                    BadScript::Member { name, source }
                } else {
                    source.into()
                });
            }
        }
        Ok(serde_json::from_value(Value::Object(members))?)
    }

    /// This script with what the request asks for, or `None` when it asks for nothing.
    pub(crate) fn patch_of(
        header: Option<&str>,
        query: Option<&str>,
    ) -> Result<Option<Map<String, Value>>, BadScript> {
        let mut patch = match header {
            Some(json) => serde_json::from_str(json)?,
            None => Map::new(),
        };
        for pair in query.unwrap_or_default().split('&') {
            let Some(knob) = pair.strip_prefix("mock.") else {
                continue;
            };
            let (name, value) = knob.split_once('=').unwrap_or((knob, "true"));
            let value = unescape(value);
            // `5`, `true` and `{"batch":8}` are JSON; `20ms` and `rst_after:5` are plain words.
            let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
            patch.insert(name.to_owned(), value);
        }
        Ok(if patch.is_empty() { None } else { Some(patch) })
    }
}

/// Undoes percent escapes and `+`; what is no escape stays as it is.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let hex = after
            .first_chunk::<2>()
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{End, Writes};

    #[test]
    fn query_and_header_replace_only_what_they_name() {
        let base = Script::tokens(9).finish("length");
        let patch = Script::patch_of(
            Some(r#"{"pace":"20ms","writes":{"batch":4}}"#),
            Some("a=b&mock.tokens=5&mock.end=fin_after:3%2B7&mock.bom"),
        );
        let script = base.patched(&patch.unwrap().unwrap()).unwrap();
        assert_eq!(script.tokens, Some(5));
        assert_eq!(script.end, End::FinAfter((3, 7).into()));
        assert_eq!(script.writes, Writes::Batch(4));
        assert_eq!(script.pace, Duration::from_millis(20));
        assert_eq!(script.finish.as_deref(), Some("length"));
        assert!(script.bom);
    }

    #[test]
    fn an_unknown_member_is_refused() {
        let patch = Script::patch_of(None, Some("mock.tokns=5"))
            .unwrap()
            .unwrap();
        let error = Script::new().patched(&patch).unwrap_err();
        assert!(matches!(error, BadScript::Json(_)), "{error:?}");
        assert!(Script::patch_of(None, Some("x=1")).unwrap().is_none());
    }

    /// What went wrong, as it is shown, and where it stands in the chain.
    #[track_caller]
    fn check(query: &str, member: &str, reason: &str) {
        let patch = Script::patch_of(None, Some(query)).unwrap().unwrap();
        let error = Script::new().patched(&patch).unwrap_err();
        let chain = error.chain();
        assert_eq!(chain.matches(reason).count(), 1, "{chain}");
        assert!(chain.contains(member), "{chain}");
        assert!(!error.to_string().contains(reason), "one level: {error}");
    }

    #[test]
    fn an_error_names_the_member_and_gives_its_reason_once() {
        check("mock.bom&mock.end=foo", "`end`", "unknown end \"foo\"");
        check("mock.text=5", "`text`", "invalid type");
        check("mock.pace=5parsecs", "`pace`", "unknown time unit");
        check("mock.tokenz=5", "bad script:", "unknown field `tokenz`");
    }

    #[test]
    fn a_script_survives_its_json() {
        let script = Script::text("a b")
            .stall_after(3)
            .rst_after((1, 2))
            .gate_after(0, "g");
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(Script::from_json(&json).unwrap(), script);
        assert_eq!(Script::from_json("{}").unwrap(), Script::new());
    }
}

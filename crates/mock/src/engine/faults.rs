//! What goes wrong with an engine that is told to go on.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

/// The faults of an engine. All are off by default, but for one that the real engine has.
///
/// A *continuation* is a request that holds the beginning of the answer and wants the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// A prompt of ids that ends within a character makes the first text begin with the whole prompt.
    /// Default: as the engine does, so on for vLLM alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leak: Option<bool>,
    /// Every so many chunks with ids one tells none; 0 for never.
    #[serde(skip_serializing_if = "is_default")]
    pub id_holes: usize,
    /// Counts of generated tokens are wrong by this.
    #[serde(skip_serializing_if = "is_default")]
    pub miscount: i64,
    /// A continuation tells a wrong id as the last of its prompt.
    #[serde(skip_serializing_if = "is_default")]
    pub false_prompt_ids: bool,
    /// A continuation begins with the text that it was given.
    #[serde(skip_serializing_if = "is_default")]
    pub echo: bool,
    /// The template drops white space at the end of messages.
    #[serde(skip_serializing_if = "is_default")]
    pub trim: bool,
    /// The template closes the last message, also one that is to be gone on with.
    #[serde(skip_serializing_if = "is_default")]
    pub closes: bool,
    /// The template is another: it begins with a system message of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub other_template: bool,
    /// The tokeniser is another.
    #[serde(skip_serializing_if = "is_default")]
    pub other_tokens: bool,
    /// Continuations are not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse: Option<Refuse>,
    /// A continuation comes to its end after so many tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eos_after: Option<usize>,
    /// So many tokens come in one chunk, as with speculative decoding.
    #[serde(skip_serializing_if = "is_one")]
    pub tokens_per_chunk: usize,
}

/// What becomes of a continuation that is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuse {
    /// It is taken for a new turn: the whole answer comes again. In JSON `"new_turn"`.
    NewTurn,
    /// It gets this status and an error. In JSON the number.
    Status(u16),
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            leak: None,
            id_holes: 0,
            miscount: 0,
            false_prompt_ids: false,
            echo: false,
            trim: false,
            closes: false,
            other_template: false,
            other_tokens: false,
            refuse: None,
            eos_after: None,
            tokens_per_chunk: 1,
        }
    }
}

impl Serialize for Refuse {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::NewTurn => to.serialize_str(NEW_TURN),
            Self::Status(status) => to.serialize_u16(*status),
        }
    }
}

impl<'de> Deserialize<'de> for Refuse {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        if value == NEW_TURN {
            return Ok(Self::NewTurn);
        }
        let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
        status
            .filter(|status| (400..600).contains(status))
            .map(Self::Status)
            .ok_or_else(|| D::Error::custom("neither `new_turn` nor a status from 400 to 599"))
    }
}

const NEW_TURN: &str = "new_turn";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(value: &usize) -> bool {
    *value == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, faults: &Faults) {
        assert_eq!(&serde_json::from_str::<Faults>(json).unwrap(), faults);
        assert_eq!(serde_json::to_string(faults).unwrap(), json);
    }

    #[test]
    fn only_faults_are_written() {
        check("{}", &Faults::default());
        let refuse = |refuse| Faults {
            refuse: Some(refuse),
            ..Faults::default()
        };
        check(r#"{"refuse":"new_turn"}"#, &refuse(Refuse::NewTurn));
        check(r#"{"refuse":404}"#, &refuse(Refuse::Status(404)));
        let several = Faults {
            leak: Some(false),
            miscount: -1,
            tokens_per_chunk: 2,
            ..Faults::default()
        };
        check(
            r#"{"leak":false,"miscount":-1,"tokens_per_chunk":2}"#,
            &several,
        );
    }

    #[test]
    fn what_is_no_refusal_is_refused() {
        for json in [r#"{"refuse":200}"#, r#"{"refuse":"x"}"#, r#"{"leek":true}"#] {
            assert!(serde_json::from_str::<Faults>(json).is_err(), "{json}");
        }
    }
}

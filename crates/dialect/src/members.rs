//! The members of a request, each where it stands in the text, so that one can be changed and the others keep every byte.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::edit::Edits;

/// The members of the object that a text is, each where it stands.
pub(crate) struct Members<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'t> Members<'t> {
    /// `None` for what is no object, and where one name stands twice: nobody knows which of them counts.
    pub(crate) fn read(text: &'t str) -> Option<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = deserializer.deserialize_map(ReadMembers).ok()?;
        deserializer.end().ok()?;
        let mut names: Vec<&str> = members.0.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        names
            .windows(2)
            .all(|pair| pair[0] != pair[1])
            .then_some(members)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'t RawValue> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| *value)
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// A list with something in it.
    pub(crate) fn list(&self, name: &str) -> Option<&'t RawValue> {
        let is_filled = |value: &&RawValue| {
            let inside = value
                .get()
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            inside.is_some_and(|inside| !inside.trim_ascii().is_empty())
        };
        self.get(name).filter(is_filled)
    }

    /// Gives a member this value, in its place if it is there, else among those that are `added`.
    pub(crate) fn set(&self, edits: &mut Edits<'t>, added: &mut String, name: &str, value: &str) {
        match self.get(name) {
            Some(there) => edits.replace(there, value.to_owned()),
            None => _ = write!(added, r#","{name}":{value}"#),
        }
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            members.push((name.0, map.next_value()?));
        }
        Ok(Members(members))
    }
}

/// A name, borrowed where it is written without escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

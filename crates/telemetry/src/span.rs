//! One span, from its start to its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use opentelemetry::trace::{Span as _, Status};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::Span as Recorded;

use crate::place::Place;

/// One span. It ends with this, or before.
#[derive(Debug)]
pub struct Span {
    recorded: Mutex<Recorded>,
    place: Place,
}

/// The longest text, in bytes: some are chosen by callers and backends, and spans wait.
const LONGEST: usize = 256;
/// The most texts in one list.
const MOST: usize = 16;

impl Span {
    pub(crate) fn new(recorded: Recorded) -> Self {
        let place = Place::at(recorded.span_context().clone());
        Self {
            recorded: Mutex::new(recorded),
            place,
        }
    }

    /// Where it is, for those below it.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Says something of it. A text beyond 256 bytes is cut.
    pub fn set(&self, name: &'static str, value: impl Into<Value>) {
        self.lock()
            .set_attribute(KeyValue::new(name, bounded(value.into())));
    }

    /// The same of a list of texts, the first 16.
    pub fn set_all(&self, name: &'static str, values: &[String]) {
        let values = values.iter().take(MOST);
        let values = values.map(|value| cut(value).to_owned().into()).collect();
        self.set(name, Value::Array(Array::String(values)));
    }

    /// Something happens in it now.
    pub fn event(&self, name: &'static str, said: &[(&'static str, &str)]) {
        let said = said.iter();
        let said = said.map(|(name, value)| KeyValue::new(*name, cut(value).to_owned()));
        self.lock().add_event(name, said.collect());
    }

    /// It is called so.
    pub fn rename(&self, name: &str) {
        self.lock().update_name(cut(name).to_owned());
    }

    /// It has failed, in this way: a word of a small set.
    pub fn fail(&self, how: &str) {
        let how = cut(how).to_owned();
        let mut recorded = self.lock();
        recorded.set_attribute(KeyValue::new("error.type", how.clone()));
        recorded.set_status(Status::error(how));
    }

    /// It is over. What is said of it later is not heard.
    pub fn end(&self) {
        self.lock().end();
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bounded(value: Value) -> Value {
    match value {
        Value::String(text) if text.as_str().len() > LONGEST => {
            Value::String(StringValue::from(cut(text.as_str()).to_owned()))
        }
        value => value,
    }
}

/// As much of a text as may be.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"é".repeat(200)).len(), LONGEST);
        assert_eq!(cut(&format!("a{}", "é".repeat(200))).len(), LONGEST - 1);
        let value = bounded(Value::from("x".repeat(1000)));
        assert_eq!(value.as_str().len(), LONGEST);
    }
}

//! A plain event stream: numbered JSON events, no opening, no finish, no sentinel.

use super::{
    Facts, Voice, event,
    template::{COMPLETION, TEXT, Template},
};
use crate::ErrorEvent;

/// The voice of a plain event stream.
pub(super) struct Generic {
    template: Template,
}

impl Generic {
    pub(super) fn new(facts: Facts) -> Self {
        let text = event(
            None,
            &format!(r#"{{"text":"{TEXT}","number":{COMPLETION}}}"#),
        );
        Self {
            template: Template::new(&text, 0, facts.skipped),
        }
    }
}

impl Voice for Generic {
    fn opening(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn text(&self, _choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        self.template.fill(token, text, out);
    }

    fn finish(&self, _reason: &str, _events: usize) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn usage(&self) -> Option<Vec<u8>> {
        None
    }

    fn sentinel(&self) -> Option<Vec<u8>> {
        None
    }

    fn error(&self, error: &ErrorEvent) -> Vec<u8> {
        let message = serde_json::Value::from(error.message.as_str());
        event(Some("error"), &format!(r#"{{"error":{message}}}"#))
    }
}

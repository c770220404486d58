//! The chat template: messages in, one text out. Like ChatML:
//!
//! ```text
//! <|im_start|>user
//! Hello<|im_end|>
//! <|im_start|>assistant
//! ```

use super::{Faults, Message};

/// How a rendered conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// With the header of the answer.
    NewTurn,
    /// Within its last message.
    Open,
    /// Behind its last message.
    Closed,
}

/// Renders a conversation.
pub(super) fn render(messages: &[Message], tail: Tail, faults: &Faults) -> String {
    let mut text = String::new();
    if faults.other_template {
        text.push_str("<|im_start|>system\nYou are another template.<|im_end|>\n");
    }
    for (at, message) in messages.iter().enumerate() {
        text.push_str("<|im_start|>");
        text.push_str(&message.role);
        text.push('\n');
        text.push_str(trimmed(&message.content, faults));
        if tail != Tail::Open || at + 1 < messages.len() || faults.closes {
            text.push_str("<|im_end|>\n");
        }
    }
    if tail == Tail::NewTurn {
        text.push_str("<|im_start|>assistant\n");
    }
    text
}

/// The content as this template shows it.
pub(super) fn trimmed<'a>(content: &'a str, faults: &Faults) -> &'a str {
    if faults.trim {
        content.trim_end()
    } else {
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tail: Tail, faults: Faults, expected: &str) {
        let messages = [
            Message::new("user", "Hello"),
            Message::new("assistant", "Hi, "),
        ];
        assert_eq!(render(&messages, tail, &faults), expected);
    }

    #[test]
    fn a_conversation_ends_as_it_is_asked_to() {
        let user = "<|im_start|>user\nHello<|im_end|>\n";
        let open = format!("{user}<|im_start|>assistant\nHi, ");
        check(Tail::Open, Faults::default(), &open);
        let closed = format!("{open}<|im_end|>\n");
        check(Tail::Closed, Faults::default(), &closed);
        let turn = format!("{closed}<|im_start|>assistant\n");
        check(Tail::NewTurn, Faults::default(), &turn);
    }

    #[test]
    fn a_template_can_trim_close_or_be_another() {
        let trim = Faults {
            trim: true,
            ..Faults::default()
        };
        let user = "<|im_start|>user\nHello<|im_end|>\n";
        check(
            Tail::Open,
            trim,
            &format!("{user}<|im_start|>assistant\nHi,"),
        );
        let closes = Faults {
            closes: true,
            ..Faults::default()
        };
        check(
            Tail::Open,
            closes,
            &format!("{user}<|im_start|>assistant\nHi, <|im_end|>\n"),
        );
        let other = Faults {
            other_template: true,
            ..Faults::default()
        };
        let system = "<|im_start|>system\nYou are another template.<|im_end|>\n";
        check(
            Tail::Open,
            other,
            &format!("{system}{user}<|im_start|>assistant\nHi, "),
        );
    }
}

//! A conversation, as each engine takes it: whether its last message is finished or gone on with.

use super::{
    Engine, Faults, Message, Order, Refused,
    template::{Tail, render, trimmed},
    tokens::Tokens,
};

/// A conversation.
#[derive(Debug)]
pub(super) struct Chat<'a> {
    /// What the template renders, and how that ends.
    messages: &'a [Message],
    tail: Tail,
    /// Text that is put behind it and tokenised by itself.
    behind: &'a str,
    /// The message that is gone on with.
    pub(super) opened: Option<&'a Message>,
}

impl<'a> Chat<'a> {
    /// # Errors
    ///
    /// The engine refuses it.
    pub(super) fn read(engine: Engine, order: &'a Order, faults: &Faults) -> Result<Self, Refused> {
        let closed = order.add_generation_prompt == Some(false);
        if order.continue_final_message && !closed && engine != Engine::Sglang {
            return Err(Refused::new(
                engine,
                "Cannot set both `continue_final_message` and `add_generation_prompt` to True.",
            ));
        }
        let asked = order.continue_final_message;
        let opened = match engine {
            // Also a message of the user's.
            Engine::Vllm => order.messages.last().filter(|_| asked),
            Engine::Sglang => order.last_said().filter(|_| asked),
            // Asked or not.
            Engine::LlamaCpp | Engine::Anthropic => order.last_said(),
        };
        if let Some(last) = opened.filter(|_| engine == Engine::Anthropic) {
            if last.content.ends_with(char::is_whitespace) {
                let message =
                    "messages: final assistant content cannot end with trailing whitespace";
                return Err(Refused::new(engine, message));
            }
            if last.content.is_empty() {
                let message = "messages: text content blocks must be non-empty";
                return Err(Refused::new(engine, message));
            }
        }
        let (messages, tail) = (&order.messages[..], Tail::NewTurn);
        let chat = Self {
            messages,
            tail: if closed { Tail::Closed } else { tail },
            behind: "",
            opened,
        };
        let Some(last) = opened else {
            return Ok(chat);
        };
        let before = &messages[..messages.len() - 1];
        match engine {
            Engine::Sglang => Ok(Self {
                messages: before,
                tail,
                behind: &last.content,
                ..chat
            }),
            // An empty one is left out, and with it the header of its turn.
            Engine::LlamaCpp if last.content.is_empty() => Ok(Self {
                messages: before,
                tail: Tail::Closed,
                ..chat
            }),
            Engine::Vllm | Engine::LlamaCpp | Engine::Anthropic => {
                if faults.trim && trimmed(&last.content, faults).is_empty() {
                    return Err(Refused::new(
                        engine,
                        "The final message is not in the rendered chat.",
                    ));
                }
                Ok(Self {
                    tail: Tail::Open,
                    ..chat
                })
            }
        }
    }

    /// The rendered text.
    pub(super) fn text(&self, faults: &Faults) -> String {
        render(self.messages, self.tail, faults) + self.behind
    }

    /// The ids of it.
    pub(super) fn ids(&self, tokens: Tokens, faults: &Faults) -> Vec<u32> {
        let mut ids = tokens.ids(&render(self.messages, self.tail, faults));
        ids.extend(tokens.ids(self.behind));
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &str = "<|im_start|>assistant\n";

    /// How the text ends that is made of a user's message and the beginning of an answer.
    #[track_caller]
    fn check(engine: Engine, said: &str, continues: bool, end: &str) {
        let order = Order {
            messages: vec![Message::new("user", "a"), Message::new("assistant", said)],
            continue_final_message: continues,
            add_generation_prompt: continues.then_some(false),
            ..Order::default()
        };
        let chat = Chat::read(engine, &order, &Faults::default()).unwrap();
        let text = chat.text(&Faults::default());
        assert_eq!(
            text,
            format!("<|im_start|>user\na<|im_end|>\n{end}"),
            "{engine}"
        );
    }

    #[test]
    fn each_engine_goes_on_in_its_way() {
        let open = format!("{TURN}b");
        let new_turn = format!("{TURN}b<|im_end|>\n{TURN}");
        for engine in Engine::OPENAI {
            check(engine, "b", true, &open);
        }
        check(Engine::Vllm, "b", false, &new_turn);
        check(Engine::Sglang, "b", false, &new_turn);
        check(Engine::LlamaCpp, "b", false, &open);
        check(Engine::Anthropic, "b", false, &open);
        check(Engine::LlamaCpp, "", true, "");
        check(Engine::Vllm, "", true, TURN);
    }

    #[test]
    fn sglang_tokenises_the_answer_by_itself() {
        let order = Order {
            messages: vec![Message::new("assistant", "\n\nb")],
            continue_final_message: true,
            ..Order::default()
        };
        let chat = Chat::read(Engine::Sglang, &order, &Faults::default()).unwrap();
        let together = Tokens::USUAL.ids(&chat.text(&Faults::default()));
        let apart = chat.ids(Tokens::USUAL, &Faults::default());
        assert_ne!(together, apart);
        let answer = Tokens::USUAL.ids("\n\nb");
        assert!(apart.ends_with(&answer));
    }

    #[test]
    fn anthropic_refuses_white_space_at_the_end() {
        for said in ["b ", "b\n", ""] {
            let order = Order {
                messages: vec![Message::new("assistant", said)],
                ..Order::default()
            };
            let refused = Chat::read(Engine::Anthropic, &order, &Faults::default()).unwrap_err();
            assert_eq!(refused.status, 400, "{said:?}");
            assert!(Chat::read(Engine::LlamaCpp, &order, &Faults::default()).is_ok());
        }
    }

    #[test]
    fn both_flags_are_needed() {
        let order = Order {
            messages: vec![Message::new("assistant", "b")],
            continue_final_message: true,
            ..Order::default()
        };
        for (engine, refused) in [
            (Engine::Vllm, true),
            (Engine::LlamaCpp, true),
            (Engine::Sglang, false),
        ] {
            let chat = Chat::read(engine, &order, &Faults::default());
            assert_eq!(chat.is_err(), refused, "{engine}");
        }
    }

    #[test]
    fn a_template_that_trims_refuses_to_go_on_with_white_space() {
        let order = Order {
            messages: vec![Message::new("assistant", " \n")],
            continue_final_message: true,
            add_generation_prompt: Some(false),
            ..Order::default()
        };
        let trim = Faults {
            trim: true,
            ..Faults::default()
        };
        assert!(Chat::read(Engine::Vllm, &order, &trim).is_err());
        assert!(Chat::read(Engine::Vllm, &order, &Faults::default()).is_ok());
    }
}

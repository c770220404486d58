//! What backends are asked: always the same, and nothing that anybody would mind.

use streamweld_dialect::{Dialect, Question, ask_chat, ask_completion, ask_message};

/// About how many tokens an examination makes a backend generate, at most: two answers, and twice the rest of each; and a
/// message with its rest.
pub const TOKENS: u64 = 8 * ANSWER;

/// The longest answer.
const ANSWER: u64 = 32;

/// What is cut into tokens: languages, white space of all kinds, code, and characters of several code points.
pub(super) const TEXT: &str = "The tide is high.\n\n    fn main() {\n\treturn 0;\n    }\n\n\
    Café, naïve, 3 €; Ελλάδα, Привет, 潮が満ちる, 안녕하세요, हिन्दी, العربية 😀👩🏽‍💻   1234567890  end \n";

/// The prompt of a completion. What follows is clear, counts up, so that no two places of it are alike, and has a
/// character of several tokens time and again.
pub(super) const LIST: &str = "one 1 潮, two 2 潮, three 3 潮, four 4 潮, five 5 潮, six 6 潮";

/// The question of a chat, for an answer of the same kind. Short models repeat better than they count.
const QUESTION: &str =
    "Please repeat this text: The tide 潮 is high, the café is open, and coffee costs 3 € today.";

/// An unfinished answer that ends in a word.
pub(super) const WORD: &str = "The tide 潮 is\n\n  high";

/// An unfinished answer that ends in white space.
pub(super) const SPACE: &str = "The tide 潮 is ";

/// What models have as control tokens, each as text.
pub(super) const CONTROLS: [&str; 5] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "</s>",
];

/// A request for a short answer, of a dialect that can be continued.
pub(super) fn short_answer(dialect: Dialect, model: &str) -> Question {
    match dialect {
        Dialect::OpenAiCompletions => ask_completion(model, LIST, ANSWER),
        Dialect::AnthropicMessages => ask_message(model, &[("user", QUESTION)], ANSWER),
        _ => ask_chat(model, &[("user", QUESTION)], ANSWER),
    }
}

/// A chat to be rendered, which is not answered. Without a system turn: some templates refuse one.
pub(super) fn chat(model: &str) -> Question {
    let turns = [
        ("user", "  Which word is tide?\n"),
        ("assistant", "It is 潮.\n\n"),
        ("user", "And \"café\" 😀?"),
    ];
    ask_chat(model, &turns, 1)
}

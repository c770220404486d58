//! What the engines are asked.

use serde_json::{Value, json};

/// One question. The model is small: what it says is of no use, but it is text of each kind.
pub(crate) struct Task {
    pub(crate) kind: &'static str,
    pub(crate) path: &'static str,
    question: &'static str,
    max_tokens: u32,
}

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const MESSAGES: &str = "/v1/messages";

const fn task(
    kind: &'static str,
    path: &'static str,
    question: &'static str,
    max_tokens: u32,
) -> Task {
    Task {
        kind,
        path,
        question,
        max_tokens,
    }
}

/// Some end by themselves, most at their limit, which has to be kept over a seam as well.
pub(crate) const TASKS: [Task; 20] = [
    task(
        "prose",
        CHAT,
        "Why does the sea have tides? Answer in three sentences.",
        60,
    ),
    task(
        "prose",
        CHAT,
        "Tell a short story about a lighthouse keeper.",
        70,
    ),
    task("prose", COMPLETIONS, "The capital of France is", 60),
    task(
        "prose",
        COMPLETIONS,
        "The old sailor looked at the sea and said:",
        50,
    ),
    task(
        "code",
        CHAT,
        "Write a Python function that reverses a list, with comments.",
        80,
    ),
    task(
        "code",
        CHAT,
        "Write a JSON object that describes a person with a nested address.",
        60,
    ),
    task("code", COMPLETIONS, "def fibonacci(n):\n", 70),
    task(
        "code",
        COMPLETIONS,
        "fn main() {\n    let numbers = vec![1, 2, 3];\n",
        60,
    ),
    task(
        "lists",
        CHAT,
        "List five fruits with one short remark each.",
        60,
    ),
    task(
        "lists",
        CHAT,
        "Count from 1 to 20, one number per line.",
        70,
    ),
    task(
        "lists",
        COMPLETIONS,
        "Shopping list:\n- milk\n- bread\n",
        50,
    ),
    task(
        "Greek",
        CHAT,
        "Write one Greek sentence: Καλημέρα κόσμε. Continue in Greek.",
        50,
    ),
    task(
        "Greek",
        COMPLETIONS,
        "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας. Η πόλη",
        50,
    ),
    task(
        "Greek",
        COMPLETIONS,
        "Ο ήλιος λάμπει και η θάλασσα είναι ήρεμη. Ο",
        50,
    ),
    task(
        "without spaces",
        COMPLETIONS,
        "東京は日本の首都です。京都は",
        50,
    ),
    task(
        "without spaces",
        COMPLETIONS,
        "春は桜。夏は花火。秋は紅葉。冬は雪。春は桜。夏は花火。",
        60,
    ),
    task(
        "without spaces",
        COMPLETIONS,
        "これは日本語の文章です。私は毎日、学校へ行きます。友達と",
        110,
    ),
    task(
        "without spaces",
        COMPLETIONS,
        "北京是中国的首都。上海是中国最大的城市。",
        110,
    ),
    task("emoji", CHAT, "Write a line with ten emoji: 😀🎉🚀🌍", 50),
    task("emoji", COMPLETIONS, "Emoji: 😀 😃 😄 😁 🚀 🌍 🎉 ", 40),
];

/// The same as messages of Anthropic. None begins with a character of several tokens: there this engine leaves the
/// beginning of its stream out.
pub(crate) const MESSAGE_TASKS: [Task; 6] = [
    task(
        "prose",
        MESSAGES,
        "Why does the sea have tides? Answer in three sentences.",
        60,
    ),
    task(
        "prose",
        MESSAGES,
        "Tell a short story about a lighthouse keeper.",
        70,
    ),
    task(
        "code",
        MESSAGES,
        "Write a Python function that reverses a list, with comments.",
        80,
    ),
    task(
        "code",
        MESSAGES,
        "Write a JSON object that describes a person with a nested address.",
        60,
    ),
    task(
        "lists",
        MESSAGES,
        "List five fruits with one short remark each.",
        60,
    ),
    task(
        "lists",
        MESSAGES,
        "Count from 1 to 20, one number per line.",
        70,
    ),
];

impl Task {
    /// The body of the request.
    pub(crate) fn body(&self, temperature: f32) -> String {
        let turns = json!([{"role": "user", "content": self.question}]);
        let counts = json!({"include_usage": true});
        let asked = match self.path {
            CHAT => json!({"messages": turns, "stream_options": counts}),
            MESSAGES => json!({"messages": turns}),
            _ => json!({"prompt": self.question, "stream_options": counts}),
        };
        let mut body = json!({
            "model": model(), "stream": true, "temperature": temperature, "max_tokens": self.max_tokens,
        });
        let members = body.as_object_mut().expect("an object");
        if let Value::Object(asked) = asked {
            members.extend(asked);
        }
        body.to_string()
    }

    /// In a report.
    pub(crate) fn name(&self) -> String {
        let start: String = self.question.chars().take(24).collect();
        format!("{} {} {start:?}", self.kind, self.path)
    }
}

/// What the engines call their model: `MODEL`. Some do not look at it.
fn model() -> String {
    std::env::var("MODEL").unwrap_or_else(|_| "m".to_owned())
}

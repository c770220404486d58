//! Whole answers of every kind that an application has to be given as the backend meant them.

use serde_json::{Map, Value, json};
use streamweld_mock::{Dialect, LineEnd, Script, Writes};

use super::roster::Way;

/// Words, characters of several bytes, and what a lenient splitter takes for a line end.
pub(super) const TEXT: &str = "The tide comes in\nand goes out, 潮の満ち引き, as it has 🌊 for ever;\u{2028}nobody asked it to.";

/// An answer as it is asked for straight at the backend, and through the proxy.
pub(super) struct Stream {
    pub(super) name: &'static str,
    pub(super) choices: usize,
    pub(super) straight: Script,
    pub(super) through: Script,
}

/// The ordinary answer; the same bytes whoever asks.
pub(super) fn plain() -> Script {
    Script::text(TEXT).id("answer")
}

/// The text of the long one.
pub(super) fn long_text() -> String {
    TEXT.repeat(4)
}

/// One that is long enough to be worth compressing.
pub(super) fn long() -> Script {
    Script::text(long_text()).id("answer")
}

/// How many events come before its text.
pub(super) fn before_the_text(dialect: Dialect) -> usize {
    dialect.events_before_text(&plain())
}

/// Every kind that this way can be asked for.
pub(super) fn all(way: &Way) -> Vec<Stream> {
    let opening = before_the_text(way.dialect);
    let mut streams = vec![
        alike("text", plain()),
        alike("calls of tools", calls()),
        alike(
            "an event of 1 MiB",
            Script::text("a b")
                .id("answer")
                .huge_event_after(opening + 1, 1 << 20),
        ),
        alike("CRLF", plain().line_end(LineEnd::Crlf)),
        alike("characters torn", plain().writes(Writes::Bytes(2))),
        // What comments do to a client is no business of the proxy, which does not pass them on.
        Stream {
            through: Script {
                comment_every: 1,
                ..plain()
            },
            ..alike("comments of the backend", plain())
        },
    ];
    if way.choices > 1 {
        streams.push(Stream {
            choices: way.choices,
            ..alike("two choices", plain())
        });
    }
    streams
}

fn alike(name: &'static str, script: Script) -> Stream {
    Stream {
        name,
        choices: 1,
        straight: script.clone(),
        through: script,
    }
}

fn calls() -> Script {
    let arguments = |value: Value| match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    plain()
        .call(
            "tide",
            arguments(json!({"place": "Brest, 港 \"3\"", "days": [1, 2]})),
        )
        .call("tide", arguments(json!({"place": "Saint-Malo"})))
}

//! The standard, word for word: the slow decoder that the real one is compared with. It has the whole body at once.

/// An event as a reader of the standard sees it. A block without data is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The name, if there is one.
    pub(super) name: Option<String>,
    /// Its data lines, joined.
    pub(super) data: Option<String>,
    /// The last `retry` of its block.
    pub(super) retry: Option<u64>,
}

/// The events of a body. What is left without its blank line is none.
pub(super) fn events(body: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(body);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut events = Vec::new();
    let mut block = Block::default();
    for line in lines(text) {
        if line.is_empty() {
            events.extend(std::mem::take(&mut block).event());
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => block.name = value.to_owned(),
            "data" => block.data.push(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                block.retry = value.parse().ok();
            }
            _ => {}
        }
    }
    events
}

#[derive(Default)]
struct Block {
    name: String,
    data: Vec<String>,
    retry: Option<u64>,
}

impl Block {
    fn event(self) -> Option<Event> {
        (!self.data.is_empty()).then(|| Event {
            name: (!self.name.is_empty()).then_some(self.name),
            data: Some(self.data.join("\n")),
            retry: self.retry,
        })
    }
}

/// The lines that have an end.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\r', '\n']) {
        lines.push(&rest[..at]);
        rest = &rest[at..];
        rest = rest.strip_prefix("\r\n").unwrap_or_else(|| &rest[1..]);
    }
    lines
}

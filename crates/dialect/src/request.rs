//! What a request asks for, read while its body streams by: is it to be streamed, does it go on without
//! a reader, which model, and how many choices.
//!
//! A scanner over the top level of one JSON object. It keeps no body, only one short name or string
//! at a time, so its memory is bounded whatever comes, and the bytes may be split anywhere. On valid
//! JSON it gives what a parser into a map gives: escapes are understood, of two members of one name
//! the last counts, nested members do not. It does not check what it skips (nested values, text), so
//! of a body that is nearly JSON it may read what that seems to say; upstream will refuse it anyway.

use memchr::memchr2;
use serde::de::IgnoredAny;

use crate::{Dialect, mark::MAX_PARTS};

/// What was found at the top level of a request's body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestShape {
    /// Whether `stream` is exactly `true`.
    pub stream: bool,
    /// Whether `background` is exactly `true`.
    pub background: bool,
    /// The `model`, if it is a string of at most [`RequestShape::MODEL_LIMIT`] bytes. A longer one
    /// is not cut: part of a name is another name.
    pub model: Option<String>,
    /// `n`, if it is a whole number from 1 to [`RequestShape::CHOICES_LIMIT`].
    pub n: Option<u32>,
    /// How many prompts `prompt` holds, if it is an array of any. One with a number in it is the
    /// tokens of one prompt; in any other each string, array and object is a prompt.
    pub prompts: Option<u32>,
    /// `id`, as JSON, if it is a number or a string of at most [`RequestShape::MODEL_LIMIT`] bytes: of JSON-RPC the id
    /// of the call.
    pub call: Option<String>,
    /// What the body is as a whole.
    pub body: RequestBody,
}

/// What a request's body is as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestBody {
    /// An object, or something that cannot be read.
    #[default]
    One,
    /// An array.
    List,
    /// Nothing.
    Empty,
}

impl RequestShape {
    /// The longest model name that is read, in bytes.
    pub const MODEL_LIMIT: usize = 256;

    /// The largest `n` that is believed: an answer of more is never taken for whole anyway, so an
    /// engine that was asked for more can only be one that gives fewer.
    pub const CHOICES_LIMIT: usize = MAX_PARTS;

    /// Whether the request is known to ask for a stream. Gemini's says so by its path. A call of MCP may be answered
    /// in either way.
    pub fn is_known_to_stream(&self, dialect: Dialect) -> bool {
        match dialect {
            Dialect::Mcp | Dialect::Generic => false,
            Dialect::Gemini => true,
            _ => self.stream,
        }
    }

    /// Whether the request goes on when its client is lost before the answer begins: a stream that somebody may come
    /// back for, and every call of MCP, where a lost connection is no cancel.
    pub fn outlives_its_client(&self, dialect: Dialect) -> bool {
        dialect == Dialect::Mcp || self.is_known_to_stream(dialect)
    }

    /// How many choices (of MCP: answers) were asked for. Where the request says nothing that can be read, one.
    pub fn choices(&self, dialect: Dialect) -> usize {
        let prompts = match dialect {
            Dialect::OpenAiChat => 1,
            Dialect::OpenAiCompletions => self.prompts.unwrap_or(1),
            // What a list holds is not looked at.
            Dialect::Mcp => {
                return match self.body {
                    RequestBody::One => 1,
                    RequestBody::List => usize::MAX,
                    RequestBody::Empty => 0,
                };
            }
            Dialect::OpenAiResponses
            | Dialect::AnthropicMessages
            | Dialect::Gemini
            | Dialect::Generic => return 1,
        };
        self.n.unwrap_or(1).saturating_mul(prompts) as usize
    }
}

/// The scanner, between two pieces of a body.
#[derive(Debug, Clone)]
pub struct RequestScan {
    state: State,
    /// The member whose value comes next or is being read.
    member: Member,
    /// The string or literal being read, as written, without its quotes.
    raw: Vec<u8>,
    /// What was seen of the array of prompts that is being read.
    batch: Option<Batch>,
    shape: RequestShape,
}

/// Start -> Name -> Colon -> Value -> Comma -> Name … -> End; Failed from anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the object.
    Start,
    /// Before a member's name; a first one may be missing.
    Name { first: bool },
    /// In a string: a member's name or value.
    Text { of: Text, escaped: bool },
    /// After a name.
    Colon,
    /// After the colon.
    Value,
    /// In a number, true, false or null.
    Literal,
    /// In a nested array or object, `depth` brackets deep.
    Nested { depth: u64 },
    /// In a string inside of that.
    NestedText { depth: u64, escaped: bool },
    /// After a value.
    Comma,
    /// After the object.
    End,
    /// It is an array.
    List,
    /// It is neither.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Name,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Stream,
    Background,
    Model,
    N,
    Prompt,
    Id,
    Other,
}

/// The elements of an array of prompts.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    /// Texts, arrays and objects.
    prompts: u32,
    /// One element at least is a number.
    has_tokens: bool,
}

impl Batch {
    /// Sees a byte between the brackets of the array that is in nothing nested deeper: the first of
    /// an element, or one of a literal.
    fn see(&mut self, byte: u8) {
        match byte {
            b'"' | b'[' | b'{' => self.prompts = self.prompts.saturating_add(1),
            b'0'..=b'9' => self.has_tokens = true,
            _ => {}
        }
    }

    fn count(self) -> Option<u32> {
        let count = if self.has_tokens { 1 } else { self.prompts };
        (count > 0).then_some(count)
    }
}

impl RequestScan {
    /// A scanner before the first byte.
    pub fn new() -> Self {
        Self {
            state: State::Start,
            member: Member::Other,
            raw: Vec::new(),
            batch: None,
            shape: RequestShape::default(),
        }
    }

    /// Reads the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            rest = match self.state {
                // The long parts of a body are skipped string by string.
                State::Text { of, escaped: false } => self.text(of, rest),
                State::NestedText {
                    depth,
                    escaped: false,
                } => self.nested_text(depth, rest),
                State::List | State::Failed => return,
                _ => {
                    self.byte(*byte);
                    tail
                }
            };
        }
    }

    /// The shape, if the body was one whole JSON object; otherwise no more than what it is as a whole.
    pub fn finish(self) -> RequestShape {
        let body = match self.state {
            State::End => return self.shape,
            State::Start => RequestBody::Empty,
            State::List => RequestBody::List,
            _ => RequestBody::One,
        };
        RequestShape {
            body,
            ..RequestShape::default()
        }
    }

    fn byte(&mut self, byte: u8) {
        if is_space(byte) && self.between_tokens() {
            return;
        }
        if let (State::Nested { depth: 1 }, Some(batch)) = (self.state, &mut self.batch) {
            batch.see(byte);
        }
        self.state = match (self.state, byte) {
            (State::Start, b'{') => State::Name { first: true },
            (State::Start, b'[') => State::List,
            (State::Name { .. }, b'"') => self.begin_text(Text::Name),
            (State::Name { first: true }, b'}') => State::End,
            (State::Text { of, escaped: true }, _) => {
                self.keep_text(of, &[byte]);
                State::Text { of, escaped: false }
            }
            (State::Colon, b':') => State::Value,
            (State::Value, b'"') => self.begin_text(Text::Value),
            (State::Value, b'{' | b'[') => {
                self.set_value(None);
                let is_batch = self.member == Member::Prompt && byte == b'[';
                self.batch = is_batch.then(Batch::default);
                State::Nested { depth: 1 }
            }
            (State::Value, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.raw.clear();
                self.keep(&[byte]);
                State::Literal
            }
            (State::Literal, b',' | b'}') => self.end_literal(after_value(byte)),
            (State::Literal, _) if is_space(byte) => self.end_literal(State::Comma),
            (State::Literal, b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E') => {
                self.keep(&[byte]);
                State::Literal
            }
            (State::Nested { depth }, b'"') => State::NestedText {
                depth,
                escaped: false,
            },
            (State::Nested { depth }, b'{' | b'[') => State::Nested { depth: depth + 1 },
            (State::Nested { depth: 1 }, b'}' | b']') => {
                if let Some(batch) = self.batch.take() {
                    self.shape.prompts = batch.count();
                }
                State::Comma
            }
            (State::Nested { depth }, b'}' | b']') => State::Nested { depth: depth - 1 },
            (State::Nested { depth }, _) => State::Nested { depth },
            (State::NestedText { depth, .. }, _) => State::NestedText {
                depth,
                escaped: false,
            },
            (State::Comma, b',' | b'}') => after_value(byte),
            _ => State::Failed,
        };
    }

    /// Whether white space here means nothing.
    fn between_tokens(&self) -> bool {
        matches!(
            self.state,
            State::Start
                | State::Name { .. }
                | State::Colon
                | State::Value
                | State::Comma
                | State::End
        )
    }

    fn begin_text(&mut self, of: Text) -> State {
        self.raw.clear();
        State::Text { of, escaped: false }
    }

    /// Takes text up to the end of the string, an escape, or the end of the bytes.
    fn text<'a>(&mut self, of: Text, bytes: &'a [u8]) -> &'a [u8] {
        let Some(at) = memchr2(b'"', b'\\', bytes) else {
            self.keep_text(of, bytes);
            return &[];
        };
        if bytes[at] == b'\\' {
            self.keep_text(of, &bytes[..=at]);
            self.state = State::Text { of, escaped: true };
        } else {
            self.keep_text(of, &bytes[..at]);
            self.end_text(of);
        }
        &bytes[at + 1..]
    }

    fn nested_text<'a>(&mut self, depth: u64, bytes: &'a [u8]) -> &'a [u8] {
        let Some(at) = memchr2(b'"', b'\\', bytes) else {
            return &[];
        };
        self.state = if bytes[at] == b'\\' {
            State::NestedText {
                depth,
                escaped: true,
            }
        } else {
            State::Nested { depth }
        };
        &bytes[at + 1..]
    }

    /// Keeps a name, or the text of a member that is asked for.
    fn keep_text(&mut self, of: Text, bytes: &[u8]) {
        match (of, self.member) {
            (Text::Name, _) | (Text::Value, Member::Model | Member::Id) => self.keep(bytes),
            (
                Text::Value,
                Member::Stream | Member::Background | Member::N | Member::Prompt | Member::Other,
            ) => {}
        }
    }

    /// Keeps what was written, up to one byte more than can matter, which tells "too long".
    fn keep(&mut self, bytes: &[u8]) {
        let room = (RAW_LIMIT + 1).saturating_sub(self.raw.len());
        self.raw.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_text(&mut self, of: Text) {
        self.state = match of {
            Text::Name => {
                self.member = match self.decoded().as_deref() {
                    Some("stream") => Member::Stream,
                    Some("background") => Member::Background,
                    Some("model") => Member::Model,
                    Some("n") => Member::N,
                    Some("prompt") => Member::Prompt,
                    Some("id") => Member::Id,
                    _ => Member::Other,
                };
                State::Colon
            }
            Text::Value => {
                let value = match self.member {
                    Member::Model | Member::Id => self.decoded(),
                    Member::Stream
                    | Member::Background
                    | Member::N
                    | Member::Prompt
                    | Member::Other => None,
                };
                self.set_value(value);
                State::Comma
            }
        };
    }

    fn end_literal(&mut self, next: State) -> State {
        if serde_json::from_slice::<IgnoredAny>(&self.raw).is_err() {
            return State::Failed;
        }
        self.set_value(None);
        match self.member {
            Member::Stream => self.shape.stream = self.raw == b"true",
            Member::Background => self.shape.background = self.raw == b"true",
            Member::N => self.shape.n = self.count(),
            Member::Id => self.shape.call = self.number(),
            Member::Model | Member::Prompt | Member::Other => {}
        }
        next
    }

    /// The member has a value, which replaces any earlier one. Only text can be a model.
    fn set_value(&mut self, text: Option<String>) {
        match self.member {
            Member::Stream => self.shape.stream = false,
            Member::Background => self.shape.background = false,
            Member::Model => {
                self.shape.model = text.filter(|text| text.len() <= RequestShape::MODEL_LIMIT);
            }
            Member::N => self.shape.n = None,
            Member::Prompt => self.shape.prompts = None,
            Member::Id => {
                let text = text.filter(|text| text.len() <= RequestShape::MODEL_LIMIT);
                self.shape.call = text.map(|text| serde_json::Value::from(text).to_string());
            }
            Member::Other => {}
        }
    }

    /// The kept literal as a count. Some engines take `2.0` for 2, so it is one here.
    fn count(&self) -> Option<u32> {
        if self.raw.len() > RAW_LIMIT {
            return None;
        }
        let number: f64 = serde_json::from_slice(&self.raw).ok()?;
        let most = RequestShape::CHOICES_LIMIT as f64;
        (number.fract() == 0.0 && (1.0..=most).contains(&number)).then_some(number as u32)
    }

    /// The kept literal, if it is a number.
    fn number(&self) -> Option<String> {
        let number = std::str::from_utf8(&self.raw).ok()?;
        let is_number = number.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        (is_number && number.len() <= RequestShape::MODEL_LIMIT).then(|| number.to_owned())
    }

    /// The kept string with its escapes undone; `None` if it is too long or no valid string.
    fn decoded(&self) -> Option<String> {
        if self.raw.len() > RAW_LIMIT {
            return None;
        }
        let quoted = [b"\"", self.raw.as_slice(), b"\""].concat();
        serde_json::from_slice(&quoted).ok()
    }
}

impl Default for RequestScan {
    fn default() -> Self {
        Self::new()
    }
}

/// JSON's white space, which is less than ASCII's.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn after_value(byte: u8) -> State {
    if byte == b',' {
        State::Name { first: false }
    } else {
        State::End
    }
}

/// The longest way to write what matters: every byte of a model name as `\u00xx`.
const RAW_LIMIT: usize = 6 * RequestShape::MODEL_LIMIT;

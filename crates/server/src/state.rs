//! The state of a generation as clients and operators see it (protocol.md 6.6). Never the prompt, the output or a
//! credential.

use serde::Serialize;
use streamweld_generation::{
    Moves, OpenPayload, TerminalPayload, Whole, timestamp, transcript, whole_transcript,
};
use streamweld_journal::{Kind, Seq, Window};
use tokio::time::timeout;

use crate::app::App;
use crate::attach::Readable;

#[derive(Debug, Serialize)]
pub(crate) struct State {
    object: &'static str,
    stream_id: String,
    pub(crate) status: &'static str,
    dialect: String,
    model: Option<String>,
    created_at: Option<String>,
    last_event_at: Option<String>,
    ended_at: Option<String>,
    owner_alive: bool,
    backends: Vec<String>,
    earliest_seq: u64,
    last_seq: u64,
    durability: &'static str,
    level: Option<String>,
    readers: usize,
    attempts: u32,
    migrations: u32,
    usage: Option<Usage>,
    terminal: Option<TerminalState>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    estimated: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct TerminalState {
    kind: &'static str,
    code: Option<String>,
    seq: u64,
    time: String,
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<String>>,
}

impl State {
    /// With what only the journal has of it. While that is out of reach, as this replica has it.
    pub(crate) async fn whole(app: &App, found: &Readable) -> Self {
        let whole = whole_transcript(&found.window, found.dialect());
        let whole = timeout(app.settings().edge.hold, whole).await;
        let mut state = Self::of(app, found);
        if let Ok(Whole {
            transcript,
            earliest,
            moves,
        }) = whole
        {
            state.usage = transcript.usage().map(Usage::from);
            state.earliest_seq = earliest.get();
            if found.handle.is_none() {
                state.moved(moves);
            }
        }
        state
    }

    /// Where it has moved, by its log: who runs it knows, and so does its end once it is there.
    fn moved(&mut self, moves: Moves) {
        self.migrations = moves.count;
        if self.terminal.is_some() {
            return;
        }
        self.attempts = self.attempts.max(moves.attempt);
        for backend in moves.backends {
            self.backends.retain(|other| *other != backend);
            self.backends.push(backend);
        }
    }

    /// As this replica has it.
    pub(crate) fn of(app: &App, found: &Readable) -> Self {
        let window = &found.window;
        let open = found.open();
        // One look: what is shown must fit together, also while the generation ends.
        let marks = window.marks();
        let terminal = window
            .terminal()
            .filter(|terminal| terminal.seq <= marks.committed);
        // A producer that has committed its terminal may take a moment to go.
        let runs = terminal.is_none();
        let readers = match &found.handle {
            Some(handle) => handle.readers(),
            None => app.followed.readers(window.id()),
        };
        let usage = transcript(window, found.dialect()).usage().map(Usage::from);
        let attempts = match (&found.handle, terminal_payload(window)) {
            (Some(handle), _) => handle.attempts(),
            (None, Some(payload)) => payload.attempts.max(1),
            (None, None) => 1,
        };
        Self {
            object: "streamweld.stream",
            stream_id: window.id().to_string(),
            status: terminal
                .as_ref()
                .map_or("streaming", |terminal| terminal.kind.as_str()),
            dialect: found.dialect().as_str().to_owned(),
            model: open.as_ref().and_then(|open| open.model.clone()),
            created_at: open.as_ref().map(|open| open.time.clone()),
            last_event_at: window.last_time().map(timestamp),
            ended_at: terminal.as_ref().map(|terminal| timestamp(terminal.time)),
            owner_alive: runs && found.has_owner(),
            backends: backends(found, open.as_ref()),
            earliest_seq: marks.earliest.get(),
            last_seq: marks.committed.get(),
            durability: if window.is_exposed() {
                "degraded"
            } else {
                "durable"
            },
            level: app.shared.journal.level().map(|level| level.to_string()),
            readers: if runs { readers } else { 0 },
            attempts,
            migrations: match &found.handle {
                Some(handle) => handle.moves(),
                None => migrations(window),
            },
            usage,
            terminal: terminal.and_then(|_| TerminalState::of(window)),
        }
    }
}

/// How often it has moved, as far as its entries are held.
fn migrations(window: &Window) -> u32 {
    let (mut count, mut after) = (0, Seq::ZERO);
    loop {
        let entries = window.entries(after, PAGE);
        let Some(last) = entries.last() else {
            return count;
        };
        after = last.seq;
        let moves = entries.iter().filter(|entry| entry.kind == Kind::Migration);
        count += u32::try_from(moves.count()).expect("a page is short");
    }
}

/// How many entries are looked at at once, so that the lock of a window is held briefly.
const PAGE: usize = 256;

/// The backends that were asked. What only an earlier replica knew is in the log.
pub(crate) fn backends(found: &Readable, open: Option<&OpenPayload>) -> Vec<String> {
    if let Some(handle) = &found.handle {
        return handle.asked().iter().map(ToString::to_string).collect();
    }
    let ended = terminal_payload(&found.window).unwrap_or_default();
    if !ended.backends.is_empty() {
        return ended.backends;
    }
    open.map(|open| open.backend.clone()).into_iter().collect()
}

impl TerminalState {
    pub(crate) fn of(window: &Window) -> Option<Self> {
        let terminal = window.terminal()?;
        let payload = terminal_payload(window).unwrap_or_default();
        Some(Self {
            kind: terminal.kind.as_str(),
            code: terminal.code.clone(),
            seq: terminal.seq.get(),
            time: timestamp(terminal.time),
            message: payload.message,
            end: payload.end.filter(|_| terminal.kind == Kind::Done),
            reasons: payload.reasons.filter(|_| terminal.kind == Kind::Done),
        })
    }
}

/// What the terminal entry says, read back from its line of JSON.
pub(crate) fn terminal_payload(window: &Window) -> Option<TerminalPayload> {
    let terminal = window.terminal()?;
    let data = terminal
        .lines
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"data: "))?;
    serde_json::from_slice(data).ok()
}

impl From<streamweld_dialect::Usage> for Usage {
    fn from(usage: streamweld_dialect::Usage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens,
            estimated: usage.estimated,
        }
    }
}

/// The place of a generation in a list: its id begins with its time, so newer ids are greater.
pub(crate) fn newest_first(left: &Readable, right: &Readable) -> std::cmp::Ordering {
    right.window.id().cmp(&left.window.id())
}

//! A writer for the cases, and what it expects.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::contract::{Access, Adoption, Journal, Open, Outcome, Refusal, Tail};
use crate::id::StreamId;
use crate::types::{Epoch, Kind, Seq, TerminalParts};
use crate::window::{Window, WindowConfig};

pub(super) const ACCESS: Access = [7; 32];

/// Any moment will do; each case has one.
pub(super) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

pub(super) fn fresh_id() -> StreamId {
    StreamId::generate(now())
}

pub(super) fn fresh_key() -> crate::contract::Key {
    let mut key = [0; 32];
    key[..26].copy_from_slice(fresh_id().text().as_bytes());
    key
}

/// The owner of one generation.
pub(super) struct Writer<'a> {
    journal: &'a dyn Journal,
    pub(super) window: Arc<Window>,
}

impl<'a> Writer<'a> {
    /// One whose log is not opened yet; entry 1 is staged.
    pub(super) fn unopened(journal: &'a dyn Journal, id: StreamId) -> Self {
        Self::with_ring(journal, id, WindowConfig::default())
    }

    /// The same, whose window holds so much.
    pub(super) fn with_ring(journal: &'a dyn Journal, id: StreamId, ring: WindowConfig) -> Self {
        let window = Window::new(id, Epoch::FIRST, now(), ring);
        let seq = window
            .stage(now())
            .push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
        assert_eq!(seq, Seq::FIRST);
        Self { journal, window }
    }

    /// One that writes through this window what others have opened.
    pub(super) fn with_window(journal: &'a dyn Journal, window: Arc<Window>) -> Self {
        Self { journal, window }
    }

    /// One whose log is open.
    pub(super) async fn opened(journal: &'a dyn Journal) -> Self {
        let writer = Self::unopened(journal, fresh_id());
        writer.open().await;
        writer
    }

    /// One whose log has `last` entries, all committed.
    pub(super) async fn with_entries(journal: &'a dyn Journal, last: u64) -> Self {
        let writer = Self::opened(journal).await;
        for seq in 2..=last {
            assert_eq!(writer.stage("x"), Seq::new(seq));
        }
        if last > 1 {
            assert_eq!(writer.append(1, last).await, Outcome::Yes);
            writer.window.commit(Seq::new(last));
        }
        writer
    }

    pub(super) fn id(&self) -> StreamId {
        self.window.id()
    }

    pub(super) async fn open(&self) {
        let outcome = self
            .journal
            .open(&self.window, &Open { access: ACCESS }, now())
            .await;
        assert_eq!(outcome, Outcome::Yes);
        self.window.commit(Seq::FIRST);
    }

    pub(super) fn stage(&self, text: &str) -> Seq {
        self.window.stage(now()).push(Kind::Event, |out| {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(text.as_bytes());
            out.push(b'\n');
        })
    }

    pub(super) fn stage_beside(&self, text: &str, beside: &[u8]) -> Seq {
        let mut staging = self.window.stage(now());
        let seq = staging.push(Kind::Event, |out| {
            out.extend_from_slice(format!("data: {text}\n").as_bytes());
        });
        staging.beside(beside);
        seq
    }

    pub(super) fn stage_terminal(&self) -> Seq {
        let (lines, ending) = (b"event: streamweld.done\ndata: {}\n".to_vec(), Vec::new());
        self.window.stage_terminal(
            now(),
            TerminalParts {
                kind: Kind::Done,
                code: None,
                lines,
                ending,
                id_at: None,
            },
        )
    }

    pub(super) async fn append(&self, expected: u64, through: u64) -> Outcome<Refusal> {
        self.journal
            .append(&self.window, Seq::new(expected), Seq::new(through))
            .await
    }

    pub(super) async fn finish(&self, expected: u64) -> Outcome<Refusal> {
        self.journal
            .finish(&self.window, Seq::new(expected), now())
            .await
    }

    /// Adopts for `by`, from this last entry of a writer of the epoch `of`.
    pub(super) async fn adopt(&self, of: u64, last: u64, by: u64) -> Outcome<Refusal> {
        let adoption = Adoption::new(epoch(of), Seq::new(last), epoch(by));
        self.journal.adopt(self.id(), adoption, now()).await
    }

    /// Checks what really stands.
    pub(super) async fn stands(&self, last: u64, terminal: bool) {
        self.stands_under(1, last, terminal).await;
    }

    pub(super) async fn stands_under(&self, epoch: u64, last: u64, terminal: bool) {
        let digest = self.window.digest(Seq::new(last));
        let expected = Tail::Last {
            epoch: self::epoch(epoch),
            last: Seq::new(last),
            terminal,
            digest: digest.unwrap_or_else(|| panic!("entry {last} is retained")),
        };
        assert_eq!(self.journal.tail(self.id()).await, Ok(expected));
    }
}

pub(super) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap_or_else(|| panic!("no epoch is 0"))
}

pub(super) fn unexpected(last: u64) -> Outcome<Refusal> {
    Outcome::No(Refusal::Unexpected {
        last: Seq::new(last),
    })
}

pub(super) fn fenced(epoch: u64) -> Outcome<Refusal> {
    Outcome::No(Refusal::Fenced {
        epoch: self::epoch(epoch),
    })
}

//! The owner of one generation, for tests.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_journal::{
    Adoption, Epoch, Journal, Kind, Open, Outcome, Refusal, Seq, StreamId, Tail, TerminalParts,
    Window, WindowConfig,
};
use streamweld_journal_redis::RedisJournal;
use tokio::time::Instant;

pub(crate) struct Writer<'a> {
    pub(crate) journal: &'a RedisJournal,
    pub(crate) window: Arc<Window>,
}

impl<'a> Writer<'a> {
    pub(crate) fn unopened(journal: &'a RedisJournal) -> Self {
        let now = SystemTime::now();
        let id = StreamId::generate(now);
        let window = Window::new(id, Epoch::FIRST, now, WindowConfig::default());
        window
            .stage(now)
            .push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
        Self { journal, window }
    }

    /// One that goes on behind `last`, which others wrote, in a window of its own. It has adopted the log from a
    /// writer of the epoch right below its own.
    pub(crate) async fn adopting(
        journal: &'a RedisJournal,
        id: StreamId,
        epoch: u64,
        last: Seq,
    ) -> Self {
        let (before, epoch) = (Epoch::new(epoch - 1).unwrap(), Epoch::new(epoch).unwrap());
        let now = SystemTime::now();
        assert_eq!(
            journal
                .adopt(id, Adoption::new(before, last, epoch), now)
                .await,
            Outcome::Yes
        );
        let window = Window::new(id, epoch, now, WindowConfig::default());
        window.begin_after(last);
        window.set_earlier(journal.earlier(id).unwrap());
        Self { journal, window }
    }

    pub(crate) async fn opened(journal: &'a RedisJournal) -> Self {
        let writer = Self::unopened(journal);
        assert_eq!(writer.open().await, Outcome::Yes);
        writer.window.commit(Seq::FIRST);
        writer
    }

    /// The same as soon as there is a connection.
    pub(crate) async fn opened_at_last(journal: &'a RedisJournal) -> Self {
        let connected = journal.connected(Duration::from_secs(10)).await;
        connected.expect("it connects");
        Self::opened(journal).await
    }

    pub(crate) fn id(&self) -> StreamId {
        self.window.id()
    }

    pub(crate) fn log(&self) -> String {
        format!("streamweld:{{{}}}:log", self.id())
    }

    pub(crate) fn request(&self) -> String {
        format!("streamweld:{{{}}}:request", self.id())
    }

    pub(crate) fn meta(&self) -> String {
        format!("streamweld:{{{}}}:meta", self.id())
    }

    pub(crate) async fn open(&self) -> Outcome<streamweld_journal::OpenRefusal> {
        let owner = Open { access: [7; 32] };
        self.journal
            .open(&self.window, &owner, SystemTime::now())
            .await
    }

    pub(crate) fn stage(&self, text: &str) -> Seq {
        self.window
            .stage(SystemTime::now())
            .push(Kind::Event, |out| {
                out.extend_from_slice(format!("data: {text}\n").as_bytes());
            })
    }

    /// The same with this beside it.
    pub(crate) fn stage_beside(&self, text: &str, beside: &str) -> Seq {
        let mut staging = self.window.stage(SystemTime::now());
        let seq = staging.push(Kind::Event, |out| {
            out.extend_from_slice(format!("data: {text}\n").as_bytes());
        });
        staging.beside(beside.as_bytes());
        seq
    }

    pub(crate) fn stage_terminal(&self) -> Seq {
        let terminal = TerminalParts {
            kind: Kind::Done,
            code: Some("code".into()),
            lines: b"event: streamweld.done\ndata: {}\n".to_vec(),
            ending: b"data: [DONE]\n\n".to_vec(),
            id_at: Some(0),
        };
        self.window.stage_terminal(SystemTime::now(), terminal)
    }

    /// Appends everything that is staged and not committed; commits when it stands.
    pub(crate) async fn append(&self) -> Outcome<Refusal> {
        let marks = self.window.marks();
        let outcome = self
            .journal
            .append(&self.window, marks.committed, marks.received)
            .await;
        if outcome == Outcome::Yes {
            self.window.commit(marks.received);
        }
        outcome
    }

    pub(crate) async fn finish(&self) -> Outcome<Refusal> {
        let marks = self.window.marks();
        let now = SystemTime::now();
        let outcome = self
            .journal
            .finish(&self.window, marks.committed, now)
            .await;
        if outcome == Outcome::Yes {
            self.window.commit(marks.received);
        }
        outcome
    }

    /// Asks for the tail until there is an answer.
    pub(crate) async fn tail(&self) -> Tail {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match self.journal.tail(self.id()).await {
                Ok(tail) => return tail,
                Err(_) => assert!(Instant::now() < until, "the journal stays out of reach"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The tail is this entry as it was staged here.
    pub(crate) async fn stands(&self, last: u64, terminal: bool) {
        let expected = Tail::Last {
            epoch: self.window.epoch(),
            last: Seq::new(last),
            terminal,
            digest: self.window.digest(Seq::new(last)).unwrap(),
        };
        assert_eq!(self.tail().await, expected);
    }
}

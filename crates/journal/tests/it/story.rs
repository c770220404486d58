//! One generation told step by step, and readers that can be watched.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Cursor, Epoch, Kind, Reader, Seq, Step, StreamId, TerminalParts, View, Window, WindowConfig,
};

pub(crate) const PLAIN: View = View {
    ids: true,
    control: false,
};
pub(crate) const CONTROL: View = View {
    ids: true,
    control: true,
};
pub(crate) const BARE: View = View {
    ids: false,
    control: false,
};
pub(crate) const MAX: usize = 256 << 10;

/// So many seconds after the beginning of the story.
pub(crate) fn at(secs: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + secs)
}

pub(crate) struct Story {
    pub(crate) window: Arc<Window>,
}

impl Story {
    /// A generation whose `open` entry is committed.
    pub(crate) fn new() -> Self {
        Self::with(WindowConfig::default())
    }

    pub(crate) fn with(config: WindowConfig) -> Self {
        let story = Self::untold(config);
        story.commit(1);
        story
    }

    /// A generation whose `open` entry is only staged.
    pub(crate) fn untold(config: WindowConfig) -> Self {
        let window = Window::new(StreamId::generate(at(0)), Epoch::FIRST, at(0), config);
        let story = Self { window };
        assert_eq!(story.stage(Kind::Open, "opened"), Seq::FIRST);
        story
    }

    pub(crate) fn stage(&self, kind: Kind, text: &str) -> Seq {
        self.window.stage(at(1)).push(kind, |out| {
            out.extend_from_slice(lines(kind, text).as_bytes());
        })
    }

    /// Stages events.
    pub(crate) fn events(&self, texts: &[&str]) -> &Self {
        for text in texts {
            self.stage(Kind::Event, text);
        }
        self
    }

    pub(crate) fn commit(&self, through: u64) -> &Self {
        self.window.commit(Seq::new(through));
        self
    }

    pub(crate) fn commit_all(&self) -> &Self {
        self.window.commit(self.window.received());
        self
    }

    /// Stages the terminal; `ending` is what a plain reader is shown.
    pub(crate) fn terminal(&self, kind: Kind, ending: &str) -> Seq {
        let parts = TerminalParts {
            kind,
            code: Some("because".to_owned()),
            lines: lines(kind, "over").into_bytes(),
            ending: ending.as_bytes().to_vec(),
            id_at: None,
        };
        self.window.stage_terminal(at(9), parts)
    }

    pub(crate) fn read(&self, after: u64, view: View) -> Watched {
        Watched::new(&self.window, after, view)
    }

    /// How a committed entry looks on the wire.
    pub(crate) fn wire(&self, seq: u64, kind: Kind, text: &str) -> String {
        let cursor = Cursor {
            stream: self.window.id(),
            seq: Seq::new(seq),
            epoch: Epoch::FIRST,
        };
        format!("{}id: {cursor}\n\n", lines(kind, text))
    }

    pub(crate) fn wires(&self, events: &[(u64, &str)]) -> String {
        events
            .iter()
            .map(|&(seq, text)| self.wire(seq, Kind::Event, text))
            .collect()
    }
}

/// The lines of an entry without id line and blank line.
pub(crate) fn lines(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Event => format!("data: {text}\n"),
        _ => format!("event: streamweld.{kind}\ndata: {text}\n"),
    }
}

/// A reader with a waker that counts.
pub(crate) struct Watched {
    pub(crate) reader: Reader,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Watched {
    pub(crate) fn new(window: &Arc<Window>, after: u64, view: View) -> Self {
        Self {
            reader: Reader::new(Arc::clone(window), Seq::new(after), view),
            wakes: Arc::default(),
        }
    }

    pub(crate) fn poll(&mut self, max: usize) -> Poll<Step> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.reader.poll_next(&mut Context::from_waker(&waker), max)
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }

    #[track_caller]
    pub(crate) fn run(&mut self, max: usize) -> (Bytes, u64, bool) {
        match self.poll(max) {
            Poll::Ready(Step::Run {
                bytes,
                through,
                sequenced,
            }) => {
                assert_eq!(through, self.reader.cursor());
                (bytes, through.get(), sequenced)
            }
            other => panic!("expected a run, got {other:?}"),
        }
    }

    /// The next run must be these bytes through this entry.
    #[track_caller]
    pub(crate) fn gets(&mut self, bytes: &str, through: u64) -> &mut Self {
        let run = self.run(MAX);
        assert_eq!((text(&run.0), run.1, run.2), (bytes, through, true));
        self
    }

    /// The same for entries that are not committed.
    #[track_caller]
    pub(crate) fn gets_unsequenced(&mut self, bytes: &str, through: u64) -> &mut Self {
        let run = self.run(MAX);
        assert_eq!((text(&run.0), run.1, run.2), (bytes, through, false));
        self
    }

    #[track_caller]
    pub(crate) fn waits(&mut self) -> &mut Self {
        let step = self.poll(MAX);
        assert!(step.is_pending(), "{step:?}");
        self
    }

    #[track_caller]
    pub(crate) fn ends(&mut self, seq: u64, sequenced: bool) {
        match self.poll(MAX) {
            Poll::Ready(Step::End {
                terminal,
                sequenced: told,
            }) => {
                assert_eq!((terminal.seq.get(), told), (seq, sequenced));
            }
            other => panic!("expected the end, got {other:?}"),
        }
    }
}

pub(crate) fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).expect("stories are text")
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

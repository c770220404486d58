//! What these tests are told with: a backend whose bytes a test hands over one by one, a producer, and readers.

mod nobody;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_dialect::{Dialect, RequestShape};
use streamweld_generation::migration::Backends;
use streamweld_generation::{
    Access, Answer, Attached, ByteSource, Counters, CredentialHeaders, Durability, Handle,
    HealBounds, Limits, Onward, OrphanPolicy, Presence, Producer, Read, Registry, RetryWindow,
    Shared, Spec, Told,
};
use streamweld_journal::faulty::{Faults, Faulty};
use streamweld_journal::{
    Closed, Epoch, Found, Journal, Kind, Memory, Seq, Step, StreamId, View, Window, WindowConfig,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::nobody::Nobody;

/// A producer that runs, and everything around it.
pub(crate) struct Stage {
    pub(crate) journal: Arc<Faulty<Memory>>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) handle: Arc<Handle>,
    pub(crate) counters: Counters,
    pub(crate) registry: Arc<Registry>,
    /// The backend's connection was closed by the producer.
    pub(crate) dropped: Arc<AtomicBool>,
    feed: mpsc::Sender<Fed>,
    head: Option<oneshot::Sender<Reply>>,
    told: Option<oneshot::Receiver<Told<(), ()>>>,
    /// Whoever waits for the head counts as a reader, until the first one is attached.
    waits: std::cell::Cell<Option<Presence>>,
    task: JoinHandle<()>,
}

/// What the backend answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Stream,
    Other,
    Panic,
}

/// What a stage starts with.
pub(crate) struct Setup {
    pub(crate) dialect: Dialect,
    pub(crate) heal: HealBounds,
    pub(crate) policy: OrphanPolicy,
    /// The request is known to stream before the head is here.
    pub(crate) known: bool,
    /// Another backend is looked for when the first has failed, and there is none. With a true, somebody calls stop at that
    /// moment.
    pub(crate) looks: Option<bool>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            dialect: Dialect::Generic,
            heal: HealBounds::default(),
            policy: OrphanPolicy::Continue,
            known: false,
            looks: None,
        }
    }
}

/// Bytes of the body, or anything else that reading it can give.
type Fed = Result<Bytes, Read>;

struct Feed {
    reads: mpsc::Receiver<Fed>,
    dropped: Arc<AtomicBool>,
}

impl ByteSource for Feed {
    fn behind(self, ahead: Vec<u8>) -> Self {
        assert!(ahead.is_empty(), "no test reads ahead");
        self
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, take: &mut impl FnMut(&[u8])) -> Poll<Read> {
        match self.reads.poll_recv(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                take(&bytes);
                Poll::Ready(Read::Data)
            }
            Poll::Ready(Some(Err(read))) => Poll::Ready(read),
            // A test that has no more to say leaves the backend silent.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Release);
    }
}

impl Stage {
    /// A candidate that was dispatched; the head has not come yet.
    pub(crate) fn dispatched(setup: Setup, script: impl FnOnce(&Faults)) -> Self {
        let journal = Arc::new(Faulty::new(Memory::default()));
        let faults = journal.faults();
        script(&faults);
        let now = SystemTime::now();
        let id = StreamId::generate(now);
        let window = Window::new(id, Epoch::FIRST, now, WindowConfig::default());
        let spec = Spec {
            id,
            dialect: setup.dialect,
            model: None,
            access: Access::of(&CredentialHeaders::default(), |_| Vec::<&[u8]>::new()),
            policy: setup.policy,
            request_id: "r".to_owned(),
            created: now,
            retry: None,
        };
        let handle = Handle::new(spec, window);
        let counters = Counters::default();
        let registry = Arc::new(Registry::default());
        let shared = Shared {
            journal: journal.clone(),
            registry: Arc::clone(&registry),
            retries: Arc::new(RetryWindow::new(Duration::from_secs(30))),
            limits: Arc::new(Limits {
                heal: setup.heal,
                ..Limits::default()
            }),
            counters: counters.clone(),
        };
        if setup.known {
            let shape = RequestShape {
                stream: true,
                ..RequestShape::default()
            };
            handle.request_seen(shape, [0; 32]);
        }
        let producer = Producer::new(shared, Arc::clone(&handle));
        let (feed, reads) = mpsc::channel(64);
        let (head, reply) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let dropped = Arc::new(AtomicBool::new(false));
        let source = Feed {
            reads,
            dropped: Arc::clone(&dropped),
        };
        let leg = setup.looks.map(|_| nobody::leg());
        let onward = Onward {
            again: None,
            backends: setup.looks.map(|stops| {
                let handle = Arc::clone(&handle);
                Arc::new(Nobody { handle, stops }) as Arc<dyn Backends<Feed>>
            }),
            keep: None,
        };
        let call = async move {
            match reply.await {
                Ok(Reply::Stream) => Answer::Stream {
                    leg,
                    source,
                    head: (),
                    keep: Vec::new(),
                },
                Ok(Reply::Other) => Answer::Other(()),
                Ok(Reply::Panic) | Err(_) => panic!("the call panics, as the test wants it"),
            }
        };
        let waits = std::cell::Cell::new(Some(Presence::new(Arc::clone(&handle))));
        let task = tokio::spawn(producer.run(call, onward, move |answer| {
            drop(tell.send(answer));
        }));
        Self {
            journal,
            faults,
            handle,
            counters,
            registry,
            dropped,
            feed,
            head: Some(head),
            told: Some(told),
            waits,
            task,
        }
    }

    /// A generation that is durable and runs.
    pub(crate) async fn running(setup: Setup) -> Self {
        let mut stage = Self::dispatched(setup, |_| {});
        stage.reply(Reply::Stream);
        assert_eq!(stage.durability().await, Durability::Durable);
        stage
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        self.head.take().expect("one reply").send(reply).unwrap();
    }

    pub(crate) async fn told(&mut self) -> Told<(), ()> {
        soon(self.told.take().expect("told once")).await.unwrap()
    }

    pub(crate) async fn durability(&mut self) -> Durability {
        match self.told().await {
            Told::Streaming((), durability) => durability,
            other => panic!("{other:?}"),
        }
    }

    /// The backend sends one event for each of these texts, all in one read.
    pub(crate) fn events(&self, texts: &[&str]) {
        let bytes: String = texts
            .iter()
            .map(|text| format!("data: {text}\n\n"))
            .collect();
        self.feed
            .try_send(Ok(Bytes::from(bytes)))
            .expect("there is room");
    }

    pub(crate) fn read(&self, read: Read) {
        self.feed.try_send(Err(read)).expect("there is room");
    }

    /// The backend's body ends cleanly.
    pub(crate) fn end(&self) {
        self.read(Read::End);
    }

    pub(crate) fn window(&self) -> &Arc<Window> {
        self.handle.window()
    }

    pub(crate) fn reader(&self) -> Reader {
        self.reader_after(Seq::ZERO)
    }

    pub(crate) fn reader_after(&self, after: Seq) -> Reader {
        let presence = Presence::new(Arc::clone(&self.handle));
        drop(self.waits.take());
        let view = View {
            ids: true,
            control: false,
        };
        Reader(Attached::live(presence, after, view))
    }

    /// Lets the producer do all it can without time passing.
    pub(crate) async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the producer's task is over; gives its panic as an error.
    pub(crate) async fn over(&mut self) -> Result<(), tokio::task::JoinError> {
        soon(&mut self.task).await
    }

    /// What the journal knows of it.
    pub(crate) async fn found(&self) -> Found {
        let found = self.journal.inner();
        found
            .find(self.handle.spec().id, SystemTime::now())
            .await
            .unwrap()
    }

    /// What somebody reads who looks the generation up afterwards.
    pub(crate) async fn later(&self) -> Seen {
        let Found::Here { window, .. } = self.found().await else {
            panic!("it is not there")
        };
        let view = View {
            ids: true,
            control: false,
        };
        let reader = streamweld_journal::Reader::new(window, Seq::ZERO, view);
        Reader(Attached::elsewhere(reader, None)).rest().await
    }
}

/// Fails instead of waiting for ever; long beyond every bound in the product.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(7_200), future)
        .await
        .expect("waited in vain")
}

/// A reader that notes what it is given.
pub(crate) struct Reader(Attached);

/// What a reader was given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The data of each event, and its sequence where it had one.
    pub(crate) events: Vec<(String, Option<u64>)>,
    pub(crate) end: Option<Ended>,
}

/// How a reader's answer ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Terminal {
        kind: Kind,
        code: Option<String>,
        sequenced: bool,
    },
    Closed(Closed),
    Overtaken,
}

impl Reader {
    /// What it is given until it is over.
    pub(crate) async fn rest(mut self) -> Seen {
        let mut seen = Seen::default();
        while seen.end.is_none() {
            soon(self.step(&mut seen)).await;
        }
        seen
    }

    /// What it is given within `time`.
    pub(crate) async fn within(&mut self, time: Duration) -> Seen {
        let mut seen = Seen::default();
        let all = async {
            while seen.end.is_none() {
                self.step(&mut seen).await;
            }
        };
        let _ = timeout(time, all).await;
        seen
    }

    async fn step(&mut self, seen: &mut Seen) {
        match poll_fn(|cx| self.0.poll_next(cx, usize::MAX)).await {
            Step::Run {
                bytes, sequenced, ..
            } => {
                for block in std::str::from_utf8(&bytes)
                    .unwrap()
                    .split_terminator("\n\n")
                {
                    let data = block.lines().find_map(|line| line.strip_prefix("data: "));
                    let id = block.lines().find_map(|line| line.strip_prefix("id: "));
                    let seq = id.map(|id| id.split_once(':').unwrap().1.parse().unwrap());
                    assert_eq!(seq.is_some(), sequenced, "{block}");
                    seen.events.push((data.unwrap().to_owned(), seq));
                }
            }
            Step::End {
                terminal,
                sequenced,
            } => {
                seen.end = Some(Ended::Terminal {
                    kind: terminal.kind,
                    code: terminal.code.clone(),
                    sequenced,
                });
            }
            Step::Closed(why) => seen.end = Some(Ended::Closed(why)),
            Step::Overtaken { .. } => seen.end = Some(Ended::Overtaken),
        }
    }
}

impl Seen {
    /// The texts, in order.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.events.iter().map(|(text, _)| text.as_str()).collect()
    }
}

/// These texts as events with the sequences from 2 on: what stands when everything went well.
pub(crate) fn sequenced(texts: &[&str]) -> Vec<(String, Option<u64>)> {
    (2..)
        .zip(texts)
        .map(|(seq, text)| ((*text).to_owned(), Some(seq)))
        .collect()
}

/// These texts as events without ids.
pub(crate) fn bare(texts: &[&str]) -> Vec<(String, Option<u64>)> {
    texts
        .iter()
        .map(|text| ((*text).to_owned(), None))
        .collect()
}

/// A `done` that is committed.
pub(crate) fn done() -> Option<Ended> {
    terminal(Kind::Done, None, true)
}

pub(crate) fn terminal(kind: Kind, code: Option<&str>, sequenced: bool) -> Option<Ended> {
    Some(Ended::Terminal {
        kind,
        code: code.map(str::to_owned),
        sequenced,
    })
}

//! A window with its readers against a plain list of entries, under random operations.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::cursor::Cursor;

#[derive(Clone, Debug)]
enum Op {
    Stage(Vec<(Kind, usize)>),
    Commit(u8),
    Expose(bool),
    Abandon,
    GiveUp,
    Terminal,
    Close,
    Epoch,
    Read { after: u8, ids: bool, control: bool },
    Poll { reader: u8, max: usize },
    PollAll,
    Leave(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let kind =
        prop_oneof![8 => Just(Kind::Event), 1 => Just(Kind::Warning), 1 => Just(Kind::Migration)];
    let len = prop_oneof![20 => 7..300usize, 3 => 300..3_000usize, 1 => 3_000..40_000usize];
    let max = prop_oneof![1..600usize, Just(4096), Just(1 << 18)];
    prop_oneof![
        12 => prop::collection::vec((kind, len), 1..6).prop_map(Op::Stage),
        12 => any::<u8>().prop_map(Op::Commit),
        2 => any::<bool>().prop_map(Op::Expose),
        1 => Just(Op::Abandon),
        1 => Just(Op::GiveUp),
        1 => Just(Op::Terminal),
        1 => Just(Op::Close),
        1 => Just(Op::Epoch),
        6 => (any::<u8>(), any::<bool>(), any::<bool>()).prop_map(|(after, ids, control)| Op::Read { after, ids, control }),
        20 => (any::<u8>(), max).prop_map(|(reader, max)| Op::Poll { reader, max }),
        6 => Just(Op::PollAll),
        2 => any::<u8>().prop_map(Op::Leave),
    ]
}

struct Entry {
    kind: Kind,
    lines: Vec<u8>,
    epoch: Epoch,
    beside: Vec<u8>,
}

/// The obvious implementation: everything in a list, nothing ever dropped.
struct Model {
    window: Arc<Window>,
    entries: Vec<Entry>,
    committed: usize,
    epoch: Epoch,
    exposed: bool,
    abandoned: bool,
    given_up: bool,
    /// What was beside entries was let go, as nothing is appended any more.
    none_beside: bool,
    closed: bool,
    readers: Vec<Attached>,
    earliest: Seq,
}

struct Attached {
    reader: Reader,
    cursor: usize,
    wakes: Arc<Wakes>,
    /// How often it had been woken when it was last told to wait.
    waits: Option<usize>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a reader has to be given.
#[derive(Debug, PartialEq)]
enum Next {
    Run,
    End { sequenced: bool },
    Overtaken,
    Closed,
    Wait,
}

impl Model {
    fn new(max_bytes: usize) -> Self {
        let mut model = Self {
            window: window(max_bytes),
            entries: Vec::new(),
            committed: 0,
            epoch: Epoch::FIRST,
            exposed: false,
            abandoned: false,
            given_up: false,
            none_beside: false,
            closed: false,
            readers: Vec::new(),
            earliest: Seq::FIRST,
        };
        model.stage(&[(Kind::Open, 200)]);
        model
    }

    fn run(&mut self, ops: Vec<Op>) {
        for (number, op) in ops.into_iter().enumerate() {
            self.apply(op);
            self.check();
            if number % 16 == 0 {
                self.check_facts();
            }
        }
        self.check_facts();
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Stage(entries) if !self.ended() && !self.abandoned => self.stage(&entries),
            Op::Stage(_) => {}
            Op::Commit(part) => {
                let staged = self.entries.len() - self.committed;
                self.committed += (staged * (usize::from(part) + 1)).div_ceil(256).min(staged);
                self.window.commit(Seq::new(self.committed as u64));
            }
            Op::Expose(on) => {
                self.exposed = on;
                self.window.expose(on);
            }
            Op::Abandon => {
                self.abandoned |= self.entries.len() > self.committed;
                self.given_up = false;
                self.entries.truncate(self.committed);
                self.window.abandon();
                self.earliest = self.earliest.min(Seq::new(self.committed as u64 + 1));
            }
            Op::GiveUp => {
                (self.given_up, self.exposed, self.none_beside) = (true, true, true);
                self.window.give_up();
            }
            Op::Terminal if !self.ended() => {
                let (kind, lines) = (Kind::Done, terminal().lines);
                self.entries.push(Entry {
                    kind,
                    lines,
                    epoch: self.epoch,
                    beside: Vec::new(),
                });
                let seq = self.window.stage_terminal(at(1), terminal());
                assert_eq!(seq.get() as usize, self.entries.len());
            }
            Op::Terminal => {}
            Op::Close => {
                self.closed = true;
                self.window.close(Closed::Shutdown);
            }
            Op::Epoch => {
                if self.committed == self.entries.len() {
                    self.epoch = self.epoch.above(0);
                    self.window.begin_epoch(self.epoch);
                }
            }
            Op::Read {
                after,
                ids,
                control,
            } => {
                let cursor = usize::from(after) % (self.committed + 1);
                let reader = Reader::new(
                    Arc::clone(&self.window),
                    Seq::new(cursor as u64),
                    View { ids, control },
                );
                self.readers.push(Attached {
                    reader,
                    cursor,
                    wakes: Arc::default(),
                    waits: None,
                });
            }
            Op::Poll { reader, max } => {
                if !self.readers.is_empty() {
                    self.poll(usize::from(reader) % self.readers.len(), max);
                }
            }
            Op::PollAll => (0..self.readers.len()).for_each(|reader| self.poll(reader, 1 << 18)),
            Op::Leave(reader) => {
                if !self.readers.is_empty() {
                    self.readers
                        .swap_remove(usize::from(reader) % self.readers.len());
                }
            }
        }
    }

    fn stage(&mut self, entries: &[(Kind, usize)]) {
        let mut staging = self.window.stage(at(1));
        for &(kind, len) in entries {
            let mut lines = Vec::new();
            write_line(&mut lines, len);
            let seq = staging.push(kind, |out| out.extend_from_slice(&lines));
            let beside = len.to_be_bytes()[..len % 9].to_vec();
            staging.beside(&beside);
            self.entries.push(Entry {
                kind,
                lines,
                epoch: self.epoch,
                beside,
            });
            assert_eq!(seq.get() as usize, self.entries.len());
        }
    }

    fn poll(&mut self, number: usize, max: usize) {
        let expected = self.next(&self.readers[number]);
        let attached = &mut self.readers[number];
        let waker = Waker::from(Arc::clone(&attached.wakes));
        let step = attached
            .reader
            .poll_next(&mut Context::from_waker(&waker), max);
        attached.waits = None;
        match (expected, step) {
            (
                Next::Run,
                Poll::Ready(Step::Run {
                    bytes,
                    through,
                    sequenced,
                }),
            ) => {
                let (from, to) = (attached.cursor + 1, through.get() as usize);
                attached.cursor = to;
                let view = attached.reader.view();
                self.check_run(from, to, view, &bytes, sequenced, max);
            }
            (
                Next::End { sequenced },
                Poll::Ready(Step::End {
                    terminal,
                    sequenced: told,
                }),
            ) => {
                assert_eq!(told, sequenced);
                assert_eq!(terminal.seq.get() as usize, self.entries.len());
                attached.cursor = self.entries.len();
            }
            (Next::Overtaken, Poll::Ready(Step::Overtaken { earliest })) => {
                assert_eq!(earliest, self.earliest);
            }
            (Next::Closed, Poll::Ready(Step::Closed(Closed::Shutdown))) => {}
            (Next::Wait, Poll::Pending) => {
                attached.waits = Some(attached.wakes.0.load(Ordering::Relaxed));
            }
            (expected, step) => panic!("expected {expected:?}, got {step:?}"),
        }
        let attached = &mut self.readers[number];
        // Waiting or ending may have stepped over hidden entries.
        let moved = attached.reader.cursor().get() as usize;
        let view = attached.reader.view();
        let over = self.entries.get(attached.cursor..moved).unwrap_or_default();
        assert!(over.iter().all(|it| !view.shows(it.kind)));
        attached.cursor = moved;
    }

    fn check_run(
        &self,
        from: usize,
        to: usize,
        view: View,
        bytes: &[u8],
        sequenced: bool,
        max: usize,
    ) {
        assert!(
            to <= if sequenced {
                self.committed
            } else {
                self.entries.len()
            }
        );
        assert!(sequenced || from > self.committed || !view.shows(self.entries[from - 1].kind));
        let mut expected = Vec::new();
        let mut shown = 0;
        let mut stored = 0;
        for seq in from..=to {
            let entry = &self.entries[seq - 1];
            if !view.shows(entry.kind) {
                continue;
            }
            assert_eq!(sequenced, seq <= self.committed, "a run is of one sort");
            shown += 1;
            let cursor = Cursor {
                stream: self.window.id(),
                seq: Seq::new(seq as u64),
                epoch: entry.epoch,
            };
            let id = format!("id: {cursor}\n");
            stored += entry.lines.len() + id.len() + 1;
            expected.extend_from_slice(&entry.lines);
            if view.ids && sequenced {
                expected.extend_from_slice(id.as_bytes());
            }
            expected.push(b'\n');
        }
        assert!(shown >= 1 && (shown == 1 || stored <= max));
        assert_eq!(bytes, expected, "{from} to {to}");
    }

    fn next(&self, attached: &Attached) -> Next {
        let visible = if self.exposed {
            self.entries.len()
        } else {
            self.committed
        };
        let end = self.entries.last().is_some_and(|it| it.kind.is_terminal())
            && visible == self.entries.len();
        let last = if end { visible - 1 } else { visible };
        if attached.cursor < last && attached.cursor + 1 < self.earliest.get() as usize {
            return Next::Overtaken;
        }
        let view = attached.reader.view();
        let rest = self.entries.get(attached.cursor..last).unwrap_or_default();
        if rest.iter().any(|it| view.shows(it.kind)) {
            Next::Run
        } else if end {
            Next::End {
                sequenced: self.committed == visible,
            }
        } else if self.closed {
            Next::Closed
        } else {
            Next::Wait
        }
    }

    fn ended(&self) -> bool {
        self.entries.last().is_some_and(|it| it.kind.is_terminal())
    }

    fn check(&mut self) {
        held::check(&self.window);
        let marks = self.window.marks();
        assert_eq!(marks.received.get() as usize, self.entries.len());
        assert_eq!(marks.committed.get() as usize, self.committed);
        // Which blocks the ring has dropped is the window's own affair, within these bounds.
        let keep = if self.given_up {
            self.entries.len()
        } else {
            self.committed
        };
        assert!(marks.earliest >= self.earliest);
        assert!(marks.earliest.get() as usize <= keep.max(self.committed + 1));
        self.earliest = marks.earliest;
        for attached in &self.readers {
            let Some(waits) = attached.waits else {
                continue;
            };
            let woken = attached.wakes.0.load(Ordering::Relaxed) > waits;
            assert!(
                woken || self.next(attached) == Next::Wait,
                "nobody waits for what is there"
            );
        }
    }

    /// The whole content; too slow to look at after every operation.
    fn check_facts(&self) {
        let first = self.earliest.get() as usize;
        let entries = self.window.entries(Seq::ZERO, usize::MAX);
        assert_eq!(entries.len(), (self.committed + 1).saturating_sub(first));
        for (entry, seq) in entries.iter().zip(first..) {
            assert_eq!(entry.seq.get() as usize, seq);
            assert_eq!(entry.kind, self.entries[seq - 1].kind);
            assert_eq!(entry.lines, self.entries[seq - 1].lines);
        }
        let batch = self.window.staged(Seq::ZERO);
        assert_eq!(batch.through().get() as usize, self.entries.len());
        assert_eq!(
            batch.len(),
            batch.entries.iter().map(|entry| entry.len).sum::<usize>()
        );
        let over = self.ended() && self.committed == self.entries.len();
        let (after, through) = (self.committed / 2, self.entries.len().div_ceil(2));
        for (after, through) in [(0, self.entries.len()), (after, through)] {
            let kept = (after.max(first - 1) + 1..=through).filter(|_| !over && !self.none_beside);
            let expected: Vec<u8> = kept
                .flat_map(|seq| self.entries[seq - 1].beside.clone())
                .collect();
            let (after, through) = (Seq::new(after as u64), Seq::new(through as u64));
            assert_eq!(self.window.staged_through(after, through).beside, expected);
        }
        assert_eq!(
            self.window.terminal().is_some(),
            self.ended() && self.committed == self.entries.len()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(250) })]

    #[test]
    fn readers_see_what_the_list_says(ops in prop::collection::vec(op(), 1..120)) {
        Model::new(64 << 20).run(ops);
    }

    #[test]
    fn readers_are_told_when_the_ring_passes_them(
        max_bytes in 1_000..60_000usize,
        ops in prop::collection::vec(op(), 1..200),
    ) {
        Model::new(max_bytes).run(ops);
    }
}

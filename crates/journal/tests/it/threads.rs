//! One writer and many readers, each on a thread of its own.

use std::sync::Arc;
use std::thread;

use streamweld_journal::{Kind, Reader, Seq, Step, View, Window, WindowConfig};

use crate::story::{Story, at, block_on, text};

const EVENTS: u64 = 20_000;
const READERS: u64 = 8;

/// A small generator, so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Journal {
    Answers,
    /// Comes and goes, so that readers see parts of it without ids.
    Falters,
}

#[test]
fn every_reader_sees_each_event_once_and_in_order() {
    run(Journal::Answers);
}

#[test]
fn so_they_do_while_the_journal_comes_and_goes() {
    run(Journal::Falters);
}

fn run(journal: Journal) {
    let story = Story::with(WindowConfig { max_bytes: 1 << 30 });
    let window = &story.window;
    thread::scope(|scope| {
        for number in 0..READERS {
            scope.spawn(move || read(window, number));
        }
        write(&story, journal);
    });
}

fn write(story: &Story, journal: Journal) {
    let mut random = Random(99);
    let mut event = 0;
    while event < EVENTS {
        let batch = (1 + random.below(5)).min(EVENTS - event);
        let mut staging = story.window.stage(at(1));
        for _ in 0..batch {
            event += 1;
            let filler = "-".repeat(random.below(300) as usize);
            staging.push(Kind::Event, |out| {
                out.extend_from_slice(format!("data: {event} {filler}\n").as_bytes());
            });
            if random.below(50) == 0 {
                staging.push(Kind::Warning, |out| {
                    out.extend_from_slice(b"data: hidden\n");
                });
            }
        }
        drop(staging);
        if journal == Journal::Falters {
            story.window.expose(random.below(3) == 0);
        }
        if journal == Journal::Answers || random.below(3) > 0 {
            story.commit_all();
        }
        if random.below(20) == 0 {
            thread::yield_now();
        }
    }
    story.terminal(Kind::Done, "");
    story.commit_all();
}

fn read(window: &Arc<Window>, number: u64) {
    let mut random = Random(number);
    let view = View {
        ids: number % 2 == 0,
        control: number % 3 == 0,
    };
    let mut reader = Reader::new(Arc::clone(window), Seq::ZERO, view);
    let mut seen = 0;
    loop {
        let max = 1 + random.below(50_000) as usize;
        match block_on(reader.next(max)) {
            Step::Run {
                bytes, sequenced, ..
            } => {
                for block in text(&bytes).split_terminator("\n\n") {
                    assert_eq!(block.contains("\nid: "), view.ids && sequenced);
                    let data = block.strip_prefix("data: ").unwrap_or_default();
                    let Some(event) = data.split(' ').next().and_then(|it| it.parse::<u64>().ok())
                    else {
                        assert!(view.control, "{block}");
                        continue;
                    };
                    seen += 1;
                    assert_eq!(event, seen);
                }
            }
            Step::End {
                terminal,
                sequenced,
            } => {
                assert_eq!(terminal.kind, Kind::Done);
                assert!(sequenced || view == reader.view());
                break;
            }
            other => panic!("{other:?}"),
        }
        if random.below(100) == 0 {
            thread::yield_now();
        }
    }
    assert_eq!(seen, EVENTS);
}

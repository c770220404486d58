//! A window that begins in mid-log reads like the whole log where its journal gives what lies before.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;

use proptest::prelude::*;

use super::mirror::{range, written};
use super::*;
use crate::{Call, Earlier, Gone, Page, Step, View};

/// A journal that has the whole log: pages of so many entries, that begin so far before what is asked for.
struct Log {
    whole: Arc<Window>,
    size: u64,
    back: u64,
    /// What was asked for.
    asked: Mutex<Vec<(u64, u64)>>,
}

impl Log {
    fn of(whole: &Arc<Window>, size: u64, back: u64) -> Arc<Self> {
        Arc::new(Self {
            whole: Arc::clone(whole),
            size,
            back,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<(u64, u64)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Earlier for Log {
    fn page(self: Arc<Self>, after: Seq, through: Seq) -> Call<'static, Page> {
        let (after, through) = (after.get(), through.get());
        self.asked.lock().unwrap().push((after, through));
        let begins = after.saturating_sub(self.back);
        let ends = through.min(after + self.size);
        Call::answered(Page::Here(part(&self.whole, begins, ends)))
    }
}

/// A journal that always answers the same; `None`: not at all.
struct Says(Option<Page>);

impl Earlier for Says {
    fn page(self: Arc<Self>, _: Seq, _: Seq) -> Call<'static, Page> {
        match &self.0 {
            Some(page) => Call::answered(page.clone()),
            None => Call::under_way(std::future::pending()),
        }
    }
}

/// A window with the entries after `after` up to `through`.
fn part(whole: &Window, after: u64, through: u64) -> Arc<Window> {
    let part = window(1 << 20);
    if after > 0 {
        part.begin_after(Seq::new(after));
    }
    range(whole, after, through).show(&part).unwrap();
    part
}

fn whole(events: usize) -> Arc<Window> {
    let whole = written(events);
    whole.commit(whole.received());
    whole
}

const CONTROL: View = View {
    ids: true,
    control: true,
};

/// All that is read from one place, and how it ends; `None` while nothing more comes.
fn read(window: &Arc<Window>, after: u64, view: View, max: usize) -> (String, Option<String>) {
    let mut reader = Reader::new(Arc::clone(window), Seq::new(after), view);
    let mut cx = Context::from_waker(Waker::noop());
    let mut read = Vec::new();
    loop {
        let end = match reader.poll_next(&mut cx, max) {
            Poll::Ready(Step::Run { bytes, through, .. }) => {
                assert_eq!(reader.cursor(), through);
                read.extend_from_slice(&bytes);
                continue;
            }
            Poll::Ready(step) => Some(format!("{step:?}")),
            Poll::Pending => None,
        };
        return (String::from_utf8(read).unwrap(), end);
    }
}

#[test]
fn a_window_may_begin_anywhere() {
    let whole = whole(20);
    let late = part(&whole, 9, 15);
    let marks = late.marks();
    assert_eq!(
        (marks.earliest, marks.committed),
        (Seq::new(10), Seq::new(15))
    );
    assert_eq!(late.digest(Seq::new(10)), whole.digest(Seq::new(10)));
    assert_eq!(late.digest(Seq::new(9)), None);
    assert_eq!(late.entries(Seq::ZERO, 99), whole.entries(Seq::new(9), 6));
    assert_eq!(range(&whole, 12, 22).show(&late), Ok(Seq::new(22)));
    assert_eq!(read(&late, 9, CONTROL, 99), read(&whole, 9, CONTROL, 99));
    held::check(&late);
}

#[test]
#[should_panic(expected = "has begun")]
fn what_has_begun_does_not_begin_again() {
    part(&whole(5), 0, 3).begin_after(Seq::new(9));
}

#[test]
fn with_nothing_before_it_a_reader_is_told() {
    let late = part(&whole(20), 9, 22);
    let (read, end) = read(&late, 3, CONTROL, 99);
    assert_eq!(read, "");
    assert_eq!(end.as_deref(), Some("Overtaken { earliest: Seq(10) }"));
}

#[test]
fn a_page_is_asked_for_when_the_one_before_is_read() {
    let whole = whole(40);
    let (late, log) = (part(&whole, 30, 35), Log::of(&whole, 10, 3));
    late.set_earlier(log.clone());
    let mut reader = Reader::new(Arc::clone(&late), Seq::new(5), CONTROL);
    let mut cx = Context::from_waker(Waker::noop());
    // Fifteen bytes are one entry, at the most.
    for entry in 0..10 {
        assert!(reader.poll_next(&mut cx, 15).is_ready());
        assert_eq!(log.asked(), [(5, 35)], "after {entry} entries more");
    }
    assert!(reader.poll_next(&mut cx, 15).is_ready());
    assert_eq!(log.asked(), [(5, 35), (15, 35)]);
    // Ten a time up to 35: then it has joined, and waits with the others.
    while reader.poll_next(&mut cx, 15).is_ready() {}
    assert_eq!(reader.cursor(), Seq::new(35));
    assert_eq!(log.asked(), [(5, 35), (15, 35), (25, 35)]);
}

#[test]
fn nothing_is_asked_for_that_is_at_hand_or_not_committed() {
    let whole = whole(20);
    let (late, log) = (part(&whole, 9, 15), Log::of(&whole, 10, 0));
    late.set_earlier(log.clone());
    assert_eq!(read(&late, 9, CONTROL, 99).1, None);
    assert_eq!(read(&late, 15, CONTROL, 99).1, None);
    // Where readers see what is not committed, what the ring has let go of that is nowhere.
    let ring = window(1 << 10);
    ring.set_earlier(log.clone());
    stage(&ring, Kind::Open, 20);
    ring.commit(Seq::FIRST);
    ring.give_up();
    for _ in 0..50 {
        stage(&ring, Kind::Event, 200);
    }
    assert!(ring.earliest() > Seq::new(2));
    let end = read(&ring, 1, CONTROL, 99).1.unwrap();
    assert!(end.starts_with("Overtaken"), "{end}");
    assert_eq!(log.asked(), []);
}

#[test]
fn what_is_gone_is_told_and_not_asked_for_for_ever() {
    let whole = whole(20);
    let gone = |earliest| Some(Page::Gone { earliest });
    let cases = [
        (gone(None), 16),
        (gone(Some(Seq::new(12))), 12),
        // No page holds what was asked for.
        (Some(Page::Here(part(&whole, 12, 14))), 13),
        (Some(Page::Here(part(&whole, 0, 5))), 16),
        (Some(Page::Here(window(99))), 16),
    ];
    for (page, earliest) in cases {
        let late = part(&whole, 15, 22);
        late.set_earlier(Arc::new(Says(page)));
        let (read, end) = read(&late, 5, CONTROL, 99);
        assert_eq!(read, "");
        let expected = format!("Overtaken {{ earliest: Seq({earliest}) }}");
        assert_eq!(end, Some(expected));
        let mut reader = Reader::new(late, Seq::new(5), CONTROL);
        let mut cx = Context::from_waker(Waker::noop());
        let earliest = Seq::new(earliest);
        let prepared = pin!(reader.prepare()).poll(&mut cx);
        assert_eq!(prepared, Poll::Ready(Err(Gone { earliest })));
    }
}

#[test]
fn a_reader_waits_for_its_page_and_no_other_does() {
    let whole = whole(20);
    let late = part(&whole, 15, 22);
    late.set_earlier(Arc::new(Says(None)));
    assert_eq!(read(&late, 5, CONTROL, 99), (String::new(), None));
    let mut reader = Reader::new(Arc::clone(&late), Seq::new(5), CONTROL);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(reader.prepare()).poll(&mut cx).is_pending());
    assert_eq!(read(&late, 15, CONTROL, 99), read(&whole, 15, CONTROL, 99));
}

#[test]
fn what_is_left_to_show_is_known_behind_a_page_as_well() {
    let plain = View {
        ids: true,
        control: false,
    };
    // `open` and the terminal: nothing that a plain reader is shown, wherever the window begins.
    let (bare, full) = (whole(0), whole(3));
    for (whole, after, shown) in [(&bare, 0, false), (&full, 0, true), (&full, 3, true)] {
        let last = whole.committed().get();
        let late = part(whole, last - 1, last);
        late.set_earlier(Log::of(whole, 1, 0));
        let mut reader = Reader::new(late, Seq::new(after), plain);
        let mut cx = Context::from_waker(Waker::noop());
        let prepared = pin!(reader.prepare()).poll(&mut cx);
        assert_eq!(prepared, Poll::Ready(Ok(())));
        assert_eq!(reader.has_more_to_show(), shown, "{last} after {after}");
        assert_eq!(whole.has_more_to_show(Seq::new(after), plain), shown);
    }
}

proptest! {
    /// Any part of a log, with pages of any size before it, reads like the log: from every place and for every view.
    #[test]
    fn a_part_with_its_pages_reads_like_the_whole(
        events in 0usize..40, begins in any::<prop::sample::Index>(), ends in any::<prop::sample::Index>(),
        size in 1u64..12, back in 0u64..6, after in any::<prop::sample::Index>(), max in 1usize..2000,
        ids in any::<bool>(), control in any::<bool>(),
    ) {
        let whole = whole(events);
        let last = events as u64 + 2;
        let ends = 1 + ends.index(last as usize) as u64;
        let begins = begins.index(ends as usize) as u64;
        let after = after.index(ends as usize + 1) as u64;
        let late = part(&whole, begins, ends);
        late.set_earlier(Log::of(&whole, size, back));
        let short = part(&whole, 0, ends);
        let view = View { ids, control };
        prop_assert_eq!(read(&late, after, view, max), read(&short, after, view, max));
    }

    /// A ring that turns over while a slow reader reads: it is given everything once, in order.
    #[test]
    fn a_slow_reader_of_a_small_ring_is_given_everything(
        steps in prop::collection::vec((0usize..8, 0usize..4), 1..40), size in 1u64..30, max in 1usize..3000,
    ) {
        let (ring, whole) = (window(2 << 10), window(1 << 20));
        ring.set_earlier(Log::of(&whole, size, 2));
        let mut reader = Reader::new(Arc::clone(&ring), Seq::ZERO, CONTROL);
        let mut cx = Context::from_waker(Waker::noop());
        let mut given = Vec::new();
        let mut read = |most: usize| {
            for _ in 0..most {
                match reader.poll_next(&mut cx, max) {
                    Poll::Ready(Step::Run { bytes, .. }) => given.extend_from_slice(&bytes),
                    Poll::Ready(step) => panic!("{step:?}"),
                    Poll::Pending => break,
                }
            }
        };
        for (number, (events, reads)) in steps.into_iter().enumerate() {
            for window in [&whole, &ring] {
                if number == 0 {
                    stage(window, Kind::Open, 20);
                }
                for _ in 0..events {
                    stage(window, Kind::Event, 150 + number);
                }
                window.commit(window.received());
            }
            read(reads);
        }
        read(usize::MAX);
        let all = whole.staged(Seq::ZERO).runs.concat();
        prop_assert_eq!(given, all);
    }
}

//! A window that is filled from elsewhere reads like the one it comes from, and takes nothing that would not.

use proptest::prelude::*;

use super::*;
use crate::Terminal;
use crate::window::{Batch, Entry, MirrorError, Mirrored};

/// A range as it travels: one epoch, all bytes in one piece.
#[derive(Clone, Debug)]
pub(super) struct Range {
    epoch: Epoch,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    terminal: Option<Terminal>,
}

impl Range {
    fn of(batch: &Batch, epoch: Epoch) -> Self {
        Self {
            epoch,
            entries: batch.entries.clone(),
            bytes: batch.runs.concat(),
            terminal: batch.terminal.as_deref().cloned(),
        }
    }

    pub(super) fn show(&self, window: &Window) -> Result<Seq, MirrorError> {
        window.mirror(&self.mirrored())
    }

    pub(super) fn foresee(&self, window: &Window) -> Result<Seq, MirrorError> {
        window.foresee(&self.mirrored())
    }

    fn mirrored(&self) -> Mirrored<'_> {
        Mirrored {
            epoch: self.epoch,
            entries: &self.entries,
            bytes: &self.bytes,
            terminal: self.terminal.as_ref(),
        }
    }
}

/// A log of so many events between its opening and its end.
pub(super) fn written(events: usize) -> Arc<Window> {
    let window = window(1 << 20);
    stage(&window, Kind::Open, 20);
    for event in 0..events {
        stage(&window, Kind::Event, 10 + event * 7);
    }
    window.stage_terminal(at(9), terminal());
    window
}

pub(super) fn range(window: &Window, after: u64, through: u64) -> Range {
    let batch = window.staged_through(Seq::new(after), Seq::new(through));
    Range::of(&batch, window.epoch())
}

pub(super) fn read(window: &Arc<Window>) -> String {
    let view = View {
        ids: true,
        control: true,
    };
    let mut reader = Reader::new(Arc::clone(window), Seq::ZERO, view);
    let mut cx = Context::from_waker(Waker::noop());
    let mut read = Vec::new();
    loop {
        match reader.poll_next(&mut cx, 1 << 20) {
            Poll::Ready(Step::Run { bytes, .. }) => read.extend_from_slice(&bytes),
            Poll::Ready(step) => return format!("{}{step:?}", String::from_utf8_lossy(&read)),
            Poll::Pending => return String::from_utf8(read).unwrap(),
        }
    }
}

#[test]
fn what_is_mirrored_reads_like_what_was_written() {
    let (writer, follower) = (written(40), window(1 << 20));
    for (after, through) in [(0, 1), (1, 9), (9, 10), (10, 42)] {
        assert_eq!(
            range(&writer, after, through).show(&follower),
            Ok(Seq::new(through))
        );
    }
    writer.commit(writer.received());
    assert_eq!(read(&follower), read(&writer));
    assert_eq!(follower.terminal(), writer.terminal());
    assert_eq!(follower.time_of(Seq::new(3)), writer.time_of(Seq::new(3)));
    assert_eq!(follower.digest(Seq::new(41)), writer.digest(Seq::new(41)));
}

#[test]
fn ranges_may_overlap_and_come_again() {
    let (writer, follower) = (written(8), window(1 << 20));
    for (after, through, last) in [(0, 4, 4), (0, 2, 4), (2, 6, 6), (0, 10, 10), (3, 10, 10)] {
        assert_eq!(
            range(&writer, after, through).show(&follower),
            Ok(Seq::new(last))
        );
    }
    writer.commit(writer.received());
    assert_eq!(read(&follower), read(&writer));
}

#[test]
fn a_gap_is_told_and_nothing_is_taken() {
    let (writer, follower) = (written(8), window(1 << 20));
    range(&writer, 0, 3).show(&follower).unwrap();
    let expected = Seq::new(4);
    assert_eq!(
        range(&writer, 4, 6).show(&follower),
        Err(MirrorError::Gap { expected })
    );
    assert_eq!(follower.committed(), Seq::new(3));
    assert_eq!(range(&writer, 3, 6).show(&follower), Ok(Seq::new(6)));
}

#[test]
fn a_later_writer_goes_on_and_an_older_one_does_not() {
    let (writer, follower) = (window(1 << 20), window(1 << 20));
    stage(&writer, Kind::Open, 20);
    stage(&writer, Kind::Event, 20);
    writer.commit(writer.received());
    let first = range(&writer, 0, 2);
    writer.begin_epoch(Epoch::FIRST.above(0));
    stage(&writer, Kind::Event, 30);
    writer.commit(writer.received());
    first.show(&follower).unwrap();
    assert_eq!(range(&writer, 2, 3).show(&follower), Ok(Seq::new(3)));
    assert_eq!(read(&follower), read(&writer));

    let other = written(8);
    assert_eq!(
        range(&other, 3, 5).show(&follower),
        Err(MirrorError::Foreign)
    );
}

#[test]
fn nothing_follows_a_terminal() {
    let (writer, follower) = (written(1), window(1 << 20));
    range(&writer, 0, 3).show(&follower).unwrap();
    let longer = written(5);
    assert_eq!(
        range(&longer, 3, 4).show(&follower),
        Err(MirrorError::Foreign)
    );
}

#[test]
fn readers_that_wait_are_woken() {
    let (writer, follower) = (written(1), window(1 << 20));
    let mut reader = Reader::new(
        Arc::clone(&follower),
        Seq::ZERO,
        View {
            ids: true,
            control: false,
        },
    );
    let woken = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(
        reader
            .poll_next(&mut Context::from_waker(&waker), 99)
            .is_pending()
    );
    range(&writer, 0, 2).show(&follower).unwrap();
    assert_eq!(woken.0.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[derive(Default)]
struct Counter(std::sync::atomic::AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

proptest! {
    /// Whatever was done to a range on its way: it is refused, or it is harmless to read.
    #[test]
    fn a_damaged_range_is_refused_or_reads_whole(
        at_byte in any::<prop::sample::Index>(), byte in any::<u8>(),
        at_entry in any::<prop::sample::Index>(), len in 0usize..200, seq in 0u64..12, kind in 0usize..7,
        damage in 0u8..6,
    ) {
        let (writer, follower) = (written(6), window(1 << 20));
        let mut range = range(&writer, 0, 8);
        let entry = at_entry.index(range.entries.len());
        match damage {
            0 => { let at = at_byte.index(range.bytes.len()); range.bytes[at] = byte; }
            1 => range.entries[entry].len = len,
            2 => range.entries[entry].seq = Seq::new(seq),
            3 => range.entries[entry].kind = Kind::ALL[kind],
            4 => range.terminal = None,
            _ => { range.entries.remove(entry); }
        }
        if let Ok(last) = range.show(&follower) {
            prop_assert_eq!(last, Seq::new(8));
            read(&follower);
            for view in [View { ids: false, control: true }, View { ids: true, control: false }] {
                let mut reader = Reader::new(Arc::clone(&follower), Seq::new(3), view);
                let _ = reader.poll_next(&mut Context::from_waker(Waker::noop()), 7);
            }
        } else {
            prop_assert_eq!(follower.received(), Seq::ZERO);
        }
    }
}

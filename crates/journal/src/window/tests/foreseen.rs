//! What a writer has shown and may not stand is shown without ids, and is what stands afterwards or is given up.

use proptest::prelude::*;

use super::mirror::{range, read, written};
use super::*;
use crate::window::MirrorError;

const ALL: View = View {
    ids: true,
    control: true,
};

/// What a reader is given until it has to wait: each run, and whether it has ids.
fn runs(reader: &mut Reader) -> Vec<(String, bool)> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut runs = Vec::new();
    while let Poll::Ready(step) = reader.poll_next(&mut cx, 1 << 20) {
        match step {
            Step::Run {
                bytes, sequenced, ..
            } => runs.push((String::from_utf8(bytes.to_vec()).unwrap(), sequenced)),
            Step::End { sequenced, .. } => {
                runs.push(("the end".to_owned(), sequenced));
                break;
            }
            step => panic!("{step:?}"),
        }
    }
    runs
}

fn sequenced(runs: &[(String, bool)]) -> Vec<bool> {
    runs.iter().map(|(_, sequenced)| *sequenced).collect()
}

#[test]
fn it_is_shown_without_ids_and_not_again_under_them() {
    let (writer, follower) = (written(6), window(1 << 20));
    range(&writer, 0, 3).show(&follower).unwrap();
    let mut reader = Reader::new(Arc::clone(&follower), Seq::ZERO, ALL);
    assert_eq!(sequenced(&runs(&mut reader)), [true]);
    assert_eq!(range(&writer, 3, 5).foresee(&follower), Ok(Seq::new(5)));
    let shown = runs(&mut reader);
    assert_eq!(sequenced(&shown), [false]);
    assert!(!shown[0].0.contains("id:"), "{shown:?}");
    assert_eq!((follower.committed(), reader.place()), (Seq::new(3), None));
    // A part of it stands, then all and more.
    assert_eq!(range(&writer, 3, 4).show(&follower), Ok(Seq::new(4)));
    assert_eq!(follower.committed(), Seq::new(4));
    assert_eq!(range(&writer, 2, 7).show(&follower), Ok(Seq::new(7)));
    let after = runs(&mut reader);
    assert_eq!(sequenced(&after), [true]);
    assert!(after[0].0.ends_with(":7\n\n"), "{after:?}");
    assert!(!after[0].0.contains(":5\n"), "{after:?}");
    // Whoever comes now sees nothing of that.
    let mut late = Reader::new(Arc::clone(&follower), Seq::ZERO, ALL);
    let all = runs(&mut late);
    assert_eq!(all.iter().map(|it| it.1).collect::<Vec<_>>(), [true]);
}

#[test]
fn an_end_is_shown_as_it_comes_and_stands_later() {
    let (writer, follower) = (written(3), window(1 << 20));
    range(&writer, 0, 2).show(&follower).unwrap();
    let mut reader = Reader::new(Arc::clone(&follower), Seq::new(2), ALL);
    range(&writer, 2, 5).foresee(&follower).unwrap();
    assert_eq!(sequenced(&runs(&mut reader)), [false, false]);
    assert_eq!(follower.terminal(), None);
    assert_eq!(range(&writer, 0, 5).show(&follower), Ok(Seq::new(5)));
    writer.commit(writer.received());
    assert_eq!(follower.terminal(), writer.terminal());
    follower.expose(false);
    assert_eq!(read(&follower), read(&writer));
}

#[test]
fn what_stands_otherwise_is_told() {
    let (writer, other, follower) = (written(6), written(2), window(1 << 20));
    range(&writer, 0, 3).show(&follower).unwrap();
    range(&writer, 3, 6).foresee(&follower).unwrap();
    // Another end, another event, and another writer.
    assert_eq!(
        range(&other, 3, 4).show(&follower),
        Err(MirrorError::Replaced)
    );
    let later = window(1 << 20);
    later.begin_after(Seq::new(3));
    later.begin_epoch(Epoch::new(9).unwrap());
    for len in [31, 38] {
        stage(&later, Kind::Event, len);
    }
    assert_eq!(
        range(&later, 3, 5).show(&follower),
        Err(MirrorError::Replaced)
    );
    let behind = window(1 << 20);
    behind.begin_after(Seq::new(6));
    behind.begin_epoch(Epoch::new(9).unwrap());
    stage(&behind, Kind::Event, 20);
    assert_eq!(
        range(&behind, 6, 7).show(&follower),
        Err(MirrorError::Replaced)
    );
    let marks = follower.marks();
    assert_eq!(
        (marks.committed, marks.received),
        (Seq::new(3), Seq::new(6))
    );
    // The very same are taken still.
    assert_eq!(range(&writer, 3, 6).show(&follower), Ok(Seq::new(6)));
}

#[test]
fn a_gap_is_told_here_too() {
    let (writer, follower) = (written(6), window(1 << 20));
    range(&writer, 0, 2).show(&follower).unwrap();
    let expected = Seq::new(3);
    assert_eq!(
        range(&writer, 3, 5).foresee(&follower),
        Err(MirrorError::Gap { expected })
    );
}

#[test]
fn beyond_what_may_be_held_it_is_shown_and_let_go() {
    let (writer, follower) = (written(60), window(1 << 10));
    range(&writer, 0, 2).show(&follower).unwrap();
    let mut reader = Reader::new(Arc::clone(&follower), Seq::new(2), ALL);
    for through in 3..=40 {
        range(&writer, through - 1, through)
            .foresee(&follower)
            .unwrap();
        follower.give_up();
        assert_eq!(sequenced(&runs(&mut reader)), [false], "{through}");
    }
    assert!(follower.held() < 8 << 10, "{}", follower.held());
    // It cannot be compared any more.
    assert_eq!(
        range(&writer, 2, 4).show(&follower),
        Err(MirrorError::Replaced)
    );
}

proptest! {
    /// However it comes, a reader that was there sees all of it once, and one that comes later what stands.
    #[test]
    fn whatever_was_foreseen_reads_like_what_was_written(
        steps in prop::collection::vec((any::<bool>(), 1u64..6), 1..40),
    ) {
        let (writer, follower) = (written(20), window(1 << 20));
        let last = writer.received().get();
        let mut live = Reader::new(Arc::clone(&follower), Seq::ZERO, View { ids: false, control: true });
        let mut seen = String::new();
        let mut at = [0; 2];
        let end = [(true, last)];
        for (stands, count) in steps.into_iter().chain(end) {
            let from = at[usize::from(stands)];
            let through = (from + count).min(last);
            let part = range(&writer, from, through);
            let here = if stands { part.show(&follower) } else { part.foresee(&follower) };
            // A gap: more stands than was foreseen, or the other way round.
            if here.is_ok() {
                at[usize::from(stands)] = through;
                at[0] = at[0].max(at[1]);
            }
            for (run, _) in runs(&mut live) {
                seen += &run;
            }
        }
        prop_assert_eq!(follower.committed().get(), last);
        follower.expose(false);
        writer.commit(writer.received());
        prop_assert_eq!(read(&follower), read(&writer));
        let mut whole = Reader::new(Arc::clone(&writer), Seq::ZERO, View { ids: false, control: true });
        let whole: String = runs(&mut whole).into_iter().map(|it| it.0).collect();
        let once = seen.replacen("the end", "", seen.matches("the end").count() - 1);
        prop_assert_eq!(once, whole);
    }
}

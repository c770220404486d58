//! What a window says that it holds is what it holds.

use super::*;

/// The running count against the slow one.
#[track_caller]
pub(super) fn check(window: &Window) {
    let state = window.lock();
    assert_eq!(state.held(), state.recount());
}

#[test]
fn an_empty_window_is_small() {
    let held = window(1 << 20).held();
    assert!(held <= 400, "{held} bytes");
}

#[test]
fn an_idle_stream_holds_one_small_block() {
    let window = window(1 << 20);
    stage(&window, Kind::Open, 300);
    stage(&window, Kind::Event, 241);
    window.commit(window.received());
    let held = window.held();
    assert!(held < 400 + 1024 + 64, "{held} bytes");
}

#[test]
fn a_long_stream_costs_little_more_than_its_bytes() {
    const EVENTS: usize = 10_000;
    let window = window(64 << 20);
    stage(&window, Kind::Open, 300);
    for _ in 0..EVENTS {
        stage(&window, Kind::Event, 241);
    }
    window.stage_terminal(at(2), terminal());
    window.commit(window.received());
    let stored = window.staged(Seq::ZERO).len();
    let held = window.held();
    // 8 bytes of index per entry; blocks are exact.
    assert!(held < stored + EVENTS * 8 + 8 * 1024, "{held} for {stored}");
    check(&window);
}

#[test]
fn a_terminal_gives_back_what_the_last_block_had_to_spare() {
    let window = window(64 << 20);
    stage(&window, Kind::Open, 300);
    for _ in 0..2_000 {
        stage(&window, Kind::Event, 241);
    }
    let before = window.held();
    window.stage_terminal(at(2), terminal());
    let after = window.held();
    assert!(after < before, "{before} then {after}");
    assert!(after < window.staged(Seq::ZERO).len() + 2_002 * 8 + 4096);
}

#[test]
fn an_entry_larger_than_a_block_is_held_at_its_size() {
    for before in [0, 1, 50] {
        let window = window(64 << 20);
        stage(&window, Kind::Open, 20);
        for _ in 0..before {
            stage(&window, Kind::Event, 241);
        }
        stage(&window, Kind::Event, 5_000_000);
        let held = window.held();
        assert!(held < 5_000_000 + 100_000, "{held}");
        stage(&window, Kind::Event, 241);
        check(&window);
    }
}

#[test]
fn a_meter_follows_every_change() {
    let meter = Arc::new(Meter::default());
    let window = window(100_000);
    stage(&window, Kind::Open, 20);
    window.charge_to(Some(Arc::clone(&meter)));
    let same = |window: &Window| assert_eq!(meter.bytes(), window.held());
    same(&window);
    for len in [10, 1_000, 100, 300_000, 20, 7_000, 7_000, 7_000] {
        stage(&window, Kind::Event, len);
        same(&window);
    }
    window.set_label(Bytes::from(vec![0; 1234]));
    same(&window);
    window.commit(Seq::new(6));
    same(&window);
    assert!(window.earliest() > Seq::FIRST, "the ring has turned");
    window.abandon();
    same(&window);
    window.stage_terminal(at(9), terminal());
    same(&window);
    window.charge_to(None);
    assert_eq!(meter.bytes(), 0);
    window.charge_to(Some(Arc::clone(&meter)));
    same(&window);
    drop(window);
    assert_eq!(meter.bytes(), 0);
}

#[test]
fn a_writer_that_panics_leaves_nothing_behind() {
    let window = window(1 << 20);
    stage(&window, Kind::Open, 20);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        window.stage(at(1)).push(Kind::Event, |out| {
            out.extend_from_slice(b"data: half");
            panic!("on purpose");
        })
    }));
    assert!(broken.is_err());
    assert_eq!(stage(&window, Kind::Event, 30), Seq::new(2));
    window.commit(Seq::new(2));
    let entries = window.entries(Seq::FIRST, 9);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].lines.len(), 30);
}

#[test]
fn shared_copies_do_not_stay_in_an_idle_window() {
    let window = window(1 << 20);
    stage(&window, Kind::Open, 20);
    window.commit(Seq::FIRST);
    let view = View {
        ids: true,
        control: false,
    };
    let mut readers: Vec<Reader> = (0..5)
        .map(|_| Reader::new(Arc::clone(&window), Seq::ZERO, view))
        .collect();
    let cx = &mut Context::from_waker(Waker::noop());
    for reader in &mut readers {
        assert!(reader.poll_next(cx, 1 << 18).is_pending());
    }
    stage(&window, Kind::Event, 241);
    window.commit(Seq::new(2));
    let mut given = Vec::new();
    for reader in &mut readers {
        let Poll::Ready(Step::Run { bytes, .. }) = reader.poll_next(cx, 1 << 18) else {
            panic!("a run")
        };
        given.push(bytes.as_ptr());
    }
    assert!(
        given.windows(2).all(|pair| pair[0] == pair[1]),
        "one allocation for all of them"
    );
    assert!(window.lock().copies.is_empty());
}

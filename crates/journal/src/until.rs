//! Waiting for a window to come to a place, without reading it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::{Reader, Step, View, Window};

/// Waits until this holds of a window, or nothing more will come. It is looked at whenever something is committed, and
/// nothing is read for it.
///
/// # Cancel safety
/// Dropping the future loses nothing.
pub async fn window_until(window: &Arc<Window>, holds: impl Fn(&Window) -> bool) {
    let view = View {
        ids: true,
        control: true,
    };
    // One reader, which goes past what is shown and not committed: a new one would be given that again and again.
    let mut reader = Reader::new(Arc::clone(window), window.committed(), view);
    let ended = |reader: &mut Reader, cx: &mut Context<'_>| loop {
        match ready!(reader.poll_next(cx, usize::MAX)) {
            Step::Run { .. } => {}
            // What comes is not looked at, and need not be there any more.
            Step::Overtaken { .. } => {
                *reader = Reader::new(Arc::clone(window), window.committed(), view);
            }
            Step::End { .. } | Step::Closed(_) => return Poll::Ready(()),
        }
    };
    // Each commit wakes it, whether or not there is more to read with it.
    poll_fn(|cx| {
        let over = ended(&mut reader, cx);
        if holds(window) { Poll::Ready(()) } else { over }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
    use std::time::SystemTime;

    use super::*;
    use crate::{Closed, Epoch, Kind, Seq, StreamId, WindowConfig};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn window() -> Arc<Window> {
        let now = SystemTime::now();
        let id = StreamId::generate(now);
        let window = Window::new(id, Epoch::FIRST, now, WindowConfig::default());
        window.stage(now).push(Kind::Open, |_| {});
        window.commit(Seq::FIRST);
        window
    }

    fn stage(window: &Window) -> Seq {
        let data = |out: &mut Vec<u8>| out.extend_from_slice(b"data: a\n");
        window.stage(SystemTime::now()).push(Kind::Event, data);
        window.received()
    }

    /// Waits for the second entry; is woken by each of these and ready after the last.
    #[track_caller]
    fn check(window: &Arc<Window>, happens: &[&dyn Fn(&Window)]) {
        let second = Seq::FIRST.next();
        let mut wait = pin!(window_until(window, |window| window.committed() >= second));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        for (at, happen) in happens.iter().enumerate() {
            assert!(wait.as_mut().poll(&mut cx).is_pending(), "before {at}");
            let before = woken.0.load(Ordering::Relaxed);
            happen(window);
            assert!(woken.0.load(Ordering::Relaxed) > before, "woken by {at}");
        }
        assert!(wait.as_mut().poll(&mut cx).is_ready());
    }

    #[test]
    fn it_ends_with_what_is_waited_for() {
        check(&window(), &[&|window| window.commit(stage(window))]);
    }

    #[test]
    fn it_ends_with_the_window() {
        check(&window(), &[&|window| window.close(Closed::Failed)]);
    }

    /// A new reader for each look was given what is shown without ids at once, each time, and never let go of its
    /// thread.
    #[test]
    fn what_is_shown_and_not_committed_is_waited_for() {
        let window = window();
        let second = stage(&window);
        let show = |window: &Window| window.expose(true);
        let heal = |window: &Window| {
            window.expose(false);
            window.commit(second);
        };
        check(&window, &[&show, &heal]);
        let shown = self::window();
        stage(&shown);
        shown.expose(true);
        check(&shown, &[&heal]);
    }
}

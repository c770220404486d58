//! Remembers that a socket had nothing to read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Spares asking a socket that has said it would wake the task.
///
/// The HTTP implementation asks for what a client sends each time it is polled, which on a stream is once for every
/// event, and a client that reads sends nothing. The runtime registers the waker anew each time. Here the runtime is
/// given a waker of ours, which notes that it was used; until it was, there is nothing to ask for.
#[derive(Debug, Default)]
pub(super) struct Idle {
    bell: Option<(Arc<Bell>, Waker)>,
}

#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Waker>,
}

impl Idle {
    /// Polls `ask` if it may have something to say.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        ask: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let (bell, waker) = self.bell.get_or_insert_with(|| {
            let bell = Arc::new(Bell {
                rung: AtomicBool::new(true),
                task: Mutex::new(cx.waker().clone()),
            });
            (Arc::clone(&bell), bell.into())
        });
        let moved = bell.follow(cx.waker());
        // Read first: on a stream it is never set.
        let rung = bell.rung.load(Ordering::Acquire) && bell.rung.swap(false, Ordering::AcqRel);
        if !rung && !moved {
            return Poll::Pending;
        }
        let asked = ask(&mut Context::from_waker(waker));
        if asked.is_ready() {
            // Nobody was promised a wake-up.
            bell.rung.store(true, Ordering::Release);
        }
        asked
    }
}

impl Bell {
    /// Wakes this task from now on. Whether it was another one before.
    fn follow(&self, waker: &Waker) -> bool {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.will_wake(waker) {
            return false;
        }
        let before = std::mem::replace(&mut *task, waker.clone());
        drop(task);
        // Foreign code may run when a waker is dropped, so it is not dropped under the lock.
        drop(before);
        true
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A task that counts how often it is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A socket without anything to read: remembers whom it will wake, and how often it was asked.
    #[derive(Default)]
    struct Socket {
        asked: usize,
        wakes: Option<Waker>,
    }

    impl Socket {
        fn ask(&mut self, cx: &mut Context<'_>) -> Poll<u8> {
            self.asked += 1;
            self.wakes = Some(cx.waker().clone());
            Poll::Pending
        }

        fn ring(&mut self) {
            self.wakes.take().expect("somebody waits").wake();
        }
    }

    #[test]
    fn a_socket_is_asked_again_only_after_it_woke_the_task() {
        let (mut idle, mut socket, task) = (
            Idle::default(),
            Socket::default(),
            Arc::new(Task::default()),
        );
        let waker = Waker::from(Arc::clone(&task));
        let cx = &mut Context::from_waker(&waker);
        for _ in 0..3 {
            assert!(idle.poll(cx, |cx| socket.ask(cx)).is_pending());
        }
        assert_eq!(socket.asked, 1);
        socket.ring();
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        assert!(idle.poll(cx, |cx| socket.ask(cx)).is_pending());
        assert_eq!(socket.asked, 2);
    }

    #[test]
    fn a_wake_up_in_mid_question_is_not_lost() {
        let (mut idle, mut socket) = (Idle::default(), Socket::default());
        let cx = &mut Context::from_waker(Waker::noop());
        let asked = idle.poll(cx, |cx| {
            let asked = socket.ask(cx);
            socket.ring();
            asked
        });
        assert!(asked.is_pending());
        assert_eq!(idle.poll(cx, |_| Poll::Ready(7)), Poll::Ready(7));
    }

    #[test]
    fn what_is_there_is_asked_for_on_and_on() {
        let mut idle = Idle::default();
        let cx = &mut Context::from_waker(Waker::noop());
        for byte in 0..3 {
            assert_eq!(idle.poll(cx, |_| Poll::Ready(byte)), Poll::Ready(byte));
        }
    }

    #[test]
    fn another_task_that_polls_is_the_one_that_is_woken() {
        let (mut idle, mut socket) = (Idle::default(), Socket::default());
        let (first, second) = (Arc::new(Task::default()), Arc::new(Task::default()));
        for task in [&first, &second] {
            let waker = Waker::from(Arc::clone(task));
            let polled = idle.poll(&mut Context::from_waker(&waker), |cx| socket.ask(cx));
            assert!(polled.is_pending());
        }
        socket.ring();
        assert_eq!(first.0.load(Ordering::SeqCst), 0);
        assert_eq!(second.0.load(Ordering::SeqCst), 1);
    }
}

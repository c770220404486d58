//! What all followers show without ids is bounded, as it is for those who write.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use streamweld_journal::Window;

/// Bytes of all followers together.
#[derive(Clone, Default)]
pub(super) struct Total(Arc<AtomicUsize>);

/// The part of one of them.
pub(super) struct Foreseen {
    total: Total,
    counted: usize,
}

impl Total {
    pub(super) fn part(&self) -> Foreseen {
        Foreseen {
            total: self.clone(),
            counted: 0,
        }
    }
}

impl Foreseen {
    /// Counts what a window shows and may not stand. Says whether that is more than may be held.
    pub(super) fn count(&mut self, window: &Window) -> bool {
        let now = window.uncommitted();
        self.total.0.fetch_add(now, Ordering::Relaxed);
        let before = self.total.0.fetch_sub(self.counted, Ordering::Relaxed);
        let total = before - self.counted;
        self.counted = now;
        now > EACH || total > ALL
    }
}

impl Drop for Foreseen {
    fn drop(&mut self) {
        self.total.0.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// As much as a writer keeps to append it later.
const EACH: usize = 16 << 20;
const ALL: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use streamweld_journal::{Epoch, Kind, Seq, StreamId, WindowConfig};

    use super::*;

    fn window(bytes: usize) -> Arc<Window> {
        let id = StreamId::generate(UNIX_EPOCH);
        let window = Window::new(id, Epoch::FIRST, UNIX_EPOCH, WindowConfig::default());
        window.stage(UNIX_EPOCH).push(Kind::Open, |out| {
            out.extend_from_slice(b"data: ");
            out.resize(bytes, b'x');
            out.push(b'\n');
        });
        window
    }

    #[test]
    fn one_may_hold_so_much_and_all_together_so_much() {
        let total = Total::default();
        assert!(total.part().count(&window(EACH + 1)));
        let one = window(EACH - 100);
        let mut parts: Vec<Foreseen> = (0..ALL / EACH).map(|_| total.part()).collect();
        assert!(parts.iter_mut().all(|part| !part.count(&one)));
        let mut more = total.part();
        assert!(more.count(&one));
        one.commit(Seq::FIRST);
        assert!(!more.count(&one));
        drop(parts);
        assert_eq!(total.0.load(Ordering::Relaxed), 0);
    }
}

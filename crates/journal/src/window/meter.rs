//! What several windows hold together, kept up to date by the windows themselves.
//!
//! A backend with a cap asks one number, however many generations there are, and that number follows
//! the ring and the trimming of a window at once. Windows report only when their memory really
//! changes, which is per block, not per event.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A running total of bytes.
#[derive(Debug, Default)]
pub struct Meter(AtomicUsize);

impl Meter {
    /// The total.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts bytes that are held elsewhere.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes back what [`add`](Self::add) counted.
    pub fn sub(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One window's part of a meter, taken back when it goes.
#[derive(Default)]
pub(super) struct Charge {
    meter: Option<Arc<Meter>>,
    counted: usize,
}

impl Charge {
    pub(super) fn new(meter: Option<Arc<Meter>>) -> Self {
        Self { meter, counted: 0 }
    }

    pub(super) fn settle(&mut self, held: usize) {
        if held == self.counted {
            return;
        }
        if let Some(meter) = &self.meter {
            if held > self.counted {
                meter.add(held - self.counted);
            } else {
                meter.sub(self.counted - held);
            }
            self.counted = held;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.settle(0);
    }
}

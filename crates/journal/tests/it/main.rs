//! What the journal promises, seen from outside.

mod conformance;
mod degraded;
mod faulty;
mod memory;
mod reading;
mod story;
mod threads;
mod waiting;

//! Lines on their way to where they are written, which nobody waits for.
//!
//! Whoever reads a log may stop to: a pipe that is full holds back whoever writes, and with it every answer whose task has
//! something to tell. So lines are put aside, and one thread writes them. What is put aside is bounded in bytes, which lines do not
//! come near while somebody reads. What does not fit, or cannot be written, is dropped whole and counted, and the log tells of it
//! once it is read again.
//!
//! The writer of `tracing-appender` is bounded in lines of whatever length, does not count what could not be written, and when it
//! waits in vain at the end it prints that, and stands still where standard output is the same pipe.

use std::io::{self, Write};
use std::mem::swap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What waits to be written, and how many lines were dropped.
#[derive(Debug)]
pub(super) struct Lines {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    dropped: AtomicU64,
    is_written: AtomicBool,
}

#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    is_writing: bool,
}

/// As much may wait, some ten thousand lines; and as much may be in the hands of the thread that writes.
const MOST: usize = 2 << 20;

impl Lines {
    pub(super) const fn new() -> Self {
        let waiting = Waiting {
            bytes: Vec::new(),
            is_writing: false,
        };
        Self {
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
            dropped: AtomicU64::new(0),
            is_written: AtomicBool::new(false),
        }
    }

    /// Puts one aside, with its end; or drops it.
    pub(super) fn put(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.bytes.len() + line.len() > MOST {
            self.dropped.fetch_add(1, Ordering::AcqRel);
            return;
        }
        waiting.bytes.extend_from_slice(line);
        self.changed.notify_all();
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Acquire)
    }

    /// Whether there is a thread that writes.
    pub(super) fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Acquire)
    }

    /// Waits until nothing is left to be written, for no longer than that.
    pub(super) fn flush(&self, most: Duration) {
        let is_left = |waiting: &mut Waiting| waiting.is_writing || !waiting.bytes.is_empty();
        let waited = self.changed.wait_timeout_while(self.lock(), most, is_left);
        drop(waited);
    }

    /// Writes for ever.
    pub(super) fn write_to(&self, mut to: impl Write) {
        self.is_written.store(true, Ordering::Release);
        let (mut batch, mut told) = (Vec::new(), 0);
        loop {
            self.take(&mut batch);
            let lost = write(&mut to, &batch);
            if lost > 0 {
                self.dropped.fetch_add(lost, Ordering::AcqRel);
            }
            batch.clear();
            let dropped = self.dropped();
            if lost == 0 && dropped > told {
                tracing::warn!(lines = dropped - told, "lines of this log were dropped");
                told = dropped;
            }
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }

    /// Waits for something to write, and takes all of it.
    fn take(&self, batch: &mut Vec<u8>) {
        let is_empty = |waiting: &mut Waiting| waiting.bytes.is_empty();
        let waiting = self.changed.wait_while(self.lock(), is_empty);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        swap(batch, &mut waiting.bytes);
        waiting.is_writing = true;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each write is one line: that is how the formatter does it.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says how many lines were not written as a whole.
fn write(to: &mut impl Write, mut batch: &[u8]) -> u64 {
    while !batch.is_empty() {
        match to.write(batch) {
            Ok(written @ 1..) => batch = &batch[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    let ends = batch.iter().filter(|byte| **byte == b'\n');
    ends.map(|_| 1).sum()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// Lines that are written to whoever reads this.
    fn written() -> (Arc<Lines>, UnixStream) {
        let (reader, writer) = UnixStream::pair().unwrap();
        let lines = Arc::new(Lines::new());
        let theirs = Arc::clone(&lines);
        thread::spawn(move || theirs.write_to(writer));
        (lines, reader)
    }

    /// So many lines of a KiB, which name their number.
    fn put(lines: &Lines, numbers: std::ops::Range<usize>) {
        for number in numbers {
            lines.put(format!("{number:1023}\n").as_bytes());
        }
    }

    #[test]
    fn lines_come_whole_and_in_order() {
        let (lines, mut reader) = written();
        put(&lines, 0..1000);
        let mut read = vec![0; 1000 << 10];
        reader.read_exact(&mut read).unwrap();
        let read = String::from_utf8(read).unwrap();
        let numbers = read
            .lines()
            .map(|line| line.trim().parse::<usize>().unwrap());
        assert!(numbers.eq(0..1000));
        lines.flush(LONG);
        assert_eq!(lines.dropped(), 0);
    }

    #[test]
    fn whoever_logs_waits_for_nobody_and_the_rest_is_counted() {
        let (lines, mut reader) = written();
        let sent = 3 * (MOST >> 10);
        put(&lines, 0..sent);
        let dropped = usize::try_from(lines.dropped()).unwrap();
        assert!(dropped > 0, "it is bounded");
        // Nobody reads, and it comes back all the same.
        lines.flush(Duration::from_millis(1));
        let mut read = vec![0; (sent - dropped) << 10];
        reader.read_exact(&mut read).unwrap();
        lines.flush(LONG);
        put(&lines, sent..sent + 1);
        let mut last = [0; 1 << 10];
        reader.read_exact(&mut last).unwrap();
        let last = String::from_utf8(last.to_vec()).unwrap();
        assert_eq!(last.trim().parse(), Ok(sent));
        assert_eq!(lines.dropped(), dropped as u64);
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let (lines, reader) = written();
        drop(reader);
        put(&lines, 0..7);
        lines.flush(LONG);
        assert_eq!(lines.dropped(), 7);
    }

    /// Takes so many bytes and no more.
    struct Room(usize);

    impl Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0).min(2);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_is_not_whole_is_not_written() {
        for (room, lost) in [(0, 3), (1, 3), (2, 2), (3, 2), (6, 0)] {
            assert_eq!(write(&mut Room(room), b"a\nb\nc\n"), lost, "{room}");
        }
    }
}

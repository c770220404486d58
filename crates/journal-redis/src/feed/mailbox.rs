//! What waits for one listener: bounded, and emptied into one [`Heard::Renewed`] when it overflows.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::Heard;

#[derive(Debug)]
pub(super) struct Mailbox {
    max_messages: usize,
    max_bytes: usize,
    waiting: Mutex<Waiting>,
    // Only one listens, so a permit that was stored is never taken by another.
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    heard: VecDeque<Heard>,
    bytes: usize,
    closed: bool,
}

impl Mailbox {
    pub(super) fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self {
            max_messages,
            max_bytes,
            waiting: Mutex::default(),
            arrived: Notify::new(),
        }
    }

    /// Puts a message in, or tells that there were more than fit.
    pub(super) fn message(&self, message: &Bytes) {
        let mut waiting = self.lock();
        let fits = waiting.heard.len() < self.max_messages
            && waiting.bytes.saturating_add(message.len()) <= self.max_bytes;
        // One that is alone may have any size: it would not fit a second time either.
        if fits || waiting.bytes == 0 && waiting.heard.len() < self.max_messages {
            waiting.bytes += message.len();
            waiting.heard.push_back(Heard::Message(message.clone()));
        } else {
            // This message goes too: what it tells of was written before the listener reads.
            waiting.heard.clear();
            waiting.heard.push_back(Heard::Renewed);
            waiting.bytes = 0;
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Tells that messages may be missing from here.
    pub(super) fn renewed(&self) {
        let mut waiting = self.lock();
        // So that connections that come and go do not fill it.
        if waiting.heard.back() != Some(&Heard::Renewed) {
            waiting.heard.push_back(Heard::Renewed);
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    pub(super) async fn next(&self) -> Option<Heard> {
        loop {
            {
                let mut waiting = self.lock();
                if let Some(heard) = waiting.heard.pop_front() {
                    if let Heard::Message(message) = &heard {
                        waiting.bytes -= message.len();
                    }
                    return Some(heard);
                }
                if waiting.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in here panics half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn all(mailbox: &Mailbox) -> Vec<Heard> {
        mailbox.lock().heard.iter().cloned().collect()
    }

    #[track_caller]
    fn check(max_messages: usize, max_bytes: usize, sent: &[&'static str], expected: &[Heard]) {
        let mailbox = Mailbox::new(max_messages, max_bytes);
        for sent in sent {
            mailbox.message(&message(sent));
        }
        assert_eq!(all(&mailbox), expected);
    }

    fn heard(text: &'static str) -> Heard {
        Heard::Message(message(text))
    }

    #[test]
    fn what_fits_waits_in_order() {
        check(3, 3, &["a", "b", "c"], &["a", "b", "c"].map(heard));
    }

    #[test]
    fn too_many_become_one_renewal() {
        check(2, 9, &["a", "b", "c"], &[Heard::Renewed]);
    }

    #[test]
    fn too_many_bytes_become_one_renewal() {
        check(9, 3, &["aa", "bb"], &[Heard::Renewed]);
    }

    #[test]
    fn what_comes_after_the_renewal_waits_behind_it() {
        check(2, 9, &["a", "b", "c", "d"], &[Heard::Renewed, heard("d")]);
    }

    #[test]
    fn one_alone_may_be_larger_than_all() {
        check(9, 3, &["aaaa"], &[heard("aaaa")]);
    }

    #[test]
    fn renewals_in_a_row_are_one() {
        let mailbox = Mailbox::new(1, 1);
        mailbox.renewed();
        mailbox.renewed();
        assert_eq!(all(&mailbox), [Heard::Renewed]);
    }

    #[tokio::test]
    async fn what_waits_is_heard_before_the_end() {
        let mailbox = Mailbox::new(9, 9);
        mailbox.message(&message("a"));
        mailbox.close();
        assert_eq!(mailbox.next().await, Some(heard("a")));
        assert_eq!(mailbox.lock().bytes, 0);
        assert_eq!(mailbox.next().await, None);
    }
}

//! Who listens to which channel, and how far the connection is with each.
//!
//! The handles change what is wanted, and the task of the connection brings the server there, with at most one
//! command under way for each channel. So however fast listeners come and go, there is no queue of commands.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::mailbox::Mailbox;

#[derive(Debug)]
pub(super) struct Registry {
    mailbox_messages: usize,
    mailbox_bytes: usize,
    state: Mutex<State>,
    changed: Notify,
    renew: Notify,
    /// Since when something is wrong, and what; at first that there was no connection yet.
    fault: watch::Sender<Option<(Instant, String)>>,
}

#[derive(Debug, Default)]
struct State {
    channels: HashMap<Bytes, Channel>,
    /// Those where what is wanted may differ from what stands. Each is in `channels` too.
    differing: HashSet<Bytes>,
    connected: bool,
    closed: bool,
}

#[derive(Debug)]
struct Channel {
    listeners: Vec<Arc<Mailbox>>,
    wire: Wire,
}

/// Where the server is with a channel.
///
/// ```text
/// Absent -> Subscribing -> Standing -> Leaving -> Absent
///    ^-----------+------------+-----------+   when the connection is lost, or the slot is elsewhere
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Absent,
    Subscribing,
    Standing,
    Leaving,
}

/// What the server is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    Subscribe(Bytes),
    Unsubscribe(Bytes),
}

/// The server said something about a channel that does not fit what it was told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unexpected;

impl Registry {
    pub(super) fn new(mailbox_messages: usize, mailbox_bytes: usize) -> Self {
        Self {
            mailbox_messages,
            mailbox_bytes,
            state: Mutex::default(),
            changed: Notify::new(),
            renew: Notify::new(),
            fault: watch::Sender::new(Some((Instant::now(), "it was not made yet".to_owned()))),
        }
    }

    /// A new listener of a channel.
    pub(super) fn join(&self, name: &Bytes) -> Arc<Mailbox> {
        let mailbox = Mailbox::new(self.mailbox_messages, self.mailbox_bytes);
        let mailbox = Arc::new(mailbox);
        let mut state = self.lock();
        if state.closed {
            mailbox.close();
            return mailbox;
        }
        let channel = state.channels.entry(name.clone()).or_insert(Channel {
            listeners: Vec::new(),
            wire: Wire::Absent,
        });
        channel.listeners.push(Arc::clone(&mailbox));
        if channel.wire == Wire::Standing {
            mailbox.renewed();
        } else {
            state.differing.insert(name.clone());
            self.changed.notify_one();
        }
        mailbox
    }

    /// A listener goes.
    pub(super) fn leave(&self, name: &Bytes, mailbox: &Arc<Mailbox>) {
        let mut state = self.lock();
        let Some(channel) = state.channels.get_mut(name) else {
            // All ended before.
            return;
        };
        channel
            .listeners
            .retain(|listener| !Arc::ptr_eq(listener, mailbox));
        if !channel.listeners.is_empty() {
            return;
        }
        if channel.wire == Wire::Absent {
            state.channels.remove(name);
            state.differing.remove(name);
        } else {
            state.differing.insert(name.clone());
            self.changed.notify_one();
        }
    }

    /// Waits until [`Registry::orders`] may have some.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What the server is to be told next, at most `max` at once.
    pub(super) fn orders(&self, max: usize) -> Vec<Order> {
        let mut state = self.lock();
        let State {
            channels,
            differing,
            ..
        } = &mut *state;
        let names: Vec<_> = differing.iter().take(max).cloned().collect();
        let mut orders = Vec::new();
        for name in names {
            differing.remove(&name);
            let Some(channel) = channels.get_mut(&name) else {
                continue;
            };
            match (channel.wire, channel.listeners.is_empty()) {
                (Wire::Absent, false) => {
                    channel.wire = Wire::Subscribing;
                    orders.push(Order::Subscribe(name));
                }
                (Wire::Standing, true) => {
                    channel.wire = Wire::Leaving;
                    orders.push(Order::Unsubscribe(name));
                }
                (Wire::Absent, true) => {
                    channels.remove(&name);
                }
                // It is as wanted, or the answer to the last command decides.
                (Wire::Standing, false) | (Wire::Subscribing | Wire::Leaving, _) => {}
            }
        }
        if !differing.is_empty() {
            self.changed.notify_one();
        }
        orders
    }

    /// The server has confirmed that it sends a channel.
    pub(super) fn subscribed(&self, name: &[u8]) -> Result<(), Unexpected> {
        let mut state = self.lock();
        let channel = state.channels.get_mut(name).ok_or(Unexpected)?;
        if channel.wire != Wire::Subscribing {
            return Err(Unexpected);
        }
        channel.wire = Wire::Standing;
        for listener in &channel.listeners {
            listener.renewed();
        }
        if channel.listeners.is_empty() {
            self.differs(&mut state, name);
        }
        Ok(())
    }

    /// The server has confirmed that it no longer sends a channel.
    pub(super) fn unsubscribed(&self, name: &[u8]) -> Result<(), Unexpected> {
        let mut state = self.lock();
        let channel = state.channels.get_mut(name).ok_or(Unexpected)?;
        if channel.wire != Wire::Leaving {
            return Err(Unexpected);
        }
        channel.wire = Wire::Absent;
        if channel.listeners.is_empty() {
            state.channels.remove(name);
        } else {
            self.differs(&mut state, name);
        }
        Ok(())
    }

    /// The server does not send a channel, whatever it was told: the slot is not there. That stays so until somebody
    /// joins, or until [`Registry::again`].
    pub(super) fn elsewhere(&self, name: &[u8]) {
        let mut state = self.lock();
        let Some(channel) = state.channels.get_mut(name) else {
            // It was left meanwhile.
            return;
        };
        channel.wire = Wire::Absent;
        if channel.listeners.is_empty() {
            state.channels.remove(name);
            state.differing.remove(name);
        }
    }

    /// Asks for every channel that is wanted and absent.
    pub(super) fn again(&self) {
        let mut state = self.lock();
        let State {
            channels,
            differing,
            ..
        } = &mut *state;
        let absent = |(_, channel): &(&Bytes, &Channel)| channel.wire == Wire::Absent;
        differing.extend(channels.iter().filter(absent).map(|(name, _)| name.clone()));
        self.changed.notify_one();
    }

    /// A message has come.
    pub(super) fn message(&self, name: &[u8], message: &[u8]) -> Result<(), Unexpected> {
        let state = self.lock();
        let channel = state.channels.get(name).ok_or(Unexpected)?;
        match channel.wire {
            Wire::Standing if channel.listeners.is_empty() => Ok(()),
            Wire::Standing => {
                // Its own bytes, so that one that waits does not keep the whole read buffer.
                let message = Bytes::copy_from_slice(message);
                for listener in &channel.listeners {
                    listener.message(&message);
                }
                Ok(())
            }
            // Whoever has joined again since is told by the next confirmation.
            Wire::Leaving => Ok(()),
            Wire::Absent | Wire::Subscribing => Err(Unexpected),
        }
    }

    /// There is a connection that answers. Its task may ask for [`Registry::orders`].
    pub(super) fn connected(&self) {
        self.lock().connected = true;
        self.changed.notify_one();
    }

    /// There is no connection any more, so nothing stands.
    pub(super) fn lost(&self) {
        let mut state = self.lock();
        state.connected = false;
        state
            .channels
            .retain(|_, channel| !channel.listeners.is_empty());
        state.differing = state.channels.keys().cloned().collect();
        for channel in state.channels.values_mut() {
            channel.wire = Wire::Absent;
        }
    }

    /// Every channel stands that is wanted, apart from those that are elsewhere.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.lock();
        let is_under_way =
            |channel: &Channel| matches!(channel.wire, Wire::Subscribing | Wire::Leaving);
        state.connected && state.differing.is_empty() && !state.channels.values().any(is_under_way)
    }

    /// Something is wrong, perhaps still.
    pub(super) fn fails(&self, why: String) {
        self.fault.send_modify(|fault| {
            let since = fault
                .as_ref()
                .map_or_else(Instant::now, |(since, _)| *since);
            *fault = Some((since, why));
        });
    }

    /// Nothing is wrong.
    pub(super) fn works(&self) {
        self.fault.send_replace(None);
    }

    pub(super) fn fault(&self) -> Option<(Instant, String)> {
        self.fault.borrow().clone()
    }

    pub(super) async fn is_sound(&self) {
        // The sender is here.
        _ = self.fault.subscribe().wait_for(Option::is_none).await;
    }

    pub(super) fn is_connected(&self) -> bool {
        self.lock().connected
    }

    /// Asks for another connection.
    pub(super) fn renew(&self) {
        self.renew.notify_one();
    }

    /// Waits until another connection is asked for.
    pub(super) async fn renewal(&self) {
        self.renew.notified().await;
    }

    /// Ends every listener, and those that come later.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.connected = false;
        state.differing.clear();
        for channel in state.channels.drain().map(|(_, channel)| channel) {
            for listener in channel.listeners {
                listener.close();
            }
        }
    }

    fn differs(&self, state: &mut State, name: &[u8]) {
        // The key of the table, which does not point into a read buffer.
        if let Some((name, _)) = state.channels.get_key_value(name) {
            state.differing.insert(name.clone());
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

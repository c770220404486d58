//! Somebody who listens to a channel, wherever its slot is.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::watch;

use super::map::Map;
use super::node::Node;
use crate::feed::{Heard, Subscription};
use crate::slot::Slot;

/// As a [`Subscription`], at the node that has the slot. When that is another one it hears [`Heard::Renewed`], because
/// what was published in between it may not have heard.
pub(crate) struct Listener {
    map: watch::Receiver<Map>,
    slot: Slot,
    channel: Bytes,
    at: Option<(Weak<Node>, Subscription)>,
}

impl Listener {
    pub(super) fn new(map: watch::Receiver<Map>, slot: Slot, channel: Bytes) -> Self {
        let mut listener = Self {
            map,
            slot,
            channel,
            at: None,
        };
        listener.go_there();
        listener
    }

    /// The next that it hears; none when there are no nodes any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        loop {
            let heard = async {
                match &mut self.at {
                    Some((_, subscription)) => subscription.next().await,
                    None => None,
                }
            };
            tokio::select! {
                biased;
                changed = self.map.changed() => changed.ok()?,
                // None when its node is no more, or was not known yet: the map will change.
                Some(heard) = heard => return Some(heard),
            }
            self.go_there();
        }
    }

    fn go_there(&mut self) {
        let map = self.map.borrow_and_update();
        let node = map.node(self.slot);
        let there = node.map_or_else(Weak::new, Arc::downgrade);
        if self.at.as_ref().is_some_and(|(at, _)| at.ptr_eq(&there)) {
            return;
        }
        self.at = node.map(|node| (there, node.feed.subscribe(self.channel.clone())));
    }
}

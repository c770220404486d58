//! The names of everything in Redis.
//!
//! All keys of a generation share the hash tag `{stream_id}`, so in a cluster they lie on one node and a script may
//! use them together. An idempotency key lies in a slot of its own: at the time of the claim nobody knows whether the
//! generation will be. Names are made of our own prefix and of lowercase letters and digits, never of what a client
//! sent.

use std::fmt;
use std::str::FromStr;

use streamweld_journal::{Key, Replica, StreamId};

/// What all names begin with, so that several installations can share a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Default for Prefix {
    fn default() -> Self {
        Self("streamweld:".into())
    }
}

impl FromStr for Prefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<Self, BadPrefix> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":_-.".contains(&byte);
        if text.len() > 64 || !text.bytes().all(fits) {
            return Err(BadPrefix);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A prefix that names could not be told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key prefix is at most 64 letters, digits and : _ - .")]
pub struct BadPrefix;

/// The names of one generation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// The stream of its records.
    pub(crate) log: String,
    /// The hash of what is known of it beside the records.
    pub(crate) meta: String,
    /// Its tombstone.
    pub(crate) gone: String,
    /// The set of the replicas that follow it, each with the time until which it does.
    pub(crate) readers: String,
    /// The request that it answers.
    pub(crate) request: String,
    /// The channel on which its records are published to them.
    pub(crate) feed: String,
}

impl Prefix {
    pub(crate) fn keys(&self, id: StreamId) -> Keys {
        let name = |what: &str| format!("{}{{{id}}}:{what}", self.0);
        Keys {
            log: name("log"),
            meta: name("meta"),
            gone: name("gone"),
            readers: name("readers"),
            request: name("request"),
            feed: name("feed"),
        }
    }

    pub(crate) fn claim(&self, key: Key) -> String {
        let mut name = format!("{}claim:{{", self.0);
        for byte in key {
            name.push(char::from(HEX[usize::from(byte >> 4)]));
            name.push(char::from(HEX[usize::from(byte & 15)]));
        }
        name.push('}');
        name
    }

    /// The set of all replicas that may write anything, each with the time until which it is believed alive.
    pub(crate) fn replicas(&self) -> String {
        format!("{}{{presence}}:replicas", self.0)
    }

    /// The hash of where replicas are reached without Redis. It shares the slot of [`replicas`](Self::replicas).
    pub(crate) fn relays(&self) -> String {
        format!("{}{{presence}}:relays", self.0)
    }

    /// The set of the generations that a replica writes. It shares the slot of [`replicas`](Self::replicas).
    pub(crate) fn owned(&self, replica: Replica) -> String {
        format!("{}{{presence}}:owned:{:032x}", self.0, replica.0)
    }

    /// The channel on which a replica is given orders.
    pub(crate) fn orders(&self, replica: Replica) -> String {
        format!("{}orders:{:032x}", self.0, replica.0)
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_generation_have_its_hash_tag() {
        let id = StreamId::parse("01arz3ndektsv4rrffq69g5fav").unwrap();
        let keys = Prefix::default().keys(id);
        for key in [
            &keys.log,
            &keys.meta,
            &keys.gone,
            &keys.readers,
            &keys.request,
            &keys.feed,
        ] {
            let tag = key.split_once('{').unwrap().1.split_once('}').unwrap().0;
            assert_eq!(tag, "01arz3ndektsv4rrffq69g5fav");
        }
        assert_eq!(keys.log, "streamweld:{01arz3ndektsv4rrffq69g5fav}:log");
    }

    #[test]
    fn a_claim_is_its_digest() {
        let mut key = [0xab; 32];
        key[0] = 0x01;
        assert_eq!(
            Prefix::default().claim(key),
            format!("streamweld:claim:{{01{}}}", "ab".repeat(31))
        );
    }

    #[test]
    fn a_prefix_cannot_hold_a_hash_tag() {
        for text in ["", "a", "prod:streamweld:", "a-b_c.d:"] {
            assert!(text.parse::<Prefix>().is_ok(), "{text}");
        }
        for text in ["{a}", "a b", "é", "a\n", "*", &"x".repeat(65)] {
            assert_eq!(text.parse::<Prefix>(), Err(BadPrefix), "{text}");
        }
    }
}

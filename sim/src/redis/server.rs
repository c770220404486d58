//! The server around the data: scripts, subscribers, connections, and what it may lose.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::broken::Broken;
use super::lua::{Deeds, Scripts};
use super::reply::{Protocol, Reply};
use super::store::Store;

/// See the module. What a connection is to be sent is put into its outbox; whoever carries it there is rung.
pub struct Server {
    store: Arc<Mutex<Store>>,
    /// What a failover at its worst would find.
    behind: Store,
    /// What it does not have yet, oldest first.
    writes: VecDeque<Write>,
    scripts: Scripts,
    texts: BTreeMap<String, Bytes>,
    clients: BTreeMap<u64, Client>,
    next: u64,
    channels: BTreeMap<Bytes, BTreeSet<u64>>,
    broken: Option<Broken>,
}

/// What one command or script changed.
#[derive(Clone)]
struct Write {
    now: u64,
    commands: Vec<Vec<Bytes>>,
}

/// A connection.
#[derive(Default)]
pub struct Client {
    protocol: Protocol,
    is_tracking: bool,
    outbox: Vec<u8>,
    bell: Arc<tokio::sync::Notify>,
}

/// What a failover has lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many writes.
    pub writes: usize,
    /// Keys of the logs that had ended in it.
    pub ends: BTreeSet<Bytes>,
    /// Keys of everything that was written in it.
    pub keys: BTreeSet<Bytes>,
}

/// How many writes can be lost at most.
const MOST_LOST: usize = 200;
/// The id of the record that ends a log.
const LAST_ID: &[u8] = b"18446744073709551615-18446744073709551615";

impl Default for Server {
    fn default() -> Self {
        let store = Arc::default();
        Self {
            scripts: Scripts::over(Arc::clone(&store)),
            store,
            behind: Store::default(),
            writes: VecDeque::new(),
            texts: BTreeMap::new(),
            clients: BTreeMap::new(),
            next: 0,
            channels: BTreeMap::new(),
            broken: None,
        }
    }
}

impl Server {
    /// Leaves a rule out from now on.
    pub fn break_rule(&mut self, rule: Broken) {
        self.broken = Some(rule);
        lock(&self.store).break_rule(self.broken);
    }

    /// A connection is there. Gives its number, and what rings when it has something to be sent.
    pub fn connect(&mut self) -> (u64, Arc<tokio::sync::Notify>) {
        self.next += 1;
        let client = Client::default();
        let bell = Arc::clone(&client.bell);
        self.clients.insert(self.next, client);
        (self.next, bell)
    }

    /// It is gone.
    pub fn disconnect(&mut self, client: u64) {
        self.clients.remove(&client);
        self.channels.retain(|_, listeners| {
            listeners.remove(&client);
            !listeners.is_empty()
        });
    }

    /// What is to be sent to it.
    pub fn outbox(&mut self, client: u64) -> Vec<u8> {
        let client = self.clients.get_mut(&client);
        client
            .map(|client| std::mem::take(&mut client.outbox))
            .unwrap_or_default()
    }

    /// Its process begins anew, with the data that it had.
    pub fn restart(&mut self) {
        self.texts.clear();
        self.clients.clear();
        self.channels.clear();
    }

    /// Another takes its place, which does not have the last so many writes.
    pub fn lose(&mut self, count: usize) -> Lost {
        let stay = self.writes.len().saturating_sub(count);
        let lost = self.writes.split_off(stay);
        self.catch_up(0);
        let mut store = lock(&self.store);
        *store = self.behind.clone();
        store.break_rule(self.broken);
        drop(store);
        Lost::of(&lost)
    }

    /// Tells connections that wish it that all data was put away, as a server does that takes another's below them.
    pub fn tell_of_loss(&mut self) {
        let push = Reply::Push(vec![Reply::text("invalidate"), Reply::Nil]);
        for client in self
            .clients
            .values_mut()
            .filter(|client| client.is_tracking)
        {
            client.send(&push);
        }
    }

    fn catch_up(&mut self, keep: usize) {
        while self.writes.len() > keep {
            let write = self.writes.pop_front().expect("there are more");
            for command in &write.commands {
                self.behind.call(write.now, command);
            }
        }
    }

    /// Carries out what a connection asks, and puts the answer into its outbox.
    pub fn ask(&mut self, client: u64, now: u64, words: &[Bytes]) {
        let reply = self.answer(client, now, words);
        if let (Some(reply), Some(client)) = (reply, self.clients.get_mut(&client)) {
            client.send(&reply);
        }
    }

    fn answer(&mut self, client: u64, now: u64, words: &[Bytes]) -> Option<Reply> {
        let (name, args) = words.split_first()?;
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        Some(match (&*name, args) {
            ("PING", []) => Reply::Line("PONG"),
            ("HELLO", [version, ..]) => {
                let client = self.clients.get_mut(&client)?;
                client.protocol = if version == "3" {
                    Protocol::Three
                } else {
                    Protocol::Two
                };
                hello(version == "3")
            }
            ("CLIENT", [what, ..]) => {
                if what.eq_ignore_ascii_case(b"TRACKING") {
                    self.clients.get_mut(&client)?.is_tracking = true;
                }
                Reply::Line("OK")
            }
            ("SELECT", [_]) => Reply::Line("OK"),
            ("INFO", _) => Reply::text(INFO),
            ("PUBLISH", [channel, message]) => Reply::Int(self.publish(channel, message)),
            ("SUBSCRIBE", [channel]) => {
                self.channels
                    .entry(channel.clone())
                    .or_default()
                    .insert(client);
                told(b"subscribe", channel, Reply::Int(1))
            }
            ("UNSUBSCRIBE", [channel]) => {
                if let Some(listeners) = self.channels.get_mut(channel) {
                    listeners.remove(&client);
                }
                told(b"unsubscribe", channel, Reply::Int(0))
            }
            ("EVAL", [text, rest @ ..]) => {
                let run = self.without_rule(text);
                self.texts.insert(digest(text), run.clone());
                self.script(now, &run, rest)
            }
            ("EVALSHA", [digest, rest @ ..]) => {
                let text = self.texts.get(&*String::from_utf8_lossy(digest)).cloned();
                match text {
                    Some(text) => self.script(now, &text, rest),
                    None => Reply::error("NOSCRIPT No matching script. Please use EVAL."),
                }
            }
            _ => {
                let reply = lock(&self.store).call(now, words);
                if Store::is_write(&name) && !reply.is_error() {
                    self.wrote(now, vec![words.to_vec()]);
                }
                reply
            }
        })
    }

    fn script(&mut self, now: u64, text: &[u8], rest: &[Bytes]) -> Reply {
        let Some((count, words)) = rest.split_first() else {
            return Reply::error("ERR wrong number of arguments for 'eval' command");
        };
        let count = std::str::from_utf8(count)
            .ok()
            .and_then(|count| count.parse().ok());
        let Some((keys, args)) = count.and_then(|count: usize| words.split_at_checked(count))
        else {
            return Reply::error("ERR Number of keys can't be greater than number of args");
        };
        let (reply, Deeds { writes, published }) = self.scripts.run(now, text, keys, args);
        if !writes.is_empty() {
            self.wrote(now, writes);
        }
        for (channel, message) in published {
            self.publish(&channel, &message);
        }
        reply
    }

    fn without_rule(&self, text: &Bytes) -> Bytes {
        let script = self
            .broken
            .and_then(|rule| rule.script(std::str::from_utf8(text).ok()?));
        script.map_or_else(|| text.clone(), Bytes::from)
    }

    fn wrote(&mut self, now: u64, commands: Vec<Vec<Bytes>>) {
        self.writes.push_back(Write { now, commands });
        self.catch_up(MOST_LOST);
    }

    fn publish(&mut self, channel: &Bytes, message: &Bytes) -> i64 {
        let Some(listeners) = self.channels.get(channel) else {
            return 0;
        };
        let told = told(b"message", channel, Reply::Bulk(message.clone()));
        let mut count = 0;
        for listener in listeners {
            if let Some(client) = self.clients.get_mut(listener) {
                client.send(&told);
                count += 1;
            }
        }
        count
    }
}

impl Client {
    fn send(&mut self, reply: &Reply) {
        reply.write(self.protocol, &mut self.outbox);
        self.bell.notify_one();
    }
}

impl Lost {
    fn of(writes: &VecDeque<Write>) -> Self {
        let mut lost = Self {
            writes: writes.len(),
            ..Self::default()
        };
        for command in writes.iter().flat_map(|write| &write.commands) {
            let [name, key, rest @ ..] = &command[..] else {
                continue;
            };
            lost.keys.insert(key.clone());
            if name.eq_ignore_ascii_case(b"XADD") && rest.first().is_some_and(|id| id == LAST_ID) {
                lost.ends.insert(key.clone());
            }
        }
        lost
    }
}

fn told(what: &'static [u8], channel: &Bytes, last: Reply) -> Reply {
    let what = Reply::Bulk(Bytes::from_static(what));
    Reply::Push(vec![what, Reply::Bulk(channel.clone()), last])
}

fn hello(is_new: bool) -> Reply {
    let number = if is_new { 3 } else { 2 };
    Reply::Map(vec![
        Reply::text("server"),
        Reply::text("redis"),
        Reply::text("version"),
        Reply::text("7.0.15"),
        Reply::text("proto"),
        Reply::Int(number),
        Reply::text("role"),
        Reply::text("master"),
    ])
}

/// What the journal looks at: nothing is wrong.
const INFO: &str = "redis_version:7.0.15\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\
    aof_last_write_status:ok\r\nrdb_last_bgsave_status:ok\r\n";

fn digest(text: &Bytes) -> String {
    redis::Script::new(&String::from_utf8_lossy(text))
        .get_hash()
        .to_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

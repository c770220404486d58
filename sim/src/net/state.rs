//! Who is there, which ways are open, and what is under way.

mod faults;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::{HostId, SHORTEST};
use crate::clock::Moment;
use crate::random::Random;

/// How a host dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Its process is killed: the kernel resets its connections, and refuses new ones.
    Reset,
    /// Nothing is heard of it any more.
    Silent,
}

pub(super) struct State {
    random: Random,
    pub(super) round: Moment,
    hosts: Vec<HostState>,
    ways: BTreeMap<(HostId, HostId), Way>,
    conns: BTreeMap<u64, Conn>,
    next: u64,
    pub(super) woken: Vec<Waker>,
}

struct HostState {
    name: String,
    life: Life,
    /// Which of the processes that were started on it.
    process: u32,
    listeners: BTreeMap<u16, Accepting>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Up,
    Dead(Death),
}

#[derive(Default)]
struct Accepting {
    /// Connections and when they arrive, soonest first.
    queue: VecDeque<(Moment, u64)>,
    knocked: Arc<Notify>,
}

/// From one host to another.
#[derive(Clone, Copy, Default)]
struct Way {
    is_cut: bool,
    slower: Duration,
}

struct Conn {
    ends: [End; 2],
}

/// One side: what comes to it, and who waits there.
struct End {
    host: HostId,
    process: u32,
    inbox: VecDeque<(Moment, Item)>,
    /// Bytes in `inbox` and `held`.
    bytes: usize,
    /// What was sent to it while the way was cut.
    held: VecDeque<Item>,
    /// When the last piece arrives: the next does not overtake it.
    last: Moment,
    /// From when on it is reset.
    reset: Option<Moment>,
    is_dropped: bool,
    has_shut: bool,
    reader: Option<Waker>,
    /// Who waits for room at the other side.
    writer: Option<Waker>,
}

#[derive(Debug)]
pub(super) enum Item {
    Data(Bytes),
    Fin,
    Reset,
}

/// What comes of a try to connect.
pub(super) enum Knock {
    Opened { conn: u64, after: Duration },
    Refused { after: Duration },
    Silence,
}

/// What there is to be read.
pub(super) enum Got {
    Data(Bytes),
    End,
    Reset,
    /// Nothing before this moment, as far as is known.
    Nothing(Option<Moment>),
}

impl State {
    pub(super) fn new(names: Vec<String>, random: Random) -> Self {
        let host = |name| HostState {
            name,
            life: Life::Dead(Death::Reset),
            process: 0,
            listeners: BTreeMap::new(),
        };
        Self {
            random,
            round: Moment::ZERO,
            hosts: names.into_iter().map(host).collect(),
            ways: BTreeMap::new(),
            conns: BTreeMap::new(),
            next: 0,
            woken: Vec::new(),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<HostId> {
        let place = self.hosts.iter().position(|host| host.name == name);
        place.map(HostId)
    }

    pub(super) fn start(&mut self, host: HostId) {
        let host = &mut self.hosts[host.0];
        host.life = Life::Up;
        host.process += 1;
        host.listeners.clear();
    }

    fn is_up(&self, end: &End) -> bool {
        let host = &self.hosts[end.host.0];
        host.life == Life::Up && host.process == end.process
    }

    fn way(&self, from: HostId, to: HostId) -> Way {
        self.ways.get(&(from, to)).copied().unwrap_or_default()
    }

    fn delay(&mut self, from: HostId, to: HostId) -> Duration {
        let way = self.way(from, to);
        // Mostly near, now and then late.
        let late = if self.random.chance(3) { 60 } else { 4 };
        SHORTEST + way.slower + Duration::from_millis(self.random.between(0, late))
    }

    pub(super) fn open(&self, host: HostId) -> usize {
        let ends = self.conns.values().flat_map(|conn| &conn.ends);
        ends.filter(|end| end.host == host && !end.is_dropped && self.is_up(end))
            .count()
    }

    pub(super) fn listen(&mut self, host: HostId, port: u16) -> Arc<Notify> {
        let accepting = Accepting::default();
        let knocked = Arc::clone(&accepting.knocked);
        self.hosts[host.0].listeners.insert(port, accepting);
        knocked
    }

    pub(super) fn close(&mut self, host: HostId, port: u16) {
        let Some(accepting) = self.hosts[host.0].listeners.remove(&port) else {
            return;
        };
        for (_, number) in accepting.queue {
            self.send(number, 1, Item::Reset, self.round);
        }
    }

    /// A connection that has arrived, or when the next one does.
    pub(super) fn accept(
        &mut self,
        host: HostId,
        port: u16,
        now: Moment,
    ) -> Result<u64, Option<Moment>> {
        let accepting = self.hosts[host.0].listeners.get_mut(&port).ok_or(None)?;
        match accepting.queue.front() {
            Some((at, _)) if *at > now => Err(Some(*at)),
            Some(_) => accepting
                .queue
                .pop_front()
                .map(|(_, number)| number)
                .ok_or(None),
            None => Err(None),
        }
    }

    pub(super) fn knock(&mut self, from: HostId, to: HostId, port: u16, now: Moment) -> Knock {
        if self.way(from, to).is_cut || self.way(to, from).is_cut {
            return Knock::Silence;
        }
        let there = self.delay(from, to);
        let after = there + self.delay(to, from);
        let host = &mut self.hosts[to.0];
        if host.life == Life::Dead(Death::Silent) {
            return Knock::Silence;
        }
        let process = host.process;
        let Some(accepting) = host.listeners.get_mut(&port) else {
            return Knock::Refused { after };
        };
        let (conn, at) = (self.next, now + there);
        self.next += 1;
        let place = accepting.queue.partition_point(|(other, _)| *other <= at);
        accepting.queue.insert(place, (at, conn));
        accepting.knocked.notify_one();
        let end = |host, process| End {
            host,
            process,
            inbox: VecDeque::new(),
            bytes: 0,
            held: VecDeque::new(),
            // What is said at once does not come before the connection.
            last: at,
            reset: None,
            is_dropped: false,
            has_shut: false,
            reader: None,
            writer: None,
        };
        let caller = self.hosts[from.0].process;
        let ends = [end(from, caller), end(to, process)];
        self.conns.insert(conn, Conn { ends });
        Knock::Opened { conn, after }
    }

    /// Sends from a side to the other one.
    pub(super) fn send(&mut self, number: u64, side: usize, item: Item, now: Moment) {
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        let (from, to) = (conn.ends[side].host, conn.ends[1 - side].host);
        if !self.way(from, to).is_cut {
            return self.deliver(number, side, item, now);
        }
        let end = &mut self.conns.get_mut(&number).expect("it is there").ends[1 - side];
        if let Item::Data(data) = &item {
            end.bytes += data.len();
        }
        end.held.push_back(item);
    }

    fn deliver(&mut self, number: u64, side: usize, item: Item, now: Moment) {
        let conn = &self.conns[&number];
        let (from, to) = (conn.ends[side].host, conn.ends[1 - side].host);
        let is_up = self.is_up(&conn.ends[1 - side]);
        let is_gone = conn.ends[1 - side].is_dropped;
        let life = self.hosts[to.0].life;
        let at = now + self.delay(from, to);
        if !is_up || is_gone {
            // A machine that is there says that it knows nothing of the connection.
            if life != Life::Dead(Death::Silent) && matches!(item, Item::Data(_)) {
                let back = at + self.delay(to, from);
                self.reset_at(number, side, back);
            }
            return;
        }
        let end = &mut self.conns.get_mut(&number).expect("it is there").ends[1 - side];
        let at = at.max(end.last);
        end.last = at;
        match item {
            Item::Reset => return self.reset_at(number, 1 - side, at),
            Item::Data(data) => {
                end.bytes += data.len();
                end.inbox.push_back((at, Item::Data(data)));
            }
            Item::Fin => end.inbox.push_back((at, Item::Fin)),
        }
        self.woken.extend(end.reader.take());
    }

    fn reset_at(&mut self, number: u64, side: usize, at: Moment) {
        let end = &mut self.conns.get_mut(&number).expect("it is there").ends[side];
        if end.reset.is_none_or(|other| other > at) {
            end.reset = Some(at);
        }
        self.woken.extend(end.reader.take());
        self.woken.extend(end.writer.take());
    }

    /// What a side can read, no more than `most` bytes.
    pub(super) fn read(
        &mut self,
        number: u64,
        side: usize,
        most: usize,
        now: Moment,
        waker: &Waker,
    ) -> Got {
        let Some(conn) = self.conns.get_mut(&number) else {
            return Got::Reset;
        };
        let [one, other] = &mut conn.ends;
        let (end, peer) = if side == 0 {
            (one, other)
        } else {
            (other, one)
        };
        if end.reset.is_some_and(|at| at <= now) {
            return Got::Reset;
        }
        let next = match end.inbox.front_mut() {
            Some((at, Item::Data(data))) if *at <= now => {
                let piece = data.split_to(data.len().min(most));
                if data.is_empty() {
                    end.inbox.pop_front();
                }
                end.bytes -= piece.len();
                self.woken.extend(peer.writer.take());
                return Got::Data(piece);
            }
            Some((at, Item::Fin)) if *at <= now => return Got::End,
            Some((at, _)) => Some(*at),
            None => None,
        };
        // The same one may be kept: it is that of the task which runs.
        let before = end.reader.replace(waker.clone());
        self.woken
            .extend(before.filter(|before| !before.will_wake(waker)));
        Got::Nothing(match (next, end.reset) {
            (Some(next), Some(reset)) => Some(next.min(reset)),
            (next, reset) => next.or(reset),
        })
    }

    /// Sends data from a side; how much, `Ok(None)` when there is no room, an error when there is nobody.
    pub(super) fn write(
        &mut self,
        number: u64,
        side: usize,
        data: &[u8],
        now: Moment,
        waker: &Waker,
    ) -> Result<Option<usize>, ()> {
        let conn = self.conns.get_mut(&number).ok_or(())?;
        if conn.ends[side].reset.is_some_and(|at| at <= now) || conn.ends[side].has_shut {
            return Err(());
        }
        let room = ROOM.saturating_sub(conn.ends[1 - side].bytes);
        if room == 0 {
            let before = conn.ends[side].writer.replace(waker.clone());
            self.woken
                .extend(before.filter(|before| !before.will_wake(waker)));
            return Ok(None);
        }
        let piece = &data[..data.len().min(room)];
        self.send(number, side, Item::Data(Bytes::copy_from_slice(piece)), now);
        Ok(Some(piece.len()))
    }

    pub(super) fn shut(&mut self, number: u64, side: usize, now: Moment) {
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        if !std::mem::replace(&mut conn.ends[side].has_shut, true) {
            self.send(number, side, Item::Fin, now);
        }
    }

    /// A side is done with it. Where it has not read everything, or wishes so, that is a reset for the other one.
    pub(super) fn drop_side(&mut self, number: u64, side: usize, resets: bool, now: Moment) {
        let Some(conn) = self.conns.get(&number) else {
            return;
        };
        let end = &conn.ends[side];
        let unread = end
            .inbox
            .iter()
            .any(|(at, item)| *at <= now && matches!(item, Item::Data(_)));
        if self.is_up(end) && end.reset.is_none_or(|at| at > now) {
            if resets || unread {
                self.send(number, side, Item::Reset, now);
            } else {
                self.shut(number, side, now);
            }
        }
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        let end = &mut conn.ends[side];
        end.is_dropped = true;
        end.inbox.clear();
        end.bytes = 0;
        // Not dropped here: a waker may be the last of its task, which may have a connection as well.
        self.woken.extend(end.reader.take());
        self.woken.extend(end.writer.take());
        let writer = conn.ends[1 - side].writer.take();
        self.woken.extend(writer);
        if conn.ends.iter().all(|end| end.is_dropped) {
            self.conns.remove(&number);
        }
    }
}

/// What fits between a writer and a reader that does not read.
const ROOM: usize = 64 << 10;

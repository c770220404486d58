//! What goes wrong in the network.

use std::time::Duration;

use super::{Conn, Death, Item, Life, State};
use crate::net::HostId;

impl State {
    pub(in crate::net) fn kill(&mut self, host: HostId, death: Death) {
        self.hosts[host.0].life = Life::Dead(death);
        self.hosts[host.0].listeners.clear();
        let numbers: Vec<u64> = self.conns.keys().copied().collect();
        for number in numbers {
            for side in 0..2 {
                let conn = &self.conns[&number];
                let (here, there) = (&conn.ends[side], &conn.ends[1 - side]);
                if here.host != host || here.is_dropped || there.host == host {
                    continue;
                }
                match death {
                    Death::Reset => self.send(number, side, Item::Reset, self.round),
                    // The kernel of the other side asks now and then whether anybody is there.
                    Death::Silent => {
                        let at = self.round + FOUND_OUT;
                        self.reset_at(number, 1 - side, at);
                    }
                }
            }
        }
    }

    pub(in crate::net) fn cut(&mut self, from: HostId, to: HostId, is_cut: bool) {
        self.ways.entry((from, to)).or_default().is_cut = is_cut;
        if is_cut {
            return;
        }
        let numbers: Vec<u64> = self.conns.keys().copied().collect();
        for number in numbers {
            for side in 0..2 {
                let ends = &mut self.conns.get_mut(&number).expect("listed").ends;
                if (ends[side].host, ends[1 - side].host) != (from, to) {
                    continue;
                }
                let held = std::mem::take(&mut ends[1 - side].held);
                for item in held {
                    if let Item::Data(data) = &item {
                        // Counted once more when it is sent. Of a side that is gone nothing is counted.
                        let ends = &mut self.conns.get_mut(&number).expect("listed").ends;
                        let bytes = &mut ends[1 - side].bytes;
                        *bytes = bytes.saturating_sub(data.len());
                    }
                    self.deliver(number, side, item, self.round);
                }
            }
        }
    }

    pub(in crate::net) fn slow(&mut self, from: HostId, to: HostId, by: Duration) {
        self.ways.entry((from, to)).or_default().slower = by;
    }

    pub(in crate::net) fn reset(&mut self, one: HostId, other: HostId) {
        let between = |conn: &Conn| {
            let hosts = [conn.ends[0].host, conn.ends[1].host];
            hosts == [one, other] || hosts == [other, one]
        };
        let numbers: Vec<u64> = self
            .conns
            .iter()
            .filter(|(_, conn)| between(conn))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            for side in 0..2 {
                self.reset_at(number, side, self.round);
            }
        }
    }
}

/// After how long the kernel finds out that nobody is there any more.
const FOUND_OUT: Duration = Duration::from_secs(15);

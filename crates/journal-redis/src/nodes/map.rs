//! Which node has which slot.

use std::ops::RangeInclusive;
use std::sync::Arc;

use redis::Value;

use super::node::{Address, Node};
use crate::link::ConnectError;
use crate::slot::Slot;

/// None of them at first.
#[derive(Clone, Default)]
pub(super) struct Map {
    nodes: Vec<Arc<Node>>,
    /// For each slot the place of its node among the nodes; beyond them when it has none. Empty with the nodes.
    slots: Vec<u16>,
}

impl Map {
    /// All slots at one server.
    pub(super) fn of_one(node: Arc<Node>) -> Self {
        Self {
            nodes: vec![node],
            slots: vec![0; Slot::COUNT],
        }
    }

    /// What was told. Nodes that are known stay the same; `make` makes those that are new.
    pub(super) fn next(&self, told: &[Served], make: impl Fn(&Address) -> Arc<Node>) -> Self {
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let mut slots = vec![NOBODY; Slot::COUNT];
        for Served { range, by } in told {
            let is_by = |node: &&Arc<Node>| node.address.as_ref() == Some(by);
            let place = nodes.iter().position(|node| is_by(&node));
            let place = place.unwrap_or_else(|| {
                let known = self.nodes.iter().find(is_by);
                nodes.push(known.map_or_else(|| make(by), Arc::clone));
                nodes.len() - 1
            });
            // There are fewer nodes than slots.
            slots[range.clone()].fill(place as u16);
        }
        Self { nodes, slots }
    }

    pub(super) fn node(&self, slot: Slot) -> Option<&Arc<Node>> {
        self.nodes.get(usize::from(*self.slots.get(slot.index())?))
    }

    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// For each node one of its slots.
    pub(super) fn homes(&self) -> Vec<Slot> {
        let first = |place: usize| {
            let is_there = |at: &u16| usize::from(*at) == place;
            self.slots.iter().position(is_there).map(Slot::at)
        };
        (0..self.nodes.len()).filter_map(first).collect()
    }

    /// Every slot has a node, and there is a connection to each that appends go by.
    pub(super) fn is_whole(&self) -> bool {
        !self.nodes.is_empty()
            && !self.slots.contains(&NOBODY)
            && (self.nodes.iter()).all(|node| node.appends.connection().is_some())
    }

    /// There are nodes, and a connection to each.
    pub(super) fn is_connected(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.is_connected())
    }

    /// Why there is no connection to one of them.
    pub(super) fn trouble(&self) -> Option<ConnectError> {
        let links = |node: &Arc<Node>| node.appends.trouble().or_else(|| node.reads.trouble());
        self.nodes.iter().find_map(links)
    }
}

/// Two are equal when they lead to the same nodes.
impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Node>, &Arc<Node>)| Arc::ptr_eq(one, other);
        self.slots == other.slots
            && self.nodes.len() == other.nodes.len()
            && self.nodes.iter().zip(&other.nodes).all(same)
    }
}

/// Slots and who has them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Served {
    range: RangeInclusive<usize>,
    by: Address,
}

/// Reads an answer to `CLUSTER SLOTS` of a node at `asked`: for each range first, last, its primary, its replicas. A
/// node that does not know its own name leaves it out.
pub(super) fn read(answer: Value, asked: &str) -> Option<Vec<Served>> {
    let Value::Array(ranges) = answer else {
        return None;
    };
    let served = |range: Value| {
        let Value::Array(parts) = range else {
            return None;
        };
        let mut parts = parts.into_iter();
        let (Value::Int(first), Value::Int(last)) = (parts.next()?, parts.next()?) else {
            return None;
        };
        let range = usize::try_from(first).ok()?..=usize::try_from(last).ok()?;
        let Value::Array(node) = parts.next()? else {
            return None;
        };
        let mut node = node.into_iter();
        let host = match node.next()? {
            Value::BulkString(host) if !host.is_empty() => String::from_utf8(host).ok()?,
            Value::BulkString(_) | Value::Nil => asked.to_owned(),
            _ => return None,
        };
        let Value::Int(port) = node.next()? else {
            return None;
        };
        let port = u16::try_from(port).ok()?;
        let by = Address { host, port };
        (*range.end() < Slot::COUNT).then_some(Served { range, by })
    };
    ranges.into_iter().map(served).collect()
}

const NOBODY: u16 = u16::MAX;

#[cfg(test)]
mod tests;

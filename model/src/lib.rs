//! The ownership protocol, small enough that every interleaving of it can be looked at.
//!
//! One generation, one journal in Redis, two or three replicas, and everything that may go wrong a bounded number of
//! times: requests that are lost, late or carried out without an answer, replicas that die or stand still, a journal that
//! loses a suffix of what it was told. [`Protocol`] is what may happen, `properties.rs` what has to hold, and [`search`]
//! goes through all of it. docs/ownership.md tells the protocol, and what was found.
//!
//! Decisions are not copied here: who may change a log, and what is concluded from what is read back, are the functions of
//! [`streamweld_journal::rules`], which the memory journal, the owner and whoever takes over run as well, and which the
//! scripts in Redis are held to. What is the model's own is the order of steps; each file names the code that it stands for.
//!
//! A model that finds nothing proves little. Each [`Rule`] can be left out, and then a run is found that goes wrong.

mod bounds;
mod epochs;
mod faults;
mod log;
mod properties;
mod protocol;
mod reader;
mod replica;
mod search;
mod system;
mod taker;
mod writer;

pub use bounds::{Bounds, Faults, Rule};
pub use log::{End, Entry, Line, Log, Name, Record, Written};
pub use properties::*;
pub use protocol::{Protocol, Step};
pub use reader::Reader;
pub use replica::{Adopted, Ended, Life, Replica, Role, Taker, Why, Writer, events};
pub use search::{Found, search, search_fault};
pub use system::{Offer, Request, System, What};

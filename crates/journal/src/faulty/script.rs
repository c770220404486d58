//! Which fault a call meets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hold::{Gate, Held};
use crate::contract::Refusal;

/// An operation of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named like the methods of the contract")]
pub enum Op {
    Open,
    Append,
    Finish,
    Tail,
    Find,
    Adopt,
    Claim,
    ClaimBody,
    Release,
    KeepRequest,
    KeptRequest,
    Beside,
    Remove,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is done, its answer is lost: `Unknown` or `Unreachable`.
    UnknownApplied,
    /// The call is not done, and no answer comes: `Unknown` or `Unreachable`.
    UnknownLost,
    /// Not done, with this refusal. When opening, all but `Full` become `Exists`; a question, which
    /// cannot be refused, is `Unreachable`.
    Refuse(Refusal),
    /// The log is removed first; then the call is made.
    Vanish,
    /// Not done: `Unknown` or `Unreachable`.
    Unreachable,
}

/// The handle that scripts a [`Faulty`](super::Faulty) journal.
#[derive(Debug, Default)]
pub struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    down: bool,
    scripts: [VecDeque<Line>; OPS],
    calls: [usize; OPS],
}

#[derive(Debug)]
enum Line {
    Fault(Fault),
    /// The call goes through.
    Pass,
    Hold(Arc<Gate>),
    Panic,
}

impl Faults {
    /// Adds faults for the next calls of `op`, one each, behind those already scripted.
    pub fn script(&self, op: Op, faults: impl IntoIterator<Item = Fault>) {
        self.state().scripts[op as usize].extend(faults.into_iter().map(Line::Fault));
    }

    /// Lets one call of `op` through, before what is scripted after this.
    pub fn pass(&self, op: Op) {
        self.state().scripts[op as usize].push_back(Line::Pass);
    }

    /// Panics in one call of `op`, in the task of whoever makes it.
    pub fn panic(&self, op: Op) {
        self.state().scripts[op as usize].push_back(Line::Panic);
    }

    /// Holds the next unscripted call of `op` until the handle is released (or dropped); then it meets
    /// what is scripted after this.
    pub fn hold(&self, op: Op) -> Held {
        let gate = Arc::new(Gate::default());
        self.state().scripts[op as usize].push_back(Line::Hold(Arc::clone(&gate)));
        Held::new(gate)
    }

    /// While down, every call whose script is used up is [`Fault::Unreachable`].
    pub fn set_down(&self, down: bool) {
        self.state().down = down;
    }

    /// How often `op` was called.
    pub fn calls(&self, op: Op) -> usize {
        self.state().calls[op as usize]
    }

    pub(super) async fn next(&self, op: Op) -> Option<Fault> {
        self.state().calls[op as usize] += 1;
        loop {
            let line = self.state().scripts[op as usize].pop_front();
            match line {
                Some(Line::Fault(fault)) => return Some(fault),
                Some(Line::Pass) => return None,
                Some(Line::Hold(gate)) => gate.pass().await,
                Some(Line::Panic) => panic!("a call of {op:?} was told to"),
                None => return self.state().down.then_some(Fault::Unreachable),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const OPS: usize = Op::Remove as usize + 1;

//! A journal that does not open, fails, heals, or is full, as clients see it (protocol.md 10, 8.3).

mod degraded;
mod full;
mod healing;
mod resuming;

use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::HealBounds;
use streamweld_journal::faulty::{Fault, Faults, Faulty, Op};
use streamweld_journal::{Journal, Memory, Refusal};
use streamweld_mock::Dialect;
use streamweld_mock::Script;
use streamweld_tests::{
    Block, End, Harness, Response, Setup, ask, blocks, events, patience, state, wait_end, wait_seq,
    wait_state,
};

struct Story {
    harness: Harness,
    journal: Arc<Faulty<Memory>>,
    faults: Arc<Faults>,
}

/// A server on a journal that fails on demand, with little patience.
async fn start(script: Script) -> Story {
    start_with(script, |_| {}).await
}

async fn start_with(script: Script, change: impl FnOnce(&mut HealBounds)) -> Story {
    let journal = Arc::new(Faulty::new(Memory::default()));
    let faults = journal.faults();
    let mut heal = HealBounds::default();
    heal.patience = Duration::from_millis(50);
    change(&mut heal);
    let setup = Setup::new(script)
        .journal(journal.clone())
        .heal(heal)
        .config(|config| {
            config.edge.heartbeat = Duration::from_millis(20);
            config.edge.hold = Duration::from_millis(300);
        });
    Story {
        harness: setup.start().await,
        journal,
        faults,
    }
}

/// An answer whose end does not come with what is before it: what comes together is one call to the journal.
fn in_two() -> Script {
    Script::tokens(20).gate_after(3, "go").gate_after(6, "end")
}

fn seqs(blocks: &[Block]) -> Vec<u64> {
    blocks.iter().map(Block::seq).collect()
}

fn has_no_ids(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| block.id.is_none())
}

async fn metric(harness: &Harness, line: &str) -> u64 {
    let metrics = harness.admin.get("/metrics").await.all().await.0;
    let metrics = String::from_utf8(metrics).expect("text");
    metrics
        .lines()
        .find_map(|found| found.strip_prefix(line)?.strip_prefix(' '))
        .map_or(0, |value| value.parse().expect("a number"))
}

//! The memory backend keeps the contract, and so does a wrapper without faults.

use streamweld_journal::conformance::{self, Case};
use streamweld_journal::faulty::Faulty;
use streamweld_journal::{Call, Memory, for_each_case};

use crate::story::block_on;

macro_rules! memory {
    ($($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                let case: Case = |journal| Call::under_way(conformance::$case(journal));
                block_on(case(&Memory::default()));
            }
        )*
    };
}
for_each_case!(memory);

#[test]
fn cases_can_share_a_backend() {
    let journal = Memory::default();
    for (_, case) in conformance::CASES {
        block_on(case(&journal));
    }
}

#[test]
fn a_wrapper_without_faults_is_a_journal_too() {
    block_on(conformance::all(|| Faulty::new(Memory::default())));
}

//! What every backend promises, one named case per promise.
//!
//! Each case is a plain async function over a [`Journal`]; it needs no runtime of its own and makes fresh
//! ids, so cases can share a backend. [`all`] runs them in order; [`for_each_case!`](crate::for_each_case) hands the list to a
//! macro of yours, to make one test of each.
//!
//! Not in here: promises about time and caps. A backend whose clock is elsewhere cannot be told what
//! time it is; those are tested beside each backend.
//!
//! A case panics when the promise is broken.

mod append;
mod claims;
mod end;
mod find;
mod fixture;
mod owner;
mod takeover;

use crate::contract::{Call, Journal};

pub use append::*;
pub use claims::*;
pub use end::*;
pub use find::*;
pub use owner::*;
pub use takeover::*;

/// One promise as a function.
pub type Case = fn(&dyn Journal) -> Call<'_, ()>;

/// Calls a macro with the names of all cases, separated by blanks.
///
/// ```
/// macro_rules! count {
///     ($($case:ident)*) => { [$(stringify!($case)),*].len() };
/// }
/// assert_eq!(streamweld_journal::for_each_case!(count), streamweld_journal::conformance::CASES.len());
/// ```
#[macro_export]
macro_rules! for_each_case {
    ($each:ident) => {
        $each! {
            opened_log_stands_at_one
            open_takes_only_the_first_entry
            open_twice_is_refused
            append_grows_the_log_by_what_is_staged
            append_takes_no_more_than_it_names
            append_behind_another_predecessor_changes_nothing
            the_same_batch_again_changes_nothing
            append_to_no_log_is_told_so
            appending_shows_nothing_to_readers
            digest_is_of_the_last_entry
            finish_stands_as_terminal
            finish_takes_what_is_staged_along
            finish_behind_another_predecessor_changes_nothing
            finish_of_no_log_is_told_so
            nothing_follows_a_terminal
            adopt_hands_the_log_to_a_higher_epoch
            adopt_needs_the_last_entry
            adopt_needs_the_writer_before
            an_adoption_that_stands_is_a_yes_again
            adopt_of_no_log_is_told_so
            an_older_epoch_is_fenced
            an_epoch_that_nobody_adopted_writes_nothing
            an_id_that_never_was_is_unknown
            a_log_is_found_with_its_access
            a_finished_log_is_found
            a_log_is_unknown_to_whom_it_is_not_for
            a_log_is_found_for_a_reader_anywhere_in_it
            what_the_ring_let_go_is_read_in_order_or_refused
            removed_log_leaves_no_trace
            removing_nothing_is_fine
            first_claim_wins
            claiming_again_wins_again
            second_claim_is_told_of_the_first
            claim_outlives_the_opening
            body_is_told_once_known
            body_needs_the_claim
            release_frees_the_key
            release_needs_the_claim
            removing_the_log_frees_its_key
            a_request_is_kept_until_the_end
            no_request_of_no_log
            what_is_beside_entries_is_given_in_order
            nothing_is_beside_no_log
            an_adopted_log_goes_on_in_a_window_of_its_own
            replicas_are_the_others
            a_word_is_said_to_nobody
        }
    };
}

macro_rules! table {
    ($($case:ident)*) => {
        /// Every case with its name.
        pub const CASES: &[(&str, Case)] = &[$((stringify!($case), |journal| Call::under_way($case(journal)))),*];
    };
}
for_each_case!(table);

/// Runs every case, each on a backend of its own.
pub async fn all<J: Journal>(make: impl Fn() -> J) {
    for (_, case) in CASES {
        case(&make()).await;
    }
}

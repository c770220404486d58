//! How often what came of attempts, for metrics.

/// Attempts at one member with one outcome, since the fleet was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The name of the member.
    pub backend: String,
    /// `answered` (a status below 400), `client_error`, `server_error`, or why there was no response head
    /// ([`ErrorKind::as_str`](crate::ErrorKind::as_str)).
    pub outcome: &'static str,
    /// How many. One whose caller left before there was an outcome is in none.
    pub count: u64,
}

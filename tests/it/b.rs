//! How answers end, what of them is written, and what the network does to them.

#[path = "abort.rs"]
mod abort;
#[path = "ends.rs"]
mod ends;
#[path = "faults.rs"]
mod faults;
#[path = "profile.rs"]
mod profile;
#[path = "upstream_answers.rs"]
mod upstream_answers;

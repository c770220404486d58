//! Reading: resume, joins, cursors, access, stop, state.

#[path = "access.rs"]
mod access;
#[path = "cursors.rs"]
mod cursors;
#[path = "fan_out.rs"]
mod fan_out;
#[path = "resume.rs"]
mod resume;
#[path = "rounds.rs"]
mod rounds;
#[path = "state.rs"]
mod state;
#[path = "stop.rs"]
mod stop;

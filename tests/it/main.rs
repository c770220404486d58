//! Stories over real sockets, one module for each capability.

mod abort;
mod access;
mod admin;
mod clients;
mod cross_origin;
mod cursors;
mod early;
mod ends;
mod fan_out;
mod faults;
mod first;
mod idempotency;
mod journal_loss;
mod orphan;
mod profile;
mod resume;
mod retry_join;
mod rounds;
mod shutdown;
mod smuggling;
mod state;
mod stop;
mod tidy;
mod transparent;
mod upstream_answers;
mod versions;

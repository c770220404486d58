//! Lives: orphans, repeats, keys, shutdown; a journal that fails; pass-through; operators.

#[path = "admin.rs"]
mod admin;
#[path = "idempotency.rs"]
mod idempotency;
#[path = "journal_loss.rs"]
mod journal_loss;
#[path = "orphan.rs"]
mod orphan;
#[path = "retry_join.rs"]
mod retry_join;
#[path = "shutdown.rs"]
mod shutdown;
#[path = "smuggling.rs"]
mod smuggling;
#[path = "transparent.rs"]
mod transparent;
#[path = "versions.rs"]
mod versions;

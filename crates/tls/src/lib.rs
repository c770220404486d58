//! Certificates and keys in files, and what a listener needs of them. No socket here, and no HTTP but its names in ALPN.
//!
//! Files are read when they are asked for and at no other time: whoever wants them to be replaced while it runs loads them
//! again, and keeps what it had when that fails. What an error says names a file and shows nothing of what is in it.

mod listener;
pub mod pem;

pub use listener::{Clients, Files, Listener};
pub use pem::FileError;

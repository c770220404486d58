//! HTTP/1.1 towards a backend.
//!
//! A connection has no task and no queue: whoever waits for a response drives it, first as
//! `exchange`, which sends the request and reads the head, and then as the response's `body`, which
//! owns the socket until its end. So a response costs no wake-up but its reader's own, dropping it
//! closes the socket at once, and reading reads as much as one system call gives.
//!
//! Reads go through one buffer per thread (`buffer`), so a stream that waits holds none.
//!
//! What a byte means is decided in pure modules, which the tests cut at every place and a fuzz
//! target feeds: `receiving` and
//! `response` (heads), `chunked` and `payload` (bodies). What is believed of a head
//! is in [`crate::head`].
//!
//! It does not pipeline, follows no redirect, waits for no `100 Continue`, and sends a request body
//! only while somebody polls: a caller that stops reading the response stops that, too.

mod body;
mod buffer;
mod chunked;
mod connection;
mod exchange;
mod payload;
mod receiving;
mod request;
mod response;
mod sending;

#[cfg(test)]
mod check;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

pub(crate) use body::Body;
pub(crate) use connection::Connection;

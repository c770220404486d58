//! The read buffer that all streams of a thread share.
//!
//! A read is large, so that a backlog is taken in few of them, and what it brings is used or copied
//! before anything else can read. So one buffer is enough, and an idle stream costs none.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Reads once and hands over what came, which is nothing at the end of the connection.
pub(crate) fn poll_read<T>(
    io: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    take: impl FnOnce(&mut [u8]) -> T,
) -> Poll<io::Result<T>> {
    BUFFER.with_borrow_mut(|buffer| {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(io).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(take(buffer.filled_mut())))
    })
}

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; SIZE].into_boxed_slice());
}

/// A few hundred tokens. A socket seldom has more ready.
const SIZE: usize = 64 * 1024;

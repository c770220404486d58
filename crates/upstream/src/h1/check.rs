//! Reads a response with the pure parts of this module, as reads of any size bring it, and holds the
//! result against itself and the oracle. The fuzz target includes this file by path.

use http::Method;

use super::naive;
use super::payload::Payload;
use super::receiving::Receiving;
use crate::head::{Asked, BadHead, Framing};

/// The most bytes of a head here.
pub(crate) const MAX_HEAD: usize = 8 * 1024;

/// What became of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) head: Head,
    pub(crate) payload: Vec<u8>,
    pub(crate) trailers: Option<Vec<(String, Vec<u8>)>>,
    pub(crate) end: End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    Open,
    Bad(BadHead),
    Whole {
        status: u16,
        headers: Vec<(String, Vec<u8>)>,
        framing: Framing,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Open,
    Bad,
    /// The end of the body; whether the next response could start there.
    Whole(bool),
}

pub(crate) fn asked(method: Method) -> Asked {
    Asked {
        method,
        upgrade: false,
    }
}

/// Feeds `reads` as one response.
pub(crate) fn run(reads: &[&[u8]], asked: &Asked) -> Outcome {
    let mut receiving = Receiving::new(asked, MAX_HEAD);
    let mut outcome = Outcome {
        head: Head::Open,
        payload: Vec::new(),
        trailers: None,
        end: End::Open,
    };
    let mut body: Option<Payload> = None;
    for read in reads.iter().filter(|read| !read.is_empty()) {
        let mut read = read.to_vec();
        if body.is_none() {
            match receiving.take(&read) {
                Ok(None) => continue,
                Err(error) => {
                    outcome.head = Head::Bad(error);
                    return outcome;
                }
                Ok(Some(received)) => {
                    outcome.head = Head::Whole {
                        status: received.head.status.as_u16(),
                        headers: pairs(&received.head.headers),
                        framing: received.framing,
                    };
                    read = received.rest;
                    body = Some(Payload::new(received.framing));
                }
            }
        }
        let body = body.as_mut().expect("made above");
        if body.failed().is_none() {
            let taken = body.take(&mut read);
            outcome.payload.extend_from_slice(&read[taken]);
        }
    }
    if let Some(body) = &mut body {
        outcome.trailers = body.take_trailers().map(|trailers| pairs(&trailers));
        assert!(!body.has_trailers());
        outcome.end = match body.failed() {
            Some(_) => End::Bad,
            None if body.is_done() => End::Whole(body.leaves_connection()),
            None => End::Open,
        };
    }
    outcome
}

fn pairs(headers: &http::HeaderMap) -> Vec<(String, Vec<u8>)> {
    let pairs = headers.iter();
    pairs
        .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect()
}

/// Cuts `input` into reads of the given sizes; what is left over is the last read.
pub(crate) fn cut<'i>(mut input: &'i [u8], sizes: &[usize]) -> Vec<&'i [u8]> {
    let mut reads = Vec::new();
    for &size in sizes {
        let (read, rest) = input.split_at(size.min(input.len()));
        reads.push(read);
        input = rest;
    }
    reads.push(input);
    reads
}

/// However a response is cut, it is the same one. A chunked body is what the oracle says.
pub(crate) fn check(input: &[u8], method: &Method, sizes: &[usize]) {
    let asked = asked(method.clone());
    let whole = run(&[input], &asked);
    assert_eq!(run(&cut(input, sizes), &asked), whole, "cut by {sizes:?}");
    let body = [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        input,
    ]
    .concat();
    check_chunked(&body, input, sizes);
}

fn check_chunked(response: &[u8], body: &[u8], sizes: &[usize]) {
    let outcome = run(&cut(response, sizes), &asked(Method::GET));
    let (payload, end) = naive::chunked(body);
    assert_eq!(outcome.payload, payload);
    let trailers = outcome.trailers.map_or(0, |trailers| trailers.len());
    match end {
        naive::Body::Bad => assert_eq!(outcome.end, End::Bad),
        naive::Body::Open => assert_eq!(outcome.end, End::Open),
        naive::Body::Whole {
            trailers: lines,
            behind,
        } => {
            assert_eq!(outcome.end, End::Whole(behind == 0));
            assert_eq!(trailers, lines);
        }
    }
}

/// One input of the fuzz target: how to cut, and what.
pub(crate) fn fuzz(file: &[u8]) {
    let Some((&[method, first, second], input)) = file.split_first_chunk() else {
        return;
    };
    let method = if method % 2 == 0 {
        Method::GET
    } else {
        Method::HEAD
    };
    check(input, &method, &[usize::from(first), usize::from(second)]);
    check(input, &method, &vec![1; input.len().min(MAX_HEAD)]);
}

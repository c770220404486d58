//! Another way to a backend than TCP: for simulations, whose network has no sockets.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// Connects to a host and a port, in the clear.
#[derive(Clone)]
pub struct Dialer(Arc<Dial>);

type Dial = dyn Fn(&str, u16) -> Dialling + Send + Sync;
type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

impl Dialer {
    /// Asks `dial` for each connection.
    pub fn new<F, S>(dial: impl Fn(&str, u16) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: Stream,
    {
        Self(Arc::new(move |host, port| {
            let dialling = dial(host, port);
            Box::pin(async move { dialling.await.map(|stream| Box::new(stream) as _) })
        }))
    }

    pub(crate) async fn dial(&self, host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
        (self.0)(host, port).await
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").finish_non_exhaustive()
    }
}

/// The same one.
impl PartialEq for Dialer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Dialer {}

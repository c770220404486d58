//! Sockets to Redis: TCP with or without TLS, Unix, and what a dialer of the caller's makes.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Whatever leads to the server.
pub(crate) type Socket = Box<dyn Duplex>;

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for S {}

/// Another way to a server than TCP, for simulations, whose network has no sockets.
#[derive(Clone)]
pub struct Dialer(Arc<Dial>);

type Dial = dyn Fn(&str, u16) -> Dialling + Send + Sync;
type Dialling = Pin<Box<dyn Future<Output = io::Result<Socket>> + Send>>;

impl Dialer {
    /// Asks `dial` for each connection to a host and a port.
    pub fn new<F, S>(dial: impl Fn(&str, u16) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: Duplex,
    {
        Self(Arc::new(move |host, port| {
            let dialling = dial(host, port);
            Box::pin(async move { dialling.await.map(|stream| Box::new(stream) as _) })
        }))
    }

    pub(crate) async fn dial(&self, host: &str, port: u16) -> io::Result<Socket> {
        (self.0)(host, port).await
    }
}

pub(crate) async fn unix(path: &Path) -> io::Result<Socket> {
    Ok(Box::new(UnixStream::connect(path).await?))
}

pub(crate) async fn tcp(host: &str, port: u16) -> io::Result<Socket> {
    Ok(Box::new(connect(host, port).await?))
}

pub(crate) async fn tls(host: &str, port: u16, trust: RootCertStore) -> io::Result<Socket> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| io::ErrorKind::Other)?
        .with_root_certificates(trust)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let stream = connect(host, port).await?;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await?;
    Ok(Box::new(stream))
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(Duration::from_secs(15)))?;
    // A peer that is gone is noticed by the kernel too, however little is sent.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// The certificates that this machine trusts, which are read once, and those in a file, which may change.
///
/// # Errors
/// Those of the file. Without certificates of the machine nothing is trusted, which is told by the handshake.
pub(crate) async fn trust(file: Option<PathBuf>) -> io::Result<RootCertStore> {
    // No worker thread waits for a file system.
    let read = tokio::task::spawn_blocking(move || {
        static MACHINE: OnceLock<RootCertStore> = OnceLock::new();
        let mut trusted = MACHINE
            .get_or_init(|| {
                let mut trusted = RootCertStore::empty();
                let native = rustls_native_certs::load_native_certs();
                trusted.add_parsable_certificates(native.certs);
                trusted
            })
            .clone();
        if let Some(file) = file {
            let text = std::fs::read(file)?;
            let before = trusted.len();
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|_| io::ErrorKind::InvalidData)?;
                let added = trusted.add(certificate);
                added.map_err(|_| io::ErrorKind::InvalidData)?;
            }
            if trusted.len() == before {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(trusted)
    });
    read.await
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

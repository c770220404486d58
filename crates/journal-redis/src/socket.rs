//! Sockets to Redis: TCP with or without TLS, and Unix.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Whatever leads to the server.
pub(crate) type Socket = Box<dyn Duplex>;

/// Bytes both ways.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for S {}

pub(crate) async fn unix(path: &Path) -> io::Result<Socket> {
    Ok(Box::new(UnixStream::connect(path).await?))
}

pub(crate) async fn tcp(host: &str, port: u16) -> io::Result<Socket> {
    Ok(Box::new(connect(host, port).await?))
}

pub(crate) async fn tls(host: &str, port: u16) -> io::Result<Socket> {
    let config = tokio::task::spawn_blocking(trust)
        .await
        .map_err(|_| io::ErrorKind::Other)??;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let stream = connect(host, port).await?;
    let stream = TlsConnector::from(config).connect(name, stream).await?;
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

/// The certificates that this machine trusts, read once.
fn trust() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| io::ErrorKind::Other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}

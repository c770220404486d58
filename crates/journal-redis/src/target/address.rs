//! Where a server is, and as whom to log in there.

use std::io;
use std::path::PathBuf;

use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};

use super::BadTarget;
use crate::link::ConnectError;
use crate::socket::{self, Socket};

/// One server.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) at: ConnectionAddr,
    pub(super) tls: bool,
    pub(super) login: RedisConnectionInfo,
}

impl Address {
    /// Reads `redis://`, `rediss://` or `redis+unix://`.
    pub(super) fn parse(url: &str) -> Result<Self, BadTarget> {
        // TLS is ours, so the client library is not asked for it. Certificates that are not checked protect nothing,
        // so the fragment that would ask for that is refused.
        let (tls, plain) = match url.strip_prefix("rediss://") {
            Some(rest) => (true, format!("redis://{rest}")),
            None => (false, url.to_owned()),
        };
        if plain.contains('#') {
            return Err(BadTarget);
        }
        let info = plain.into_connection_info().map_err(|_| BadTarget)?;
        Ok(Self {
            at: info.addr().clone(),
            tls,
            login: info.redis_settings().clone().set_skip_set_lib_name(),
        })
    }

    /// The same server elsewhere.
    pub(super) fn moved_to(&self, host: String, port: u16) -> Self {
        Self {
            at: ConnectionAddr::Tcp(host, port),
            ..self.clone()
        }
    }

    pub(super) async fn dial(&self, ca_file: Option<PathBuf>) -> Result<Socket, ConnectError> {
        let socket = match &self.at {
            ConnectionAddr::Tcp(host, port) if self.tls => {
                let trust = socket::trust(ca_file).await;
                let trust = trust.map_err(|error| ConnectError::CaFile(error.kind()))?;
                socket::tls(host, *port, trust).await
            }
            ConnectionAddr::Tcp(host, port) => socket::tcp(host, *port).await,
            ConnectionAddr::Unix(path) => socket::unix(path).await,
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        socket.map_err(|error| ConnectError::Io(error.kind()))
    }
}

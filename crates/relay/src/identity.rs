//! Who a replica is, and whom it believes: its certificate, the key to it, and the CA of all of them.
//!
//! The files are read anew for each connection, so that certificates may be replaced at any time, as long as all three
//! belong together by then. While they do not, what they were last is used. A certificate that the others would not believe
//! is refused like one that cannot be read: a relay that nobody can use shows it only once Redis is away.

mod believed;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use self::believed::Shown;

/// Where the three lie, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate of this replica, and those between it and the CA.
    pub certificate: PathBuf,
    /// The key to it.
    pub key: PathBuf,
    /// The CA that the certificates of all replicas come from. Its certificates may be several while it is replaced.
    pub ca: PathBuf,
}

impl Files {
    /// Reads them, to see whether they can be used by a replica for which others look under `name`.
    ///
    /// # Errors
    /// They cannot.
    pub fn check(&self, name: &str) -> Result<(), IdentityError> {
        load(self, name).map(|_| ())
    }
}

/// Why the files cannot be used. The text names the file and shows nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It cannot be read, or is no PEM of the right kind.
    #[error("{} cannot be used: {reason}", file.display())]
    File {
        /// Which of them.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// They do not belong together.
    #[error("certificate, key and CA do not go together: {0}")]
    Together(String),
    /// No other replica would believe the certificate.
    #[error("{0}")]
    Disbelieved(String),
}

/// Both sides of what the files say.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
}

/// The newest that was good.
pub(crate) struct Current {
    files: Files,
    /// What others look for in the certificate.
    name: String,
    last: Mutex<Last>,
}

struct Last {
    good: Identity,
    /// It was told that the files are not good any more.
    is_told: bool,
}

impl Current {
    /// Reads them for the first time.
    pub(crate) fn load(files: Files, name: String) -> Result<Self, IdentityError> {
        let last = Last {
            good: load(&files, &name)?,
            is_told: false,
        };
        Ok(Self {
            files,
            name,
            last: Mutex::new(last),
        })
    }

    /// Reads them again.
    pub(crate) async fn now(self: &Arc<Self>) -> Identity {
        let this = Arc::clone(self);
        // No worker thread waits for a file system.
        let read = tokio::task::spawn_blocking(move || this.read()).await;
        read.unwrap_or_else(|_| self.lock().good.clone())
    }

    fn read(&self) -> Identity {
        let loaded = load(&self.files, &self.name);
        let mut last = self.lock();
        match loaded {
            Ok(identity) => {
                last.good = identity;
                last.is_told = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut last.is_told, true) {
                    tracing::warn!(%error, "the certificates of the relay cannot be used; those from before are");
                }
            }
        }
        last.good.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Last> {
        // Replaced in single steps.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(files: &Files, name: &str) -> Result<Identity, IdentityError> {
    let bad = |file: &PathBuf, reason: String| IdentityError::File {
        file: file.clone(),
        reason,
    };
    let certificates = |file: &PathBuf| {
        let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
        let read: Vec<CertificateDer<'static>> = read.map_err(|it| bad(file, it.to_string()))?;
        if read.is_empty() {
            return Err(bad(file, "there is no certificate in it".to_owned()));
        }
        Ok(read)
    };
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| bad(&files.key, error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.ca)? {
        roots
            .add(certificate)
            .map_err(|error| bad(&files.ca, error.to_string()))?;
    }
    let together = |error: rustls::Error| {
        let told = match &error {
            rustls::Error::InvalidCertificate(error) => believed::told(error),
            _ => None,
        };
        IdentityError::Together(told.map_or_else(|| error.to_string(), str::to_owned))
    };
    let roots = Arc::new(roots);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| bad(&files.ca, error.to_string()))?;
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(VERSIONS)
        .map_err(together)?
        .with_client_cert_verifier(verifier.clone())
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(together)?;
    server.alpn_protocols = vec![ALPN.to_vec()];
    let shown = Shown {
        chain: &chain,
        roots: &roots,
        name,
        files: (&files.certificate, &files.ca),
    };
    shown
        .check(&*verifier, provider.clone())
        .map_err(IdentityError::Disbelieved)?;
    Ok(Identity {
        server: Arc::new(server),
        client: Arc::new(client(provider, roots, chain, key).map_err(together)?),
    })
}

fn client(
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, rustls::Error> {
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    client.alpn_protocols = vec![ALPN.to_vec()];
    Ok(client)
}

/// Replicas speak with replicas only, so nothing older has to be spoken.
const VERSIONS: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];
/// HTTP/2, and nothing else.
const ALPN: &[u8] = b"h2";

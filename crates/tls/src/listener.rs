//! What a listener shows, and whom it lets in.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ServerConfig, SupportedProtocolVersion};

use crate::pem::{self, FileError};

/// Where it stands, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// The key to it.
    pub key: PathBuf,
    /// Whose certificates clients need. `None`: they need none.
    pub client_ca: Option<PathBuf>,
}

/// What becomes of a client without a certificate, where one is asked for. One with a certificate that is not of the
/// authority is let in by neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// It is not let in.
    Certified,
    /// It is let in, and whoever answers it looks at what it may.
    CertifiedOrNot,
}

/// TLS of one listener. A clone shares it, with the sessions that clients resume.
#[derive(Clone)]
pub struct Listener {
    config: Arc<ServerConfig>,
    expires: Option<SystemTime>,
    asks: bool,
}

impl Listener {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be used, or they do not belong together. A certificate that has expired is none: clients are told so
    /// by what checks it, and those that do not check it are served.
    pub fn load(files: &Files, clients: Clients) -> Result<Self, FileError> {
        let chain = pem::certificates(&files.certificate)?;
        let key = pem::key(&files.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let expires = pem::expires(&chain);
        let bad = |error: rustls::Error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = files.certificate.display();
                FileError::new(&files.key, format!("it is not the key to {certificate}"))
            }
            error => FileError::new(&files.certificate, error),
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(VERSIONS)
            .map_err(bad)?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let roots = Arc::new(pem::roots(file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = match clients {
                    Clients::Certified => verifier,
                    Clients::CertifiedOrNot => verifier.allow_unauthenticated(),
                };
                let verifier: Arc<dyn ClientCertVerifier> = verifier
                    .build()
                    .map_err(|error| FileError::new(file, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(bad)?;
        config.alpn_protocols = ALPN.iter().map(|name| name.to_vec()).collect();
        Ok(Self {
            config: Arc::new(config),
            expires,
            asks: files.client_ca.is_some(),
        })
    }

    /// What the handshake needs.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// When the first certificate that it shows ends, where that can be read.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// Clients are asked for a certificate.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks
    }
}

impl fmt::Debug for Listener {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("expires", &self.expires)
            .field("asks", &self.asks)
            .finish_non_exhaustive()
    }
}

const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
/// HTTP/2 where the client speaks it.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("streamweld-tls-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, text).expect("a temporary file");
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    fn pair() -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.not_after = date_time_ymd(2100, 1, 1);
        let certificate = params.self_signed(&key).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    #[track_caller]
    fn refused(files: &Files, expected: &str) {
        let error = Listener::load(files, Clients::Certified).expect_err("is refused");
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_belongs_together_is_taken_and_says_when_it_ends() {
        let (folder, (certificate, key)) = (Folder::new("well"), pair());
        let certificate = folder.file("c", &certificate);
        let files = Files {
            client_ca: Some(certificate.clone()),
            certificate,
            key: folder.file("k", &key),
        };
        let listener = Listener::load(&files, Clients::Certified).expect("is taken");
        let seconds = |at: SystemTime| {
            at.duration_since(SystemTime::UNIX_EPOCH)
                .map(|s| s.as_secs())
        };
        // 2100-01-01, by `date -u -d 2100-01-01 +%s`.
        assert!(matches!(
            listener.expires().map(seconds),
            Some(Ok(4_102_444_800))
        ));
        assert!(listener.asks());
    }

    #[test]
    fn what_does_not_is_refused_by_its_name() {
        let folder = Folder::new("refused");
        let ((certificate, key), (_, other)) = (pair(), pair());
        let well = Files {
            certificate: folder.file("certificate", &certificate),
            key: folder.file("key", &key),
            client_ca: None,
        };
        let empty = folder.file("empty", "");
        let with = |change: fn(&mut Files) -> &mut PathBuf, to: &PathBuf| {
            let mut files = well.clone();
            change(&mut files).clone_from(to);
            files
        };
        let is_other = with(|it| &mut it.key, &folder.file("other", &other));
        refused(&is_other, "other cannot be used: it is not the key to");
        refused(
            &with(|it| &mut it.key, &well.certificate),
            "certificate cannot be used",
        );
        refused(
            &with(|it| &mut it.certificate, &empty),
            "empty cannot be used: there is no",
        );
        refused(
            &with(|it| &mut it.certificate, &well.key),
            "key cannot be used: there is no",
        );
        refused(
            &with(|it| &mut it.certificate, &folder.0.join("none")),
            "none cannot be used",
        );
        let mut files = well.clone();
        files.client_ca = Some(empty);
        refused(&files, "empty cannot be used: there is no");
    }
}

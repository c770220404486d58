//! PEM files.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be used: {reason}", file.display())]
pub struct FileError {
    /// Which.
    pub file: PathBuf,
    /// What is wrong with it, and with nothing of what is in it.
    pub reason: String,
}

impl FileError {
    pub(crate) fn new(file: &Path, reason: impl ToString) -> Self {
        Self {
            file: file.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// The certificates in a file, one at least.
///
/// # Errors
/// It cannot be read, or there are none in it.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let read: Vec<CertificateDer<'static>> = read.map_err(|error| FileError::new(file, error))?;
    if read.is_empty() {
        return Err(FileError::new(file, "there is no certificate in it"));
    }
    Ok(read)
}

/// The first key in a file.
///
/// # Errors
/// It cannot be read, or there is none in it.
pub fn key(file: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| FileError::new(file, error))
}

/// The authorities in a file.
///
/// # Errors
/// It cannot be read, there are none in it, or one of them is no authority.
pub fn roots(file: &Path) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.map_err(|error| FileError::new(file, error))?;
    }
    Ok(roots)
}

/// When the first of these certificates ends. `None`: one of them cannot be read, which others may judge.
#[must_use]
pub fn expires(chain: &[CertificateDer<'_>]) -> Option<SystemTime> {
    let ends = chain.iter().map(|certificate| {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let seconds = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().min()
}

//! Whether other replicas would believe a certificate: what they look at, looked at beforehand.
//!
//! Each replica answers and asks, so its certificate has to do for both; and all have one CA, so whoever would not be
//! believed by itself is not believed by the others either.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error, RootCertStore};

/// Which certificate, and who is to believe it.
pub(super) struct Shown<'a> {
    pub(super) chain: &'a [CertificateDer<'static>],
    /// The CA of all replicas.
    pub(super) roots: &'a Arc<RootCertStore>,
    /// What they look for in it.
    pub(super) name: &'a str,
    /// Where it lies, and where the CA does, for the message.
    pub(super) files: (&'a Path, &'a Path),
}

impl Shown<'_> {
    /// Looks at it as those who are asked by this replica do, and as those who ask it.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub(super) fn check(
        &self,
        clients: &dyn ClientCertVerifier,
        provider: Arc<CryptoProvider>,
    ) -> Result<(), String> {
        let now = UnixTime::now();
        let Some((own, between)) = self.chain.split_first() else {
            return Err("there is no certificate".to_owned());
        };
        clients
            .verify_client_cert(own, between, now)
            .map_err(|error| self.tell(&error, Use::Asks))?;
        let servers = WebPkiServerVerifier::builder_with_provider(self.roots.clone(), provider)
            .build()
            .map_err(|error| error.to_string())?;
        let name = ServerName::try_from(self.name.to_owned())
            .map_err(|_| format!("{} is no name that a certificate can have", self.name))?;
        servers
            .verify_server_cert(own, between, &name, &[], now)
            .map_err(|error| self.tell(&error, Use::Answers))?;
        Ok(())
    }

    fn tell(&self, error: &Error, is_for: Use) -> String {
        let (file, ca) = (self.files.0.display(), self.files.1.display());
        let Error::InvalidCertificate(error) = error else {
            return format!("{file} is of no use: {error}");
        };
        match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
                "the certificate in {file} does not come from the CA in {ca}; issue it with that CA, or name its own \
                 (what lies between the two belongs into {file} as well)"
            ),
            CertificateError::ExpiredContext { time, not_after } => format!(
                "a certificate in {file} expired {} ago; issue a new one",
                span(*time, *not_after)
            ),
            CertificateError::Expired => {
                format!("a certificate in {file} has expired; issue a new one")
            }
            CertificateError::NotValidYetContext { time, not_before } => format!(
                "a certificate in {file} is not valid before {} from now; see whether the clock is right",
                span(*not_before, *time)
            ),
            CertificateError::NotValidYet => {
                format!("a certificate in {file} is not valid yet; see whether the clock is right")
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                let purpose = match is_for {
                    Use::Asks => "asks others (clientAuth)",
                    Use::Answers => "answers others (serverAuth)",
                };
                format!(
                    "the certificate in {file} is not for whoever {purpose}; a replica does both, so issue it with the \
                     extended key usages serverAuth and clientAuth, or with none"
                )
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let presented = match error {
                    CertificateError::NotValidForNameContext { presented, .. } => {
                        presented.join(", ")
                    }
                    _ => String::new(),
                };
                format!(
                    "the certificate in {file} is not for {}, which other replicas look for: the name that was set for \
                     all, or else the host at which they reach this one; it has {} as subjectAltName",
                    self.name,
                    if presented.is_empty() {
                        "nothing"
                    } else {
                        &presented
                    },
                )
            }
            other => told(other).map_or_else(
                || format!("the certificate in {file} is of no use: {other}"),
                |version| format!("the certificate in {file} is of no use: {version}"),
            ),
        }
    }
}

/// What a certificate is looked at for.
#[derive(Clone, Copy)]
enum Use {
    Asks,
    Answers,
}

/// What an error says whose own words help nobody. `None`: it is another one.
pub(super) fn told(error: &CertificateError) -> Option<&'static str> {
    // The library has no variant for it.
    let is_old = format!("{error:?}").contains("UnsupportedCertVersion");
    is_old.then_some(
        "it is of X.509 version 1, which has no names and no usages; issue one of version 3 (with openssl, by -addext or -extfile)",
    )
}

fn span(later: UnixTime, earlier: UnixTime) -> String {
    let span = Duration::from_secs(later.as_secs().saturating_sub(earlier.as_secs()));
    let (amount, unit) = match span.as_secs() {
        secs @ 0..=119 => (secs, "s"),
        secs @ 120..=7_199 => (secs / 60, "min"),
        secs @ 7_200..=172_799 => (secs / 3_600, "h"),
        secs => (secs / 86_400, "days"),
    };
    format!("{amount} {unit}")
}

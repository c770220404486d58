//! TLS of the two listeners, as it was asked for.

use streamweld_tls::{Clients, FileError, Files, Listener};

use crate::args::Serve;

/// The files of the data listener. `None`: it speaks in the clear, or one of them was not named.
pub(crate) fn data(args: &Serve) -> Option<Files> {
    Some(Files {
        certificate: args.tls_cert_file.clone()?,
        key: args.tls_key_file.clone()?,
        client_ca: args.tls_client_ca_file.clone(),
    })
}

/// Those of the admin listener.
pub(crate) fn admin(args: &Serve) -> Option<Files> {
    Some(Files {
        certificate: args.admin_tls_cert_file.clone()?,
        key: args.admin_tls_key_file.clone()?,
        client_ca: args.admin_tls_client_ca_file.clone(),
    })
}

/// Both, read.
///
/// # Errors
/// A file cannot be used (any more), or certificate and key do not belong together.
pub(crate) fn listeners(args: &Serve) -> Result<[Option<Listener>; 2], FileError> {
    let load = |files: Option<Files>, clients| {
        let loaded = files.map(|files| Listener::load(&files, clients));
        loaded.transpose()
    };
    Ok([
        load(data(args), Clients::Certified)?,
        // Probes have no certificate.
        load(admin(args), Clients::CertifiedOrNot)?,
    ])
}

//! How the settings of TLS go together.

use super::{Origin, Serve};
use crate::tls;

/// Every fault of theirs.
pub(super) fn faults(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    let data = [
        ("tls_cert_file", args.tls_cert_file.is_some()),
        ("tls_key_file", args.tls_key_file.is_some()),
        ("tls_client_ca_file", args.tls_client_ca_file.is_some()),
    ];
    let admin = [
        ("admin_tls_cert_file", args.admin_tls_cert_file.is_some()),
        ("admin_tls_key_file", args.admin_tls_key_file.is_some()),
        (
            "admin_tls_client_ca_file",
            args.admin_tls_client_ca_file.is_some(),
        ),
    ];
    let mut faults = Vec::new();
    for listener in [data, admin] {
        let [(certificate, has_certificate), (key, has_key), _] = listener;
        if has_certificate && has_key {
            continue;
        }
        // Each that is there needs those that are not.
        let there = listener.iter().find(|(_, is_there)| *is_there);
        let missing = [(certificate, has_certificate), (key, has_key)];
        let missing = missing.iter().find(|(_, is_there)| !is_there);
        if let (Some((there, _)), Some((missing, _))) = (there, missing) {
            faults.push(format!(
                "{} has no use without {}; name both, or leave both out",
                origin.name(there),
                origin.name(missing),
            ));
        }
    }
    if let Err(error) = tls::listeners(args) {
        faults.push(error.to_string());
    }
    faults
}

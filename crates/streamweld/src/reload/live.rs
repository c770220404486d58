//! Which settings hold at once when they are read again.

/// Those that a server takes while it runs ([`streamweld_server::Control::change`]), and the level of the log.
const LIVE: [&str; 36] = [
    "admin_tls_cert_file",
    "admin_tls_client_ca_file",
    "admin_tls_key_file",
    "admin_token_file",
    "attempts",
    "backend",
    "backend_name",
    "between_tokens_timeout",
    "body_time",
    "body_timeout",
    "compress",
    "cors_origin",
    "dialect",
    "durable_get",
    "first_token_timeout",
    "heartbeat",
    "journal_per_generation",
    "keep_credentials",
    "log_level",
    "max_duration",
    "max_event",
    "max_kept_body",
    "max_request_body",
    "migration",
    "migration_wait",
    "migrations",
    "orphan_policy",
    "request_key_file",
    "shutdown_grace",
    "tls_cert_file",
    "tls_client_ca_file",
    "tls_key_file",
    "url_lifetime",
    "url_prefix",
    "url_signing_key_file",
    "vouched",
];

/// Whether it holds at once; any other from the next start on. Each of these also changes with what is in the file that it
/// names.
pub(crate) fn is_live(setting: &str) -> bool {
    LIVE.contains(&setting)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    #[test]
    fn the_protocol_names_what_holds_at_once() {
        let protocol = include_str!("../../../../protocol.md");
        let (_, rest) = protocol.split_once("### 13.2").expect("a section");
        let (_, rest) = rest.split_once("these hold at once").expect("a list");
        let (list, _) = rest.split_once("each also with").expect("its end");
        let mut named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        named.sort_unstable();
        assert_eq!(named, LIVE);
    }

    #[test]
    fn they_are_settings() {
        let command = Args::command();
        let serve = command.find_subcommand("serve").expect("it is one");
        for setting in LIVE {
            assert!(
                serve.get_arguments().any(|known| known.get_id() == setting),
                "{setting}"
            );
        }
    }
}

//! Where traces go: as the setting says, or else as the standard variables do, which an operator of Kubernetes may have given to
//! every container.

use std::path::PathBuf;

use streamweld_server::config::{TracesConfig, TracesEndpoint};
use streamweld_upstream::BackendUrlError;

use crate::args::Serve;

/// A standard variable that cannot be used. Its value is not repeated.
#[derive(Debug, thiserror::Error)]
#[error(
    "{variable}: {fault}; write the place of a collector, such as http://127.0.0.1:4318, or take it away"
)]
pub(crate) struct BadVariable {
    variable: &'static str,
    fault: BackendUrlError,
}

const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const CERTIFICATES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
];
const PROTOCOLS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];
/// The one that is spoken.
const PROTOCOL: &str = "http/protobuf";

/// Where they go. `None`: there are none.
///
/// # Errors
/// A variable says where in a way that cannot be meant.
pub(crate) fn config(args: &Serve) -> Result<Option<TracesConfig>, BadVariable> {
    let told = args.otlp_endpoint.as_ref();
    let told = told.and_then(|endpoint| endpoint.checked().ok());
    of(told, variable)
}

/// Another way to speak than the one that there is, which the variables ask for.
pub(crate) fn other_protocol() -> Option<String> {
    let asked = PROTOCOLS.into_iter().find_map(variable)?;
    (asked != PROTOCOL).then_some(asked)
}

/// An empty one says nothing.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    (!value.trim().is_empty()).then(|| value.trim().to_owned())
}

fn of(
    told: Option<TracesEndpoint>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<TracesConfig>, BadVariable> {
    let is = |name, word: &str| variable(name).is_some_and(|said| said.eq_ignore_ascii_case(word));
    if is(DISABLED, "true") || is(EXPORTER, "none") {
        return Ok(None);
    }
    let bad = |variable| move |fault| BadVariable { variable, fault };
    let endpoint = match (told, variable(TRACES_ENDPOINT), variable(ENDPOINT)) {
        (Some(endpoint), _, _) => endpoint,
        (None, Some(whole), _) => TracesEndpoint::exact(&whole).map_err(bad(TRACES_ENDPOINT))?,
        (None, None, Some(base)) => base.parse().map_err(bad(ENDPOINT))?,
        (None, None, None) => return Ok(None),
    };
    let ca_file = CERTIFICATES.into_iter().find_map(&variable);
    Ok(Some(TracesConfig {
        ca_file: ca_file.map(PathBuf::from),
        ..TracesConfig::new(endpoint)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(told: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let told = told.map(|told| told.parse().unwrap());
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let config = of(told, variable).map_err(|bad| bad.to_string())?;
        Ok(config.map(|config| config.endpoint.host_and_port()))
    }

    #[test]
    fn the_setting_wins_and_then_the_nearest_variable() {
        let (base, exact) = (
            (ENDPOINT, "http://base:1"),
            (TRACES_ENDPOINT, "http://exact:2/t"),
        );
        let at = |place: &str| Ok(Some(place.to_owned()));
        assert_eq!(found(None, &[]), Ok(None));
        assert_eq!(found(None, &[base]), at("base:1"));
        assert_eq!(found(None, &[base, exact]), at("exact:2"));
        assert_eq!(found(Some("http://told:3"), &[base, exact]), at("told:3"));
    }

    #[test]
    fn what_is_switched_off_is_off() {
        for off in [(DISABLED, "true"), (DISABLED, "TRUE"), (EXPORTER, "none")] {
            assert_eq!(found(Some("http://told:3"), &[off]), Ok(None));
        }
        let on = [(DISABLED, "false"), (EXPORTER, "otlp")];
        assert!(found(Some("http://told:3"), &on).unwrap().is_some());
    }

    #[test]
    fn a_bad_variable_is_named_and_not_repeated() {
        for (name, value) in [(ENDPOINT, "http://u:secret@c"), (TRACES_ENDPOINT, "secret")] {
            let bad = found(None, &[(name, value)]).unwrap_err();
            assert!(bad.starts_with(name) && !bad.contains("secret"), "{bad}");
        }
    }
}

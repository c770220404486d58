//! What an operator says of a backend.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::time::Duration;

use http::uri::PathAndQuery;

use super::status::Rules;
use super::{Credential, Engine, Family};
use crate::{Backend, BackendUrl};

/// A backend, or a name behind which there are several.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// What logs, metrics and errors show: 1 to 64 visible ASCII characters, unlike any other.
    pub name: String,
    /// Where it is.
    pub url: BackendUrl,
    /// What the host of the URL stands for.
    pub reach: Reach,
    /// The software that answers there.
    pub engine: Engine,
    /// The dialects it is asked in.
    pub family: Family,
    /// Within one group, and only there, one backend may go on with what another began. The
    /// operator vouches that they answer alike.
    pub group: Option<String>,
    /// Its share of the attempts, compared with the others'.
    pub weight: NonZeroU32,
    /// Whose credential it is shown.
    pub credential: Credential,
    /// How it is asked whether it can take a request.
    pub health: HealthCheck,
}

impl Spec {
    /// One backend of weight 1 without a group, with its engine's family and health check, that is
    /// shown the caller's credential.
    pub fn new(name: impl Into<String>, url: BackendUrl, engine: Engine) -> Self {
        Self {
            name: name.into(),
            url,
            reach: Reach::Host,
            engine,
            family: engine.family(),
            group: None,
            weight: NonZeroU32::MIN,
            credential: Credential::PassThrough,
            health: HealthCheck::Engine,
        }
    }

    /// The path that probes ask for; none if nobody is to probe it.
    pub(super) fn health_path(&self) -> Option<PathAndQuery> {
        match &self.health {
            HealthCheck::Engine => self.engine.health_path().map(PathAndQuery::from_static),
            HealthCheck::Path(path) => Some(path.clone()),
            HealthCheck::Off => None,
        }
    }
}

/// One of which nothing is known but where it is.
impl From<Backend> for Spec {
    fn from(backend: Backend) -> Self {
        Self::new(backend.name(), backend.url().clone(), Engine::Unknown)
    }
}

/// What the host of a URL stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One backend. Each connection asks anew where the host is.
    Host,
    /// One backend at each address that the host's name leads to (a headless service). They are
    /// named `NAME-1`, `NAME-2` …: a new one gets the lowest number that is free.
    ///
    /// The answer of DNS is taken to be whole: an address that it leaves out is drained. Where a
    /// host has addresses of both families, those of the one that the system prefers are used.
    EveryAddress,
}

/// How a backend is asked whether it can take a request. A `2xx` within the timeout says yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthCheck {
    /// As the engine offers it ([`Engine::health_path`]). Not at all where it offers nothing: then
    /// only its attempts speak for or against it.
    Engine,
    /// With a `GET` of this path, behind the URL's prefix.
    Path(PathAndQuery),
    /// Not at all.
    Off,
}

/// When the fleet changes its mind about a member, and how often it looks. Every duration is between
/// 10 ms and a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How often a member is probed, give or take a fifth. Lower notices sooner and asks more.
    /// Default 5 s.
    pub probe_every: Duration,
    /// The most a probe may take, connecting included. A busy engine answers late, so too low takes
    /// out the busy ones. Default 3 s.
    pub probe_timeout: Duration,
    /// Probes that fail in a row before a member is down. Default 3.
    pub probe_failures: NonZeroU32,
    /// Probes that succeed in a row before one that was down gets attempts again. Default 2.
    pub probe_successes: NonZeroU32,
    /// Attempts that fail in a row before a member is quarantined; a refused connection is enough
    /// alone. Default 3.
    pub failed_attempts: NonZeroU32,
    /// How long the first quarantine lasts; each that follows closely lasts twice as long. Default 5 s.
    pub first_quarantine: Duration,
    /// The longest quarantine. Default 1 min.
    pub longest_quarantine: Duration,
    /// How often names are looked up, give or take a fifth: the resolver does not tell how long its
    /// answer holds. Default 10 s.
    pub lookup_every: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let times = |count| NonZeroU32::new(count).expect("not zero");
        Self {
            probe_every: Duration::from_secs(5),
            probe_timeout: Duration::from_secs(3),
            probe_failures: times(3),
            probe_successes: times(2),
            failed_attempts: times(3),
            first_quarantine: Duration::from_secs(5),
            longest_quarantine: Duration::from_secs(60),
            lookup_every: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// About how long it takes to find out that a member does not answer its probes.
    pub fn until_down(&self) -> Duration {
        self.probe_every.saturating_mul(self.probe_failures.get())
    }

    pub(super) fn rules(&self) -> Rules {
        Rules {
            failures: self.probe_failures.get(),
            successes: self.probe_successes.get(),
            failed_attempts: self.failed_attempts.get(),
            first_quarantine: self.first_quarantine,
            longest_quarantine: self.longest_quarantine,
        }
    }
}

/// What is wrong with the list of backends, or with how they are to be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Nobody could be told apart by it, or it would not fit into a log line.
    #[error("backend name {name:?} must be 1 to 64 visible ASCII characters")]
    Name {
        /// The name.
        name: String,
    },
    /// Two are called the same.
    #[error("two backends are named {name}")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// So short that it would keep a processor busy, or so long that it means never.
    #[error("{key} must be between 10ms and 1day")]
    Duration {
        /// Which field of [`Config`].
        key: &'static str,
    },
}

/// Everything that is wrong.
pub(super) fn check(specs: &[Spec], config: &Config) -> Vec<SpecError> {
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    for Spec { name, .. } in specs {
        let is_fit = (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
        if !is_fit {
            errors.push(SpecError::Name { name: name.clone() });
        } else if !names.insert(name) {
            errors.push(SpecError::DuplicateName { name: name.clone() });
        }
    }
    for (key, duration) in [
        ("probe_every", config.probe_every),
        ("probe_timeout", config.probe_timeout),
        ("first_quarantine", config.first_quarantine),
        ("longest_quarantine", config.longest_quarantine),
        ("lookup_every", config.lookup_every),
    ] {
        if !(SHORTEST..=LONGEST).contains(&duration) {
            errors.push(SpecError::Duration { key });
        }
    }
    errors
}

const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str) -> Spec {
        Spec::new(name, "http://engine/k3y".parse().unwrap(), Engine::Vllm)
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let long = "x".repeat(65);
        let specs = ["a", "", "a", "b c", &long, "10.0.0.7:80"].map(spec);
        let config = Config {
            longest_quarantine: Duration::MAX,
            lookup_every: Duration::ZERO,
            ..Config::default()
        };
        let named = |name: &str| SpecError::Name { name: name.into() };
        assert_eq!(
            check(&specs, &config),
            [
                named(""),
                SpecError::DuplicateName { name: "a".into() },
                named("b c"),
                named(&long),
                SpecError::Duration {
                    key: "longest_quarantine"
                },
                SpecError::Duration {
                    key: "lookup_every"
                },
            ]
        );
        assert_eq!(check(&[spec("a"), spec("b")], &Config::default()), []);
    }

    #[test]
    fn the_health_check_is_the_engines_unless_it_is_said_otherwise() {
        let mut spec = spec("a");
        assert_eq!(spec.health_path().unwrap(), "/health");
        spec.health = HealthCheck::Path(PathAndQuery::from_static("/live?deep=1"));
        assert_eq!(spec.health_path().unwrap(), "/live?deep=1");
        spec.health = HealthCheck::Off;
        assert_eq!(spec.health_path(), None);
        for engine in Engine::ALL {
            let spec = Spec::new("a", spec.url.clone(), engine);
            let path = spec.health_path().map(|path| path.to_string());
            assert_eq!(path.as_deref(), engine.health_path());
        }
    }

    #[test]
    fn a_spec_shows_no_address() {
        assert!(!format!("{:?}", spec("a")).contains("k3y"));
    }
}

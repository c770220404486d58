//! How single values are written on the command line. Each error says what to write instead.

mod backends;

use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytesize::ByteSize;
use http::HeaderName;
use serde_json::{Map, Value};
use streamweld_generation::migration::Policy;
use streamweld_generation::{CredentialHeaders, OrphanPolicy};
use streamweld_journal::StreamId;
use streamweld_journal_redis::{RedisUrl, UrlError};
use streamweld_mock::{BadScript, Script};
use streamweld_server::config::{DialectRoute, Secret, SigningKeys, TracesEndpoint};
use streamweld_upstream::fleet::{Credential, Family};
use streamweld_upstream::{BackendUrl, BackendUrlError, Client, UpstreamConfig};

use crate::journal::Place;

pub(crate) use self::backends::{Backends, Fault, Listed};

/// The URL of a backend as it was written.
///
/// People write passwords there, and the parser of the command line shows every value that it refuses. So it is told
/// of no fault; [`Url::checked`] tells it, without the text.
#[derive(Clone, Debug)]
pub(crate) struct Url(Result<BackendUrl, BackendUrlError>);

impl Url {
    /// The URL, if it is one.
    pub(crate) fn checked(&self) -> Result<BackendUrl, BackendUrlError> {
        self.0.clone()
    }
}

impl FromStr for Url {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.parse()))
    }
}

/// Where the journal is, as it was written. Told of no fault, as [`Url`] is.
#[derive(Clone, Debug)]
pub(crate) struct JournalPlace(Result<Place, UrlError>);

impl JournalPlace {
    /// The place, if it is one.
    pub(crate) fn checked(&self) -> Result<Place, UrlError> {
        self.0.clone()
    }
}

impl FromStr for JournalPlace {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.parse()))
    }
}

/// Where spans are sent, as it was written. Told of no fault, as [`Url`] is.
#[derive(Clone, Debug)]
pub(crate) struct Collector(Result<TracesEndpoint, BackendUrlError>);

impl Collector {
    /// The place, if it is one.
    pub(crate) fn checked(&self) -> Result<TracesEndpoint, BackendUrlError> {
        self.0.clone()
    }
}

impl FromStr for Collector {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.parse()))
    }
}

/// The URL of a journal in a file.
pub(crate) fn journal_file(file: PathBuf) -> std::io::Result<RedisUrl> {
    RedisUrl::from_file(&file)
}

/// Letters, digits, `-`, `.` and `_`: it stands in JSON, log lines and addresses of people's own tools, and is quoted
/// nowhere. As long as a label of DNS.
pub(crate) fn backend_name(text: &str) -> Result<String, String> {
    if (1..=63).contains(&text.len()) && text.bytes().all(in_a_name) {
        Ok(text.to_owned())
    } else {
        Err("a name is 1 to 63 of A-Z, a-z, 0-9, `-`, `.` and `_`".to_owned())
    }
}

fn in_a_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"-._".contains(&c)
}

/// The name of a backend that runs: one that DNS has led to has a number behind what was written.
pub(crate) fn backend_member(text: &str) -> Result<String, String> {
    if text.is_empty() || !text.bytes().all(in_a_name) {
        return Err("it is one of the names that `streamweld backends` lists".to_owned());
    }
    Ok(text.to_owned())
}

/// How often in a row.
pub(crate) fn times(text: &str) -> Result<NonZeroU32, String> {
    at_most(text, 100)
}

/// How many backends are asked for one answer.
pub(crate) fn attempts(text: &str) -> Result<NonZeroU32, String> {
    at_most(text, 16)
}

fn at_most(text: &str, most: u32) -> Result<NonZeroU32, String> {
    let count: Option<NonZeroU32> = text.parse().ok();
    count
        .filter(|count| count.get() <= most)
        .ok_or_else(|| format!("must be 1 to {most}"))
}

/// The one of these that somebody who wrote `word` may have meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(word, known), known));
    let best = known.max_by(|one, other| one.0.total_cmp(&other.0));
    // As near as the parser of the command line wants it for flags.
    best.filter(|(likeness, _)| *likeness > 0.7)
        .map(|(_, known)| known)
}

/// What a compatibility group may do: `GROUP=off`, `GROUP=exact`, `GROUP=prefill`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupPolicy {
    pub(crate) group: String,
    pub(crate) policy: Policy,
}

impl FromStr for GroupPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let how = "write it as GROUP=off, GROUP=exact or GROUP=prefill";
        let (group, policy) = text.split_once('=').ok_or(how)?;
        let policy = match policy {
            "off" => Policy::Off,
            "exact" => Policy::Exact,
            "prefill" => Policy::Prefill,
            _ => return Err(how.to_owned()),
        };
        let group = backend_name(group).map_err(|_| how)?;
        Ok(Self { group, policy })
    }
}

/// How often a backend is asked whether it is well, or for how long.
pub(crate) fn health_time(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60);
    duration(text).and_then(|value| {
        if bounds.contains(&value) {
            Ok(value)
        } else {
            Err("must be 10ms to 1day".to_owned())
        }
    })
}

/// A stream id.
pub(crate) fn stream_id(text: &str) -> Result<StreamId, String> {
    StreamId::parse(text).map_err(|_| {
        "a stream id is a ULID in lowercase, 26 characters, as `streamweld streams` lists them"
            .to_owned()
    })
}

/// How long a drain waits.
pub(crate) fn drain_time(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|value| {
        if value <= Duration::from_secs(600) {
            Ok(value)
        } else {
            Err("must be at most 10m; ask again to wait on".to_owned())
        }
    })
}

/// Where to listen. Names are not looked up: one may stand for several addresses.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "an address is an IP and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080"
            .to_owned()
    })
}

/// Where others reach a listener.
pub(crate) fn host_and_port(text: &str) -> Result<String, String> {
    let (host, port) = text
        .rsplit_once(':')
        .ok_or("write a host and a port, such as 10.0.0.1:7443 or replica-1.streamweld:7443")?;
    if port.parse::<u16>().unwrap_or_default() == 0 {
        return Err("the port is a number from 1 to 65535".to_owned());
    }
    let is_host = match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(bare) => bare
            .parse::<Ipv6Addr>()
            .is_ok_and(|it| !it.is_unspecified()),
        None => certified_name(host).is_ok() && host.parse() != Ok(Ipv4Addr::UNSPECIFIED),
    };
    if is_host {
        Ok(text.to_owned())
    } else {
        Err("the host is a name, or an IP that others can reach".to_owned())
    }
}

/// A name as it stands in a certificate.
pub(crate) fn certified_name(text: &str) -> Result<String, String> {
    let is_name = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    if text.len() <= 253 && text.split('.').all(is_name) {
        Ok(text.to_owned())
    } else {
        Err("a name is letters, digits, `-`, `_` and dots, such as relay.streamweld".to_owned())
    }
}

/// Where two servers are.
pub(crate) fn two_addresses(text: &str) -> Result<[SocketAddr; 2], String> {
    let (one, other) = text
        .split_once(',')
        .ok_or("write two addresses, such as 127.0.0.1:8081,127.0.0.1:8082")?;
    Ok([address(one)?, address(other)?])
}

/// A path, or a prefix that ends in `*`. What could never match is refused.
pub(crate) fn path_pattern(text: &str) -> Result<String, String> {
    let path = text.strip_suffix('*').unwrap_or(text);
    let fault = if !path.starts_with('/') {
        "a path begins with `/`, such as /feed or /live/*"
    } else if path.contains('*') {
        "a path may have a `*` only at its end, where it stands for any rest"
    } else if path.contains(['?', '#']) {
        "write the path alone, without a query or a fragment; it holds for any query"
    } else if path.starts_with("/v1/streams/") {
        "what is under /v1/streams/ is Streamweld's own"
    } else if !path.bytes().all(|c| c.is_ascii_graphic()) {
        "write it as a URL has it: a space as %20, other letters as the bytes of their UTF-8"
    } else {
        return Ok(text.to_owned());
    };
    Err(fault.to_owned())
}

/// `/app/chat=openai_chat`: a path or a prefix, and the dialect of its event streams.
pub(crate) fn dialect_route(text: &str) -> Result<DialectRoute, String> {
    // No name has a `=`, but a path may.
    let (path, name) = text
        .rsplit_once('=')
        .ok_or("write it as PATH=NAME, such as /app/chat=openai_chat or /mcp*=mcp")?;
    let path = path_pattern(path)?;
    DialectRoute::new(path, name).map_err(|error| format!("{error}, or none to pass it through"))
}

/// A header field that says who somebody is.
pub(crate) fn credential_header(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text
        .parse()
        .map_err(|_| "not the name of a header field; write it such as x-own-key".to_owned())?;
    let of_one_request = [
        "connection",
        "content-length",
        "date",
        "expect",
        "idempotency-key",
        "last-event-id",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-stainless-retry-count",
    ];
    if of_one_request.contains(&name.as_str()) || name.as_str().starts_with("x-streamweld-") {
        return Err(
            "its value differs from request to request, so no answer could be read again"
                .to_owned(),
        );
    }
    Ok(name)
}

/// `continue`, `cancel`, `cancel_after=60s`.
pub(crate) fn orphan_policy(text: &str) -> Result<OrphanPolicy, String> {
    match text.parse().map_err(|error| format!("{error}"))? {
        OrphanPolicy::CancelAfter(after) => bounded(after).map(OrphanPolicy::CancelAfter),
        policy => Ok(policy),
    }
}

/// The admin token in a file.
pub(crate) fn secret(file: PathBuf) -> std::io::Result<Secret> {
    Secret::from_file(&file)
}

/// The keys in a file that URLs are signed with.
pub(crate) fn signing_keys(file: PathBuf) -> std::io::Result<SigningKeys> {
    SigningKeys::from_file(&file)
}

/// What stands in front of a path, as a URL has it.
pub(crate) fn url_prefix(text: &str) -> Result<String, String> {
    let in_a_path = |c: u8| c.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:@".contains(&c);
    let fault = if !text.starts_with('/') || text.ends_with('/') {
        "a prefix begins with `/` and ends without one, such as /llm"
    } else if text.starts_with("//") {
        "what begins with `//` is a host for a browser"
    } else if !text.bytes().all(in_a_path) {
        "write it as the path of a URL has it: a space as %20, other letters as the bytes of their UTF-8"
    } else {
        return Ok(text.to_owned());
    };
    Err(fault.to_owned())
}

/// A file with a password, which is read again whenever it is needed.
pub(crate) fn password_file(file: PathBuf) -> std::io::Result<PathBuf> {
    let text = std::fs::read(&file)?;
    let invalid = |message| {
        Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            message,
        ))
    };
    let Ok(text) = std::str::from_utf8(&text) else {
        return invalid("the file does not hold text");
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return invalid("the file is empty");
    }
    if text.contains('\n') {
        return invalid("the file has to hold one line");
    }
    // Spaces may belong to a password; nobody types one of these.
    if text.contains(char::is_control) {
        return invalid("the file holds a control character, such as a NUL or a carriage return");
    }
    Ok(file)
}

/// A file with certificates, tried as the client will use it.
pub(crate) fn certificates(file: PathBuf) -> Result<PathBuf, String> {
    let config = UpstreamConfig {
        extra_ca_file: Some(file.clone()),
        ..UpstreamConfig::default()
    };
    match Client::new(config) {
        Ok(_) => Ok(file),
        Err(error) => Err(format!("{:#}", anyhow::Error::from(error))),
    }
}

/// A field in which a gateway names a person: none that a client or a hop has a use for.
pub(crate) fn subject_header(text: &str) -> Result<HeaderName, String> {
    let name = credential_header(text)?;
    let taken = ["accept", "content-type", "cookie", "host", "origin"];
    if taken.contains(&name.as_str()) || CredentialHeaders::BUILT_IN.contains(&name.as_str()) {
        return Err(
            "it has a meaning of its own; let the gateway use another, such as x-user".to_owned(),
        );
    }
    Ok(name)
}

/// The key in a file that an inference server wants. Those that can be examined all take it in one way.
pub(crate) fn credential(file: PathBuf) -> Result<Credential, String> {
    Credential::from_file(&file, Family::Openai)
        .map_err(|error| format!("{:#}", anyhow::Error::from(error)))
}

/// A script as JSON.
pub(crate) fn script(json: &str) -> Result<Script, String> {
    Script::from_json(json).map_err(reason)
}

/// A script in a file.
pub(crate) fn script_file(file: PathBuf) -> Result<Script, Box<dyn Error + Send + Sync>> {
    Ok(script(&std::fs::read_to_string(file)?)?)
}

/// One member of a script, checked by itself.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) value: Value,
}

impl FromStr for Member {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or("write it as NAME=VALUE, such as tokens=50")?;
        // `5` and `{"batch":8}` are JSON; `20ms` and `rst_after:5` are plain words.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        let one = Map::from_iter([(name.to_owned(), value.clone())]);
        Script::default().patched(&one).map_err(|error| {
            let mut reason = reason(error);
            // `text=5` is read as a number.
            if reason.ends_with("expected a string") {
                reason.push_str("; write it as a string in quotes");
            }
            reason
        })?;
        let name = name.to_owned();
        Ok(Self { name, value })
    }
}

/// The parser shows the flag and its value, so the innermost cause is all that is left to say.
fn reason(error: BadScript) -> String {
    anyhow::Error::from(error).root_cause().to_string()
}

/// `15s`, `10m`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write it as `15s`, `10m` or `500ms`"))
        .and_then(bounded)
}

/// Longer than any process lives, and so short that a clock can be asked for its end.
fn bounded(time: Duration) -> Result<Duration, String> {
    const DAY: u64 = 24 * 60 * 60;
    if time.as_secs() > 36_525 * DAY {
        Err("must be at most 100 years".to_owned())
    } else {
        Ok(time)
    }
}

/// A duration above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|value| {
        if value.is_zero() {
            Err("must be above zero".to_owned())
        } else {
            Ok(value)
        }
    })
}

/// A lease that a replica can keep and whose end somebody may wait for: six signs of life in it, each of which may take
/// a moment to be answered.
pub(crate) fn presence_lease(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_secs(1)..=Duration::from_secs(600);
    duration(text).and_then(|value| {
        if bounds.contains(&value) {
            Ok(value)
        } else {
            Err("must be 1s to 10m".to_owned())
        }
    })
}

/// `16MiB`, `512KiB`, or plain bytes. Above zero.
pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text
        .parse()
        .map_err(|_| "not a size; write it as `16MiB`, `512KiB` or bytes".to_owned())?;
    if size.as_u64() == 0 {
        Err("must be above zero".to_owned())
    } else {
        Ok(size)
    }
}

/// The size of one generation's ring. The producer commits up to 64 KiB at once; where only a few of those fit, even a
/// reader that keeps up is overtaken.
pub(crate) fn journal_size(text: &str) -> Result<ByteSize, String> {
    size(text).and_then(|size| {
        if size.as_u64() < 256 << 10 {
            Err("must be at least 256KiB, or readers lose what they are about to read".to_owned())
        } else {
            Ok(size)
        }
    })
}

/// A size as it is shown: in the largest binary unit that divides it.
pub(crate) fn show_size(bytes: u64) -> String {
    [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, shift)| bytes > 0 && bytes % (1 << shift) == 0)
        .map_or_else(
            || format!("{bytes}B"),
            |(unit, shift)| format!("{}{unit}", bytes >> shift),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_when_they_say_so() {
        assert_eq!(size("16MiB").map(|size| size.as_u64()), Ok(16 << 20));
        assert_eq!(size("1024").map(|size| size.as_u64()), Ok(1024));
        assert!(size("0").is_err());
        assert!(size("many").is_err());
        assert!(size("-1MiB").is_err());
    }

    #[test]
    fn shown_sizes_read_back() {
        for bytes in [1, 1000, 1 << 10, 16 << 20, 3 << 30] {
            assert_eq!(
                size(&show_size(bytes)).map(|size| size.as_u64()),
                Ok(bytes),
                "{}",
                show_size(bytes)
            );
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("15").is_err());
        assert!(positive_duration("0s").is_err());
    }
}

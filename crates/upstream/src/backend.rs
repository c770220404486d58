//! A backend: its name, and where it is.
//!
//! The URL is parsed and checked once; afterwards a backend cannot be wrong. Its name is what logs,
//! metrics and errors show. The URL itself is never shown, neither by `Display` nor by `Debug`, and
//! an error about a URL does not repeat it: people do write credentials there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// A place that requests are sent to. Cheap to clone.
#[derive(Clone)]
pub struct Backend {
    inner: Arc<Inner>,
}

struct Inner {
    name: Arc<str>,
    url: BackendUrl,
    /// Where connections go, instead of to where the host's name leads.
    address: Option<IpAddr>,
    /// What connections are pooled by: two backends at one origin share them.
    origin: Arc<str>,
}

impl Backend {
    /// A backend named after its host and port.
    pub fn new(url: BackendUrl) -> Self {
        let name = format!("{}:{}", url.host(), url.port());
        Self::named(name, url)
    }

    /// A backend with a name of its own. The name is shown to clients and in metrics.
    pub fn named(name: impl Into<Arc<str>>, url: BackendUrl) -> Self {
        let origin = format!("{}://{}", url.scheme, url.authority);
        Self::with(name.into(), url, None, origin)
    }

    /// A backend that is one of several behind the host's name. Connections go to `address`, at the
    /// URL's port; `Host`, and the name that its certificate must show, stay the URL's.
    pub fn at(name: impl Into<Arc<str>>, url: BackendUrl, address: IpAddr) -> Self {
        let origin = format!("{}://{} at {address}", url.scheme, url.authority);
        Self::with(name.into(), url, Some(address), origin)
    }

    fn with(name: Arc<str>, url: BackendUrl, address: Option<IpAddr>, origin: String) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                url,
                address,
                origin: origin.into(),
            }),
        }
    }

    /// The name, which is all that is ever shown of a backend.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Where it is.
    pub fn url(&self) -> &BackendUrl {
        &self.inner.url
    }

    /// Where connections go, where that is not left to the host's name. Like the URL, it is not shown.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.inner.address
    }

    /// The URI a connection is made to.
    pub(crate) fn connect_uri(&self) -> Uri {
        let url = self.url();
        let authority = match self.address() {
            None => url.authority.clone(),
            Some(address) => SocketAddr::new(address, url.port())
                .to_string()
                .parse()
                .expect("an address and a port are an authority"),
        };
        absolute(&url.scheme, authority, PathAndQuery::from_static("/"))
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.inner.name)
    }

    pub(crate) fn origin(&self) -> &Arc<str> {
        &self.inner.origin
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Backend").field(&self.name()).finish()
    }
}

/// A checked backend URL: `http` or `https`, a host, maybe a port, maybe a path prefix.
///
/// The prefix is put in front of every forwarded path; `http://b/` and `http://b` have none.
#[derive(Clone, PartialEq, Eq)]
pub struct BackendUrl {
    scheme: Scheme,
    authority: Authority,
    /// Empty, or starting with `/` and not ending with one.
    prefix: Box<str>,
}

impl BackendUrl {
    /// The host, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    /// The port, the scheme's own when none is given.
    pub fn port(&self) -> u16 {
        let default = if self.is_tls() { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(default)
    }

    /// Whether connections are encrypted.
    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The path prefix, empty when there is none.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The path and query to ask for: the prefix, then what `uri` has of a path and query.
    /// Scheme and authority of `uri` are ignored: the target is configured, not asked for.
    pub(crate) fn target(&self, uri: &Uri) -> Result<PathAndQuery, http::Error> {
        match uri.path_and_query() {
            None => Ok(PathAndQuery::try_from(format!("{}/", self.prefix))?),
            // `*` (OPTIONS) names the server as a whole, which no prefix can narrow.
            Some(path) if self.prefix.is_empty() || path.as_str() == "*" => Ok(path.clone()),
            Some(path) => Ok(PathAndQuery::try_from(format!("{}{path}", self.prefix))?),
        }
    }

    /// `target` as an absolute URI, which is what HTTP/2 wants.
    pub(crate) fn absolute(&self, target: PathAndQuery) -> Uri {
        absolute(&self.scheme, self.authority.clone(), target)
    }
}

fn absolute(scheme: &Scheme, authority: Authority, target: PathAndQuery) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(scheme.clone());
    parts.authority = Some(authority);
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).expect("scheme, authority and path are all there")
}

impl FromStr for BackendUrl {
    type Err = BackendUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Looked for in the text: the URI parser drops a fragment without a word.
        if text.contains('#') {
            return Err(BackendUrlError::Fragment);
        }
        let parts = Uri::from_str(text)
            .map_err(|_| BackendUrlError::Syntax)?
            .into_parts();
        let scheme = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTP || scheme == Scheme::HTTPS => scheme,
            _ => return Err(BackendUrlError::Scheme),
        };
        let authority = parts.authority.ok_or(BackendUrlError::Host)?;
        if authority.as_str().contains('@') {
            return Err(BackendUrlError::UserInfo);
        }
        if authority.host().is_empty() {
            return Err(BackendUrlError::Host);
        }
        if is_odd_ipv4(authority.host()) {
            return Err(BackendUrlError::Ipv4);
        }
        check_port(&authority)?;
        let prefix = match &parts.path_and_query {
            Some(path) if path.query().is_some() => return Err(BackendUrlError::Query),
            Some(path) => path.path().trim_end_matches('/').into(),
            None => "".into(),
        };
        Ok(Self {
            scheme,
            authority,
            prefix,
        })
    }
}

/// What follows the host must be nothing, or a colon and a port from 1 to 65535.
fn check_port(authority: &Authority) -> Result<(), BackendUrlError> {
    let rest = &authority.as_str()[authority.host().len()..];
    match (rest, authority.port_u16()) {
        ("", _) | (_, Some(1..)) => Ok(()),
        _ => Err(BackendUrlError::Port),
    }
}

impl fmt::Debug for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackendUrl(..)")
    }
}

/// Why a backend URL was refused. Never repeats the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendUrlError {
    /// Not a URL.
    #[error("not a valid URL")]
    Syntax,
    /// Neither `http` nor `https`.
    #[error("the scheme must be http or https")]
    Scheme,
    /// No host.
    #[error("the host is missing")]
    Host,
    /// `127.1`, `2130706433`, `0x7f.1`: resolvers take them for IPv4 addresses, and few readers see which.
    #[error("an IPv4 address must be four decimal numbers")]
    Ipv4,
    /// A port that is none.
    #[error("the port must be between 1 and 65535")]
    Port,
    /// `user:password@`. Credentials belong into a header.
    #[error("user information is not allowed")]
    UserInfo,
    /// A query.
    #[error("a query is not allowed")]
    Query,
    /// A fragment.
    #[error("a fragment is not allowed")]
    Fragment,
}

/// Whether a host ends in a number, as addresses do and names do not, but is no address in its usual form.
fn is_odd_ipv4(host: &str) -> bool {
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next();
    let is_number = last.is_some_and(|label| {
        let hex = label.strip_prefix("0x").or(label.strip_prefix("0X"));
        match hex {
            Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
        }
    });
    is_number && host.parse::<Ipv4Addr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_addresses_have_one_form() {
        for host in [
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "0x7f000001",
            "127.0.0.1.",
            "1.2.3.4.5",
            "256.1.1.1",
            "engine.7",
        ] {
            let parsed: Result<BackendUrl, _> = format!("http://{host}:8000").parse();
            assert_eq!(parsed.err(), Some(BackendUrlError::Ipv4), "{host}");
        }
        for host in [
            "127.0.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "engine7",
            "7.engine",
            "0x7.example",
        ] {
            let parsed: Result<BackendUrl, _> = format!("http://{host}:8000").parse();
            assert!(parsed.is_ok(), "{host}");
        }
    }

    #[track_caller]
    fn accept(text: &str, host: &str, port: u16, tls: bool, prefix: &str) {
        let url: BackendUrl = text.parse().unwrap();
        assert_eq!(
            (url.host(), url.port(), url.is_tls(), url.prefix()),
            (host, port, tls, prefix),
        );
    }

    #[test]
    fn urls_are_read() {
        accept("http://engine", "engine", 80, false, "");
        accept("http://engine/", "engine", 80, false, "");
        accept("https://engine", "engine", 443, true, "");
        accept("https://engine:8443/v2/", "engine", 8443, true, "/v2");
        accept("http://[::1]:9000/a/b", "::1", 9000, false, "/a/b");
        accept("http://127.0.0.1:1", "127.0.0.1", 1, false, "");
    }

    #[test]
    fn bad_urls_are_refused_without_being_repeated() {
        use BackendUrlError::*;
        for (text, expected) in [
            ("", Syntax),
            ("http://", Syntax),
            ("engine:80", Scheme),
            ("/path", Scheme),
            ("ftp://engine", Scheme),
            ("http://user:s3cret@engine", UserInfo),
            ("http://s3cret@engine", UserInfo),
            ("http://engine/?key=s3cret", Query),
            ("http://engine/#s3cret", Fragment),
            ("http://engine:0", Port),
            ("http://engine:", Port),
            ("http://engine:70000", Port),
            ("http://engine :80", Syntax),
        ] {
            let error = BackendUrl::from_str(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn only_the_name_is_shown() {
        let url: BackendUrl = "http://engine:81/k3y".parse().unwrap();
        assert_eq!(format!("{url:?}"), "BackendUrl(..)");
        let backend = Backend::named("a", url.clone());
        assert_eq!(format!("{backend} {backend:?}"), r#"a Backend("a")"#);
        let backend = Backend::at("a", url.clone(), Ipv4Addr::LOCALHOST.into());
        assert_eq!(format!("{backend} {backend:?}"), r#"a Backend("a")"#);
        assert_eq!(Backend::new(url).name(), "engine:81");
    }

    #[track_caller]
    fn target(url: &str, uri: &str, expected: &str) {
        let url: BackendUrl = url.parse().unwrap();
        assert_eq!(url.target(&uri.parse().unwrap()).unwrap(), expected);
    }

    #[track_caller]
    fn connects_to(url: &str, address: &str, expected: &str) {
        let backend = Backend::at("a", url.parse().unwrap(), address.parse().unwrap());
        assert_eq!(backend.connect_uri(), expected);
        assert_eq!(backend.url(), &url.parse::<BackendUrl>().unwrap());
        assert_ne!(
            backend.origin(),
            Backend::named("a", url.parse().unwrap()).origin()
        );
    }

    #[test]
    fn a_backend_at_an_address_is_reached_there_under_its_own_name() {
        connects_to("http://engine/p", "10.0.0.7", "http://10.0.0.7:80/");
        connects_to("https://engine:8443", "fd00::7", "https://[fd00::7]:8443/");
    }

    #[test]
    fn the_target_is_the_prefix_and_the_path() {
        target("http://b", "/v1/x?y=1", "/v1/x?y=1");
        target("http://b/p/", "/v1/x?y=1", "/p/v1/x?y=1");
        target("http://b/p", "/", "/p/");
        target("http://b/p", "*", "*");
        target("http://b/p", "//evil/../x", "/p//evil/../x");
    }

    #[test]
    fn an_absolute_form_chooses_no_host() {
        target("http://b", "http://evil:1/x?y", "/x?y");
    }
}

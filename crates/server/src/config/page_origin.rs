//! Where a page comes from, as its browser says it in `Origin`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The origin of pages: `https://app.example`, `http://localhost:3000`. It is spelt as browsers spell it, so that it can
/// be compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOrigin(String);

/// Why a text is no origin that could be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageOriginError {
    /// It is meant for all pages.
    #[error(
        "a `*` would let every page that anybody visits use this server; name each origin, or have the backend allow all"
    )]
    Any,
    /// It stands for pages that have no origin.
    #[error("`null` is what every file and every sandboxed page says; serve the page from a host")]
    Null,
    /// It has not the form of one.
    #[error(
        "an origin is scheme://host or scheme://host:port, such as https://app.example; other letters than ASCII stand \
         there in Punycode"
    )]
    Form,
    /// No browser writes it so.
    #[error("a browser writes it as {0}")]
    Spelling(String),
}

impl PageOrigin {
    /// As browsers write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PageOrigin {
    type Err = PageOriginError;

    fn from_str(text: &str) -> Result<Self, PageOriginError> {
        if text.contains('*') {
            return Err(PageOriginError::Any);
        }
        if text == "null" {
            return Err(PageOriginError::Null);
        }
        match spelt(text).ok_or(PageOriginError::Form)? {
            spelling if spelling == text => Ok(Self(spelling)),
            spelling => Err(PageOriginError::Spelling(spelling)),
        }
    }
}

/// How a browser spells the origin of such a URL.
fn spelt(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c));
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        // A colon inside of brackets belongs to the address.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let (host, port) = (host_of(host)?, port_of(&scheme, port)?);
    is_scheme.then(|| format!("{scheme}://{host}{port}"))
}

fn host_of(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[') {
        let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    let is_name = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    let last = host.rsplit('.').next()?;
    // What ends in a number is an address for a browser, and a name for nobody.
    let is_number = last.bytes().all(|c| c.is_ascii_digit());
    let fits = host.bytes().all(is_name) && (!is_number || host.parse::<Ipv4Addr>().is_ok());
    (fits && !host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// With its colon; nothing for the one that goes without saying.
fn port_of(scheme: &str, port: Option<&str>) -> Option<String> {
    let Some(port) = port else {
        return Some(String::new());
    };
    let port: u16 = port
        .bytes()
        .all(|c| c.is_ascii_digit())
        .then(|| port.parse().ok())??;
    Some(match (scheme, port) {
        ("http", 80) | ("https", 443) => String::new(),
        (_, port) => format!(":{port}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_taken_as_browsers_write_them() {
        for origin in [
            "https://app.example",
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "http://[::1]:5173",
            "https://xn--bcher-kva.example",
            "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai",
            "capacitor://localhost",
        ] {
            let read: PageOrigin = origin.parse().expect("an origin");
            assert_eq!(read.as_str(), origin);
        }
    }

    #[track_caller]
    fn check(text: &str, expected: PageOriginError) {
        assert_eq!(text.parse::<PageOrigin>(), Err(expected), "{text}");
    }

    #[test]
    fn the_right_spelling_is_told() {
        for (text, spelling) in [
            ("https://app.example/", "https://app.example"),
            ("https://app.example/chat?x=1#y", "https://app.example"),
            ("HTTPS://App.Example", "https://app.example"),
            ("https://app.example:443", "https://app.example"),
            ("http://app.example:080", "http://app.example"),
            ("http://app.example:03000", "http://app.example:3000"),
            ("http://[0:0:0:0:0:0:0:1]:80", "http://[::1]"),
        ] {
            check(text, PageOriginError::Spelling(spelling.to_owned()));
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in [
            "",
            "app.example",
            "https://",
            "https://:443",
            "https://user@app.example",
            "https://app example",
            "https://b\u{fc}cher.example",
            "https://app.example:port",
            "https://app.example:",
            "https://app.example:99999",
            "http://127.1",
            "http://[::g]",
            "1http://app.example",
            "://app.example",
        ] {
            check(text, PageOriginError::Form);
        }
        check("*", PageOriginError::Any);
        check("https://*.example", PageOriginError::Any);
        check("null", PageOriginError::Null);
    }
}

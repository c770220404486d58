//! Who is an operator.

use std::net::SocketAddr;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::config::Secret;
use crate::error::{Error, ErrorCode};

/// Lets an operator in, and nobody else.
pub(super) fn authorize(
    token: Option<&Secret>,
    host: Option<&str>,
    headers: &HeaderMap,
    peer: SocketAddr,
) -> Result<(), Error> {
    let Some(token) = token else {
        let host = host
            .or_else(|| headers.get(HOST)?.to_str().ok())
            .filter(|host| is_loopback_name(host));
        // A page in a browser on this machine comes from loopback too: its Origin gives it away, and a name that was
        // rebound to loopback shows in Host.
        let is_ours = host.is_some_and(|host| is_of_no_other(headers, host));
        if peer.ip().to_canonical().is_loopback() && is_ours {
            return Ok(());
        }
        let message = "without an admin token this answers peers on loopback, asked by a loopback name, and no page but its own; \
             configure admin-token-file";
        return Err(Error::new(ErrorCode::Forbidden, message));
    };
    let given = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.as_bytes().split_at_checked(7))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "))
        .map(|(_, given)| given);
    // Digests have one length, so that neither length nor content shows in the time it takes.
    let matches = given.is_some_and(|given| {
        Sha256::digest(given)
            .ct_eq(&Sha256::digest(token.as_bytes()))
            .into()
    });
    if matches {
        Ok(())
    } else {
        Err(Error::new(
            ErrorCode::Unauthorized,
            "the admin token is missing or another one",
        ))
    }
}

/// No page has asked, or one that was loaded from here.
fn is_of_no_other(headers: &HeaderMap, host: &str) -> bool {
    headers.get_all(ORIGIN).iter().all(|origin| {
        let origin = origin.as_bytes();
        let scheme = origin.strip_suffix(host.as_bytes());
        matches!(scheme, Some(b"http://" | b"https://"))
    })
}

fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        token: Option<&str>,
        peer: &str,
        fields: &[(&'static str, &'static str)],
        expected: Option<ErrorCode>,
    ) {
        let token = token.and_then(|token| Secret::new(token.to_owned()));
        let headers = fields
            .iter()
            .map(|(n, v)| {
                (
                    http::HeaderName::from_static(n),
                    http::HeaderValue::from_static(v),
                )
            })
            .collect::<HeaderMap>();
        let answer = authorize(
            token.as_ref(),
            None,
            &headers,
            peer.parse().expect("an address"),
        );
        assert_eq!(answer.err().map(|error| error.code), expected, "{fields:?}");
    }

    #[test]
    fn with_a_token_only_the_token_counts() {
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("host", "localhost")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("authorization", "Bearer x")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("authorization", "Bearer tt")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("authorization", "Basic t")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "203.0.113.9:1",
            &[("authorization", "Bearer t")],
            None,
        );
        check(
            Some("t"),
            "203.0.113.9:1",
            &[("authorization", "bearer t")],
            None,
        );
    }

    #[test]
    fn over_http_2_the_host_is_in_the_target() {
        let peer = "127.0.0.1:1".parse().expect("an address");
        let by = |host| authorize(None, Some(host), &HeaderMap::new(), peer);
        assert!(by("localhost:9090").is_ok());
        assert!(by("evil.example").is_err());
    }

    #[test]
    fn without_a_token_loopback_and_no_page() {
        check(None, "127.0.0.1:1", &[("host", "localhost:9090")], None);
        check(None, "[::1]:1", &[("host", "[::1]:9090")], None);
        check(None, "[::ffff:127.0.0.1]:1", &[("host", "127.0.0.1")], None);
        check(
            None,
            "127.0.0.1:1",
            &[("host", "evil.example")],
            Some(ErrorCode::Forbidden),
        );
        check(None, "127.0.0.1:1", &[], Some(ErrorCode::Forbidden));
        check(
            None,
            "127.0.0.1:1",
            &[("host", "localhost"), ("origin", "http://a")],
            Some(ErrorCode::Forbidden),
        );
        // The console is loaded from here.
        let own = [
            ("host", "localhost:9090"),
            ("origin", "http://localhost:9090"),
        ];
        check(None, "127.0.0.1:1", &own, None);
        for other in [
            "http://localhost:9091",
            "http://localhost:9090.evil.example",
            "http://evil.example/localhost:9090",
            "null",
            "localhost:9090",
        ] {
            let fields = [("host", "localhost:9090"), ("origin", other)];
            check(None, "127.0.0.1:1", &fields, Some(ErrorCode::Forbidden));
        }
        let rebound = [("host", "evil.example"), ("origin", "http://evil.example")];
        check(None, "127.0.0.1:1", &rebound, Some(ErrorCode::Forbidden));
        check(
            None,
            "203.0.113.9:1",
            &[("host", "localhost")],
            Some(ErrorCode::Forbidden),
        );
    }
}

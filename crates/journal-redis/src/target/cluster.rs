//! A cluster, by the addresses of some of its nodes.
//!
//! Each is asked in its turn which nodes there are. All of them are dialled with the same user and password, and all
//! with TLS or none.

use std::sync::Arc;

use redis::ConnectionAddr;

use super::address::Address;
use super::{BadTarget, Place, Target};

/// Whether a URL means a cluster: with TLS or not, and what stands behind the scheme.
pub(super) fn scheme(url: &str) -> Option<(bool, &str)> {
    let plain = url.strip_prefix("redis+cluster://").map(|it| (false, it));
    plain.or_else(|| url.strip_prefix("rediss+cluster://").map(|it| (true, it)))
}

impl Target {
    pub(super) fn parse_cluster(tls: bool, seeds: &str) -> Result<Self, BadTarget> {
        let scheme = if tls { "rediss" } else { "redis" };
        let (login, hosts) = match seeds.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), seeds),
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        // A cluster has no databases, and a query would be about the protocol.
        if hosts.contains(['/', '?']) {
            return Err(BadTarget);
        }
        let seed = |host: &str| match Address::parse(&format!("{scheme}://{login}{host}/"))? {
            address if matches!(address.at, ConnectionAddr::Tcp(..)) => Ok(Arc::new(address)),
            _ => Err(BadTarget),
        };
        let seeds: Vec<Arc<Address>> = hosts.split(',').map(seed).collect::<Result<_, _>>()?;
        let first = seeds.first().ok_or(BadTarget)?;
        Ok(Self {
            place: Place::Fixed(Arc::clone(first)),
            password_file: None,
            ca_file: None,
            seeds: Some(seeds.into()),
        })
    }

    /// Whom to ask for the nodes, each with its host; `None` when this is no cluster.
    pub(crate) fn seeds(&self) -> Option<Vec<(String, Self)>> {
        let seed = |address: &Arc<Address>| {
            let ConnectionAddr::Tcp(host, _) = &address.at else {
                return None;
            };
            let target = Self {
                place: Place::Fixed(Arc::clone(address)),
                seeds: None,
                ..self.clone()
            };
            Some((host.clone(), target))
        };
        Some(self.seeds.as_ref()?.iter().filter_map(seed).collect())
    }

    /// Another server, as the same user.
    pub(crate) fn at(&self, host: &str, port: u16) -> Self {
        let place = match &self.place {
            Place::Fixed(known) => Place::Fixed(Arc::new(known.moved_to(host.to_owned(), port))),
            // Sentinels watch over no cluster.
            named @ Place::Named(_) => named.clone(),
        };
        Self {
            place,
            seeds: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(target: &Target) -> Vec<(String, u16, bool, Option<&str>)> {
        let seeds = target.seeds.as_ref().unwrap();
        let address = |address: &'_ Arc<Address>| match &address.at {
            ConnectionAddr::Tcp(host, port) => (host.clone(), *port, address.tls),
            _ => panic!("not TCP"),
        };
        seeds
            .iter()
            .map(|seed| {
                let (host, port, tls) = address(seed);
                (host, port, tls, seed.login.username())
            })
            .collect()
    }

    #[test]
    fn all_seeds_are_read_with_the_same_login() {
        let target = Target::parse("rediss+cluster://user:p%2Cw@one:7000,[::1]:7001,two/").unwrap();
        let user = Some("user");
        assert_eq!(
            addresses(&target),
            [
                ("one".into(), 7000, true, user),
                ("::1".into(), 7001, true, user),
                ("two".into(), 6379, true, user),
            ]
        );
        let node = target.at("three", 7003);
        let Place::Fixed(address) = &node.place else {
            panic!("it is named by sentinels");
        };
        assert!(address.tls && node.seeds.is_none());
        assert_eq!(address.login.password(), Some("p,w"));
    }

    #[test]
    fn a_server_has_no_seeds() {
        assert!(Target::parse("redis://one").unwrap().seeds().is_none());
    }

    #[test]
    fn a_cluster_has_no_databases() {
        for url in [
            "redis+cluster://",
            "redis+cluster://one,",
            "redis+cluster://one:7000/1",
            "redis+cluster://one:7000?protocol=resp3",
            "redis+cluster://:secret@one,two#insecure",
            "redis+cluster://one:x",
            "redis+cluster+unix:///run/redis.sock",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
    }
}

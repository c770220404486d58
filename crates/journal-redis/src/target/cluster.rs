//! A cluster, by the addresses of some of its nodes.
//!
//! Each is asked in its turn which nodes there are. All of them are dialled with the same user and password, and all
//! with TLS or none.

use std::sync::Arc;

use redis::ConnectionAddr;

use super::address::{Address, split_login};
use super::url::Holds;
use super::{Place, Target, UrlError};

impl Target {
    /// Reads `[user[:password]@]host[:port][,host[:port]…]`, and what of it can be shown.
    pub(super) fn cluster(tls: bool, text: &str) -> Result<(Self, String, Holds), UrlError> {
        let (login, places) = split_login(text);
        let places = places.strip_suffix('/').unwrap_or(places);
        if places.contains('?') {
            return Err(UrlError::Query);
        }
        if places.contains('/') {
            return Err(UrlError::Cluster);
        }
        let seed = |place| Address::at_place(tls, login, place, 6379, "").map(Arc::new);
        let seeds: Vec<Arc<Address>> = places.split(',').map(seed).collect::<Result<_, _>>()?;
        let first = seeds.first().ok_or(UrlError::Host)?;
        let target = Self {
            seeds: Some(seeds.clone().into()),
            ..Self::of(Place::Fixed(Arc::clone(first)))
        };
        Ok((target, places.to_owned(), Holds::login(login)))
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
}

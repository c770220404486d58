//! How backends go together, and with what is beside them.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use streamweld_upstream::fleet::Reach;
use streamweld_upstream::{BackendUrl, BackendUrlError};

use super::{Origin, Serve};
use crate::values::{Fault, Listed, nearest};

/// Every fault. No URL is repeated: people write passwords there.
pub(super) fn faults(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    let setting = origin.name("backend");
    let written: Vec<_> = args.backend.iter().flat_map(|some| some.each()).collect();
    if written.is_empty() {
        return vec![format!(
            "{setting} names no backend; write it as http://HOST:PORT"
        )];
    }
    let is_alone = written.len() == 1;
    let mut faults = Vec::new();
    for (at, backend) in written.iter().enumerate() {
        // What one is called may be what is wrong with it.
        let which = match is_alone {
            true => setting.clone(),
            false => format!("{setting}, the backend number {},", at + 1),
        };
        match backend {
            Ok(listed) => faults.extend(alone(args, origin, &which, listed)),
            Err(Fault::Url(error)) => faults.push(bad_url(&which, error)),
            Err(Fault::Option(what)) => faults.push(format!("{which} is refused: {what}")),
        }
    }
    let listed: Vec<&Listed> = args.listed().collect();
    if listed.len() < written.len() {
        // What cannot be read cannot be compared.
        return faults;
    }
    faults.extend(names(args, origin, &listed));
    if args.backend_ca.is_some() && !listed.iter().any(|listed| listed.url.is_tls()) {
        faults.push(format!(
            "{} has no use while {setting} is plain http; write https there, or leave the certificates out",
            origin.name("backend_ca"),
        ));
    }
    faults.extend(policies(args, origin, &listed));
    faults
}

/// What is told of a URL that is none.
pub(super) fn bad_url(which: &str, error: &BackendUrlError) -> String {
    format!(
        "{which} is refused: {error}; write it as http://HOST:PORT or https://HOST, with at most a path behind it"
    )
}

/// What is wrong with one, whatever the others are.
fn alone(args: &Serve, origin: &Origin<'_>, which: &str, listed: &Listed) -> Vec<String> {
    let mut faults = Vec::new();
    for (setting, listener) in [("listen", args.listen), ("admin_listen", args.admin_listen)] {
        if leads_to(&listed.url, listener) {
            faults.push(format!(
                "{which} leads to {} ({listener}), which is Streamweld itself; name the inference server",
                origin.name(setting),
            ));
        }
    }
    if listed.reach == Reach::EveryAddress && address(&listed.url).is_some() {
        faults.push(format!(
            "{which} is refused: option `dns` is for a name that leads to several addresses, and this is one \
             address; leave it out"
        ));
    }
    faults
}

/// Names tell backends apart.
fn names(args: &Serve, origin: &Origin<'_>, listed: &[&Listed]) -> Vec<String> {
    let (setting, single) = (origin.name("backend"), origin.name("backend_name"));
    let mut faults = Vec::new();
    if let [one] = listed {
        if let (Some(name), true) = (&one.name, origin.is_given("backend_name")) {
            faults.push(format!(
                "{single} ({}) and the option `name` of {setting} ({name}) both name the backend; leave one of them out",
                args.backend_name,
            ));
        }
        return faults;
    }
    if origin.is_given("backend_name") {
        faults.push(format!(
            "{single} is for a single backend; name each of several by its option `name`, such as {setting} \
             http://HOST:PORT,name=a, and leave this out"
        ));
    }
    let mut seen = BTreeSet::new();
    for (at, listed) in listed.iter().enumerate() {
        match &listed.name {
            None => faults.push(format!(
                "{setting}, the backend number {}, needs a name, because there are several; write it as \
                 http://HOST:PORT,name=a",
                at + 1,
            )),
            Some(name) if !seen.insert(name) => faults.push(format!(
                "{setting} names two backends {name}; give each a name of its own"
            )),
            Some(_) => {}
        }
    }
    faults
}

/// Policies are of groups that there are.
fn policies(args: &Serve, origin: &Origin<'_>, listed: &[&Listed]) -> Vec<String> {
    let setting = origin.name("migration");
    let groups: BTreeSet<&str> = listed
        .iter()
        .filter_map(|listed| listed.group.as_deref())
        .collect();
    let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
    for policy in &args.migration {
        let group = policy.group.as_str();
        if !seen.insert(group) {
            faults.push(format!(
                "{setting} says twice what the group {group} may do; leave one of them out"
            ));
        } else {
            faults.extend(unknown_group(&setting, group, &groups, origin));
        }
    }
    let (setting, mut seen) = (origin.name("vouched"), BTreeSet::new());
    for group in &args.vouched {
        if !seen.insert(group) {
            faults.push(format!(
                "{setting} names the group {group} twice; leave one of them out"
            ));
        } else {
            faults.extend(unknown_group(&setting, group, &groups, origin));
        }
    }
    faults
}

fn unknown_group(
    setting: &str,
    group: &str,
    groups: &BTreeSet<&str>,
    origin: &Origin<'_>,
) -> Option<String> {
    if groups.contains(group) {
        return None;
    }
    if group.is_empty() {
        return Some(format!("{setting} is empty; name a group, or leave it out"));
    }
    let remedy = match nearest(group, groups.iter().copied()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!(
            "put backends into it by their option `group`, such as {} http://HOST:PORT,name=a,group={group}",
            origin.name("backend"),
        ),
    };
    Some(format!(
        "{setting} is about the group {group}, which no backend is in; {remedy}"
    ))
}

fn address(url: &BackendUrl) -> Option<IpAddr> {
    url.host().trim_matches(['[', ']']).parse().ok()
}

/// Whether a backend is the listener, as far as that shows without a look-up of its name.
fn leads_to(url: &BackendUrl, listener: SocketAddr) -> bool {
    if url.port() != listener.port() {
        return false;
    }
    let own = listener.ip().to_canonical();
    // A connection to the address that stands for all of them goes to this machine.
    let here = |ip: IpAddr| {
        ip == own
            || (own.is_unspecified() && (ip.is_loopback() || ip.is_unspecified()))
            || (own.is_loopback() && ip.is_unspecified())
    };
    match address(url) {
        Some(ip) => here(ip.to_canonical()),
        None => {
            url.host().eq_ignore_ascii_case("localhost")
                && (listener.ip().is_unspecified() || listener.ip().is_loopback())
        }
    }
}

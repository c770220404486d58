//! How the settings of the relay go together.

use super::{Origin, Place, Serve, clash};
use crate::relay::settings;

/// Every fault of theirs.
pub(super) fn faults(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    let Some(listen) = args.relay_listen else {
        return alone(args, origin);
    };
    let mut faults = Vec::new();
    let name = origin.name("relay_listen");
    if matches!(args.place(), Ok(Place::Memory)) {
        faults.push(format!(
            "{name} has no use while the journal is in memory, which other replicas cannot share; name a Redis by \
             {}, or leave it out",
            origin.name("journal"),
        ));
    }
    let others = [("listen", args.listen), ("admin_listen", args.admin_listen)];
    for (other, addr) in others.into_iter().filter(|(_, addr)| clash(listen, *addr)) {
        faults.push(format!(
            "{name} ({listen}) and {} ({addr}) are the same place; give each a port of its own",
            origin.name(other),
        ));
    }
    let is_nowhere = listen.ip().is_unspecified() && args.relay_advertise.is_none();
    if is_nowhere {
        faults.push(format!(
            "{name} ({listen}) is no place that others can reach; say by {} where they do",
            origin.name("relay_advertise"),
        ));
    }
    let files = [
        ("relay_cert", args.relay_cert.is_some()),
        ("relay_key", args.relay_key.is_some()),
        ("relay_ca", args.relay_ca.is_some()),
    ];
    let missing = files.iter().filter(|(_, is_there)| !is_there);
    for (setting, _) in missing {
        faults.push(format!(
            "{name} needs {} as well: replicas tell nobody anything without certificates",
            origin.name(setting),
        ));
    }
    // What others look for in its certificate is not known then, unless it is told.
    let checked = settings(args).filter(|_| !is_nowhere || args.relay_name.is_some());
    if let Some(Err(error)) = checked.map(|it| it.check()) {
        faults.push(format!(
            "{}, {} and {} are refused: {error}",
            origin.name("relay_cert"),
            origin.name("relay_key"),
            origin.name("relay_ca"),
        ));
    }
    faults
}

/// What belongs to a relay, though there is none.
fn alone(args: &Serve, origin: &Origin<'_>) -> Vec<String> {
    let belong = [
        ("relay_advertise", args.relay_advertise.is_some()),
        ("relay_name", args.relay_name.is_some()),
        ("relay_cert", args.relay_cert.is_some()),
        ("relay_key", args.relay_key.is_some()),
        ("relay_ca", args.relay_ca.is_some()),
    ];
    let fault = |(setting, _): (&str, bool)| {
        format!(
            "{} has no use without {}; say where the relay listens, or leave it out",
            origin.name(setting),
            origin.name("relay_listen"),
        )
    };
    let there = belong.into_iter().filter(|(_, is_there)| *is_there);
    there.map(fault).collect()
}

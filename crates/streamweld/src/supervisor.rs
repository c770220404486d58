//! What a service manager such as systemd is told (sd_notify(3)): that it serves, that it leaves, and that it lives.
//!
//! Where there is none, nothing is told to anybody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

/// What an end takes beyond the shutdown grace (protocol.md 8.4), and a little more.
const TAIL: Duration = Duration::from_secs(6);

/// It has its listeners and begins to serve.
pub(crate) fn serves() {
    tell(&[NotifyState::Ready]);
}

/// It ends, which may take this long.
pub(crate) fn leaves(grace: Duration) {
    let needed = grace.saturating_add(TAIL).as_micros();
    let needed = u32::try_from(needed).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Stopping,
        NotifyState::ExtendTimeoutUsec(needed),
    ]);
}

/// Tells for ever that it lives, twice in each time within which a watchdog wants to hear that. It is alive when its admin
/// listener answers a probe: a task that only tells would go on when nothing else does.
pub(crate) async fn lives(admin: SocketAddr) -> std::convert::Infallible {
    let Some(within) = sd_notify::watchdog_enabled().filter(|within| !within.is_zero()) else {
        return std::future::pending().await;
    };
    let mut tick = interval(within / 2);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Ok(true) = timeout(within / 2, answers(here(admin))).await {
            tell(&[NotifyState::Watchdog]);
        } else {
            warn!("the admin listener does not answer, and the watchdog is not told that it does");
        }
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "the service manager cannot be told");
    }
}

/// Where a listener is reached from this machine.
fn here(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listener.port())
}

async fn answers(admin: SocketAddr) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(admin).await?;
        let probe = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(probe).await?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await?;
        // Behind TLS that is refused in the clear, by the same listener.
        std::io::Result::Ok(matches!(&head, b"HTTP/1.1 200" | b"HTTP/1.1 400"))
    };
    asked.await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_everywhere_is_reached_on_loopback() {
        let at = |addr: &str| here(addr.parse().expect("an address")).to_string();
        assert_eq!(at("0.0.0.0:9090"), "127.0.0.1:9090");
        assert_eq!(at("[::]:9090"), "[::1]:9090");
        assert_eq!(at("10.0.0.1:9090"), "10.0.0.1:9090");
    }
}

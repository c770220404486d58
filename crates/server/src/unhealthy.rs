//! Backends that fail their probes, and what they have begun (protocol.md 8.8).
//!
//! A backend that fails its probes may go on with what it has begun, so that is left alone as long as anything comes. Where
//! nothing has come for as long as it took to find out, another goes on if every gate passes; it is never ended because of that.

use std::convert::Infallible;
use std::sync::Arc;

use streamweld_generation::migration::Order;
use streamweld_upstream::fleet::MemberState;
use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;

/// Looks after them for ever.
pub(crate) async fn look_after(app: Arc<App>) -> Infallible {
    let (every, silent) = {
        let probes = app.backends.fleet.probes();
        (probes.probe_every, probes.until_down())
    };
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let members = app.backends.fleet.snapshot();
        let down = members
            .iter()
            .filter(|member| member.state == MemberState::Down);
        let down: Vec<&str> = down.map(|member| member.name.as_str()).collect();
        if down.is_empty() {
            continue;
        }
        for handle in app.shared.registry.all() {
            if down.contains(&handle.backend().as_ref()) {
                handle.tell(Order::Unhealthy(silent));
            }
        }
    }
}

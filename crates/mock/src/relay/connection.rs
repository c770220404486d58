//! One relayed connection: two pumps and their common end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use socket2::SockRef;
use tokio::net::TcpStream;

use super::{
    Direction, Open, RelayPlan,
    plan::Welcome,
    pump::{Pump, PumpEnd},
};
use crate::Cut;

/// Relays a connection. It ends when the future does or is dropped.
pub(super) async fn serve(client: TcpStream, target: SocketAddr, plan: RelayPlan, mut open: Open) {
    let shared = Arc::clone(&open.shared);
    let relayed = async {
        let server = match plan.welcome {
            Welcome::Refuse => return end(Cut::Rst, &[&client]),
            Welcome::BlackHole => return swallow(&client).await,
            Welcome::Connect => TcpStream::connect(target).await,
        };
        let Ok(server) = server else {
            return end(Cut::Rst, &[&client]);
        };
        for stream in [&client, &server] {
            // A socket that refuses the option is dead, which the pumps will find.
            let _ = stream.set_nodelay(true);
        }
        let up = Pump::new(&client, &server, &shared, Direction::ToServer).run(plan.to_server);
        let down = Pump::new(&server, &client, &shared, Direction::ToClient).run(plan.to_client);
        tokio::pin!(up, down);
        let (mut up_open, mut down_open) = (true, true);
        while up_open || down_open {
            let ended = tokio::select! {
                ended = &mut up, if up_open => {
                    up_open = false;
                    ended
                }
                ended = &mut down, if down_open => {
                    down_open = false;
                    ended
                }
            };
            if let PumpEnd::Cut(cut) = ended {
                return end(cut, &[&client, &server]);
            }
        }
    };
    tokio::select! {
        () = relayed => {}
        Ok(()) = open.cuts.changed() => {
            let cut = *open.cuts.borrow();
            // The server side is closed by its drop.
            end(cut, &[&client]);
        }
    }
}

/// Prepares what the drop of the streams will do.
fn end(cut: Cut, streams: &[&TcpStream]) {
    if cut == Cut::Rst {
        for stream in streams {
            let _ = SockRef::from(*stream).set_linger(Some(Duration::ZERO));
        }
    }
}

/// Reads until the client goes.
async fn swallow(client: &TcpStream) {
    let mut buf = vec![0; 16 * 1024];
    while client.readable().await.is_ok() {
        match client.try_read(&mut buf) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

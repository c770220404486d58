//! The task that owns the listener and the connections.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::sleep,
};
use tracing::{debug, warn};

use super::{Protocol, Shared};
use crate::{Cut, conn, h2};

/// What the handle asks of the task.
#[derive(Debug)]
pub(super) enum Command {
    /// Cut the connections and go on.
    Cut(Cut, oneshot::Sender<()>),
    /// Cut the connections and end.
    Kill(Cut),
}

pub(super) async fn run(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut commands: mpsc::Receiver<Command>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&shared)));
                }
                Err(error) => {
                    // Out of descriptors, as a rule: give the connections time to end.
                    warn!(%error, "accept failed");
                    sleep(Duration::from_millis(10)).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    warn!(%error, "a connection task failed");
                }
            }
            command = commands.recv() => match command {
                Some(Command::Cut(cut, done)) => {
                    end(&mut connections, &shared, cut).await;
                    // The asker may have stopped waiting.
                    let _ = done.send(());
                }
                Some(Command::Kill(cut)) => {
                    drop(listener);
                    end(&mut connections, &shared, cut).await;
                    return;
                }
                None => return,
            },
        }
    }
}

/// Ends all connections, in the way that is asked for.
async fn end(connections: &mut JoinSet<()>, shared: &Shared, cut: Cut) {
    shared
        .reset_on_drop
        .store(cut == Cut::Rst, Ordering::Release);
    connections.shutdown().await;
    shared.reset_on_drop.store(false, Ordering::Release);
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let (number, _open) = shared.recorder.connection();
    if let Err(error) = stream.set_nodelay(true) {
        debug!(number, %error, "no TCP_NODELAY");
    }
    match shared.config.protocol {
        Protocol::Http1 => conn::serve(stream, shared, number).await,
        Protocol::Http2 => h2::serve(stream, shared, number).await,
    }
}

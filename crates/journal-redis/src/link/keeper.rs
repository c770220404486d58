//! The task that keeps a link connected.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, Value};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::failure::{Code, ConnectError, Failure};
use super::voice::STEADY;
use super::{Shared, Timing};
use crate::target::{Moved, Target};

/// Connects, waits until the connection is given up, and again. It ends when it is aborted.
pub(super) async fn keep(shared: Arc<Shared>, target: Target) {
    let mut pause = FIRST_PAUSE;
    loop {
        let number = shared.lock().next();
        let told = Arc::downgrade(&shared);
        let emptied = move || {
            if let Some(shared) = told.upgrade() {
                shared.emptied(number);
            }
        };
        match connect(&target, &shared.timing, emptied).await {
            Ok(Connected {
                connection,
                driver,
                ended,
                moved,
            }) => {
                shared.lock().came_up(connection, driver);
                shared.tell();
                shared.voice.connected(shared.name);
                let lasted = watch(&shared, ended, moved).await;
                // One that was cut is made anew at once. One that the server had nothing good to say on, or nothing
                // at all, would be so again.
                if lasted > Duration::from_secs(1) || shared.lock().trouble.is_none() {
                    pause = FIRST_PAUSE;
                }
            }
            Err(error) => {
                shared.voice.trouble(shared.name, &error);
                shared.lock().trouble = Some(error);
            }
        }
        sleep(pause + jitter(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits until the connection is given up; returns how long it lasted.
async fn watch(shared: &Shared, mut ended: oneshot::Receiver<()>, mut moved: Moved) -> Duration {
    let mut lasted = Duration::ZERO;
    let mut is_steady = false;
    loop {
        shared.voice.look();
        let (age, silence) = {
            let state = shared.lock();
            (state.age(), state.silence())
        };
        let Some(age) = age else {
            return lasted;
        };
        lasted = age;
        if !is_steady && age >= STEADY {
            is_steady = true;
            shared.voice.steady(shared.name);
        }
        let silence = silence.unwrap_or_default();
        tokio::select! {
            () = shared.lost.notified() => {}
            () = sleep(STEADY.saturating_sub(age)), if !is_steady => {}
            // The socket was closed, though nobody has called.
            _ = &mut ended => {
                let mut state = shared.lock();
                let number = state.number();
                state.give_up(number);
                drop(state);
                shared.tell();
            }
            () = &mut moved => {
                shared.lock().give_up_for(ConnectError::Moved);
                shared.tell();
                tracing::info!(link = shared.name, "the sentinels name another master");
            }
            () = sleep(shared.timing.ping.saturating_sub(silence)) => {
                // Whatever the answer is, the state has seen it. A full disk is an answer as well.
                let answer = shared.call(None, &redis::cmd("PING"), 0).await;
                if matches!(answer, Err(Failure::Refused(_))) {
                    sleep(shared.timing.ping).await;
                }
            }
        }
    }
}

/// A connection that has answered.
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    driver: AbortOnDropHandle<()>,
    /// Closed when the driver has nothing to drive any more.
    ended: oneshot::Receiver<()>,
    moved: Moved,
}

/// Calls `emptied` when the server has put away the data that it had, before it hands over any answer that came later.
pub(super) async fn connect(
    target: &Target,
    timing: &Timing,
    emptied: impl Fn() + Send + Sync + 'static,
) -> Result<Connected, ConnectError> {
    timeout(timing.connect, async {
        let dialled = target.dial().await?;
        let hear = move |push: PushInfo| -> Result<(), Infallible> {
            if push.kind == PushKind::Invalidate {
                emptied();
            }
            Ok(())
        };
        // Deadlines are the link's: only it knows how much is sent.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_push_sender(hear);
        // What is told unasked comes in its place among the answers only in this version of the protocol.
        let login = dialled.login.set_protocol(ProtocolVersion::RESP3);
        let socket = dialled.socket;
        let connection = MultiplexedConnection::new_with_config(&login, socket, config);
        let (mut connection, driver) = connection.await?;
        let (alive, ended) = oneshot::channel();
        let driver = AbortOnDropHandle::new(tokio::spawn(async move {
            driver.await;
            drop(alive);
        }));
        // No key is followed by this; that all of them are put away is told nevertheless.
        let mut tracking = redis::cmd("CLIENT");
        tracking.arg("TRACKING").arg("ON").arg("OPTIN");
        if let Value::ServerError(error) = connection.send_packed_command(&tracking).await? {
            return Err((&error).into());
        }
        // A server that is loading says so only now.
        if let Value::ServerError(error) =
            connection.send_packed_command(&redis::cmd("PING")).await?
        {
            // One that cannot write to its disk can be read.
            if !Code::of(&error).is("MISCONF") {
                return Err((&error).into());
            }
        }
        Ok(Connected {
            connection,
            driver,
            ended,
            moved: dialled.moved,
        })
    })
    .await
    .unwrap_or(Err(ConnectError::TimedOut))
}

/// Up to half of `pause`, so that replicas do not come back in step.
fn jitter(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    pause.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Calls that wait for the socket; beyond them a caller waits for its turn, within its deadline.
const QUEUE: usize = 1024;

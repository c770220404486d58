//! One question at a time, on a connection that nobody else uses yet.

use redis::{Cmd, ErrorKind, RedisConnectionInfo, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::link::ConnectError;
use crate::socket::Socket;

/// Logs in, if there is somebody to log in as.
pub(super) async fn log_in(
    socket: &mut Socket,
    login: &RedisConnectionInfo,
) -> Result<(), ConnectError> {
    let Some(password) = login.password() else {
        return Ok(());
    };
    let mut command = redis::cmd("AUTH");
    if let Some(username) = login.username() {
        command.arg(username);
    }
    ask(socket, command.arg(password)).await.map(|_| ())
}

/// Asks, and reads the one answer. An error of the server is an error.
pub(super) async fn ask(socket: &mut Socket, question: &Cmd) -> Result<Value, ConnectError> {
    let io = |error: std::io::Error| ConnectError::Io(error.kind());
    let question = question.get_packed_command();
    socket.write_all(&question).await.map_err(io)?;
    socket.flush().await.map_err(io)?;
    let mut heard = Vec::new();
    loop {
        if socket.read_buf(&mut heard).await.map_err(io)? == 0 {
            return Err(ConnectError::Io(std::io::ErrorKind::UnexpectedEof));
        }
        // The answers that are asked for here are short, so each is simply read again from its start.
        match redis::parse_redis_value(&heard) {
            Ok(Value::ServerError(error)) => return Err((&error).into()),
            Ok(value) => return Ok(value),
            Err(error) if error.kind() == ErrorKind::Io && heard.len() < LONGEST => {}
            Err(_) => return Err(ConnectError::Unusable),
        }
    }
}

/// Much more than a server says of its role, also with many replicas.
const LONGEST: usize = 64 << 10;

//! Leaving, so that the server has noticed it when the story goes on.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Response, patience};

/// Closes a connection and waits until the server has done the same.
pub async fn leave(mut stream: TcpStream) {
    let gone = async {
        // An error says that the server was faster.
        let _ = stream.shutdown().await;
        let mut rest = [0; 4096];
        while let Ok(1..) = stream.read(&mut rest).await {}
    };
    patience(gone).await;
}

impl Response {
    /// Leaves it in the middle.
    pub async fn leave(self) {
        leave(self.body.into_stream()).await;
    }
}

//! A mock without a listener: it answers on the connections that it is given.

use std::sync::Arc;

use crate::{MockConfig, Recorder, Wire, conn, mock::Shared};

/// What a [`Mock`](crate::Mock) answers, in HTTP/1 and over whatever there is. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

impl Service {
    /// One without connections. It speaks HTTP/1, whatever `config` says.
    pub fn new(config: MockConfig) -> Self {
        Self {
            shared: Arc::new(Shared::new(config)),
        }
    }

    /// Serves a connection. It ends when the future does or is dropped.
    pub async fn serve(&self, wire: impl Wire) {
        let (number, _open) = self.shared.recorder.connection();
        conn::serve(wire, Arc::clone(&self.shared), number).await;
    }

    /// What it saw.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }
}

//! The request that a generation answers, for whoever takes it over: a key of its own, so that nobody who reads the log
//! reads it, and it can go before the log does.
//!
//! It expires with the log of a generation that has no end, and is deleted in the same step as the end is written,
//! whoever does that. It is told to nobody, and is in no log line.

use bytes::Bytes;
use redis::Value;
use streamweld_journal::{StreamId, Unreachable};

use crate::journal::Inner;
use crate::script;
use crate::write::millis;

impl Inner {
    /// Keeps it in the place of what was kept before; not when the generation has its end.
    pub(crate) async fn keep_request(
        &self,
        id: StreamId,
        request: &[u8],
    ) -> Result<(), Unreachable> {
        let keys = self.config.prefix.keys(id);
        let expiry = millis(self.config.live);
        let said = script::KEEP
            .run(
                self.nodes.reads(id),
                &[&keys.gone, &keys.request],
                &[request, expiry.as_bytes()],
            )
            .await;
        said.map(|_| ()).map_err(|_| Unreachable)
    }

    pub(crate) async fn kept_request(&self, id: StreamId) -> Result<Option<Bytes>, Unreachable> {
        let mut command = redis::cmd("GET");
        command.arg(self.config.prefix.keys(id).request);
        let answer = self.nodes.reads(id).call(&command, LARGEST).await;
        match answer.map_err(|_| Unreachable)?.value {
            Value::BulkString(request) => Ok(Some(request.into())),
            Value::Nil => Ok(None),
            _ => Err(Unreachable),
        }
    }

    /// Its log has vanished. When Redis does not answer, it expires.
    pub(crate) async fn drop_request(&self, id: StreamId) {
        let mut command = redis::cmd("DEL");
        command.arg(self.config.prefix.keys(id).request);
        _ = self.nodes.appends(id).call(&command, 0).await;
    }
}

/// What an answer may weigh, for its deadline: as much as is ever kept of a request.
const LARGEST: usize = 32 << 20;

//! Idempotency keys: each a hash in a slot of its own, with its holder and the digest of the body.
//!
//! A name that a backend has given to an answer is kept in the same way.
//!
//! A claim lapses by itself unless it is renewed. When the log of its holder is opened it is bound to that log's
//! life, which is kept up with the log's own expiry. The two lie in different slots, so they are changed one after
//! the other: if Redis goes away between, a claim has the expiry it had before, which may end sooner or later than
//! its log.

use std::time::Duration;

use streamweld_journal::{BodyDigest, Claim, Key, StreamId, Unreachable};

use crate::journal::Inner;
use crate::link::Failure;
use crate::script::{self, Said};
use crate::slot::Slot;
use crate::write::millis;

impl Inner {
    pub(crate) async fn claim(&self, key: Key, id: StreamId) -> Result<Claim, Unreachable> {
        let name = self.config.prefix.claim(key);
        let time = self.table().life(id, &self.config);
        let (holder, time) = (id.text(), millis(time));
        let args: [&[u8]; 2] = [holder.as_bytes(), time.as_bytes()];
        let said = script::CLAIM
            .run(self.nodes.appends(Slot::of(&name)), &[&name], &args)
            .await;
        let said = said.map_err(|_| Unreachable)?;
        if said.word() == "ok" {
            self.table().claimed(id, key);
            return Ok(Claim::Won);
        }
        taken(&said).ok_or(Unreachable)
    }

    pub(crate) async fn claim_body(
        &self,
        key: Key,
        id: StreamId,
        body: BodyDigest,
    ) -> Result<bool, Unreachable> {
        let name = self.config.prefix.claim(key);
        let holder = id.text();
        let args: [&[u8]; 2] = [holder.as_bytes(), &body];
        let said = script::CLAIM_BODY
            .run(self.nodes.appends(Slot::of(&name)), &[&name], &args)
            .await;
        Ok(said.map_err(|_| Unreachable)?.word() == "ok")
    }

    pub(crate) async fn release(&self, key: Key, id: StreamId) -> Result<(), Unreachable> {
        self.free(key, id).await.map_err(|_| Unreachable)?;
        self.table().unclaim(id, key);
        Ok(())
    }

    pub(crate) async fn free(&self, key: Key, id: StreamId) -> Result<(), Failure> {
        let name = self.config.prefix.claim(key);
        let holder = id.text();
        script::RELEASE
            .run(
                self.nodes.appends(Slot::of(&name)),
                &[&name],
                &[holder.as_bytes()],
            )
            .await?;
        Ok(())
    }

    /// Lets the claims of a generation live for so long. One that is not reached lapses when its time is over, and
    /// then a repeat with its key is a request of its own: that is what the key protects from, and it is logged.
    pub(crate) async fn bind_claims(&self, id: StreamId, time: Duration) {
        let keys = self.table().claims(id);
        for key in keys {
            let name = self.config.prefix.claim(key);
            let (holder, time) = (id.text(), millis(time));
            let args: [&[u8]; 2] = [holder.as_bytes(), time.as_bytes()];
            if let Err(error) = script::BIND
                .run(self.nodes.appends(Slot::of(&name)), &[&name], &args)
                .await
            {
                tracing::warn!(stream_id = %id, %error, "an idempotency key may lapse before its answer does");
            }
        }
    }
}

fn taken(said: &Said) -> Option<Claim> {
    let mut parts = said.with.iter();
    let holder = String::from_utf8(parts.next()?.clone()?).ok()?;
    let body = parts.next().and_then(Option::as_deref);
    Some(Claim::Taken {
        id: holder.parse().ok()?,
        body: body.and_then(|body| BodyDigest::try_from(body).ok()),
    })
}

//! The log of a generation in pages, for readers that stand before the beginning of their window.
//!
//! A page is one `XRANGE` from the record that holds what is asked for. How many records make a page is learnt from
//! those before: they hold what a backend sent at once, one token or a hundred. A page that is not read by now is no
//! more than its reader holds; nothing is read ahead.
//!
//! The id of a record is its epoch and its last sequence, and sequences never fall from one epoch to the next. So the
//! record that holds an entry is the first one of its epoch whose id is not smaller, and each change of the writer costs
//! one more look.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::Value;
use streamweld_journal::{
    Call, Earlier, Epoch, Page, Seq, StreamId, Unreachable, Window, WindowConfig,
};
use tokio::time::{Instant, sleep};

use crate::find::{Place, Shown};
use crate::journal::Inner;
use crate::keys::Keys;
use crate::link::Answer;
use crate::slot::Slot;
use crate::tail::{LAST_ID, Stored, stored, stream_entries};

/// Records with their ids, in order.
pub(crate) type Entries = Vec<(String, Vec<u8>)>;

/// What stands before one window.
struct Pages {
    inner: Weak<Inner>,
    id: StreamId,
    /// Bytes of a record, as it was last seen.
    record: AtomicUsize,
}

impl Earlier for Pages {
    fn page(self: Arc<Self>, after: Seq, through: Seq) -> Call<'static, Page> {
        Call::under_way(async move {
            let mut until = None;
            loop {
                // Not held while it waits: a journal ends with its last handle.
                let Some(inner) = self.inner.upgrade() else {
                    return Page::Gone { earliest: None };
                };
                if let Ok(page) = self.read(&inner, after, through).await {
                    return page;
                }
                let hold = inner.config.retention;
                drop(inner);
                let now = Instant::now();
                if now >= *until.get_or_insert(now + hold) {
                    return Page::Gone { earliest: None };
                }
                sleep(AGAIN).await;
            }
        })
    }
}

impl Pages {
    async fn read(&self, inner: &Inner, after: Seq, through: Seq) -> Result<Page, Unreachable> {
        let wanted = after.next();
        let most = usize::try_from(through.get() - after.get()).unwrap_or(MOST);
        let record = self.record.load(Ordering::Relaxed);
        let count = BYTES.div_ceil(record).clamp(1, MOST.min(most));
        let keys = inner.config.prefix.keys(self.id);
        let entries = inner.holding(&keys, wanted, count).await?.value;
        if let Some(records) = NonZero::new(entries.len()) {
            let bytes: usize = entries.iter().map(|(_, record)| record.len()).sum();
            self.record.store(bytes / records + 1, Ordering::Relaxed);
        }
        let whole = WindowConfig {
            max_bytes: usize::MAX,
        };
        // Times are counted from the beginning of a window, and no entry is older than its generation.
        let page = Window::new(self.id, Epoch::FIRST, self.id.time(), whole);
        page.charge_to(Some(inner.table().meter()));
        // Whatever stands before what is committed is at the level.
        let mut place = Place::at(wanted, true);
        for (_, record) in &entries {
            let is_enough = page.held() >= BYTES || page.committed() >= through;
            // What follows a gap, or cannot be read, is found out when it is asked for.
            if is_enough || place.show(&page, record) != Shown::Yes {
                break;
            }
        }
        let earliest = page.earliest();
        Ok(if earliest > wanted {
            Page::Gone {
                earliest: Some(earliest),
            }
        } else if page.committed() < wanted {
            Page::Gone { earliest: None }
        } else {
            Page::Here(page)
        })
    }
}

impl Inner {
    /// What stands before a window of this log.
    pub(crate) fn earlier(self: &Arc<Self>, id: StreamId) -> Arc<dyn Earlier> {
        Arc::new(Pages {
            inner: Arc::downgrade(self),
            id,
            record: AtomicUsize::new(RECORD),
        })
    }

    /// At most `count` records: from the one that holds `seq` on, or from the first behind it.
    pub(crate) async fn holding(
        &self,
        keys: &Keys,
        seq: Seq,
        count: usize,
    ) -> Result<Answer<Entries>, Unreachable> {
        let mut epoch = Epoch::FIRST.get();
        loop {
            let read = self.range(keys, &format!("{epoch}-{seq}"), count).await?;
            let first = read.value.first().filter(|(id, _)| id != LAST_ID);
            match first.and_then(|(id, _)| parts(id)) {
                // A later writer began before.
                Some((later, last)) if later > epoch && last < seq.get() => epoch = later,
                _ => return Ok(read),
            }
        }
    }

    /// At most `count` records from an id on.
    pub(crate) async fn range(
        &self,
        keys: &Keys,
        from: &str,
        count: usize,
    ) -> Result<Answer<Entries>, Unreachable> {
        let mut command = redis::cmd("XRANGE");
        command.arg(&keys.log).arg(from).arg("+");
        command.arg("COUNT").arg(count);
        self.records(keys, &command).await
    }

    /// The same with what stands beside them.
    pub(crate) async fn stored(
        &self,
        keys: &Keys,
        from: &str,
        count: usize,
    ) -> Result<Answer<Vec<Stored>>, Unreachable> {
        let mut command = redis::cmd("XRANGE");
        command.arg(&keys.log).arg(from).arg("+");
        command.arg("COUNT").arg(count);
        let answer = self.read(keys, &command).await?;
        Ok(Answer {
            value: stored(answer.value).ok_or(Unreachable)?,
            connection: answer.connection,
        })
    }

    /// The last record, if there is one.
    pub(crate) async fn newest(&self, keys: &Keys) -> Result<Answer<Entries>, Unreachable> {
        let mut command = redis::cmd("XREVRANGE");
        command.arg(&keys.log).arg("+").arg("-");
        command.arg("COUNT").arg(1);
        self.records(keys, &command).await
    }

    async fn records(
        &self,
        keys: &Keys,
        command: &redis::Cmd,
    ) -> Result<Answer<Entries>, Unreachable> {
        let answer = self.read(keys, command).await?;
        Ok(Answer {
            value: stream_entries(answer.value).ok_or(Unreachable)?,
            connection: answer.connection,
        })
    }

    async fn read(&self, keys: &Keys, command: &redis::Cmd) -> Result<Answer<Value>, Unreachable> {
        let route = self.nodes.reads(Slot::of(&keys.log));
        let answer = route.call(command, ANSWER).await;
        answer.map_err(|_| Unreachable)
    }
}

/// Epoch and last sequence.
fn parts(id: &str) -> Option<(u64, u64)> {
    let (epoch, last) = id.split_once('-')?;
    Some((epoch.parse().ok()?, last.parse().ok()?))
}

/// What a page is to hold: what a reader is given at once.
const BYTES: usize = 256 << 10;
/// Records of a page at most, should large ones follow small ones.
const MOST: usize = 512;
/// Bytes of a record before one was seen.
const RECORD: usize = 4 << 10;
/// What an answer may weigh, for its deadline: a batch is at most some 64 KiB, one after an outage far more.
const ANSWER: usize = 16 << 20;
/// When to ask again after Redis did not answer.
const AGAIN: Duration = Duration::from_millis(200);

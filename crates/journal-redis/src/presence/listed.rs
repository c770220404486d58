//! What this process has on its list in Redis, as far as it knows. Pure.
//!
//! A generation is put there before its log is opened or adopted, so that whoever finds this process dead finds the
//! generation. It is taken off a moment after its end, together with others. One that was taken from this process stays until
//! that was seen to stand in Redis, and is remembered for some time then: should it be lost, the log names this process as its
//! writer again.

use std::collections::HashMap;
use std::time::Duration;

use streamweld_journal::StreamId;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Listed {
    each: HashMap<StreamId, Is>,
    /// Somebody else may have changed the list.
    doubted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    There,
    /// Another process has it, as far as is known.
    Taken,
    /// The same, and it was seen to stand then. It is on the list no more.
    Gone(Instant),
    /// Since then it is not known whether this process writes it.
    Open(Instant),
}

/// What is to be changed there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) add: Vec<StreamId>,
    pub(super) remove: Vec<StreamId>,
}

impl Listed {
    /// It is about to be put there, and then opened or adopted.
    pub(crate) fn begin(&mut self, id: StreamId) {
        self.each.insert(id, Is::Open(Instant::now()));
    }

    /// It is there, and whether this process writes it is known.
    pub(crate) fn there(&mut self, id: StreamId) {
        if let Some(is) = self.each.get_mut(&id) {
            *is = Is::There;
        }
    }

    /// Another process has adopted it, or was quicker to.
    pub(crate) fn taken(&mut self, id: StreamId) {
        if let Some(is) = self.each.get_mut(&id) {
            *is = Is::Taken;
        }
    }

    /// Whether it was taken, rather than ended here.
    pub(super) fn was_taken(&self, id: StreamId) -> bool {
        matches!(self.each.get(&id), Some(Is::Taken | Is::Gone(_)))
    }

    /// That it was taken stands, and it is off the list.
    pub(super) fn seen_taken(&mut self, id: StreamId) {
        if let Some(is @ Is::Taken) = self.each.get_mut(&id) {
            *is = Is::Gone(Instant::now());
        }
    }

    /// Whether any was taken.
    pub(super) fn any_taken(&self) -> bool {
        self.each.values().any(|is| *is == Is::Taken)
    }

    /// Those that were taken.
    pub(super) fn all_taken(&self) -> Vec<StreamId> {
        let each = self.each.iter();
        let taken = each.filter(|(_, is)| **is == Is::Taken);
        taken.map(|(id, _)| *id).collect()
    }

    /// It may not be there.
    pub(crate) fn missing(&mut self, id: StreamId) {
        self.each.remove(&id);
    }

    /// Whether it was put there, or is about to be, as one of this process.
    pub(crate) fn has(&self, id: StreamId) -> bool {
        matches!(self.each.get(&id), Some(Is::There | Is::Open(_)))
    }

    /// Others may have taken off it what this process still writes.
    pub(super) fn doubt(&mut self) {
        self.doubted = true;
    }

    /// What makes the list that of `live`. What is in the open, or was taken, for as long as `longest`
    /// has no log any more.
    pub(super) fn changes(
        &self,
        live: impl IntoIterator<Item = StreamId>,
        is_live: impl Fn(StreamId) -> bool,
        longest: Duration,
    ) -> Changes {
        let is_missing =
            |id: &StreamId| self.doubted || self.each.get(id).is_none_or(|is| *is != Is::There);
        let over = self.each.iter().filter(|(id, is)| match is {
            Is::There => !is_live(**id),
            Is::Taken => false,
            Is::Gone(since) | Is::Open(since) => since.elapsed() > longest,
        });
        Changes {
            add: live.into_iter().filter(is_missing).collect(),
            remove: over.map(|(id, _)| *id).collect(),
        }
    }

    /// They were made.
    pub(super) fn made(&mut self, changes: &Changes) {
        self.doubted = false;
        for id in &changes.add {
            // It may have been taken meanwhile.
            if !self.was_taken(*id) {
                self.each.insert(*id, Is::There);
            }
        }
        for id in &changes.remove {
            self.each.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    const LONGEST: Duration = Duration::from_secs(60);

    fn changes(listed: &mut Listed, live: &[StreamId]) -> Changes {
        let is_live = |id| live.contains(&id);
        let changes = listed.changes(live.iter().copied(), is_live, LONGEST);
        listed.made(&changes);
        changes
    }

    fn add(ids: &[StreamId]) -> Changes {
        Changes {
            add: ids.to_vec(),
            ..Changes::default()
        }
    }

    fn remove(ids: &[StreamId]) -> Changes {
        Changes {
            remove: ids.to_vec(),
            ..Changes::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_is_taken_off_once() {
        let (mut listed, id) = (Listed::default(), StreamId::generate(SystemTime::now()));
        listed.begin(id);
        assert_eq!(changes(&mut listed, &[]), Changes::default());
        listed.there(id);
        assert_eq!(changes(&mut listed, &[id]), Changes::default());
        assert_eq!(changes(&mut listed, &[]), remove(&[id]));
        assert_eq!(changes(&mut listed, &[]), Changes::default());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_or_in_doubt_is_put_there_again() {
        let (mut listed, id) = (Listed::default(), StreamId::generate(SystemTime::now()));
        listed.begin(id);
        listed.missing(id);
        assert_eq!(changes(&mut listed, &[id]), add(&[id]));
        listed.doubt();
        assert_eq!(changes(&mut listed, &[id]), add(&[id]));
        assert_eq!(changes(&mut listed, &[id]), Changes::default());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_stays_until_that_was_seen() {
        let (mut listed, id) = (Listed::default(), StreamId::generate(SystemTime::now()));
        listed.begin(id);
        listed.there(id);
        listed.taken(id);
        assert!(listed.was_taken(id) && !listed.has(id));
        assert_eq!(listed.all_taken(), [id]);
        assert_eq!(changes(&mut listed, &[]), Changes::default());
        assert!(listed.any_taken());
        listed.seen_taken(id);
        assert!(!listed.any_taken());
        // What was seen may be lost yet.
        assert!(listed.was_taken(id) && !listed.has(id));
        assert_eq!(changes(&mut listed, &[]), Changes::default());
        // Adopted again, it is as if it had not been taken.
        listed.begin(id);
        listed.there(id);
        assert_eq!(changes(&mut listed, &[id]), Changes::default());
        assert!(listed.has(id));
        assert_eq!(changes(&mut listed, &[]), remove(&[id]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_while_the_list_was_changed_is_not_forgotten() {
        let (mut listed, id) = (Listed::default(), StreamId::generate(SystemTime::now()));
        listed.begin(id);
        listed.there(id);
        listed.doubt();
        let under_way = listed.changes([id], |_| true, LONGEST);
        listed.taken(id);
        listed.made(&under_way);
        assert_eq!(listed.all_taken(), [id]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_is_remembered_until_its_log_has_expired() {
        let (mut listed, id) = (Listed::default(), StreamId::generate(SystemTime::now()));
        listed.begin(id);
        listed.taken(id);
        listed.seen_taken(id);
        tokio::time::advance(LONGEST + Duration::from_secs(1)).await;
        assert_eq!(changes(&mut listed, &[]), remove(&[id]));
        assert!(!listed.was_taken(id));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_the_open_stays_until_its_log_has_expired() {
        let (mut listed, id) = (Listed::default(), StreamId::generate(SystemTime::now()));
        listed.begin(id);
        tokio::time::advance(LONGEST).await;
        assert_eq!(changes(&mut listed, &[]), Changes::default());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(changes(&mut listed, &[]), remove(&[id]));
    }
}

//! Adopting a log over a journal whose answers get lost.

use std::sync::Arc;
use std::time::SystemTime;

use streamweld_generation::{TakenOver, adopt};
use streamweld_journal::faulty::{Fault, Faults, Faulty, Op};
use streamweld_journal::{
    Adoption, Epoch, Journal, Kind, Memory, Open, Outcome, Seq, StreamId, Tail, Window,
    WindowConfig,
};

struct Scene {
    journal: Faulty<Memory>,
    faults: Arc<Faults>,
    window: Arc<Window>,
    by: Epoch,
}

impl Scene {
    /// A log of two entries.
    async fn new() -> Self {
        let journal = Faulty::new(Memory::default());
        let (id, now) = (StreamId::generate(SystemTime::now()), SystemTime::now());
        let window = Window::new(id, Epoch::FIRST, now, WindowConfig::default());
        for kind in [Kind::Open, Kind::Event] {
            let mut staging = window.stage(now);
            staging.push(kind, |out| out.extend_from_slice(b"data: {}\n"));
        }
        let owner = Open { access: [7; 32] };
        assert_eq!(journal.open(&window, &owner, now).await, Outcome::Yes);
        let appended = journal.append(&window, Seq::FIRST, Seq::new(2)).await;
        assert_eq!(appended, Outcome::Yes);
        Self {
            faults: journal.faults(),
            journal,
            window,
            by: Epoch::FIRST.fresh(),
        }
    }

    async fn adopt(&self, seam: Option<Seq>) -> Result<Seq, TakenOver> {
        let epochs = (Epoch::FIRST, self.by);
        adopt(&self.journal, self.window.id(), epochs, seam, || true).await
    }

    async fn writer(&self) -> (Epoch, Seq) {
        match self.journal.inner().tail(self.window.id()).await {
            Ok(Tail::Last { epoch, last, .. }) => (epoch, last),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_without_an_answer_is_asked_for_again_and_is_the_same() {
    for fault in [Fault::UnknownApplied, Fault::UnknownLost] {
        for seam in [None, Some(Seq::new(2))] {
            let scene = Scene::new().await;
            scene.faults.script(Op::Adopt, [fault, fault]);
            scene.faults.script(Op::Tail, [Fault::Unreachable]);
            assert_eq!(scene.adopt(seam).await, Ok(Seq::new(2)));
            assert_eq!(scene.writer().await, (scene.by, Seq::new(2)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_was_quicker_has_it() {
    for fault in [None, Some(Fault::UnknownLost)] {
        let scene = Scene::new().await;
        let other = Epoch::FIRST.above(7);
        let adoption = Adoption::new(Epoch::FIRST, Seq::new(2), other);
        scene.faults.script(Op::Adopt, fault);
        let held = scene.faults.hold(Op::Adopt);
        let quicker = async {
            held.reached().await;
            let now = SystemTime::now();
            let inner = scene.journal.inner();
            let adopted = inner.adopt(scene.window.id(), adoption, now).await;
            assert_eq!(adopted, Outcome::Yes);
            held.release();
        };
        let (adopted, ()) = tokio::join!(scene.adopt(None), quicker);
        assert_eq!(adopted, Err(TakenOver::NotOurs));
        assert_eq!(scene.writer().await, (other, Seq::new(2)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_seam_that_is_not_the_last_entry_any_more_is_not_adopted() {
    let scene = Scene::new().await;
    let adopted = scene.adopt(Some(Seq::FIRST)).await;
    assert_eq!(adopted, Err(TakenOver::NotOurs));
    assert_eq!(scene.writer().await, (Epoch::FIRST, Seq::new(2)));
}

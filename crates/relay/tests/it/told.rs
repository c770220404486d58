//! What a replica is told is what readers of the owner see.

use std::sync::Arc;
use std::time::SystemTime;

use streamweld_journal::{Closed, Epoch, Kind, Seq, StreamId, Window, WindowConfig};
use streamweld_journal_redis::record;
use streamweld_journal_redis::relay::{Ask, NoAnswer, Relay as _, Told};
use streamweld_mock::{Cut, FaultRelay};

use crate::pair::{Ca, Owner, ask, end, next, patience, stage};

/// A window that shows what it is told.
struct Follower(Arc<Window>);

impl Follower {
    fn of(window: &Window) -> Self {
        let config = WindowConfig::default();
        Self(Window::new(
            window.id(),
            Epoch::FIRST,
            SystemTime::now(),
            config,
        ))
    }

    fn hear(&self, told: &Told) {
        let record = record::decode(&told.record).unwrap();
        if told.stands {
            record.show(&self.0).unwrap();
        } else {
            record.foresee(&self.0).unwrap();
        }
    }
}

#[tokio::test]
async fn what_stands_what_may_not_and_the_end() {
    let ca = Ca::new();
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    let window = owner.begin(4);
    let follower = Follower::of(&window);
    let answer = ask(&asks.relay, &owner.addr.to_string(), &window, 0)
        .await
        .unwrap();
    assert_eq!(answer.about, None);
    let mut telling = answer.telling;
    let mark = next(&mut telling).await.unwrap();
    assert_eq!((mark.stands, mark.committed), (true, Seq::new(4)));
    assert!(record::decode(&mark.record).unwrap().entries.is_empty());
    follower.hear(&next(&mut telling).await.unwrap());
    assert_eq!(follower.0.committed(), Seq::new(4));
    // Not shown to anybody yet.
    stage(&window, Kind::Event, 30);
    window.expose(true);
    let told = next(&mut telling).await.unwrap();
    assert_eq!((told.stands, told.committed), (false, Seq::new(4)));
    follower.hear(&told);
    assert_eq!(
        (follower.0.committed(), follower.0.received()),
        (Seq::new(4), Seq::new(5))
    );
    window.commit(Seq::new(5));
    window.expose(false);
    stage(&window, Kind::Event, 40);
    window.commit(Seq::new(6));
    let told = next(&mut telling).await.unwrap();
    assert_eq!((told.stands, told.committed), (true, Seq::new(6)));
    follower.0.commit(Seq::new(5));
    follower.hear(&told);
    end(&window);
    window.commit(Seq::new(7));
    follower.hear(&next(&mut telling).await.unwrap());
    assert_eq!(follower.0.terminal(), window.terminal());
    assert_eq!(next(&mut telling).await, None);
}

#[tokio::test]
async fn who_knows_nothing_is_told_what_it_is_about() {
    let ca = Ca::new();
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    let window = owner.begin(4);
    window.set_label(b"{}".to_vec().into());
    let asked = Ask {
        id: window.id(),
        after: Seq::new(99),
        writer: None,
    };
    let address = owner.addr.to_string();
    let answer = patience(asks.relay.ask(&address, asked)).await.unwrap();
    let about = answer.about.unwrap();
    assert_eq!(
        (about.access, &about.label[..], about.epoch),
        ([7; 32], &b"{}"[..], Epoch::FIRST)
    );
    let mut telling = answer.telling;
    let mark = next(&mut telling).await.unwrap();
    // There is nothing behind the last.
    assert_eq!(record::decode(&mark.record).unwrap().first, Seq::new(5));
}

#[tokio::test]
async fn another_writer_than_is_known_tells_nothing() {
    let ca = Ca::new();
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    let window = owner.begin(4);
    let address = owner.addr.to_string();
    let with = |writer, after, id| Ask {
        id,
        after: Seq::new(after),
        writer,
    };
    let id = window.id();
    for asked in [
        with(Epoch::new(2), 4, id),
        // It has never come so far.
        with(Epoch::new(1), 5, id),
        with(Epoch::new(1), 0, StreamId::generate(SystemTime::now())),
        with(None, 0, StreamId::generate(SystemTime::now())),
    ] {
        let answer = patience(asks.relay.ask(&address, asked)).await;
        assert_eq!(answer.unwrap_err(), NoAnswer::NotHere, "{asked:?}");
    }
    let mut telling = ask(&asks.relay, &address, &window, 4)
        .await
        .unwrap()
        .telling;
    assert!(next(&mut telling).await.is_some());
    window.close(Closed::Fenced);
    assert_eq!(next(&mut telling).await, None);
}

#[tokio::test]
async fn one_connection_carries_all_generations() {
    let ca = Ca::new();
    let nowhere = ([127, 0, 0, 1], 9).into();
    let way = FaultRelay::start(nowhere).await.unwrap();
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    way.set_target(owner.addr);
    let address = way.addr().to_string();
    let windows: Vec<_> = (0..300).map(|_| owner.begin(2)).collect();
    let mut tellings = Vec::new();
    for window in &windows {
        tellings.push(ask(&asks.relay, &address, window, 2).await.unwrap().telling);
    }
    for window in &windows {
        end(window);
        window.commit(Seq::new(3));
    }
    for telling in &mut tellings {
        assert!(next(telling).await.is_some(), "its mark");
        let told = next(telling).await.unwrap();
        assert_eq!(told.committed, Seq::new(3));
    }
    assert_eq!(way.accepted(), 1);
    // It is closed when nobody needs it, and made anew for the next.
    drop(tellings);
    patience(way.wait_open(0)).await.unwrap();
    assert!(ask(&asks.relay, &address, &windows[0], 0).await.is_ok());
    assert_eq!(way.accepted(), 2);
}

#[tokio::test]
async fn who_takes_it_slowly_holds_back_nobody() {
    let ca = Ca::new();
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    let address = owner.addr.to_string();
    let (slow, fast) = (owner.begin(1), owner.begin(1));
    let _not_read = ask(&asks.relay, &address, &slow, 1).await.unwrap();
    let mut read = ask(&asks.relay, &address, &fast, 1).await.unwrap().telling;
    let mut told = next(&mut read).await.unwrap();
    // More than any buffer on the way takes.
    for seq in 2..60 {
        for window in [&slow, &fast] {
            stage(window, Kind::Event, 256 << 10);
            window.commit(Seq::new(seq));
        }
        while told.committed < Seq::new(seq) {
            told = next(&mut read).await.unwrap();
        }
    }
}

#[tokio::test]
async fn one_that_breaks_off_is_over_for_all() {
    let ca = Ca::new();
    let way = FaultRelay::start(([127, 0, 0, 1], 9).into()).await.unwrap();
    let (owner, asks) = (Owner::new(&ca).await, Owner::new(&ca).await);
    way.set_target(owner.addr);
    let address = way.addr().to_string();
    let window = owner.begin(2);
    for round in 0..3 {
        let mut telling = ask(&asks.relay, &address, &window, 2)
            .await
            .unwrap()
            .telling;
        assert!(next(&mut telling).await.is_some());
        match round {
            0 => way.cut_connections(Cut::Rst),
            1 => way.cut_connections(Cut::Fin),
            // Nothing says so.
            _ => way.pause(),
        }
        assert_eq!(next(&mut telling).await, None, "{round}");
    }
    way.resume();
    assert!(ask(&asks.relay, &address, &window, 2).await.is_ok());
}

//! When the connection is lost before an application saw a byte of the answer, its SDK may ask again: the backend is
//! asked once. And an application that asks twice because it wants two answers gets two.

use streamweld_mock::{Cut, FaultRelay};
use streamweld_tests::patience;

use super::Scene;
use crate::clients::application::End;
use crate::clients::roster::{Lost, Way};
use crate::clients::streams;

/// When the connection is lost, seen from the backend: while it still thinks, or when its head is on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    BeforeTheHead,
    BehindTheHead,
}

impl Scene<'_> {
    pub(super) async fn lost(&self, way: &Way) -> String {
        self.asked_twice(way).await;
        let (before, behind) = tokio::join!(
            self.lost_at(way, Moment::BeforeTheHead),
            self.lost_at(way, Moment::BehindTheHead)
        );
        assert_eq!(before, behind, "{}", way.name);
        before.to_owned()
    }

    async fn lost_at(&self, way: &Way, moment: Moment) -> &'static str {
        let (head, body) = (
            |path: &str| format!("{path} head"),
            |path: &str| format!("{path} body"),
        );
        let case = self.deployment.case(way, |path| {
            streams::plain()
                .head_gate(head(path))
                .gate_after(0, body(path))
        });
        let (head, body) = (head(&case.path), body(&case.path));
        let relay = FaultRelay::start(self.deployment.server())
            .await
            .expect("a port");
        let gates = self.deployment.mock().gates();
        let run = self.application.ask(way.name, &case.at(relay.addr()), 1);
        self.deployment.wait_requests(&case, 1).await;
        let accepted = relay.accepted();
        match moment {
            Moment::BeforeTheHead => relay.cut_connections(Cut::Rst),
            Moment::BehindTheHead => {
                // The head comes as far as the relay, which passes nothing on until the connection is gone.
                relay.pause();
                gates.step(&head);
                gates.wait_arrived(&body, 1).await.expect("the head");
                relay.cut_connections(Cut::Fin);
            }
        }
        let place = format!("{}, {}, {moment:?}", self.application.client, way.name);
        // The backend goes on only when the application has noticed, so that nothing of the answer can have come first.
        if way.lost == Lost::Raises {
            run.ended().await;
        } else {
            patience(async { while relay.wait_accepted(accepted + 1).await.is_err() {} }).await;
        }
        relay.resume();
        gates.release(&head);
        gates.release(&body);
        let saw = run.ended().await;
        let (requests, told) = match (way.lost, saw.end) {
            (Lost::Repeats, End::Whole(_)) => (1, "repeats it; the backend is asked once"),
            (Lost::AsksAnew, End::Whole(_)) => (2, "asks anew; the backend is asked twice"),
            (Lost::Raises, End::Raised { .. }) => (1, "raises"),
            (_, end) => panic!("{place}: {end:?}"),
        };
        if way.lost != Lost::Raises {
            assert_eq!(saw.text, streams::TEXT, "{place}");
        }
        assert_eq!(self.deployment.requests(&case).len(), requests, "{place}");
        told
    }

    /// Two requests at once that are the same to the byte, and then a third.
    async fn asked_twice(&self, way: &Way) {
        let case = self
            .deployment
            .case(way, |path| streams::plain().head_gate(path));
        let base = case.at(self.deployment.server());
        let ask = || self.application.ask(way.name, &base, 1);
        let (one, two) = (ask(), ask());
        self.deployment.wait_requests(&case, 2).await;
        self.deployment.mock().gates().release(&case.path);
        let place = format!("{}, {}", self.application.client, way.name);
        for run in [one, two, ask()] {
            assert_eq!(run.ended().await.text, streams::TEXT, "{place}");
        }
        assert_eq!(self.deployment.requests(&case).len(), 3, "{place}");
    }
}

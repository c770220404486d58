//! Where the proxy compresses, an application that asks for it is given each event as soon as it is there all the same.

use streamweld_mock::{Ask, Direction, FaultRelay};
use streamweld_server::config::ContentCoding;
use streamweld_tests::Setup;

use super::Scene;
use crate::clients::application::End;
use crate::clients::roster::Way;
use crate::clients::streams;

impl Scene<'_> {
    /// The first words while the backend still waits to say more, then the whole text, in fewer bytes than it has. The
    /// server is one of its own: a deployment of somebody else's may compress or not.
    pub(super) async fn compressed(&self, way: &Way) -> String {
        let opening = streams::before_the_text(way.dialect);
        let script = streams::long().gate_after(opening + 3, "rest");
        let harness = Setup::new(script.clone())
            .config(|config| config.edge.compress = ContentCoding::ALL.to_vec())
            .start()
            .await;
        let relay = FaultRelay::start(harness.client.addr)
            .await
            .expect("a port");
        let run = self
            .application
            .ask(way.name, &format!("http://{}", relay.addr()), 1);
        let place = format!("{}, {}", self.application.client, way.name);
        let saw = run.until(|saw| saw.text.contains("tide")).await;
        assert_eq!(saw.end, End::None, "{place}");
        harness.mock.gates().release("rest");
        let saw = run.ended().await;
        assert_eq!(saw.text, streams::long_text(), "{place}");
        assert!(matches!(saw.end, End::Whole(_)), "{place}: {:?}", saw.end);

        let plain: usize = script
            .expected(&Ask::stream(way.dialect))
            .iter()
            .map(|event| event.len())
            .sum();
        let passed = relay.passed(Direction::ToClient);
        assert!(passed < plain as u64 / 2, "{place}: {passed} of {plain}");
        "each event at once".to_owned()
    }
}

//! Stopped from outside, an application sees a proper end with the text so far.

use streamweld_tests::Onlooker;

use super::Scene;
use crate::clients::application::End;
use crate::clients::roster::Way;
use crate::clients::streams;

impl Scene<'_> {
    pub(super) async fn stopped(&self, way: &Way) -> String {
        let opening = streams::before_the_text(way.dialect);
        let case = self
            .deployment
            .case(way, |gate| streams::plain().gate_after(opening + 3, gate));
        let onlooker = Onlooker::start(self.deployment.server()).await;
        let run = self.application.ask(way.name, &case.at(onlooker.addr()), 1);
        let place = format!("{}, {}", self.application.client, way.name);
        let saw = run.until(|saw| saw.text.contains("tide")).await;
        assert_eq!(saw.end, End::None, "{place}");

        let [id] = &onlooker.ids()[..] else {
            panic!("asked more than once: {place}");
        };
        let answer = self
            .deployment
            .same_credential(&case)
            .send("POST", &format!("/v1/streams/{id}/stop"), "")
            .await
            .json()
            .await;
        let saw = run.ended().await;
        assert_eq!(answer["text"].as_str(), Some(saw.text.as_str()), "{place}");
        match saw.end {
            End::Whole(Some(finish)) => format!("ends, `{finish}`"),
            end => panic!("{place}: {end:?}"),
        }
    }
}

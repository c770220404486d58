//! No application takes an answer for whole that is not.

use std::collections::BTreeSet;

use streamweld_mock::Script;
use streamweld_tests::Onlooker;

use super::{AT_ONCE, Scene};
use crate::clients::application::End;
use crate::clients::fixtures::Fixture;
use crate::clients::roster::{Hears, Way};
use crate::clients::streams;

/// A way in which a backend ends an answer that is not whole.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Reset,
    CleanEnd,
    ErrorEvent,
    Abort,
}

impl Fault {
    const ALL: [Self; 4] = [Self::Reset, Self::CleanEnd, Self::ErrorEvent, Self::Abort];

    fn code(self) -> &'static str {
        match self {
            Self::Reset | Self::CleanEnd => "truncated",
            Self::ErrorEvent => "upstream_error",
            Self::Abort => "aborted",
        }
    }

    fn script(self, after: usize) -> Script {
        let script = streams::plain();
        match self {
            Self::Reset => script.rst_after(after),
            Self::CleanEnd => script.clean_after(after),
            Self::ErrorEvent => script.error_after(after),
            Self::Abort => script.abort_after(after),
        }
    }
}

impl Scene<'_> {
    /// Every fault, and every recorded body that ends badly.
    pub(super) async fn failed(&self, way: &Way) -> String {
        let mut classes = BTreeSet::new();
        for fault in Fault::ALL {
            classes.insert(self.fault(way, fault).await);
        }
        let recorded = self.recorded_failures(way, &mut classes).await;
        let count = Fault::ALL.len() + recorded;
        let classes = match way.hears {
            Hears::Always => classes
                .iter()
                .map(|class| format!("`{class}`"))
                .collect::<Vec<_>>()
                .join(" or "),
            // Which class depends on what was read by then.
            Hears::Perhaps => "an error".to_owned(),
        };
        format!("raises {classes} in all of {count}")
    }

    /// In the middle of the text: it raises what the state of the stream says.
    async fn fault(&self, way: &Way, fault: Fault) -> String {
        let opening = streams::before_the_text(way.dialect);
        let case = self.deployment.case(way, |_| fault.script(opening + 4));
        let onlooker = Onlooker::start(self.deployment.server()).await;
        let saw = self
            .application
            .ask(way.name, &case.at(onlooker.addr()), 1)
            .ended()
            .await;
        let place = format!(
            "{}, {}, {fault:?}: {:?}",
            self.application.client, way.name, saw.end
        );
        let End::Raised { class, message } = saw.end else {
            panic!("a short answer was taken for a whole one: {place}");
        };
        assert!(streams::TEXT.starts_with(&saw.text), "{place}");
        let [id] = &onlooker.ids()[..] else {
            panic!("asked more than once: {place}");
        };
        let state = self
            .deployment
            .same_credential(&case)
            .get(&format!("/v1/streams/{id}"))
            .await
            .json()
            .await;
        let terminal = &state["terminal"];
        assert_eq!(terminal["code"], fault.code(), "{place}");
        let said = terminal["message"].as_str().expect("a message");
        // Some SDKs show the error as it came, which is JSON.
        let quoted = terminal["message"].to_string();
        let heard = message.contains(said) || message.contains(quoted.trim_matches('"'));
        assert!(
            heard || way.hears == Hears::Perhaps,
            "{place} does not say {said:?}"
        );
        class
    }

    async fn recorded_failures(&self, way: &Way, classes: &mut BTreeSet<String>) -> usize {
        let fixtures = Fixture::of(way.dialect);
        let failed: Vec<&Fixture> = fixtures
            .iter()
            .filter(|fixture| fixture.failed && fixture.asked <= way.choices)
            .collect();
        let mut taken = Vec::new();
        for some in failed.chunks(AT_ONCE) {
            let runs: Vec<_> = some
                .iter()
                .map(|fixture| {
                    let case = self.deployment.case(way, |_| fixture.script());
                    let base = case.at(self.deployment.server());
                    (
                        fixture,
                        self.application.ask(way.name, &base, fixture.asked),
                    )
                })
                .collect();
            for (fixture, run) in runs {
                match run.ended().await.end {
                    End::Raised { class, .. } => drop(classes.insert(class)),
                    _ => taken.push(fixture.name.as_str()),
                }
            }
        }
        assert!(
            taken.is_empty(),
            "{}, {}: these failed, and it took them for whole: {taken:?}",
            self.application.client,
            way.name
        );
        failed.len()
    }
}

//! Through the proxy an application is given the very objects that it is given straight from the backend.

use std::time::Duration;

use serde_json::Value;
use streamweld_tests::Onlooker;

use super::{AT_ONCE, Scene};
use crate::clients::application::{End, Saw};
use crate::clients::fixtures::Fixture;
use crate::clients::roster::Way;
use crate::clients::streams::{self, Stream};

/// As long as somebody else's deployment may take to send three.
const HEARTBEATS: Duration = Duration::from_secs(60);

impl Scene<'_> {
    /// Whole answers of every kind, and every recorded one.
    pub(super) async fn same(&self, way: &Way) -> String {
        let kinds = streams::all(way);
        for stream in &kinds {
            let (straight, through) = self.both(way, stream).await;
            let place = format!("{}, {}, {}", self.application.client, way.name, stream.name);
            assert!(
                matches!(straight.end, End::Whole(_)),
                "{place}: {:?}",
                straight.end
            );
            assert_same(&place, &straight, &through);
        }
        self.heartbeats(way).await;
        let recorded = self.recorded(way).await;
        format!("the same objects in {} answers", kinds.len() + 1 + recorded)
    }

    async fn both(&self, way: &Way, stream: &Stream) -> (Saw, Saw) {
        let [one, two] = [&stream.straight, &stream.through]
            .map(|script| self.deployment.case(way, |_| script.clone()));
        let straight = one.at(self.deployment.mock().addr());
        let through = two.at(self.deployment.server());
        let straight = self.application.ask(way.name, &straight, stream.choices);
        let through = self.application.ask(way.name, &through, stream.choices);
        (
            self.known(straight.ended().await),
            self.known(through.ended().await),
        )
    }

    /// Heartbeats in the middle of an answer change nothing.
    async fn heartbeats(&self, way: &Way) {
        let opening = streams::before_the_text(way.dialect);
        let quiet = self.deployment.case(way, |_| streams::plain());
        let quiet = quiet.at(self.deployment.mock().addr());
        let straight = self.application.ask(way.name, &quiet, 1).ended().await;

        let paused = self
            .deployment
            .case(way, |gate| streams::plain().gate_after(opening + 3, gate));
        let onlooker = Onlooker::start(self.deployment.server()).await;
        let through = self
            .application
            .ask(way.name, &paused.at(onlooker.addr()), 1);
        let saw = through.until(|saw| saw.text.contains("tide")).await;
        assert_eq!(saw.end, End::None, "{}", way.name);
        onlooker.wait_heartbeats(3, HEARTBEATS).await;
        self.deployment.mock().gates().step(&paused.path);
        let through = through.ended().await;

        let place = format!("{}, {}, heartbeats", self.application.client, way.name);
        assert_eq!(through.text, streams::TEXT, "{place}");
        if let Some(id) = &through.id {
            assert_eq!(onlooker.ids(), [id.as_str()], "{place}");
        }
        assert_same(&place, &self.known(straight), &self.known(through));
    }

    /// The bodies that engines and services sent. Says how many could be compared: some of them a client does not take
    /// from the backend itself.
    async fn recorded(&self, way: &Way) -> usize {
        let fixtures = Fixture::of(way.dialect);
        let whole: Vec<&Fixture> = fixtures
            .iter()
            .filter(|fixture| fixture.is_whole() && fixture.asked <= way.choices)
            .collect();
        let mut compared = 0;
        let mut differences = Vec::new();
        for some in whole.chunks(AT_ONCE / 2) {
            let mut runs = Vec::new();
            for fixture in some {
                let case = |addr| {
                    let case = self.deployment.case(way, |_| fixture.script());
                    self.application
                        .ask(way.name, &case.at(addr), fixture.asked)
                };
                let straight = case(self.deployment.mock().addr());
                runs.push((fixture, straight, case(self.deployment.server())));
            }
            for (fixture, straight, through) in runs {
                let straight = self.known(straight.ended().await);
                let through = self.known(through.ended().await);
                if matches!(straight.end, End::Whole(_)) {
                    compared += 1;
                    let difference = difference(&straight, &through);
                    differences.extend(difference.map(|it| format!("{}: {it}", fixture.name)));
                }
            }
        }
        let place = format!("{}, {}", self.application.client, way.name);
        assert!(
            differences.is_empty(),
            "{place}: {}",
            differences.join("\n")
        );
        compared
    }

    /// Without what differs from one request to the next anyway.
    fn known(&self, mut saw: Saw) -> Saw {
        for object in &mut saw.objects {
            leave_out(object, self.sdk.differs);
        }
        saw
    }
}

fn leave_out(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !names.contains(&name.as_str()));
            members
                .values_mut()
                .for_each(|value| leave_out(value, names));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| leave_out(value, names)),
        _ => {}
    }
}

/// What is not the same, if anything.
fn difference(straight: &Saw, through: &Saw) -> Option<String> {
    let objects = straight.objects.iter().zip(&through.objects);
    if let Some((at, (one, other))) = objects.enumerate().find(|(_, (one, other))| one != other) {
        let (one, other) = (short(one), short(other));
        return Some(format!(
            "object {at} is\n{one}\nand through the proxy\n{other}"
        ));
    }
    let [one, other] = [straight, through].map(|saw| (saw.objects.len(), &saw.text, &saw.end));
    (one != other).then(|| format!("{one:?}, and through the proxy {other:?}"))
}

#[track_caller]
fn assert_same(place: &str, straight: &Saw, through: &Saw) {
    if let Some(difference) = difference(straight, through) {
        panic!("{place}: {difference}");
    }
}

/// Enough of an object to see what it is.
fn short(value: &Value) -> String {
    value.to_string().chars().take(2000).collect()
}

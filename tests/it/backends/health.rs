//! Backends that are probed.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_server::Config;
use streamweld_tests::{End, metric, patience, texts};
use streamweld_upstream::fleet::HealthCheck;

use super::{Several, held_at};

fn probed(config: &mut Config) {
    for backend in &mut config.backends {
        backend.health = HealthCheck::Path("/health".parse().expect("a path"));
    }
    config.fleet.probe_every = Duration::from_millis(20);
}

async fn wait_state(several: &Several, name: &str, state: &str) {
    several
        .wait_shown(name, |shown| shown["state"] == state)
        .await;
}

async fn both_up(scripts: [Script; 2]) -> Several {
    let several = Several::with(scripts.into(), probed).await;
    for name in ["a", "b"] {
        wait_state(&several, name, "up").await;
    }
    several
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_down_gets_nothing_new_until_it_is_up() {
    let several = both_up([Script::tokens(3), Script::tokens(3)]).await;
    several.mocks[0].set_healthy(false);
    wait_state(&several, "a", "down").await;
    assert_eq!(
        several.shown("a").await["last_failure"]["class"],
        "probe_status"
    );
    let down = r#"streamweld_backend_state{backend="a",state="down"}"#;
    assert_eq!(metric(several.admin(), down).await, 1);
    for _ in 0..10 {
        assert_eq!(several.client().chat().await.all().await.1, End::Proper);
    }
    assert_eq!(several.asked(), [0, 10]);

    several.mocks[0].set_healthy(true);
    wait_state(&several, "a", "up").await;
    let asked_again = async {
        while several.asked()[0] == 0 {
            several.client().chat().await.all().await;
        }
    };
    patience(asked_again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_are_down_one_is_asked_all_the_same() {
    let several = both_up([Script::tokens(3), Script::tokens(3)]).await;
    for (name, mock) in ["a", "b"].iter().zip(&several.mocks) {
        mock.set_healthy(false);
        wait_state(&several, name, "down").await;
    }
    assert_eq!(several.client().chat().await.all().await.1, End::Proper);
    assert_eq!(several.asked().iter().sum::<usize>(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_fails_ends_nothing() {
    let held = || Script::text("Good morning to you").gate_after(2, "go");
    let several = both_up([held(), held()]).await;
    let (_, mut response) = held_at(&several, "a").await;
    several.mocks[0].set_healthy(false);
    wait_state(&several, "a", "down").await;
    several.mocks[0].gates().release("go");
    let (rest, end) = response.body.rest().await;
    let rest = texts(&rest);
    assert_eq!(
        (rest.ends_with(" morning to you"), end),
        (true, End::Proper),
        "{rest}"
    );
}

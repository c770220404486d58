//! A stop at the moment when an answer that was cut is about to be refused.

use streamweld_dialect::Dialect;
use streamweld_generation::Read;
use streamweld_journal::Kind;

use crate::stage::{Setup, Stage, terminal};

/// A chunk of a chat.
const CHUNK: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;

/// How an answer ends that is cut where nobody can go on with it.
async fn cut(stops: bool) -> (Kind, Option<&'static str>) {
    let mut stage = Stage::running(Setup {
        dialect: Dialect::OpenAiChat,
        looks: Some(stops),
        ..Setup::default()
    })
    .await;
    stage.events(&[CHUNK]);
    stage.read(Read::Cut("it is gone".to_owned()));
    stage.over().await.unwrap();
    let later = stage.later().await;
    assert_eq!(later.events[0].0, CHUNK);
    let ends = [
        (Kind::Stopped, None),
        (Kind::Error, Some("migration_refused")),
    ];
    let mut ends = ends.into_iter();
    let found = ends.find(|(kind, code)| later.end == terminal(*kind, *code, true));
    found.unwrap_or_else(|| panic!("{:?}", later.end))
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_gates_are_asked_is_a_stop() {
    assert_eq!(cut(true).await, (Kind::Stopped, None));
    let refused = (Kind::Error, Some("migration_refused"));
    assert_eq!(cut(false).await, refused);
}

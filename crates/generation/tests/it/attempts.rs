//! Which backends were asked for an answer, and at which one it is.

use streamweld_generation::Leave;

use crate::stage::{Setup, Stage};

#[tokio::test]
async fn the_backend_that_it_is_at_comes_last_whoever_was_asked_since() {
    let stage = Stage::dispatched(Setup::default(), |_| {});
    let handle = &stage.handle;
    let asked = || {
        let asked = handle.asked();
        asked.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!((handle.attempts(), asked()), (1, vec![]));
    handle.attempt("b");
    handle.go_to("b", Leave::Otherwise);
    assert_eq!(asked(), ["b"]);
    // It was asked in vain.
    handle.attempt("a");
    assert_eq!(
        (handle.attempts(), asked()),
        (2, vec!["a".to_owned(), "b".to_owned()])
    );
    handle.attempt("a");
    handle.go_to("a", Leave::Otherwise);
    assert_eq!(asked(), ["b", "a"]);
    handle.attempt("b");
    handle.go_to("b", Leave::Otherwise);
    assert_eq!(
        (handle.attempts(), asked()),
        (4, vec!["a".to_owned(), "b".to_owned()])
    );
}

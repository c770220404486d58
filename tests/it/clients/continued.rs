//! The SDKs of Anthropic, in front of a service that dies in the middle of its message (protocol.md 8.8).

use streamweld_mock::{Engine, Script};
use streamweld_tests::{Twins, TwinsSetup};

use super::application::{Application, End};

const TEXT: &str = "Salt comes from rivers.\n\nha ha ha\n\n    return 0000\n}\n}\n";

fn says() -> Script {
    Script::text(TEXT).engine(Engine::Anthropic).id("first")
}

/// An application is given the objects that it would be given of an answer that nobody disturbed, but for how its text is
/// cut: the last of them is the whole message, put together by the SDK.
async fn sees_one_message(program: &str, ways: &[&str]) {
    let application = Application::start(program).await;
    for way in ways {
        let twins: Twins = TwinsSetup::new(Script::text(TEXT).engine(Engine::Anthropic).id("rest"))
            .start()
            .await;
        let base = format!("http://{}", twins.replica.client.addr);
        twins.next([says()]);
        let whole = application.ask(way, &base, 1).ended().await;
        twins.next([says().fin_after(10)]);
        let moved = application.ask(way, &base, 1).ended().await;
        assert_eq!(whole.end, End::Whole(Some("end_turn".to_owned())), "{way}");
        assert_eq!(twins.attempts().len(), 3, "{way}");
        assert_eq!(
            (&moved.end, moved.text.as_str()),
            (&whole.end, TEXT),
            "{way}"
        );
        assert_eq!(moved.objects.last(), whole.objects.last(), "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_python_sees_one_message_across_a_seam() {
    let ways = ["messages", "messages_async", "helper", "helper_async"];
    sees_one_message("anthropic_sdk.py", &ways).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_javascript_sees_one_message_across_a_seam() {
    sees_one_message("anthropic_sdk.mjs", &["messages", "helper"]).await;
}

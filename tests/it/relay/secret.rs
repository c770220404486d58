//! What goes over a relay, and what does not.

use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use streamweld_mock::Script;
use streamweld_tests::{End, events, wait_seq};

use super::scene::Scene;

/// Everything that the owner tells, to one who follows and to one who knows nothing.
#[tokio::test(flavor = "multi_thread")]
async fn neither_the_prompt_nor_a_credential_goes_over_it() {
    let scene = Scene::new(Script::tokens(20).id("fixed").gate_after(10, "go")).await;
    let one = scene.replica().await;
    let owner = one.client.with("authorization", "Bearer a-confided-key");
    let prompt =
        r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"a-confided-prompt"}]}"#;
    let mut asked = owner.send("POST", "/v1/chat/completions", prompt).await;
    let id = asked.id();
    asked.body.blocks(10).await;
    wait_seq(&owner, &id, 11).await;
    let stream = TokioIo::new(scene.dial(one.relay).await);
    let connection = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
    let (mut sender, connection) = connection.await.expect("it speaks HTTP/2");
    let _driver = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let mut answers = Vec::new();
    for query in ["after=0&epoch=1", "after=0"] {
        let target = format!("https://relay/v1/generations/{id}?{query}");
        let request = Request::get(target).body(Empty::<Bytes>::new());
        let request = request.expect("a request");
        answers.push(sender.send_request(request).await.expect("an answer"));
    }
    scene.mock.gates().release("go");
    let (shown, end) = asked.all().await;
    assert_eq!(end, End::Proper);
    for answer in answers {
        assert_eq!(answer.status(), 200);
        let head = format!("{:?}", answer.headers());
        let body = answer.into_body().collect().await.expect("to its end");
        let told = [head.as_bytes(), &body.to_bytes()].concat();
        let told = String::from_utf8_lossy(&told);
        for event in events(&shown) {
            assert!(told.contains(&event), "{event}");
        }
        assert!(!told.contains("confided"), "{told}");
    }
    // What is not written here, or not so, is not told.
    for target in [
        format!("/v1/generations/{id}?after=0&epoch=7"),
        "/v1/generations/01arz3ndektsv4rrffq69g5fav?after=0".to_owned(),
        format!("/v1/streams/{id}/events"),
        format!("/v1/streams/{id}/stop"),
        "/metrics".to_owned(),
    ] {
        let request = Request::get(format!("https://relay{target}")).body(Empty::<Bytes>::new());
        let answer = sender.send_request(request.expect("a request")).await;
        assert_eq!(answer.expect("an answer").status(), 404, "{target}");
    }
}

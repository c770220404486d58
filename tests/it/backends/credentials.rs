//! Keys that the proxy owns.

use streamweld_mock::Script;
use streamweld_tests::{texts, wait_end};
use streamweld_upstream::fleet::{Credential, Family};

use super::{Several, asked, only_after_the_others};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_proxy_stands_in_place_of_the_callers() {
    let folder = std::env::temp_dir().join(format!("streamweld-key-{}", std::process::id()));
    std::fs::write(&folder, "sk-proxy\n").expect("a file");
    let owned = Credential::from_file(&folder, Family::Openai).expect("a key");
    std::fs::remove_file(&folder).expect("it is there");
    let several = Several::with(
        vec![Script::error(503), Script::text("Good day")],
        move |config| {
            config.backends[1].credential = owned;
            config.generation.credential_headers = vec!["x-my-key".to_owned()];
            only_after_the_others(&mut config.backends[1], &mut config.fleet);
        },
    )
    .await;
    let caller = several
        .client()
        .with("authorization", "Bearer sk-caller")
        .with("x-api-key", "sk-caller")
        .with("api-key", "sk-caller")
        .with("x-my-key", "sk-caller")
        .with("x-goog-api-key", "sk-caller");
    let response = caller.chat().await;
    let id = response.id();
    assert_eq!(texts(&response.all().await.0), "Good day");

    // The one that was asked first is shown the caller's, as it came.
    let first = &asked(&several.mocks[0])[0];
    assert_eq!(first.header("authorization"), Some("Bearer sk-caller"));
    assert_eq!(first.header("x-api-key"), Some("sk-caller"));
    assert_eq!(first.header("x-my-key"), Some("sk-caller"));
    let second = &asked(&several.mocks[1])[0];
    assert_eq!(second.header("authorization"), Some("Bearer sk-proxy"));
    let shown = format!("{:?}", second.headers);
    assert!(!shown.contains("sk-caller"), "{shown}");
    // Nor is the proxy's shown to the other.
    assert!(!format!("{:?}", first.headers).contains("sk-proxy"));

    // The stream is its maker's, whichever key it was made with there.
    wait_end(&caller, &id).await;
    let stranger = several.client().with("authorization", "Bearer sk-proxy");
    assert_eq!(stranger.events(&id).await.status, 404);
    // What passes through is treated alike.
    let path = "/v1/models";
    let pass = async {
        while asked(&several.mocks[1]).len() < 2 {
            caller.get(path).await;
        }
    };
    several
        .admin()
        .send("POST", "/admin/backends/a/drain?timeout=0s", "")
        .await;
    streamweld_tests::patience(pass).await;
    let passed = asked(&several.mocks[1]).pop().expect("it was asked");
    assert_eq!(
        (passed.path(), passed.header("authorization")),
        (path, Some("Bearer sk-proxy"))
    );
    assert!(!format!("{:?}", passed.headers).contains("sk-caller"));
}

//! What is found out about a backend, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use streamweld_dialect::{Dialect, Engine, Method};
use streamweld_upstream::Backend;
use streamweld_upstream::examine::{
    Bounds, Examination, Finding, Identity, NotExamined, Pair, Probed, Subject, Untold, compare,
    examine, identify,
};
use streamweld_upstream::fleet::{self, Credential, Family};

use self::fake::{Fake, Flaw, Kind};
use crate::raw::{TempFile, client, within};

mod fake;
mod flaws;
mod pairs;

const CHAT: Dialect = Dialect::OpenAiChat;
const COMPLETIONS: Dialect = Dialect::OpenAiCompletions;
const MESSAGES: Dialect = Dialect::AnthropicMessages;

async fn identified(fake: &Fake) -> Result<Identity, NotExamined> {
    identified_with(fake, &Credential::PassThrough, None).await
}

async fn identified_with(
    fake: &Fake,
    credential: &Credential,
    model: Option<&str>,
) -> Result<Identity, NotExamined> {
    let backend = Backend::named("engine-a", fake.url.parse().unwrap());
    let client = client();
    let subject = subject(&client, &backend, credential, model);
    within(identify(&subject)).await
}

fn subject<'a>(
    client: &'a streamweld_upstream::Client,
    backend: &'a Backend,
    credential: &'a Credential,
    model: Option<&'a str>,
) -> Subject<'a> {
    Subject {
        client,
        backend,
        credential,
        declared: fleet::Engine::Unknown,
        model,
        bounds: Bounds::default(),
    }
}

async fn examined(kind: Kind, flaw: Flaw) -> Examination {
    let fake = Fake::start(kind, flaw).await;
    let backend = Backend::named("engine-a", fake.url.parse().unwrap());
    let client = client();
    let subject = subject(&client, &backend, &Credential::PassThrough, None);
    let identity = within(identify(&subject)).await.unwrap();
    within(examine(&subject, identity)).await
}

#[track_caller]
fn check(examination: &Examination, name: &str, finding: Finding, said: &str) {
    let mut checks = examination.checks.iter();
    let check = checks.find(|check| check.name == name).unwrap();
    assert_eq!(check.finding, finding, "{check:?}");
    assert!(check.evidence.contains(said), "{check:?}");
    assert_eq!(check.remedy.is_some(), finding != Finding::Ok, "{check:?}");
}

#[tokio::test]
async fn each_engine_shows_what_it_can() {
    use Method::{Prefill, TokenIds};
    for (kind, engine, chat, completions) in [
        (
            Kind::Vllm,
            Engine::Vllm,
            &[TokenIds, Prefill][..],
            &[TokenIds, Prefill][..],
        ),
        // It does not render for others, so nobody knows of its template.
        (Kind::Sglang, Engine::Sglang, &[], &[TokenIds, Prefill]),
        (Kind::LlamaCpp, Engine::LlamaCpp, &[Prefill], &[Prefill]),
    ] {
        let examination = examined(kind, Flaw::Nothing).await;
        assert_eq!(examination.identity.engine, Some(engine));
        assert_eq!(examination.methods(CHAT), chat, "{examination:#?}");
        assert_eq!(examination.methods(COMPLETIONS), completions, "{kind:?}");
        let messages: &[Method] = match kind {
            Kind::LlamaCpp => &[Prefill],
            _ => &[],
        };
        assert_eq!(examination.methods(MESSAGES), messages, "{kind:?}");
        assert_eq!(examination.methods(Dialect::Gemini), []);
        assert!(examination.settled(), "{examination:#?}");
        assert_eq!(examination.identity.context(), Some(2048));
        check(&examination, "engine", Finding::Ok, engine.as_str());
        check(&examination, "model", Finding::Ok, "tide from /models/tide");
        check(&examination, "tokenisation", Finding::Ok, "tokens");
    }
}

#[tokio::test]
async fn an_engine_that_tells_everything_is_found_to_do_everything() {
    let examination = examined(Kind::Vllm, Flaw::Nothing).await;
    let unwell = examination.checks.iter();
    let unwell: Vec<&str> = unwell
        .filter(|check| check.finding != Finding::Ok)
        .map(|check| check.name)
        .collect();
    // Of all models, and no fault of this one.
    assert_eq!(unwell, ["control_text"]);
    assert_eq!(examination.reads_controls, Probed::Yes);
    assert_eq!(examination.keeps_prefix(CHAT), Probed::Yes);
    assert_eq!(examination.chat.round_trip, Probed::Yes);
    assert_eq!(examination.completions.round_trip, Probed::Yes);
}

#[tokio::test]
async fn how_messages_go_on_is_looked_at_where_they_can() {
    let examination = examined(Kind::LlamaCpp, Flaw::Nothing).await;
    check(
        &examination,
        "messages.prefill",
        Finding::Ok,
        "went on exactly",
    );
    check(
        &examination,
        "messages.count",
        Finding::Ok,
        "as it did for its answer",
    );
    assert_eq!(examination.keeps_prefix(MESSAGES), Probed::Yes);
    for (flaw, said) in [
        (Flaw::BeginsAnew, "begins anew"),
        (Flaw::Echoes, "repeats"),
        (Flaw::Drifts, "Another text"),
        (Flaw::NoPrefill, "answered with 400"),
    ] {
        let examination = examined(Kind::LlamaCpp, flaw).await;
        check(&examination, "messages.prefill", Finding::Problem, said);
        assert_eq!(examination.methods(MESSAGES), [], "{flaw:?}");
    }
    let pair = compare(&examination, &examination);
    assert_eq!(pair.methods(MESSAGES), [Method::Prefill]);
    let other = examined(Kind::Vllm, Flaw::Nothing).await;
    assert_eq!(compare(&examination, &other).methods(MESSAGES), []);
    let mut checks = other.checks.iter();
    assert!(!checks.any(|check| check.name.starts_with("messages.")));
}

#[test]
fn of_a_hosted_service_nothing_is_asked_and_nothing_is_known() {
    let examination = Examination::hosted(fleet::Engine::Anthropic).unwrap();
    check(&examination, "engine", Finding::Unknown, "a hosted service");
    check(
        &examination,
        "messages.prefill",
        Finding::Unknown,
        "Claude 4.5",
    );
    assert_eq!(examination.methods(MESSAGES), []);
    for engine in [fleet::Engine::Unknown, fleet::Engine::LlamaCpp] {
        assert!(Examination::hosted(engine).is_none());
    }
}

#[tokio::test]
async fn an_identity_costs_no_token_and_stays_the_same() {
    for (kind, most) in [(Kind::Vllm, 2), (Kind::Sglang, 3), (Kind::LlamaCpp, 2)] {
        let fake = Fake::start(kind, Flaw::Nothing).await;
        let one = identified(&fake).await.unwrap();
        let heads = fake.asked();
        assert!(heads.len() <= most && heads.iter().all(|head| head.starts_with("GET ")));
        assert_eq!(one.digest(), identified(&fake).await.unwrap().digest());
        assert!(!format!("{one:?}").contains("s3cret"));
        let adapter = identified_with(&fake, &Credential::PassThrough, Some("adapter"));
        assert_ne!(one.digest(), adapter.await.unwrap().digest());
    }
}

#[tokio::test]
async fn an_engine_is_known_by_two_words_that_agree() {
    for (kind, flaw, said) in [
        (Kind::Other, Flaw::Nothing, "\"somebody\""),
        (Kind::Vllm, Flaw::OnlyV1, "/version is not as of vllm"),
        (
            Kind::LlamaCpp,
            Flaw::OnlyV1,
            "/props is not as of llama_cpp",
        ),
    ] {
        let examination = examined(kind, flaw).await;
        check(&examination, "engine", Finding::Unknown, said);
        assert_eq!(examination.methods(CHAT), []);
        assert_eq!(examination.methods(COMPLETIONS), []);
    }
}

#[tokio::test]
async fn what_was_declared_wrongly_is_found() {
    let fake = Fake::start(Kind::LlamaCpp, Flaw::Nothing).await;
    let backend = Backend::named("engine-a", fake.url.parse().unwrap());
    let client = client();
    for (declared, finding, said) in [
        (
            fleet::Engine::Vllm,
            Finding::Problem,
            "declared as vllm, but it is llama_cpp",
        ),
        (fleet::Engine::LlamaCpp, Finding::Ok, "llama_cpp"),
    ] {
        let subject = Subject {
            declared,
            ..subject(&client, &backend, &Credential::PassThrough, None)
        };
        let identity = within(identify(&subject)).await.unwrap();
        let examination = within(examine(&subject, identity)).await;
        check(&examination, "engine", finding, said);
    }
}

#[tokio::test]
async fn a_model_that_is_not_served_is_said_and_not_asked_for() {
    let fake = Fake::start(Kind::Vllm, Flaw::Nothing).await;
    let backend = Backend::named("engine-a", fake.url.parse().unwrap());
    let client = client();
    let subject = subject(&client, &backend, &Credential::PassThrough, Some("ebb"));
    let identity = within(identify(&subject)).await.unwrap();
    let examination = within(examine(&subject, identity)).await;
    check(&examination, "model", Finding::Problem, "tide, adapter");
    assert_eq!(examination.methods(COMPLETIONS), []);
    assert!(fake.asked().iter().all(|head| head.starts_with("GET ")));
}

#[tokio::test]
async fn the_backends_credential_is_shown_to_it() {
    let file = TempFile::new("k3y\n");
    let credential = Credential::from_file(file.path(), Family::Openai).unwrap();
    let fake = Fake::start(Kind::Vllm, Flaw::WantsKey).await;
    let identity = identified_with(&fake, &credential, None).await.unwrap();
    assert_eq!(identity.engine, Some(Engine::Vllm));

    let error = identified(&fake).await.unwrap_err();
    assert!(matches!(error.cause(), Untold::Denied(401)));
    let said = "backend engine-a answered with 401: it wants a credential, or another one";
    assert_eq!(error.to_string(), said);
}

#[tokio::test]
async fn a_backend_that_says_nothing_is_named() {
    // A port that is taken, and at which nobody listens.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let backend = Backend::named("engine-a", format!("http://{address}").parse().unwrap());
    let client = client();
    let subject = subject(&client, &backend, &Credential::PassThrough, None);
    let error = within(identify(&subject)).await.unwrap_err();
    assert_eq!(error.to_string(), "backend engine-a refused the connection");
    assert!(error.cause().may_pass());

    let endless = Fake::start(Kind::Vllm, Flaw::Endless).await;
    let error = identified(&endless).await.unwrap_err();
    assert!(matches!(error.cause(), Untold::TooLarge));
}

#[tokio::test]
async fn what_is_not_said_in_time_is_unknown_and_may_be_said_later() {
    let fake = Fake::start(Kind::Vllm, Flaw::Silent).await;
    let backend = Backend::named("engine-a", fake.url.parse().unwrap());
    let client = client();
    let calm = subject(&client, &backend, &Credential::PassThrough, None);
    let identity = within(identify(&calm)).await.unwrap();
    let hasty = Subject {
        bounds: Bounds {
            answer: Duration::from_millis(100),
            ..calm.bounds
        },
        ..calm
    };
    let examination = within(examine(&hasty, identity.clone())).await;
    let said = "did not answer in time";
    check(&examination, "chat.prefill", Finding::Unknown, said);
    assert!(!examination.settled());

    // All of it together has a bound as well.
    let none = Subject {
        bounds: Bounds {
            whole: Duration::ZERO,
            ..calm.bounds
        },
        ..calm
    };
    let examination = within(examine(&none, identity)).await;
    check(&examination, "tokenisation", Finding::Unknown, said);
    assert!(!examination.settled());
}

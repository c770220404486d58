//! The SDKs: each program, in each of its ways, through every story. They read a stream once, from its beginning, and
//! never resume; so an answer has to be what the backend gave, one that was cut must raise, and the one repeat that
//! they do make by themselves must not be paid for twice.

mod compressed;
mod failed;
mod lost;
mod same;
mod stopped;

use super::application::Application;
use super::deployment::Deployment;
use super::roster::{self, Sdk};
use super::seen::Seen;

/// How many requests of an application are under way at once.
const AT_ONCE: usize = 8;

/// An application on an SDK, and what it asks.
struct Scene<'a> {
    sdk: &'a Sdk,
    application: Application,
    deployment: Deployment,
}

/// Tells every story with an SDK and checks its rows.
async fn tell(test: &'static str, sdk: &Sdk) {
    let scene = Scene {
        sdk,
        application: Application::start(sdk.program).await,
        deployment: Deployment::start().await,
    };
    let mut seen = Seen::by(test);
    for way in sdk.ways {
        let cells = [
            scene.application.client.clone(),
            way.shown.to_owned(),
            scene.same(way).await,
            scene.failed(way).await,
            scene.stopped(way).await,
            scene.compressed(way).await,
            scene.lost(way).await,
        ];
        seen.cells(&cells);
    }
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_python() {
    tell("sdks::openai_python", &roster::OPENAI_PYTHON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_python() {
    tell("sdks::anthropic_python", &roster::ANTHROPIC_PYTHON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn genai_python() {
    tell("sdks::genai_python", &roster::GENAI_PYTHON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain_python() {
    tell("sdks::langchain_python", &roster::LANGCHAIN_PYTHON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn litellm_python() {
    tell("sdks::litellm_python", &roster::LITELLM_PYTHON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn httpx_sse() {
    tell("sdks::httpx_sse", &roster::HTTPX_SSE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_javascript() {
    tell("sdks::openai_javascript", &roster::OPENAI_JAVASCRIPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_javascript() {
    tell("sdks::anthropic_javascript", &roster::ANTHROPIC_JAVASCRIPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn genai_javascript() {
    tell("sdks::genai_javascript", &roster::GENAI_JAVASCRIPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ai_sdk() {
    tell("sdks::ai_sdk", &roster::AI_SDK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain_javascript() {
    tell("sdks::langchain_javascript", &roster::LANGCHAIN_JAVASCRIPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eventsource_parser() {
    tell("sdks::eventsource_parser", &roster::EVENTSOURCE_PARSER).await;
}

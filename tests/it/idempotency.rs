//! The same key meets the same generation (protocol.md 9.1).

mod answers;
mod before_the_head;
mod form;
mod freed;

use streamweld_tests::{End, Response, events, patience};
use tokio::net::TcpStream;

const PATH: &str = "/v1/chat/completions";

const KEY: &str = "idempotency-key";

async fn whole(response: Response) -> Vec<u8> {
    assert_eq!(response.status, 200);
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    body
}

async fn answer(stream: TcpStream) -> (String, Vec<u8>) {
    let response = patience(Response::read(stream)).await.expect("an answer");
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    (id, body)
}

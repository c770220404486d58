//! What is told of a move: to whom, in which order, and everywhere the same.

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Engine, Script};
use streamweld_tests::{
    Client, End, GROUP, Over, Pair, PairSetup, blocks, ends, engine, events, spec, state, twins,
    wait_end,
};

use super::answer::{Answer, CHAT, request};
use super::story::{SHOWN, TEXT, Told, cut_once, says};

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_told_ahead_of_what_follows_it() {
    for (engine, method) in [(Engine::Vllm, "token_ids"), (Engine::LlamaCpp, "prefill")] {
        let twins = cut_once(engine, |setup| setup).await;
        let told = Told::chat(&twins, &json!({"temperature": 0})).await;
        told.assert_moved(method);
        let name = Some("streamweld.migration");
        let at = told
            .control
            .iter()
            .position(|block| block.event.as_deref() == name);
        // The open entry, and what the first attempt said.
        let at = at.expect("a move");
        assert_eq!(at, 1 + SHOWN);
        let seqs: Vec<u64> = told.control.iter().map(|block| block.seq()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        let [from, to] = [0, 1].map(|attempt| twins.name(&twins.attempts()[attempt]));
        let payload = &told.payloads("migration")[0];
        let expected = json!({
            "stream_id": told.id, "seq": at + 1, "time": payload["time"], "from": from, "to": to,
            "trigger": "truncated", "method": method, "attempt": 2,
        });
        assert_eq!(payload, &expected);
        assert!(payload["time"].as_str().expect("a time").ends_with('Z'));
        let terminal = &told.payloads("done")[0];
        assert_eq!(
            (&terminal["attempts"], &terminal["backends"]),
            (&json!(2), &json!([from, to]))
        );
        assert_eq!(
            (&told.state["attempts"], &told.state["backends"]),
            (&json!(2), &json!([from, to]))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_reader_sees_one_answer_and_nothing_of_a_move() {
    let twins = cut_once(Engine::Vllm, |setup| setup).await;
    let body = request(CHAT, &json!({})).to_string();
    let (shown, end) = twins
        .replica
        .client
        .send("POST", CHAT, &body)
        .await
        .all()
        .await;
    assert_eq!(end, End::Proper);
    let names: Vec<_> = blocks(&shown)
        .into_iter()
        .filter_map(|block| block.event)
        .collect();
    assert!(names.is_empty(), "{names:?}");
    assert!(
        !events(&shown)
            .iter()
            .any(|data| data.contains("streamweld"))
    );
}

/// Reads from behind this entry.
async fn from(client: &Client, id: &str, seq: u64) -> Vec<u8> {
    let client = client.with("last-event-id", &format!("{id}:{seq}"));
    let response = client.events(id).await;
    match response.status {
        204 => Vec::new(),
        _ => response.all().await.0,
    }
}

async fn a_move_reads_the_same_from_every_cursor(over: Over) {
    let first: Script = says(Engine::Vllm).fin_after(SHOWN);
    let mocks = twins(says(Engine::Vllm), 2).await;
    mocks[0].push_script(first.clone());
    let specs: Vec<_> = mocks
        .iter()
        .zip('a'..)
        .map(|(mock, name)| spec(mock, name, engine(&first)))
        .collect();
    let setup = PairSetup::new(over, Script::new()).config(move |config| {
        config.backends.clone_from(&specs);
        config
            .migration
            .groups
            .insert(GROUP.to_owned(), Policy::Exact);
        config.migration.vouched.insert(GROUP.to_owned());
    });
    let pair: Pair = setup.start().await;
    let body = request(CHAT, &json!({})).to_string();
    let response = pair.one.client.send("POST", CHAT, &body).await;
    let id = response.id();
    let (shown, end) = response.all().await;
    assert_eq!((end, Answer::of(&shown).text.as_str()), (End::Proper, TEXT));
    let borders = ends(&shown);
    let seqs: Vec<u64> = blocks(&shown).iter().map(|block| block.seq()).collect();
    for client in pair.clients() {
        assert_eq!(wait_end(&client, &id).await["status"], "done");
        assert_eq!(from(&client, &id, 0).await, shown);
        for (border, seq) in borders.iter().zip(&seqs) {
            assert_eq!(
                from(&client, &id, *seq).await,
                shown[*border..],
                "behind {seq}"
            );
        }
        // The move itself is an entry that plain readers do not see.
        let hidden = SHOWN as u64 + 2;
        assert!(!seqs.contains(&hidden));
        assert_eq!(
            from(&client, &id, hidden).await,
            shown[borders[SHOWN - 1]..]
        );
    }
    let known = |state: &Value| {
        [&state["migrations"], &state["attempts"], &state["backends"]].map(Value::clone)
    };
    let [one, other] = [
        state(&pair.one.client, &id).await,
        state(&pair.other.client, &id).await,
    ];
    assert_eq!(known(&one), known(&other));
    assert_eq!(
        (&one["migrations"], &one["attempts"]),
        (&json!(1), &json!(2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_reads_the_same_from_every_cursor_on_two_replicas() {
    a_move_reads_the_same_from_every_cursor(Over::Link).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_reads_the_same_from_every_cursor_over_redis() {
    a_move_reads_the_same_from_every_cursor(Over::Redis).await;
}

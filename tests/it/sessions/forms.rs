//! The same entries in every form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use streamweld_mock::Script;
use streamweld_server::config::ContentCoding;
use streamweld_tests::{Decoding, End, Harness, Setup, blocks};

use super::{Form, ask, ended, read};

#[tokio::test(flavor = "multi_thread")]
async fn every_form_shows_the_same_entries() {
    let script = Script::tokens(20).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, data) = ended(&harness, &script).await;
    let last = data.len() as u64 + 2;
    for form in Form::ALL {
        let seen = read(&harness.client, &id, form, "wait=0").await;
        assert_eq!(seen.data(), data, "{form:?}");
        assert_eq!(seen.seqs(), (2..last).collect::<Vec<_>>());
        assert!(
            seen.entries
                .iter()
                .all(|(seq, cursor, _)| *cursor == format!("{id}:{seq}"))
        );
        let session = seen.told("session");
        assert_eq!(session["verdict"], "continue");
        assert_eq!(
            (&session["from"], &session["earliest"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(session["last"], last);
        assert!(session["last_time"].is_string() && session["request_id"].is_string());
        let closing = seen.told("closing");
        assert_eq!(seen.reason(), "end_of_stream", "{form:?}");
        assert_eq!(closing["request_id"], session["request_id"]);
        assert_eq!(closing["next"], format!("{id}:{last}"));
        assert_eq!(closing["terminal"]["kind"], "done");
        assert!(!seen.has("live"), "nothing was live");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_is_chosen_by_accept_and_by_format() {
    let script = Script::tokens(3).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, _) = ended(&harness, &script).await;
    for (accept, media) in [
        ("*/*", "text/event-stream"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("application/json", "application/json"),
        ("application/x-ndjson", "application/x-ndjson"),
    ] {
        let client = harness.client.with("accept", accept);
        let response = client.events(&id).await;
        assert_eq!(response.header("content-type"), Some(media), "{accept}");
        assert_eq!(response.header("x-streamweld-verdict"), Some("continue"));
        let by_format = ask(&client, &id, "format=ndjson").await;
        assert_eq!(
            by_format.header("content-type"),
            Some("application/x-ndjson")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_parameters_is_what_it_was() {
    let script = Script::tokens(20).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, _) = ended(&harness, &script).await;
    let (plain, end) = harness.client.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    // A session that asks for nothing else is the same bytes.
    let (session, end) = ask(&harness.client, &id, "live=true").await.all().await;
    assert_eq!((session == plain, end), (true, End::Proper));
    let control = ask(&harness.client, &id, "events=control")
        .await
        .all()
        .await
        .0;
    let session = ask(&harness.client, &id, "events=control&live=true")
        .await
        .all()
        .await
        .0;
    assert!(session == control);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_neither_cut_nor_reshaped() {
    let odd =
        "event: odd\nretry: 7\ndata: a \"quote\" \\ and \u{1f980}\u{2028}\ndata:\ndata: \u{7}\n\n";
    let script = Script::tokens(2)
        .block_after(1, odd)
        .dialect(streamweld_mock::Dialect::Generic);
    let harness = Harness::start(script).await;
    let response = harness.client.send("POST", "/anything", "{}").await;
    let id = response.id();
    response.all().await;
    let data = "a \"quote\" \\ and \u{1f980}\u{2028}\n\n\u{7}";
    let find = |entries: &Value| {
        let entries = entries.as_array().expect("a list").iter();
        let mut odd = entries.filter(|entry| entry["event"] == "odd");
        odd.next().expect("the odd one").clone()
    };
    let answer = ask(&harness.client, &id, "format=json").await.json().await;
    let entry = find(&answer["entries"]);
    assert_eq!((&entry["data"], &entry["retry"]), (&json!(data), &json!(7)));
    let answer = ask(&harness.client, &id, "format=json&payload=base64")
        .await
        .json()
        .await;
    assert_eq!(find(&answer["entries"])["data"], STANDARD.encode(data));
    let plain = &answer["entries"][0];
    assert!(plain["event"].is_null() && plain["retry"].is_null());
    assert_eq!(plain["kind"], "event");
    // With control events, those of other kinds as well.
    let answer = ask(&harness.client, &id, "format=json&events=control")
        .await
        .json()
        .await;
    let open = &answer["entries"][0];
    assert_eq!(
        (&open["kind"], &open["event"]),
        (&json!("open"), &json!("streamweld.open"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_answer_is_a_page_and_a_poll() {
    let script = Script::tokens(2500).id("fixed").gate_after(2300, "end");
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.durable_chat().await;
    let id = response.id();
    harness
        .mock
        .gates()
        .wait_arrived("end", 1)
        .await
        .expect("it waits");
    streamweld_tests::wait_seq(&harness.client, &id, 2301).await;
    let (mut entries, mut from, mut pages) = (Vec::new(), String::from("0"), Vec::new());
    loop {
        let query = format!("last_event_id={from}");
        let page = read(&harness.client, &id, Form::Json, &query).await;
        let next = page.told("closing")["next"].as_str();
        from = next.map(str::to_owned).unwrap_or(from);
        pages.push((page.entries.len(), page.reason().to_owned()));
        let is_idle = page.reason() == "idle";
        entries.extend(page.entries);
        if is_idle {
            break;
        }
    }
    let reasons: Vec<_> = pages
        .iter()
        .map(|(count, reason)| (*count, &**reason))
        .collect();
    assert_eq!(
        reasons,
        [
            (1000, "page"),
            (1000, "page"),
            (300, "caught_up"),
            (0, "idle")
        ]
    );
    // One that waits is answered when there is something.
    let query = format!("{}&wait=60&last_event_id={from}", Form::Json.query());
    let poll = tokio::spawn({
        let (client, id) = (harness.client.clone(), id.clone());
        async move { ask(&client, &id, &query).await.all().await.0 }
    });
    streamweld_tests::wait_state(&harness.client, &id, |state| state["readers"] == 2).await;
    harness.mock.gates().release("end");
    let page = Form::Json.read(&poll.await.expect("no panic"));
    assert!(!page.entries.is_empty());
    let mut all: Vec<_> = [entries, page.entries].concat();
    response.all().await;
    streamweld_tests::wait_end(&harness.client, &id).await;
    let from = &all.last().expect("entries").1;
    let rest = read(
        &harness.client,
        &id,
        Form::Json,
        &format!("last_event_id={from}"),
    )
    .await;
    assert_eq!(rest.reason(), "end_of_stream");
    all.extend(rest.entries);
    let data: Vec<_> = all.iter().map(|(.., data)| data.clone()).collect();
    assert!(data == super::data(&script));
    // Nothing is left: told, not `204`, to whoever polls.
    let last = rest.told.last().expect("the closing").1["next"].clone();
    let query = format!("last_event_id={}", last.as_str().expect("a cursor"));
    let over = read(&harness.client, &id, Form::Json, &query).await;
    assert_eq!(
        (over.told("session")["verdict"].as_str(), over.reason()),
        (Some("complete"), "end_of_stream")
    );
    for form in [Form::Events, Form::Batch] {
        let response = ask(&harness.client, &id, &format!("{}&{query}", form.query())).await;
        assert_eq!(response.status, 204, "{form:?}");
        assert_eq!(response.header("x-streamweld-verdict"), Some("complete"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_what_was_ready() {
    let script = Script::tokens(2500).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, data) = ended(&harness, &script).await;
    let (body, _) = ask(&harness.client, &id, "format=batch").await.all().await;
    let batches: Vec<usize> = blocks(&body)
        .iter()
        .filter(|block| block.event.as_deref() == Some("streamweld.batch"))
        .map(|block| {
            let batch: Value =
                serde_json::from_str(block.data.as_deref().expect("data")).expect("JSON");
            batch["entries"].as_array().expect("a list").len()
        })
        .collect();
    assert_eq!(batches.iter().sum::<usize>(), data.len());
    assert_eq!(batches[..2], [1000, 1000]);
    assert_eq!(batches.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_answer_is_told_as_such_in_every_form() {
    let script = Script::tokens(20).id("fixed").error_after(5);
    let harness = Harness::start(script).await;
    let response = harness.client.durable_chat().await;
    let id = response.id();
    response.all().await;
    for form in Form::ALL {
        let seen = read(&harness.client, &id, form, "wait=0").await;
        let terminal = &seen.told("closing")["terminal"];
        assert_eq!(terminal["kind"], "error", "{form:?}");
        assert_eq!(terminal["code"], "upstream_error");
        assert_eq!(seen.reason(), "end_of_stream");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_can_be_compressed() {
    let script = Script::tokens(300).id("fixed");
    let harness = Setup::new(script.clone())
        .config(|config| config.edge.compress = ContentCoding::ALL.to_vec())
        .start()
        .await;
    let (id, data) = ended(&harness, &script).await;
    for coding in ContentCoding::ALL {
        let client = harness.client.with("accept-encoding", coding.as_str());
        for form in Form::ALL {
            let mut response = ask(&client, &id, form.query()).await;
            assert_eq!(response.header("content-encoding"), Some(coding.as_str()));
            assert_eq!(response.header("vary"), Some("accept-encoding"));
            let (body, end, is_whole) = Decoding::new(coding).all(&mut response.body).await;
            assert_eq!((end, is_whole), (End::Proper, true));
            assert_eq!(form.read(&body).data(), data, "{form:?} {coding:?}");
        }
    }
}

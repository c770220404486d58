//! Whoever comes back while the journal is away.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_behind_what_stands_is_held_and_then_told_and_holds_up_nobody() {
    let story = start(in_two()).await;
    let client = &story.harness.client;
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    wait_seq(client, &id, 4).await;
    story.faults.set_down(true);
    story.harness.mock.gates().release("go");
    let shown = blocks(&response.body.blocks(3).await);
    assert!(has_no_ids(&shown), "{shown:?}");
    // More than there are threads. Nobody was given this cursor yet, but it may be one by the time it is looked at.
    let target = format!("/v1/streams/{id}/events?last_event_id=6");
    let asked = (0..16).map(|_| {
        let (client, target) = (client.clone(), target.clone());
        tokio::spawn(async move { client.get(&target).await.error_code().await })
    });
    for answer in asked.collect::<Vec<_>>() {
        let answer = patience(answer).await.expect("no panic");
        assert_eq!(answer, (503, "journal_unavailable".to_owned()));
    }
    let held = {
        let (client, target) = (client.clone(), target.clone());
        tokio::spawn(async move { client.get(&target).await })
    };
    story.faults.set_down(false);
    story.harness.mock.gates().release("end");
    let (_, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    let again = patience(held).await.expect("no panic");
    if again.status == 200 {
        assert_eq!(seqs(&blocks(&again.all().await.0))[0], 7);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_waits_for_a_journal_that_is_away_and_then_says_so() {
    let story = start(Script::tokens(3)).await;
    let client = &story.harness.client;
    let response = client.chat().await;
    let id = response.id();
    response.all().await;
    wait_end(client, &id).await;
    story.faults.set_down(true);
    let response = client.events(&id).await;
    assert_eq!(response.header("retry-after"), Some("1"));
    let answer = response.error_code().await;
    assert_eq!(answer, (503, "journal_unavailable".to_owned()));
    story.faults.set_down(false);
    story.faults.script(Op::Find, [Fault::Unreachable]);
    assert_eq!(client.events(&id).await.status, 200, "it came back in time");
}

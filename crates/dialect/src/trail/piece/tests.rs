//! A trail that is made of what another one has told says what that one says.

use proptest::prelude::*;

use super::*;

/// What anybody can ask a trail.
#[track_caller]
fn check_same(rebuilt: &Trail, original: &Trail, at: &[usize]) {
    assert_eq!(rebuilt.ids(), original.ids());
    assert_eq!(rebuilt.prompt(), original.prompt());
    assert_eq!(rebuilt.told(), original.told());
    assert_eq!(rebuilt.told_behind(), original.told_behind());
    assert_eq!(rebuilt.tokens(), original.tokens());
    assert_eq!(rebuilt.text(), original.text());
    assert_eq!(rebuilt.prompt_tokens(), original.prompt_tokens());
    for text in at.iter().copied().chain([original.text()]) {
        assert_eq!(rebuilt.tokens_of(text), original.tokens_of(text), "{text}");
    }
    // Cut as it was told, as far as that goes, and otherwise.
    let tokens = original.tokens().unwrap_or(3).min(500) as usize;
    let mut cut = vec![7; tokens];
    for (place, id) in &original.places {
        let place = usize::try_from(*place).unwrap().wrapping_sub(1);
        if let Some(at) = cut.get_mut(place) {
            *at = *id;
        }
    }
    for whole in [&cut[..], &cut[..tokens.saturating_sub(1)], &[]] {
        let alike = original.is_cut_alike(&[], whole);
        assert_eq!(rebuilt.is_cut_alike(&[], whole), alike);
    }
    // And whatever else is remembered.
    assert_eq!(format!("{rebuilt:?}"), format!("{original:?}"));
}

#[derive(Clone, Debug)]
enum Step {
    /// Data of the answer.
    Data(String),
    /// Another attempt, which begins behind what was told: by its ids, or as text.
    Again { by_ids: bool, knowing: bool },
}

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just(""), 4 => Just("a"), 2 => Just(" word"), 1 => Just("潮"), 1 => Just("\u{fffd}"),
        1 => Just("a\u{fffd}"), 1 => Just("\\n"),
    ];
    prop::collection::vec(part, 0..3).prop_map(|parts| parts.concat())
}

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![0..200u32, 0..200_000u32, any::<u32>()]
}

fn ids() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(id(), 0..4)
}

fn member<T: std::fmt::Debug>(
    name: &'static str,
    value: impl Strategy<Value = T>,
    text: fn(T) -> String,
) -> impl Strategy<Value = String> {
    let value = value.prop_map(move |value| format!(r#","{name}":{}"#, text(value)));
    prop_oneof![2 => Just(String::new()), 1 => Just(format!(r#","{name}":null"#)), 5 => value]
}

fn list(ids: Vec<u32>) -> String {
    format!("{ids:?}")
}

fn number(number: u64) -> String {
    number.to_string()
}

fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..40u64, 1 => any::<u64>()]
}

/// `{"first":0` and what follows, with each member or without.
fn object(members: [BoxedStrategy<String>; 3]) -> impl Strategy<Value = String> {
    members.prop_map(|members| format!(r#"{{"first":0{}}}"#, members.concat()))
}

fn usage() -> BoxedStrategy<String> {
    let usage = object([
        member("prompt_tokens", counts(), number).boxed(),
        member("completion_tokens", counts(), number).boxed(),
        Just(String::new()).boxed(),
    ]);
    member("usage", usage, |it| it).boxed()
}

fn timings() -> BoxedStrategy<String> {
    let timings = object([
        member("prompt_n", counts(), number).boxed(),
        member("cache_n", counts(), number).boxed(),
        member("predicted_n", counts(), number).boxed(),
    ]);
    prop_oneof![3 => Just(String::new()), 1 => member("timings", timings, |it| it)].boxed()
}

fn choice() -> impl Strategy<Value = String> {
    let said = prop_oneof![
        text().prop_map(|text| format!(r#","delta":{{"content":"{text}"}}"#)),
        text().prop_map(|text| format!(r#","text":"{text}""#)),
        Just(r#","delta":{"role":"assistant","content":null}"#.to_owned()),
    ];
    let beside = prop::collection::vec(id(), 0..3).prop_map(|ids| {
        let ids = ids.iter().map(|id| format!(r#"{{"id":{id}}}"#));
        format!(r#"{{"content":[{}]}}"#, ids.collect::<Vec<_>>().join(","))
    });
    let beside = prop_oneof![3 => Just(String::new()), 1 => member("logprobs", beside, |it| it)];
    let told = member("token_ids", ids(), list);
    let prompt =
        prop_oneof![9 => Just(String::new()), 1 => member("prompt_token_ids", ids(), list)];
    (said, told, prompt, beside).prop_map(|(said, told, prompt, beside)| {
        format!(r#"{{"index":0{said}{told}{prompt}{beside}}}"#)
    })
}

fn data() -> impl Strategy<Value = String> {
    let prompt =
        prop_oneof![9 => Just(String::new()), 1 => member("prompt_token_ids", ids(), list)];
    let choices = prop::collection::vec(choice(), 0..3);
    let chunk =
        (choices, usage(), timings(), prompt).prop_map(|(choices, usage, timings, prompt)| {
            let choices = choices.join(",");
            format!(r#"{{"choices":[{choices}]{usage}{timings}{prompt}}}"#)
        });
    prop_oneof![20 => chunk, 1 => Just("[DONE]".to_owned()), 1 => Just("{".to_owned())]
}

/// Chunks as one engine writes them: ids and counts that agree.
fn orderly() -> impl Strategy<Value = Vec<String>> {
    let chunk = (text(), prop::collection::vec(id(), 1..3));
    (prop::collection::vec(chunk, 1..90), 0..4u8).prop_map(|(chunks, engine)| {
        let mut count = 0;
        let chunks = chunks.into_iter().map(|(text, ids)| {
            count += ids.len();
            let last = ids[ids.len() - 1];
            match engine {
                0 => format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"token_ids":{ids:?}}}],"usage":{{"prompt_tokens":3,"completion_tokens":{count}}}}}"#),
                1 => format!(r#"{{"choices":[{{"text":"{text}","token_ids":{ids:?},"prompt_token_ids":[1,2,3]}}],"usage":null}}"#),
                2 => format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"logprobs":{{"content":[{{"id":{last}}}]}}}}],"timings":{{"prompt_n":2,"cache_n":1,"predicted_n":{count}}}}}"#),
                _ => format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}],"usage":{{"prompt_tokens":3,"completion_tokens":{count}}}}}"#),
            }
        });
        chunks.collect()
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let again = (any::<bool>(), any::<bool>())
        .prop_map(|(by_ids, knowing)| Step::Again { by_ids, knowing });
    let orderly = orderly().prop_map(|chunks| chunks.into_iter().map(Step::Data).collect());
    let wild = prop::collection::vec(data().prop_map(Step::Data), 1..40);
    let part = prop_oneof![3 => orderly, 2 => wild, 1 => again.prop_map(|step| vec![step])];
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat())
}

/// The trail of the next attempt, as a migration makes it.
fn again(trail: &Trail, by_ids: bool, knowing: bool) -> Trail {
    let next = match trail.ids() {
        Ok(ids) if by_ids => {
            let told = trail.told_behind().to_vec();
            Trail::behind_ids(ids.all, ids.of_answer, trail.text(), told)
        }
        _ => {
            let tokens = trail.tokens().unwrap_or(9);
            Trail::behind_text(trail.prompt_tokens(), tokens, trail.text())
        }
    };
    if knowing { next.knowing(trail) } else { next }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_rebuilt_trail_says_what_the_original_says(steps in steps(), begins in any::<bool>()) {
        // With `pushed`, which is told to nobody, as the measure.
        let (mut trail, mut pushed, mut pieces) = (Trail::default(), Trail::default(), Vec::new());
        if begins {
            trail.begin_bytes(&mut pieces);
        }
        let mut at = vec![0];
        for step in &steps {
            match step {
                Step::Data(data) => {
                    // Pieces may be written anywhere, as long as their order stays.
                    let mut piece = Vec::new();
                    trail.push_told(data, &mut piece);
                    pushed.push(data);
                    pieces.extend(piece);
                    at.push(trail.text());
                }
                Step::Again { by_ids, knowing } => {
                    trail = again(&trail, *by_ids, *knowing);
                    pushed = again(&pushed, *by_ids, *knowing);
                    trail.begin_bytes(&mut pieces);
                }
            }
        }
        check_same(&trail, &pushed, &at);
        let rebuilt = Trail::rebuild(&pieces);
        check_same(&rebuilt.expect("they were written here"), &trail, &at);
    }

    /// Half of it is refused, or is the beginning of it; and it can be gone on with.
    #[test]
    fn a_part_is_a_beginning_or_nothing(chunks in orderly(), cut in any::<prop::sample::Index>()) {
        let (mut trail, mut pieces) = (Trail::default(), Vec::new());
        let mut all = vec![(0, trail.clone())];
        for data in &chunks {
            trail.push_told(data, &mut pieces);
            all.push((pieces.len(), trail.clone()));
        }
        let cut = cut.index(pieces.len() + 1);
        let rebuilt = Trail::rebuild(&pieces[..cut]);
        let whole = all.iter().rfind(|(len, _)| *len == cut);
        match (rebuilt, whole) {
            (Some(rebuilt), Some((_, trail))) => check_same(&rebuilt, trail, &[]),
            (None, None) => {}
            (rebuilt, whole) => panic!("{rebuilt:?} for {whole:?}"),
        }
    }

    #[test]
    fn whatever_comes_does_no_harm(pieces in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(prop_oneof![0..8u8, Just(18), Just(0xff), any::<u8>()], 0..200),
    ], data in data()) {
        let Some(mut trail) = Trail::rebuild(&pieces) else {
            return Ok(());
        };
        let ids = trail.ids.capacity() + trail.told.capacity() + trail.prompt.as_ref().map_or(0, Vec::capacity);
        prop_assert!(ids * 4 + trail.places.capacity() * 16 <= 16 * pieces.len() + 1024);
        check_same(&trail.clone(), &trail, &[0, 1, usize::MAX]);
        trail.push(&data);
        let _ = (trail.ids(), trail.told_behind(), trail.tokens());
    }
}

#[test]
fn a_usual_chunk_is_a_few_bytes() {
    let chunks = [
        r#"{"choices":[{"index":0,"delta":{"content":" word"},"token_ids":[151643]}],"usage":{"prompt_tokens":900,"completion_tokens":1}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":" word"},"logprobs":{"content":[{"id":151643}]}}],"timings":{"prompt_n":1,"cache_n":1,"predicted_n":1}}"#,
        r#"{"choices":[{"index":0,"text":" word"}],"usage":{"prompt_tokens":900,"completion_tokens":1}}"#,
    ];
    for chunk in chunks {
        let (mut trail, mut pieces) = (Trail::default(), Vec::new());
        trail.push_told(chunk, &mut pieces);
        let first = pieces.len();
        trail.push_told(chunk, &mut pieces);
        let next = pieces.len() - first;
        // The tokens of the prompt are told once.
        assert!(next <= 8 && first > next, "{first} and {next}");
    }
    let mut pieces = Vec::new();
    for nothing in ["[DONE]", r#"{"choices":[]}"#, "{}"] {
        Trail::default().push_told(nothing, &mut pieces);
    }
    assert!(pieces.is_empty(), "{pieces:?}");
}

#[test]
fn bytes_that_nobody_wrote_are_refused() {
    assert!(Trail::rebuild(&[]).is_some_and(|trail| trail.text() == 0));
    for pieces in [
        // A beginning without its flags, and with one that is not known.
        &[0][..],
        &[0, 8, 0, 0, 0, 0],
        // More ids than there are bytes, and fewer than there are.
        &[2, 1, 9, 1],
        &[2, 1, 0xff, 0xff, 0xff, 0xff, 0x0f],
        // Both counts; something of a choice without one.
        &[2 | 8 | 16, 1, 0, 5],
        &[64],
        // Numbers beyond what they are of, or without an end.
        &[2, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[
            1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02,
        ],
        &[
            1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00,
        ],
        &[1],
    ] {
        assert!(Trail::rebuild(pieces).is_none(), "{pieces:?}");
    }
    let most = [
        1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
    ];
    let trail = Trail::rebuild(&most).unwrap();
    assert_eq!(trail.prompt_tokens(), Some(u64::MAX));
}

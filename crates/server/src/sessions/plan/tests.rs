//! What queries ask for, and which of them cannot be meant.

use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;

fn plan(query: &str) -> Result<Option<Plan>, Refused> {
    Plan::of(&Asked {
        query: Some(query),
        accept: &[],
        is_told: false,
        is_bounded: false,
    })
}

#[track_caller]
fn read(query: &str) -> Plan {
    plan(query).expect(query).expect(query)
}

#[track_caller]
fn refused(query: &str, names: &str) {
    let Refused(why) = plan(query).expect_err(query);
    assert!(why.contains(names), "{query}: {why}");
}

#[test]
fn without_a_parameter_of_ours_there_is_no_session() {
    for query in [
        "",
        "a=b",
        "last_event_id=7",
        "events=control",
        "form=native",
        "after_events=3",
    ] {
        assert_eq!(plan(query), Ok(None), "{query}");
    }
    let none = Asked {
        query: None,
        accept: &[],
        is_told: false,
        is_bounded: false,
    };
    assert_eq!(Plan::of(&none), Ok(None));
    for asked in [
        Asked {
            is_told: true,
            ..none
        },
        Asked {
            is_bounded: true,
            ..none
        },
        Asked {
            accept: &[b"application/json"],
            ..none
        },
    ] {
        assert!(Plan::of(&asked).expect("is read").is_some(), "{asked:?}");
    }
}

#[test]
fn each_start_is_read() {
    assert_eq!(read("count=1").start, Start::Cursor);
    assert_eq!(read("count=1&lastEventId=7").start, Start::Cursor);
    assert_eq!(read("seq=7").start, Start::Seq(NonZero::new(7).expect("7")));
    assert_eq!(read("tail=0").start, Start::Tail(0));
    let noon = UNIX_EPOCH + Duration::from_secs(1_796_040_000);
    assert_eq!(
        read("since=2026-11-30%2012:00:00").start,
        Start::Since(noon)
    );
    assert_eq!(
        read("since=2026-11-30T14:00:00+02:00").start,
        Start::Since(noon)
    );
}

#[test]
fn each_bound_is_read() {
    let plan =
        read("count=3&bytes=100&until=1796040000&max_replay=9&on_gap=continue&seq=2&clamp=true");
    assert_eq!(
        plan.left,
        Left {
            count: Some(3),
            bytes: Some(100)
        }
    );
    assert_eq!(
        plan.until,
        Some(UNIX_EPOCH + Duration::from_secs(1_796_040_000))
    );
    assert_eq!(plan.max_replay, NonZero::new(9));
    assert_eq!((plan.on_gap, plan.clamp), (OnGap::Continue, true));
    for (text, wait) in [
        ("0", 0),
        ("2", 2000),
        ("2s", 2000),
        ("500ms", 500),
        ("2m", 120_000),
        ("1h", 3_600_000),
    ] {
        assert_eq!(
            read(&format!("wait={text}")).wait,
            Some(Duration::from_millis(wait))
        );
    }
    assert_eq!(read("live=false").follow, Follow::History);
    assert_eq!(read("live=true").follow, Follow::Live);
}

#[test]
fn each_form_is_read() {
    for (query, form) in [
        ("format=sse", Form::Events),
        ("format=batch", Form::Batch),
        ("format=json", Form::Json),
        ("format=ndjson", Form::Lines),
    ] {
        let plan = read(query);
        assert_eq!(plan.form, form);
        assert_eq!(plan.is_told, form != Form::Events);
    }
    assert_eq!(read("format=json&payload=base64").payload, Payload::Base64);
}

#[test]
fn what_a_parameter_does_not_have_is_named() {
    for name in [
        "bytes",
        "clamp",
        "count",
        "format",
        "live",
        "max_replay",
        "on_gap",
        "payload",
        "seq",
        "since",
        "tail",
        "until",
        "wait",
    ] {
        for value in [
            "",
            "x",
            "-1",
            "+1",
            " 1",
            "01",
            "1e3",
            "18446744073709551616",
            "%ff",
        ] {
            // The one that has leading zeros.
            if value == "01" && matches!(name, "since" | "until") {
                continue;
            }
            refused(&format!("{name}={value}"), &format!("`{name}`"));
        }
    }
    for name in ["bytes", "count", "max_replay", "seq"] {
        refused(&format!("{name}=0"), "1 or more");
    }
    refused("wait=3601", "an hour");
    refused("wait=18446744073709551615h", "an hour");
    refused("live=1", "`true` or `false`");
}

#[test]
fn starts_do_not_go_together() {
    let starts = ["last_event_id=1", "seq=1", "since=1", "tail=1"];
    for one in starts {
        for other in starts {
            if one != other {
                refused(&format!("{one}&{other}&count=1"), "send one of them");
            }
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    refused("after_events=1&count=1", "`after_events`");
    refused("form=native&count=1", "`form`");
    refused("clamp=true", "`clamp`");
    refused("since=1&clamp=true", "`clamp`");
    refused("live=false&wait=1", "`wait`");
    refused("format=json&wait=61", "60s");
    refused("payload=text&format=sse", "`payload`");
}

proptest! {
    #[test]
    fn nothing_is_taken_badly(query in "[a-z_=&%0-9:+-]{0,60}") {
        let _ = plan(&query);
    }

    #[test]
    fn what_is_asked_for_is_planned(
        seq in 1_u64.., count in proptest::option::of(1_u64..), bytes in proptest::option::of(1_u64..),
        wait in proptest::option::of(0..=3600_u64), max_replay in proptest::option::of(1_u64..),
        continues in any::<bool>(),
    ) {
        let mut query = format!("seq={seq}");
        for (name, value) in [("count", count), ("bytes", bytes), ("wait", wait), ("max_replay", max_replay)] {
            if let Some(value) = value {
                query += &format!("&{name}={value}");
            }
        }
        if continues {
            query += "&on_gap=continue";
        }
        let plan = read(&query);
        prop_assert_eq!(plan.start, Start::Seq(NonZero::new(seq).expect("positive")));
        prop_assert_eq!(plan.left, Left { count, bytes });
        prop_assert_eq!(plan.wait, wait.map(Duration::from_secs));
        prop_assert_eq!(plan.max_replay.map(NonZero::get), max_replay);
        prop_assert_eq!(plan.on_gap == OnGap::Continue, continues);
    }
}

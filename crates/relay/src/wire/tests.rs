//! What is written is read back, wherever it is cut, and whatever else comes does no harm.

use super::*;

fn id() -> StreamId {
    StreamId::parse("01arz3ndektsv4rrffq69g5fav").unwrap()
}

fn told(stands: bool, record: &'static [u8]) -> Told {
    Told {
        stands,
        committed: Seq::new(7),
        record: Bytes::from_static(record),
    }
}

fn about() -> About {
    About {
        access: [7; 32],
        created: UNIX_EPOCH + Duration::from_millis(1_800_000_000_123),
        label: Bytes::from_static(b"{}"),
        epoch: Epoch::new(3).unwrap(),
    }
}

#[test]
fn a_target_says_what_is_asked_for() {
    for writer in [None, Epoch::new(1), Epoch::new(77)] {
        let ask = Ask {
            id: id(),
            after: Seq::new(12),
            writer,
        };
        let target = target(&ask).parse().unwrap();
        assert_eq!(asked(&target), Some(ask), "{target}");
    }
}

#[test]
fn anything_else_asks_for_nothing() {
    let path = format!("/v1/generations/{}", id());
    for target in [
        "/".to_owned(),
        path.clone(),
        format!("{path}?epoch=1"),
        format!("{path}?after=-1"),
        format!("{path}?after=1&epoch=0"),
        format!("{path}?after"),
        format!("{path}/stop?after=1"),
        "/v1/generations/none?after=1".to_owned(),
    ] {
        assert_eq!(asked(&target.parse().unwrap()), None, "{target}");
    }
}

#[test]
fn frames_are_read_back_wherever_they_are_cut() {
    let all = [
        encode_about(&about()),
        encode_told(&told(true, b"one")),
        encode_told(&told(false, b"")),
    ]
    .concat();
    let expected = [
        Frame::About(about()),
        Frame::Told(told(true, b"one")),
        Frame::Told(told(false, b"")),
    ];
    for at in 0..=all.len() {
        let (mut buf, mut read) = (BytesMut::new(), Vec::new());
        for part in [&all[..at], &all[at..]] {
            buf.extend_from_slice(part);
            while let Some(frame) = decode(&mut buf).unwrap() {
                read.push(frame);
            }
        }
        assert_eq!(read, expected, "{at}");
    }
}

#[test]
fn a_kind_of_a_later_version_is_passed_over() {
    let mut buf = BytesMut::from(&[0, 0, 0, 2, 9, 9][..]);
    buf.extend_from_slice(&encode_told(&told(true, b"one")));
    let frame = decode(&mut buf).unwrap();
    assert_eq!(frame, Some(Frame::Told(told(true, b"one"))));
}

#[test]
fn what_is_no_frame_is_refused() {
    for bytes in [
        &[0, 0, 0, 0][..],
        &[0xff, 0, 0, 0, 1],
        &[0, 0, 0, 3, 1, 0, 0],
        &[0, 0, 0, 2, 3, 0],
    ] {
        let read = decode(&mut BytesMut::from(bytes));
        assert_eq!(read, Err(BadFrame), "{bytes:?}");
    }
}

//! What is written is read back, wherever it is cut, and whatever else comes does no harm.

use proptest::prelude::*;

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

/// All frames, and whether what follows them is none.
fn all(pieces: &[&[u8]]) -> (Vec<Frame>, bool) {
    let (mut buf, mut read) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            match decode(&mut buf) {
                Ok(Some(frame)) => read.push(frame),
                Ok(None) => break,
                Err(BadFrame) => return (read, true),
            }
        }
    }
    (read, false)
}

/// Lengths that fit and kinds that are known, more often than chance would have them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let frame = (0_u8..5, proptest::collection::vec(any::<u8>(), 0..80));
    let frame = frame.prop_map(|(kind, rest)| {
        let len = u32::try_from(1 + rest.len()).unwrap();
        [&len.to_be_bytes()[..], &[kind], &rest].concat()
    });
    let noise = proptest::collection::vec(any::<u8>(), 0..12);
    proptest::collection::vec(prop_oneof![8 => frame, 1 => noise], 0..6)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn whatever_comes_is_read_the_same_wherever_it_is_cut(bytes in bytes(), at in any::<prop::sample::Index>()) {
        let at = at.index(bytes.len() + 1);
        let whole = all(&[&bytes]);
        prop_assert_eq!(&all(&[&bytes[..at], &bytes[at..]]), &whole);
        // What was read is what is written.
        for frame in whole.0 {
            let written = match &frame {
                Frame::Told(told) => encode_told(told),
                Frame::About(about) => encode_about(about),
            };
            prop_assert_eq!(decode(&mut BytesMut::from(written)).unwrap(), Some(frame));
        }
    }
}

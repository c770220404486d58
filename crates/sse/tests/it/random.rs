//! Random streams against the oracle, from an alphabet in which line ends, colons and marks are
//! far more common than in life.

use proptest::{collection::vec, prelude::*};
use streamweld_sse::Limits;

use super::check;

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![&b"\r"[..], b"\n", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"])
            .prop_map(<[u8]>::to_vec),
        3 => prop::sample::select(vec![&b":"[..], b" ", b": ", b"\0", b"7", b"x", b"{\"a\":1}"])
            .prop_map(<[u8]>::to_vec),
        4 => prop::sample::select(vec!["data", "data: ", "event:", "id", "retry: ", "error"])
            .prop_map(|name| name.as_bytes().to_vec()),
        1 => prop::sample::select(vec![&b"\xEF\xBB\xBF"[..], b"\xEF", b"\xBB", b"\xBF", b"\xEF\xBB"])
            .prop_map(<[u8]>::to_vec),
        2 => any::<char>().prop_map(|char| char.to_string().into_bytes()),
        1 => prop::sample::select(vec!["\u{2028}", "\u{2029}", "\u{85}", "\u{b}", "\u{c}"])
            .prop_map(|separator| separator.as_bytes().to_vec()),
    ];
    // A stray byte ends a stream early, so most streams have none.
    let stray = prop_oneof![9 => Just(vec![]), 1 => vec(any::<u8>(), 1..3)];
    (vec(piece, 0..40), stray, any::<prop::sample::Index>()).prop_map(|(mut pieces, stray, at)| {
        pieces.insert(at.index(pieces.len() + 1), stray);
        pieces.concat()
    })
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    vec(
        prop_oneof![Just(0), Just(1), 0..8_usize, 0..64_usize],
        0..24,
    )
}

fn limits() -> impl Strategy<Value = Limits> {
    prop_oneof![3 => Just(usize::MAX), 1 => 0..40_usize].prop_map(|max_event| Limits { max_event })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_stream_cut_anyhow(input in stream(), sizes in sizes(), limits in limits()) {
        check::agrees(&input, &sizes, limits);
    }

    #[test]
    fn any_stream_round_trips(input in stream()) {
        check::round_trips(&input);
    }

    #[test]
    fn any_file_passes_the_fuzz_target(file in vec(any::<u8>(), 0..200)) {
        check::fuzz(&file);
    }
}

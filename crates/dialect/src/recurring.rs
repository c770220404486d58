//! The chunk that comes again and again, with nothing new but its text.
//!
//! Three searches over every chunk are most of what the judge costs, and nearly every chunk is the one before it with
//! another text between the same two quotes, and perhaps other numbers behind it. So what two ordinary chunks have in
//! common is remembered, and comparing takes the place of searching.
//!
//! A pattern is what stays, in segments that begin and end at quotes, with gaps between them that hold no quote. Why
//! what fits is ordinary, byte for byte as the [`Probe`] of the dialect would say:
//!
//! * what that looks for begins and ends with a quote, so it lies within one segment, where it was looked at when the
//!   pattern was learnt, or it is a whole gap with the quotes around it, and a gap that reads so does not fit; where
//!   the search skipped a name because one right before it shares its quote, it did not in the other chunk;
//! * what follows a name and decides about it ends before the next gap, since no segment ends in such a name, nor in
//!   such a name and the quote that opens its value.

use memchr::memchr;

use crate::probe::Probe;

/// After so many misses one after the other nothing more is learnt: what differs in this stream is not only text and
/// numbers, and learning would be paid for nothing.
const PATIENCE: u8 = 16;
/// A pattern of more gaps saves nothing.
const MAX_GAPS: usize = 11;

/// What ordinary chunks of one stream have in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recurring {
    /// The last ordinary chunk that did not fit.
    last: Box<[u8]>,
    /// The segments, one behind the other. The first one begins the chunk, the last one, which may be empty, ends it.
    fixed: Vec<u8>,
    /// Where each segment ends. In place, because it is read for every chunk of a stream that was not looked at since
    /// its last one: each piece of memory more is a wait for it.
    ends: [u32; MAX_GAPS + 1],
    /// How many segments there are. None until a pattern is known.
    count: u8,
    misses: u8,
}

impl Recurring {
    /// Whether `data` is ordinary. Asks the cheaper question first: nearly every event is the one before it with another
    /// text.
    pub(crate) fn is_ordinary(&mut self, probe: &Probe, data: &[u8]) -> bool {
        if self.fits(probe, data) {
            return true;
        }
        let ordinary = (probe.is_ordinary)(data);
        if ordinary {
            self.learn(probe, data);
        }
        ordinary
    }

    /// Whether `data` is known to be ordinary.
    fn fits(&mut self, probe: &Probe, data: &[u8]) -> bool {
        let fits = self.matches(probe, data);
        if fits {
            self.misses = 0;
        }
        fits
    }

    fn matches(&self, probe: &Probe, data: &[u8]) -> bool {
        let mut rest = data;
        let mut start = 0;
        for end in self.ends[..self.count.into()]
            .iter()
            .map(|end| *end as usize)
        {
            if start > 0 {
                let gap = memchr(b'"', rest).unwrap_or(rest.len());
                if probe.names.contains(&&rest[..gap]) {
                    return false;
                }
                rest = &rest[gap..];
            }
            let Some(behind) = rest.strip_prefix(&self.fixed[start..end]) else {
                return false;
            };
            rest = behind;
            start = end;
        }
        // Without a pattern nothing fits.
        rest.is_empty() && start > 0
    }

    /// Remembers what `data`, which was found ordinary by looking at all of it, has in common with the one before.
    fn learn(&mut self, probe: &Probe, data: &[u8]) {
        if self.misses >= PATIENCE {
            return;
        }
        self.misses += 1;
        if let Some((fixed, ends)) = pattern(probe, &self.last, data) {
            self.fixed = fixed;
            self.count = ends.len() as u8;
            for (known, end) in self.ends.iter_mut().zip(ends) {
                *known = end;
            }
        }
        self.last = data.into();
    }
}

/// What two chunks have in common, if they have the same quotes and the gaps are where nothing is decided.
fn pattern(probe: &Probe, one: &[u8], other: &[u8]) -> Option<(Vec<u8>, Vec<u32>)> {
    let is_quote = |byte: &u8| *byte == b'"';
    let mut others = other.split(is_quote);
    let (mut fixed, mut ends) = (Vec::new(), Vec::new());
    for (place, piece) in one.split(is_quote).enumerate() {
        if place > 0 {
            fixed.push(b'"');
        }
        if piece == others.next()? {
            fixed.extend_from_slice(piece);
            continue;
        }
        if decides_what_follows(probe, &fixed) || ends.len() == MAX_GAPS {
            return None;
        }
        ends.push(u32::try_from(fixed.len()).ok()?);
    }
    // The quotes at both ends of what varies stay: every segment but the last has at least one byte.
    let same = others.next().is_none() && ends.first().is_none_or(|end| *end > 0);
    ends.push(u32::try_from(fixed.len()).ok()?);
    same.then_some((fixed, ends))
}

/// Whether what comes behind `text` can be what a name in it is judged by.
fn decides_what_follows(probe: &Probe, text: &[u8]) -> bool {
    let ends_in_name = |text: &[u8]| {
        let quoted = text.strip_suffix(b"\"");
        quoted.is_some_and(|text| probe.names.iter().any(|name| text.ends_with(name)))
    };
    let opened = text.strip_suffix(b"\"").map(<[u8]>::trim_ascii_end);
    let named = opened
        .and_then(|text| text.strip_suffix(b":"))
        .map(<[u8]>::trim_ascii_end);
    ends_in_name(text) || named.is_some_and(ends_in_name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::probe::{GEMINI, OPENAI, RESPONSES};

    fn chat(text: &str, rest: &str) -> String {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null{rest}}}]}}"#
        )
    }

    fn learnt(chunks: &[&str]) -> Recurring {
        let mut recurring = Recurring::default();
        for data in chunks {
            assert!((OPENAI.is_ordinary)(data.as_bytes()), "{data}");
            recurring.learn(&OPENAI, data.as_bytes());
        }
        recurring
    }

    #[test]
    fn another_text_in_the_same_place_fits() {
        let mut recurring = learnt(&[&chat(" a", ""), &chat("b", "")]);
        for text in [
            "c",
            "",
            " much longer than the one before",
            "\\n",
            "é",
            "a\\\\",
        ] {
            assert!(recurring.fits(&OPENAI, chat(text, "").as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_numbers_fit_as_well() {
        let chunk = |text: &str, count: u32| {
            chat(
                text,
                &format!(r#","usage":{{"tokens":{count}}},"at":{count}"#),
            )
        };
        let mut recurring = learnt(&[&chunk("a", 1), &chunk("b", 2)]);
        assert!(recurring.fits(&OPENAI, chunk("c", 300).as_bytes()));
        assert!(!recurring.fits(&OPENAI, chat("c", "").as_bytes()));
    }

    #[test]
    fn one_chunk_alone_is_no_pattern() {
        let mut recurring = learnt(&[&chat("a", "")]);
        assert!(!recurring.fits(&OPENAI, chat("a", "").as_bytes()));
        assert!(!recurring.fits(&OPENAI, b""));
    }

    #[test]
    fn anything_else_that_differs_does_not_fit() {
        let mut recurring = learnt(&[&chat("a", ""), &chat("b", "")]);
        assert!(!recurring.fits(&OPENAI, chat("a", r#","usage":1"#).as_bytes()));
        assert!(!recurring.fits(&OPENAI, chat("a", "").replace(":0", ":1").as_bytes()));
        assert!(!recurring.fits(
            &OPENAI,
            chat("a", "").replace("null", r#""stop""#).as_bytes()
        ));
        assert!(!recurring.fits(&OPENAI, chat(r#"a","x":"b"#, "").as_bytes()));
        assert!(!recurring.fits(&OPENAI, format!("{} ", chat("a", "")).as_bytes()));
        assert!(!recurring.fits(&OPENAI, b""));
    }

    #[test]
    fn a_text_that_is_a_name_looked_for_does_not_fit() {
        let mut recurring = learnt(&[&chat("a", ""), &chat("b", "")]);
        for name in OPENAI.names {
            let name = std::str::from_utf8(name).expect("ASCII");
            assert!(
                !recurring.fits(&OPENAI, chat(name, "").as_bytes()),
                "{name}"
            );
        }
    }

    #[test]
    fn what_a_name_is_judged_by_is_never_a_gap() {
        for [one, other] in [
            // Blanks differ, so the gap is the value itself.
            [r#"{"a":"b","index":0}"#, r#"{"a":"c","index": 0}"#],
            [r#"{"a":"b","error":null}"#, r#"{"a":"c","error":null }"#],
            [
                r#"{"x":"b","index" : 0,"y":1}"#,
                r#"{"x":"b","index" : 0 ,"y":1}"#,
            ],
        ] {
            let mut recurring = learnt(&[one, other]);
            assert!(!recurring.fits(&OPENAI, other.as_bytes()), "{other}");
        }
        assert!(decides_what_follows(&OPENAI, br#"{"finish_reason" : ""#));
        assert!(decides_what_follows(&OPENAI, br#"{"finish_reason""#));
        assert!(!decides_what_follows(
            &OPENAI,
            br#"{"finish_reason":null,"content":""#
        ));
    }

    #[test]
    fn a_stream_that_never_recurs_is_not_learnt_for_ever() {
        let mut recurring = Recurring::default();
        for names in 1..=usize::from(PATIENCE) {
            let data = chat("a", &r#","x":1"#.repeat(names));
            assert!(!recurring.fits(&OPENAI, data.as_bytes()));
            recurring.learn(&OPENAI, data.as_bytes());
        }
        recurring.learn(&OPENAI, chat("a", "").as_bytes());
        recurring.learn(&OPENAI, chat("b", "").as_bytes());
        assert!(!recurring.fits(&OPENAI, chat("c", "").as_bytes()));
    }

    #[test]
    fn a_text_with_quotes_does_not_unlearn() {
        let mut recurring = learnt(&[&chat("a", ""), &chat("b", ""), &chat(r#"\"x\""#, "")]);
        assert!(recurring.fits(&OPENAI, chat("c", "").as_bytes()));
    }

    /// Pieces out of which chunks are made that are as much like what is looked for as can be.
    fn piece() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "\"",
            "\"",
            "\"",
            "\\",
            ":",
            ",",
            " ",
            "0",
            "1",
            "null",
            "a",
            "error",
            "finish_reason",
            "index",
            "response.completed",
            "finishReason",
            "\"type\":\"response.",
            "completed\"",
            "\"finishReason\":null",
            "\"index\":0",
            "\"index\"",
            "\"error\":null",
            "\"finish_reason\":\"\"",
            "\"finish_reason\":\"",
            "\":\"",
        ])
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(piece(), 0..10).prop_map(|pieces| pieces.concat())
    }

    /// Texts of one pattern: some pieces stay, others are drawn anew for each chunk.
    fn chunks() -> impl Strategy<Value = Vec<String>> {
        let part = prop_oneof![
            text().prop_map(|text| vec![text; 6]),
            prop::collection::vec(text(), 6),
            prop::collection::vec(
                prop::sample::select(vec![
                    "a",
                    "0",
                    "1",
                    "null",
                    "index",
                    "error",
                    ":0,",
                    " ",
                    "response.failed",
                    "blockReason"
                ]),
                6
            )
            .prop_map(|texts| texts.into_iter().map(str::to_owned).collect()),
        ];
        prop::collection::vec(part, 1..5).prop_map(|parts| {
            (0..6)
                .map(|chunk| parts.iter().map(|part| &*part[chunk]).collect())
                .collect()
        })
    }

    proptest! {
        #[test]
        fn recurring_says_what_the_probe_says(chunks in chunks()) {
            for probe in [&OPENAI, &RESPONSES, &GEMINI] {
                let mut recurring = Recurring::default();
                for data in &chunks {
                    let ordinary = (probe.is_ordinary)(data.as_bytes());
                    prop_assert_eq!(recurring.is_ordinary(probe, data.as_bytes()), ordinary, "{:?}", chunks);
                }
            }
        }
    }
}

//! Small edits inside JSON text: one value becomes null, one member goes, every other byte stays.
//!
//! Not a re-serialisation, because what is passed on must be what upstream wrote: number forms,
//! escapes and the order of members would all change on the way through a parser.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;
use streamweld_sse::{Event, OneLine, write_data_lines, write_event_line};

/// Edits over one JSON text, collected and then applied together.
pub(crate) struct Edits<'a> {
    text: &'a str,
    cuts: Vec<(Range<usize>, Cow<'static, str>)>,
    /// Members that go, from the name to the end of the value.
    members: Vec<Range<usize>>,
}

impl<'a> Edits<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            cuts: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Puts null in the place of `value`, which was borrowed from the text.
    pub(crate) fn nullify(&mut self, value: &'a RawValue) {
        self.cuts.push((self.span(value), "null".into()));
    }

    /// Puts another JSON value in the place of `value`, which was borrowed from the text.
    pub(crate) fn replace(&mut self, value: &'a RawValue, with: String) {
        self.cuts.push((self.span(value), with.into()));
    }

    /// Puts more behind the last element of the array `list`, which was borrowed from the text.
    pub(crate) fn append(&mut self, list: &'a RawValue, more: String) {
        let end = self.span(list).end - "]".len();
        self.cuts.push((end..end, more.into()));
    }

    /// Puts more members, each with a comma ahead of it, behind the last of the object that the text is.
    pub(crate) fn append_member(&mut self, more: &str) {
        let end = self.text.trim_ascii_end().len() - "}".len();
        self.cuts.push((end..end, more.to_owned().into()));
    }

    /// Takes out the object member whose value is `value`, with its name and one comma.
    pub(crate) fn remove_member(&mut self, value: &'a RawValue) {
        let span = self.span(value);
        let before = self.text[..span.start].trim_ascii_end();
        let name = before
            .strip_suffix(':')
            .map(str::trim_ascii_end)
            .and_then(|before| before.strip_suffix('"'))
            // The names removed here hold no quote, so the next one back opens the name.
            .and_then(|name| name.rfind('"'));
        let Some(start) = name else {
            // Not the value of a member; nothing that is parsed into a struct gets here.
            return self.nullify(value);
        };
        self.members.push(start..span.end);
    }

    /// The text with all edits.
    pub(crate) fn apply(mut self) -> String {
        self.cut_members();
        self.cuts.sort_by_key(|(span, _)| span.start);
        let mut out = String::with_capacity(self.text.len());
        let mut done = 0;
        for (span, with) in self.cuts {
            out.push_str(&self.text[done..span.start]);
            out.push_str(&with);
            done = span.end;
        }
        out.push_str(&self.text[done..]);
        out
    }

    /// Cuts the members out that go. Those that stand side by side go together, or one comma would be taken twice and
    /// another be left.
    fn cut_members(&mut self) {
        self.members.sort_by_key(|member| member.start);
        let mut members = std::mem::take(&mut self.members).into_iter().peekable();
        while let Some(mut run) = members.next() {
            while let Some(next) =
                members.next_if(|next| self.text[run.end..next.start].trim_ascii() == ",")
            {
                run.end = next.end;
            }
            let after = self.text[run.end..].trim_ascii_start();
            if let Some(after) = after.strip_prefix(',') {
                run.end = self.text.len() - after.trim_ascii_start().len();
            } else {
                let before = self.text[..run.start].trim_ascii_end();
                run.start = before.strip_suffix(',').map_or(run.start, str::len);
            }
            self.cuts.push((run, "".into()));
        }
    }

    /// Where a borrowed value stands: a raw value borrowed from a text is a slice of that text.
    fn span(&self, value: &'a RawValue) -> Range<usize> {
        let start = value.get().as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + value.get().len()
    }
}

/// The wire lines (no id line, no blank line) of `event` with other data.
pub(crate) fn wire_lines(event: &Event<'_>, data: &str) -> Vec<u8> {
    let mut out = Vec::new();
    // A name with NUL in it cannot be written; clients read the data without it.
    if let Some(name) = event.name().and_then(OneLine::new) {
        write_event_line(name, &mut out);
    }
    write_data_lines(data, &mut out);
    out
}

/// The wire lines of `event` without what tells that it failed: the `error` member is gone, and these finish reasons are
/// null. All of it was borrowed from `data`.
pub(crate) fn without_failure<'a>(
    event: &Event<'_>,
    data: &'a str,
    error: Option<&'a RawValue>,
    reasons: impl Iterator<Item = &'a RawValue>,
) -> Vec<u8> {
    let mut edits = Edits::new(data);
    if let Some(error) = error {
        edits.remove_member(error);
    }
    for reason in reasons {
        edits.nullify(reason);
    }
    wire_lines(event, &edits.apply())
}

/// Whether a member holds more than nothing.
pub(crate) fn is_filled(value: &RawValue) -> bool {
    !matches!(value.get(), "null" | "\"\"" | "[]" | "{}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[track_caller]
    fn check(text: &str, remove: &[&str], nullify: &[&str], expected: &str) {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
        let mut edits = Edits::new(text);
        for name in remove {
            edits.remove_member(members[*name]);
        }
        for name in nullify {
            edits.nullify(members[*name]);
        }
        let edited = edits.apply();
        assert_eq!(edited, expected);
        serde_json::from_str::<serde_json::Value>(&edited).unwrap();
    }

    #[test]
    fn one_value_becomes_null_and_the_rest_stays() {
        check(
            r#"{ "a" : 1.50, "b":"é\u00e9" ,"c":[ ]}"#,
            &[],
            &["b"],
            r#"{ "a" : 1.50, "b":null ,"c":[ ]}"#,
        );
    }

    #[test]
    fn a_member_goes_with_one_comma() {
        check(r#"{"error":{"x":1},"b":2}"#, &["error"], &[], r#"{"b":2}"#);
        check(r#"{"b":2, "error": "m"}"#, &["error"], &[], r#"{"b":2}"#);
        check(
            r#"{"a":1,"error" : {} , "b":2}"#,
            &["error"],
            &[],
            r#"{"a":1,"b":2}"#,
        );
        check(r#"{ "error":1 }"#, &["error"], &[], "{  }");
        check(
            r#"{"b":"\"","\u0065rror":1}"#,
            &["error"],
            &[],
            r#"{"b":"\""}"#,
        );
    }

    #[test]
    fn members_side_by_side_go_together() {
        let text = r#"{"a":1, "b":2 , "c":3,"d":4}"#;
        for (remove, expected) in [
            (&["c", "d"][..], r#"{"a":1, "b":2 }"#),
            (&["d", "c", "b"], r#"{"a":1}"#),
            (&["a", "b"], r#"{"c":3,"d":4}"#),
            (&["b", "c"], r#"{"a":1, "d":4}"#),
            (&["a", "d"], r#"{"b":2 , "c":3}"#),
            (&["a", "b", "c", "d"], "{}"),
        ] {
            check(text, remove, &[], expected);
        }
    }

    #[test]
    fn edits_combine_in_any_order() {
        check(
            r#"{"a":1,"error":2,"b":3}"#,
            &["error"],
            &["b", "a"],
            r#"{"a":null,"b":null}"#,
        );
    }
}

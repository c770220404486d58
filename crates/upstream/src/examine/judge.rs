//! What answers show of how a backend goes on. Pure.

use streamweld_dialect::{Ids, Reply};

use super::check::{Judged, brief};

/// An answer that was shown in part, by its tokens.
#[derive(Debug)]
pub(super) struct ByIds {
    pub(super) ids: Ids,
    /// The bytes of its text.
    pub(super) shown: usize,
}

/// An answer that was shown in part, by its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ByText<'a> {
    /// What a backend is given. It ends in no white space.
    pub(super) kept: &'a str,
    /// What it has to write again.
    pub(super) dropped: &'a str,
    /// Tokens of what is kept, at least.
    pub(super) tokens: u64,
}

/// Where an answer is cut to be continued by its tokens, if they are all there.
pub(super) fn cut_ids(reply: &Reply) -> Result<ByIds, Judged> {
    let all = reply.trail(reply.chunks());
    if let Err(no) = all.ids() {
        return Err(Judged::problem(no));
    }
    if let Some(counted) = reply.counted().filter(|&counted| counted != all.told()) {
        let told = all.told();
        return Err(Judged::problem(format!(
            "told {told} ids of {counted} tokens"
        )));
    }
    let text = reply.text();
    let half = (reply.chunks() / 2..reply.chunks()).chain(1..reply.chunks() / 2);
    let mut cuts = half.filter_map(|chunks| {
        let shown = reply.text_of(chunks);
        let ids = reply.trail(chunks).ids().ok().filter(|ids| !ids.unsure)?;
        (shown.len() < text.len()).then_some(ByIds {
            ids,
            shown: shown.len(),
        })
    });
    // Where a character of several tokens is, holes show; a model may not write any. Then those of each answer are counted
    // when it is cut.
    let shows_more = |cut: &ByIds| text[..cut.shown].chars().any(is_of_several_tokens);
    let first = cuts.next();
    let found = match first {
        Some(first) if shows_more(&first) => Some(first),
        first => cuts.find(shows_more).or(first),
    };
    found.ok_or_else(|| {
        Judged::unknown(format!("{} has no place to be cut at", brief(text))).mended_by(NO_PLACE)
    })
}

/// Of an alphabet that no vocabulary has one token for each letter of.
fn is_of_several_tokens(c: char) -> bool {
    c.len_utf8() >= 3
}

/// Whether an answer went on by its tokens as it would have without a cut.
pub(super) fn went_on_by_ids(first: &Reply, cut: &ByIds, second: &Reply) -> Judged {
    let count = cut.ids.all.len();
    let trail = second.trail(second.chunks());
    match trail.prompt() {
        None => return Judged::problem("did not tell which prompt it went on with"),
        Some(prompt) if prompt != cut.ids.all => {
            return Judged::problem(format!(
                "was given {count} ids and went on with other {}",
                prompt.len()
            ));
        }
        Some(_) => {}
    }
    let (rest, new) = (&first.text()[cut.shown..], second.text());
    if new == rest && first.reason() == second.reason() {
        return Judged::ok(format!(
            "went on exactly behind {count} ids, which it told back"
        ));
    }
    Judged::problem(instead(new, rest))
}

/// Where an answer is cut to be continued by its text: in front of a word in its middle.
pub(super) fn cut_text(reply: &Reply) -> Result<ByText<'_>, Judged> {
    let text = reply.text();
    let unfit =
        || Judged::unknown(format!("{} has no word to be cut at", brief(text))).mended_by(NO_PLACE);
    let middle = text.char_indices().nth(text.chars().count() / 2);
    let shown = &text[..middle.map_or(0, |(at, _)| at)];
    let words = shown.trim_end();
    let border = words.rfind(char::is_whitespace).ok_or_else(unfit)?;
    let kept = words[..border].trim_end();
    if kept.is_empty() || kept.starts_with(char::is_whitespace) {
        return Err(unfit());
    }
    let within = (1..=reply.chunks()).filter(|&chunks| {
        let grown = reply.text_of(chunks).len();
        grown > reply.text_of(chunks - 1).len() && grown <= kept.len()
    });
    Ok(ByText {
        kept,
        dropped: &shown[kept.len()..],
        tokens: within.count() as u64,
    })
}

/// Whether an answer went on by its text: wrote again what was dropped, and then the rest.
pub(super) fn went_on_by_text(first: &Reply, cut: &ByText<'_>, second: &Reply) -> Judged {
    if !second.is_text() {
        return Judged::problem("went on with something else than text");
    }
    let (rest, new) = (&first.text()[cut.kept.len()..], second.text());
    // Its limit is not exact: tokens are counted by chunks.
    let is_limited = matches!(second.reason(), Some("length" | "max_tokens"));
    let cut_short = is_limited && new.len() > cut.dropped.len();
    if new.starts_with(rest) || (cut_short && rest.starts_with(new)) {
        let dropped = brief(cut.dropped);
        return Judged::ok(format!("wrote {dropped} again and went on exactly"));
    }
    if new.starts_with(cut.kept) {
        return Judged::problem("repeats what it was given, or begins anew");
    }
    Judged::problem(instead(new, rest))
}

fn instead(new: &str, rest: &str) -> String {
    format!("went on with {} instead of {}", brief(new), brief(rest))
}

/// Whether a template leaves the end of an unfinished answer alone: its prompt is that of the question, and then the
/// answer to the last character.
pub(super) fn keeps(question: &str, answer: &str, rendered: &str) -> Judged {
    let Some(ahead) = rendered.strip_suffix(answer) else {
        let from = rendered.char_indices().rev().take(answer.chars().count());
        let end = &rendered[from.last().map_or(0, |(at, _)| at)..];
        return Judged::problem(format!("renders {} as {}", brief(answer), brief(end)));
    };
    if ahead == question {
        return Judged::ok(format!("renders {} as it is", brief(answer)));
    }
    let alike = ahead.bytes().zip(question.bytes());
    let same = alike.take_while(|(one, other)| one == other).count();
    let tail = |text: &str| brief(text.get(same..).unwrap_or_default());
    Judged::problem(format!(
        "renders {} ahead of an unfinished answer, and {} ahead of a new one",
        tail(ahead),
        tail(question)
    ))
}

/// Whether a prompt with a part of its answer is cut into the tokens that were generated.
pub(super) fn comes_back(generated: &[u32], tokenised: &[u32]) -> Judged {
    let count = generated.len();
    if generated == tokenised {
        return Judged::ok(format!("{count} ids come back from their text"));
    }
    let alike = generated.iter().zip(tokenised);
    let same = alike.take_while(|(one, other)| one == other).count();
    Judged::problem(format!(
        "the text of {count} ids is cut otherwise from id {} on",
        same + 1
    ))
}

const NO_PLACE: &str = "look again, or name a model whose answers are longer (--model)";

#[cfg(test)]
mod tests;

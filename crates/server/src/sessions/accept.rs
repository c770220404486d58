//! Which form an `Accept` asks for.

use super::plan::Form;

/// The form that is liked best; among equals, and where nothing that there is is named, an event stream.
pub(super) fn choose(values: &[&[u8]]) -> Form {
    let mut best = (0, Form::Events);
    for item in values
        .iter()
        .flat_map(|value| value.split(|&byte| byte == b','))
    {
        let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let form = match &media[..] {
            b"text/event-stream" | b"text/*" | b"*/*" => Form::Events,
            b"application/x-ndjson" | b"application/ndjson" => Form::Lines,
            b"application/json" => Form::Json,
            _ => continue,
        };
        let quality = parts.find_map(quality).unwrap_or(Some(1000)).unwrap_or(0);
        let is_better = quality > best.0 || (quality == best.0 && rank(form) < rank(best.1));
        if quality > 0 && is_better {
            best = (quality, form);
        }
    }
    best.1
}

/// Among equals: what was there before sessions first, then what does not end by itself.
fn rank(form: Form) -> u8 {
    match form {
        Form::Events | Form::Batch => 0,
        Form::Lines => 1,
        Form::Json => 2,
    }
}

/// The thousandths of a `q`. `None`: another parameter; `Some(None)`: one that cannot be read.
fn quality(parameter: &[u8]) -> Option<Option<u32>> {
    let value = parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="))?;
    let text = std::str::from_utf8(value).ok();
    let quality = text.and_then(|text| text.parse::<f32>().ok());
    // Three digits at most, so that this is exact.
    Some(
        quality
            .filter(|it| (0.0..=1.0).contains(it))
            .map(|it| (it * 1000.0).round() as u32),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_liked_form_is_chosen() {
        for (accept, form) in [
            ("", Form::Events),
            ("*/*", Form::Events),
            ("text/html", Form::Events),
            ("text/event-stream", Form::Events),
            ("application/json", Form::Json),
            ("Application/JSON; charset=utf-8", Form::Json),
            ("application/x-ndjson", Form::Lines),
            ("application/json, text/event-stream", Form::Events),
            ("application/json, */*", Form::Events),
            ("application/json, */*;q=0.1", Form::Json),
            (
                "text/event-stream;q=0.5, application/json;q=0.6",
                Form::Json,
            ),
            ("application/json;q=0", Form::Events),
            ("application/json;q=x", Form::Events),
            ("application/json, application/x-ndjson", Form::Lines),
            ("text/html, application/x-ndjson;q=0.9", Form::Lines),
        ] {
            assert_eq!(choose(&[accept.as_bytes()]), form, "{accept}");
        }
        assert_eq!(choose(&[b"text/html", b"application/json"]), Form::Json);
        assert_eq!(choose(&[]), Form::Events);
    }
}

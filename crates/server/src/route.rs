//! Which requests are ours, by their path (protocol.md 4.1).

/// Where a request on the data listener goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `/v1/streams/{id}`; the id is one segment of 26 characters and not checked yet.
    State(&'a str),
    /// `/v1/streams/{id}/events`.
    Events(&'a str),
    /// `/v1/streams/{id}/stop`.
    Stop(&'a str),
    /// Another path below `/v1/streams/{id}/`, or a reserved one.
    Unknown,
    /// Not ours.
    Backend,
}

impl<'a> Route<'a> {
    pub(crate) fn of(path: &'a str) -> Self {
        let Some(rest) = path.strip_prefix("/v1/streams/") else {
            return Self::Backend;
        };
        if rest == "watch" {
            return Self::Unknown;
        }
        let (id, below) = rest
            .split_once('/')
            .map_or((rest, None), |(id, below)| (id, Some(below)));
        // Counted in bytes: an id that is ours is ASCII, and so is any spelling that could be meant for one.
        if id.len() != 26 {
            return Self::Backend;
        }
        match below {
            None => Self::State(id),
            Some("events") => Self::Events(id),
            Some("stop") => Self::Stop(id),
            Some(_) => Self::Unknown,
        }
    }
}

/// Whether `path` is one of the GET paths that are made durable.
pub(crate) fn is_durable_get(patterns: &[String], path: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == pattern,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01jcv5t0q4e8x2m7n9p3r6s1ab";

    #[test]
    fn our_paths() {
        assert_eq!(Route::of(&format!("/v1/streams/{ID}")), Route::State(ID));
        assert_eq!(
            Route::of(&format!("/v1/streams/{ID}/events")),
            Route::Events(ID)
        );
        assert_eq!(
            Route::of(&format!("/v1/streams/{ID}/stop")),
            Route::Stop(ID)
        );
        assert_eq!(Route::of(&format!("/v1/streams/{ID}/")), Route::Unknown);
        assert_eq!(
            Route::of(&format!("/v1/streams/{ID}/stop/now")),
            Route::Unknown
        );
        assert_eq!(Route::of("/v1/streams/watch"), Route::Unknown);
    }

    #[test]
    fn an_id_of_the_right_length_is_ours_even_when_it_is_wrong() {
        let upper = ID.to_ascii_uppercase();
        assert_eq!(
            Route::of(&format!("/v1/streams/{upper}")),
            Route::State(&upper)
        );
    }

    #[test]
    fn everything_else_is_the_backends() {
        for path in [
            "/",
            "/v1/streams",
            "/v1/streams/",
            "/v1/streams/lookup",
            "/v1/chat/completions",
            "/v1/streams/abc/events",
        ] {
            assert_eq!(Route::of(path), Route::Backend, "{path}");
        }
    }

    #[test]
    fn durable_paths_are_exact_or_a_prefix() {
        let patterns = ["/feed".to_owned(), "/live/*".to_owned()];
        assert!(is_durable_get(&patterns, "/feed"));
        assert!(!is_durable_get(&patterns, "/feed/2"));
        assert!(is_durable_get(&patterns, "/live/1"));
        assert!(!is_durable_get(&patterns, "/live"));
    }
}

//! Reading the data of an event as one JSON object.

use serde::Deserialize;

/// The members of the object that `data` is; `None` if it is none.
pub(crate) fn object<'a, T: Deserialize<'a>>(data: &'a str) -> Option<T> {
    // A derived struct would also read itself from an array, by position.
    if !data.trim_ascii_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(data).ok()
}

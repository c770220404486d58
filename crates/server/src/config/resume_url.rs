//! What resume URLs are made with (protocol.md 9.2).

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// Resume URLs, which are handed out where there is a key.
#[derive(Clone, Debug)]
pub struct ResumeUrlConfig {
    /// The keys: the first signs, all are good. Default none.
    pub keys: SigningKeys,
    /// How long a URL is good after it was given. Default 1 h 10 min, the longest life of a generation and its
    /// retention: shorter, and a page that comes back late has to ask its own server for a new one.
    pub lifetime: Duration,
    /// What an ingress takes off the front of paths, which a browser has to put there again. Default nothing.
    pub prefix: String,
}

impl Default for ResumeUrlConfig {
    fn default() -> Self {
        Self {
            keys: SigningKeys::default(),
            lifetime: Duration::from_secs(4200),
            prefix: String::new(),
        }
    }
}

/// Secrets to sign with, in their order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SigningKeys(Vec<String>);

/// As many characters as the MAC has bytes. A key in hexadecimal has twice as many.
const SHORTEST: usize = 32;

impl SigningKeys {
    /// Reads one key from each line of a file.
    ///
    /// # Errors
    /// The file cannot be read, holds no key, or one that is too short or no word.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        Self::from_text(&std::fs::read_to_string(path)?)
            .map_err(|message| Error::new(ErrorKind::InvalidData, message))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let is_key = line.len() >= SHORTEST && line.bytes().all(|byte| byte.is_ascii_graphic());
            if is_key {
                keys.push(line.to_owned());
            } else if !line.is_empty() {
                return Err(format!(
                    "line {} is no key: at least {SHORTEST} characters of visible ASCII, such as \
                     `openssl rand -hex 32` writes",
                    number + 1
                ));
            }
        }
        if keys.is_empty() {
            return Err("the file holds no key; `openssl rand -hex 32` writes one".to_owned());
        }
        Ok(Self(keys))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(String::as_bytes)
    }
}

/// In their order, each taken as it is.
impl FromIterator<String> for SigningKeys {
    fn from_iter<I: IntoIterator<Item = String>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({} secrets)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn each_line_is_a_key() {
        let two = SigningKeys::from_text(&format!("{KEY}\r\n\n{KEY}{KEY}\n")).expect("two keys");
        let lengths: Vec<_> = two.each().map(<[u8]>::len).collect();
        assert_eq!(lengths, [32, 64]);
        assert!(!format!("{two:?}").contains("0123"));
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_repeated() {
        for (text, said) in [
            ("", "no key"),
            ("\n\n", "no key"),
            (&KEY[1..], "line 1"),
            (&*format!("{KEY}\n{KEY} {KEY}\n"), "line 2"),
            (&*format!("{KEY}\u{e9}\n"), "line 1"),
        ] {
            let error = SigningKeys::from_text(text).expect_err("refused");
            assert!(error.contains(said) && !error.contains("0123"), "{error}");
        }
    }
}

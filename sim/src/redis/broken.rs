//! Rules of Redis and of the scripts in it that can be left out, to see that a run without them goes wrong.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// An append is taken whatever its id is: whoever was replaced goes on.
    AppendsAreOrdered,
    /// An adoption leaves no mark in the log, so nobody is fenced by it.
    AdoptionsAreWritten,
    /// What was answered stands: now and then an append is answered and forgotten.
    AnswersAreTrue,
}

impl Broken {
    /// All of them, each with its name on the command line.
    pub const ALL: [(&'static str, Self); 3] = [
        ("appends-are-ordered", Self::AppendsAreOrdered),
        ("adoptions-are-written", Self::AdoptionsAreWritten),
        ("answers-are-true", Self::AnswersAreTrue),
    ];

    /// The text of a script without the rule; none where it is not in that script.
    ///
    /// # Panics
    /// When the script has changed, and does not say it in these words any more.
    pub(super) fn script(self, text: &str) -> Option<String> {
        if self != Self::AdoptionsAreWritten || !text.starts_with("-- Changes the writer") {
            return None;
        }
        assert!(
            text.contains(MARK),
            "{MARK:?} is not in the script any more"
        );
        Some(text.replace(MARK, ""))
    }
}

/// How an adoption puts its mark into the log.
const MARK: &str = "redis.call('XADD', KEYS[1], ARGV[3] .. '-' .. seq, 'r', ARGV[4])";

//! The rare transitions, each decided by Redis in one step. What each does stands at its head.

use std::sync::LazyLock;

use redis::Value;

use crate::link::Failure;
use crate::nodes::Route;

/// A script and the name under which Redis keeps it.
pub(crate) struct Script {
    text: &'static str,
    hash: String,
}

macro_rules! scripts {
    ($($name:ident $file:literal)*) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!(concat!("scripts/", $file))));)*
    };
}
scripts! {
    OPEN "open.lua"
    FINISH "finish.lua"
    ADOPT "adopt.lua"
    LOOK "look.lua"
    FORGET "forget.lua"
    CLAIM "claim.lua"
    CLAIM_BODY "claim_body.lua"
    BIND "bind.lua"
    RELEASE "release.lua"
    FOLLOW "follow.lua"
    LEAVE "leave.lua"
    STOP "stop.lua"
    PENDING "pending.lua"
    TAKE_BACK "take_back.lua"
    TOUCH "touch.lua"
    KEEP "keep.lua"
    ALIVE "alive.lua"
}

/// What a script says: a word, and what belongs to it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    word: String,
    pub(crate) with: Vec<Option<Vec<u8>>>,
    /// The connection that it was said on.
    pub(crate) connection: u64,
}

impl Script {
    fn new(text: &'static str) -> Self {
        let hash = redis::Script::new(text).get_hash().to_owned();
        Self { text, hash }
    }

    /// Runs it. The text is sent only to a server that does not know it yet, which then has done nothing.
    pub(crate) async fn run(
        &self,
        route: Route<'_>,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<Said, Failure> {
        let size = args.iter().map(|arg| arg.len()).sum();
        let command = |how: &str, what: &str| {
            let mut command = redis::cmd(how);
            command.arg(what).arg(keys.len()).arg(keys).arg(args);
            command
        };
        let answer = route.call(&command("EVALSHA", &self.hash), size).await;
        let answer = match answer {
            Err(Failure::Refused(code)) if code.is("NOSCRIPT") => {
                route.call(&command("EVAL", self.text), size).await?
            }
            other => other?,
        };
        said(answer.value, answer.connection).ok_or(Failure::Unanswered)
    }
}

impl Said {
    pub(crate) fn word(&self) -> &str {
        &self.word
    }

    /// The number that belongs to the word.
    pub(crate) fn number(&self) -> Option<u64> {
        std::str::from_utf8(self.with.first()?.as_deref()?)
            .ok()?
            .parse()
            .ok()
    }
}

fn said(value: Value, connection: u64) -> Option<Said> {
    let Value::Array(parts) = value else {
        return None;
    };
    let mut parts = parts.into_iter().map(|part| match part {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    });
    let word = String::from_utf8(parts.next()??).ok()?;
    Some(Said {
        word,
        with: parts.collect(),
        connection,
    })
}

//! Whether what a backend adds to an answer is the rest of it: looked at before any of it is shown.

use std::future::poll_fn;

use streamweld_dialect::{Dialect, Judge, Mark, Rejoin, Rejoined, prompt_ids, text_of};
use streamweld_sse::{Decoder, Event, Limits};

use crate::source::{ByteSource, Read};

/// The first events of a continuation, as far as they have been looked at.
pub(crate) struct Seam {
    judge: Judge,
    rejoin: Rejoin,
    /// The ids that it has to say back.
    sent: Option<Vec<u32>>,
    /// The answer so far, where none of it has to come again.
    said: Option<String>,
}

/// Why an attempt does not go on with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoSeam {
    /// It failed by itself: another backend may do better.
    Failed,
    /// It goes on with something else.
    Broken(&'static str),
}

/// So many characters at once are no token.
const ECHO: usize = 24;

enum Step {
    More,
    Holds,
}

impl Seam {
    pub(crate) fn new(dialect: Dialect, rejoin: Rejoin, sent: Option<Vec<u32>>) -> Self {
        Self {
            judge: Judge::new(dialect),
            rejoin,
            sent,
            said: None,
        }
    }

    /// Behind this text, which one that echoes its prompt would write again at once.
    pub(crate) fn behind(self, said: &str) -> Self {
        // A token or a few may well be the same again.
        let said = (said.chars().count() >= ECHO).then(|| said.to_owned());
        Self { said, ..self }
    }

    /// Reads up to the first event that the reader is to be shown, and gives the body back with what was read in front.
    pub(crate) async fn hold<S: ByteSource>(
        mut self,
        mut source: S,
        max_event: usize,
    ) -> Result<S, NoSeam> {
        let mut decoder = Decoder::new(Limits { max_event });
        let mut ahead = Vec::new();
        // What is no event, such as a comment, is not counted by the decoder.
        while ahead.len() <= max_event.saturating_mul(2) {
            let before = ahead.len();
            let read =
                poll_fn(|cx| source.poll_read(cx, &mut |bytes| ahead.extend_from_slice(bytes)));
            match read.await {
                Read::Data => {}
                Read::End | Read::Cut(_) | Read::Unusable(..) => return Err(NoSeam::Failed),
            }
            let mut new = &ahead[before..];
            loop {
                match decoder.decode(&mut new) {
                    Ok(Some(event)) => match self.event(&event)? {
                        Step::Holds => return Ok(source.behind(ahead)),
                        Step::More => {}
                    },
                    Ok(None) => break,
                    Err(_) => return Err(NoSeam::Failed),
                }
            }
        }
        Err(NoSeam::Failed)
    }

    fn event(&mut self, event: &Event<'_>) -> Result<Step, NoSeam> {
        match self.judge.event(event) {
            Mark::Failed { .. } => return Err(NoSeam::Failed),
            Mark::Skip => return Ok(Step::More),
            Mark::Event | Mark::Hold | Mark::End(_) => {}
        }
        let data = event.data();
        if let (Some(sent), Some(told)) = (&self.sent, prompt_ids(&data)) {
            if *sent != told {
                return Err(NoSeam::Broken(
                    "it says that it was given other tokens than it was",
                ));
            }
            self.sent = None;
        }
        if let Some(said) = &self.said {
            if text_of(&data).is_some_and(|text| text.starts_with(said.as_str())) {
                return Err(NoSeam::Broken("it wrote again what it was given"));
            }
        }
        match self.rejoin.event(event) {
            Rejoined::Nothing => Ok(Step::More),
            Rejoined::Broken => Err(NoSeam::Broken(
                "it wrote another text than the one that had to come again",
            )),
            Rejoined::Lines(_) if self.sent.is_some() => {
                Err(NoSeam::Broken("it does not say which tokens it was given"))
            }
            Rejoined::Lines(_) => Ok(Step::Holds),
        }
    }
}

//! The order in which a backend is asked. What the answers show is judged elsewhere.

mod answers;
mod messages;

use streamweld_dialect::{Dialect, Engine, Question, SoFar, read_text, read_tokens};

use self::answers::{CHAT, COMPLETIONS};
use super::ask::{Asker, Untold};
use super::check::Judged;
use super::examination::{Fingerprint, Way};
use super::{Examination, Finding, Probed, judge, prompts};

/// Asks everything, where it is known whom and for what.
pub(super) async fn run(asker: &Asker<'_>, out: &mut Examination) {
    let (Some(engine), Some(model)) = (out.identity.engine, &out.identity.model) else {
        return;
    };
    let model = model.name.clone();
    let exam = Exam {
        asker,
        engine,
        model: &model,
    };
    let (chat, prompt_of_chat) = exam.answers(Dialect::OpenAiChat, &CHAT, out).await;
    out.chat = chat;
    let names = &COMPLETIONS;
    let (completions, prompt) = exam.answers(Dialect::OpenAiCompletions, names, out).await;
    out.completions = completions;
    if !engine.methods(Dialect::AnthropicMessages).is_empty() {
        exam.messages(out).await;
    }
    exam.tokenisation(prompt, out).await;
    exam.rendering(prompt_of_chat, out).await;
    exam.template(out).await;
    exam.controls(out).await;
}

struct Exam<'a> {
    asker: &'a Asker<'a>,
    engine: Engine,
    model: &'a str,
}

impl Exam<'_> {
    async fn tokenisation(&self, told: Option<Vec<u32>>, out: &mut Examination) {
        let question = self.engine.ask_tokens(self.model, prompts::TEXT);
        let asked = self.tokens(question).await;
        let (judged, fingerprint) = fingerprint(asked, told, "text");
        out.tokenisation = fingerprint;
        out.add("tokenisation", judged, TOKENISATION);
    }

    async fn rendering(&self, told: Option<Vec<u32>>, out: &mut Examination) {
        let chat = prompts::chat(self.model);
        let asked = self.rendered_tokens(&chat.body).await;
        let (judged, fingerprint) = fingerprint(asked, told, "chat");
        out.rendering = fingerprint;
        out.add("rendering", judged, RENDERING);
    }

    async fn template(&self, out: &mut Examination) {
        let chat = prompts::chat(self.model);
        let question = self.rendered_text(&chat.body).await;
        let word = self.keeps(&chat.body, &question, prompts::WORD).await;
        out.keeps_word = out.add("template.word", word, TEMPLATE).into();
        let space = self.keeps(&chat.body, &question, prompts::SPACE).await;
        out.keeps_space = out.add("template.space", space, SPACE).into();
    }

    async fn keeps(&self, chat: &str, question: &Result<String, Judged>, answer: &str) -> Judged {
        let question = match question {
            Ok(question) => question,
            Err(judged) => return judged.clone(),
        };
        let body = self.continuation(Dialect::OpenAiChat, chat, SoFar::Text(answer), 0);
        let rendered = match body {
            Ok(body) => self.rendered_text(&body).await,
            Err(judged) => return judged,
        };
        match rendered {
            Ok(rendered) => judge::keeps(question, answer, &rendered),
            Err(judged) => judged,
        }
    }

    /// Whether one of the usual control tokens is one token where it stands in text.
    async fn controls(&self, out: &mut Examination) {
        let mut judged = Judged::ok("no usual one does");
        for control in prompts::CONTROLS {
            let question = self.engine.ask_tokens(self.model, control);
            match self.tokens(question).await {
                Ok(tokens) if tokens.len() == 1 => {
                    judged =
                        Judged::problem(format!("{control} in a text becomes a control token"));
                    break;
                }
                Ok(_) => {}
                Err(untold) => {
                    judged = untold;
                    break;
                }
            }
        }
        let finding = out.add("control_text", judged, CONTROLS);
        out.reads_controls = match finding {
            Finding::Ok => Probed::No,
            Finding::Problem => Probed::Yes,
            Finding::Unknown => Probed::Unknown,
        };
    }

    async fn rendered_tokens(&self, request: &str) -> Result<Vec<u32>, Judged> {
        let question = self.engine.ask_rendered_tokens(request);
        if question.is_some() {
            return self.tokens(question).await;
        }
        let text = self.text_by_itself(request).await?;
        self.tokens_of_prompt(&text).await
    }

    async fn rendered_text(&self, request: &str) -> Result<String, Judged> {
        let Some(question) = self.engine.ask_rendered_tokens(request) else {
            return self.text_by_itself(request).await;
        };
        let tokens = self.tokens(Some(question)).await?;
        self.text(self.engine.ask_text(self.model, &tokens)).await
    }

    async fn text_by_itself(&self, request: &str) -> Result<String, Judged> {
        let Some(question) = self.engine.ask_rendered_text(request) else {
            let engine = self.engine;
            let evidence = format!("{engine} does not tell what it makes of a chat");
            return Err(Judged::unknown(evidence).mended_by(NOT_TOLD));
        };
        self.text(Some(question)).await
    }

    async fn tokens_of_prompt(&self, prompt: &str) -> Result<Vec<u32>, Judged> {
        let question = self.engine.ask_prompt_tokens(self.model, prompt);
        self.tokens(question).await
    }

    async fn tokens(&self, question: Option<Question>) -> Result<Vec<u32>, Judged> {
        self.told(question, read_tokens).await
    }

    async fn text(&self, question: Option<Question>) -> Result<String, Judged> {
        self.told(question, read_text).await
    }

    async fn told<T>(
        &self,
        question: Option<Question>,
        read: fn(&[u8]) -> Option<T>,
    ) -> Result<T, Judged> {
        let Some(question) = question else {
            return Err(Judged::unknown(format!("{} does not tell", self.engine)));
        };
        let body = self.asker.post(question).await;
        let told = body.and_then(|body| read(&body).ok_or(Untold::NotUnderstood));
        told.map_err(|untold| Judged::untold(&untold))
    }
}

/// Of what was asked for, or else of what came with an answer.
fn fingerprint(
    asked: Result<Vec<u32>, Judged>,
    told: Option<Vec<u32>>,
    what: &str,
) -> (Judged, Option<Fingerprint>) {
    let (way, ids) = match (asked, told) {
        (Ok(ids), _) => (Way::Asked, ids),
        (Err(judged), Some(ids)) if !judged.passing => (Way::Told, ids),
        (Err(judged), _) => return (judged, None),
    };
    let fingerprint = Fingerprint::new(way, &ids);
    let (count, digest) = (ids.len(), fingerprint.digest());
    let judged = Judged::ok(format!("{count} tokens for the fixed {what}: {digest}"));
    (judged, Some(fingerprint))
}

const TOKENISATION: &str =
    "let /tokenize through to here; without it nobody knows whether two backends tokenise alike";
const RENDERING: &str =
    "let the path that renders a chat through to here (/tokenize, /apply-template)";
const NOT_TOLD: &str =
    "nothing helps with this engine: chats there do not go on by prefill; completions may";
const TEMPLATE: &str =
    "give the engine a template that leaves the last message alone, or leave prefill off for chats";
const SPACE: &str = "nothing: answers are cut where a word ends";
const CONTROLS: &str = "leave prefill off where answers may quote control tokens";

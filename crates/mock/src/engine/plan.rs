//! What an engine makes of one request: the prompt that it reads, and every chunk of what it says.

use super::{
    Engine, Faults, Order, Refuse,
    chat::Chat,
    model::{Model, Standing},
    pieces::{Manner, Piece},
    template::{Tail, render},
    tokens::Tokens,
};
use crate::{Ask, Dialect, Script, text::Text};

/// Decided from script and request alone.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) engine: Engine,
    pub(super) is_chat: bool,
    pub(crate) is_message: bool,
    /// The ids of the prompt, as they are told.
    pub(super) prompt: Vec<u32>,
    /// Whose message it writes.
    pub(super) role: String,
    /// What it was given to go on with.
    pub(super) given: String,
    pub(super) pieces: Vec<Piece>,
    /// How many tokens it counts, with its end.
    pub(super) tokens: usize,
    /// Whether it came to its end; a limit cut it otherwise.
    pub(super) ended: bool,
    /// Set when there is an error instead of an answer.
    pub(crate) refused: Option<Refused>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(super) engine: Engine,
    pub(super) status: u16,
    pub(super) message: String,
}

impl Refused {
    /// As a bad request.
    pub(super) fn new(engine: Engine, message: impl Into<String>) -> Self {
        Self {
            engine,
            status: 400,
            message: message.into(),
        }
    }
}

impl Plan {
    /// For a request of a dialect that engines continue, where the script is an engine's.
    pub(crate) fn of(script: &Script, ask: &Ask) -> Option<Self> {
        let engine = script.engine?;
        if !engine.serves(ask.dialect) {
            return None;
        }
        let planner = Planner::new(engine, script, ask);
        let planned = planner.check().and_then(|()| planner.prompt());
        let planned = planned.and_then(|prompt| planner.answer(prompt));
        Some(planned.unwrap_or_else(|refused| planner.nothing(refused)))
    }
}

/// Builds a plan.
struct Planner<'a> {
    engine: Engine,
    is_chat: bool,
    script: &'a Script,
    ask: &'a Ask,
    order: &'a Order,
    faults: &'a Faults,
    tokens: Tokens,
    model: Model,
}

/// What the model reads.
struct Prompt {
    ids: Vec<u32>,
    role: String,
    /// The text of the message that it goes on with, where that is asked for in so many words.
    opened: Option<String>,
    /// It was given ids for a conversation.
    forwarded: bool,
}

impl<'a> Planner<'a> {
    fn new(engine: Engine, script: &'a Script, ask: &'a Ask) -> Self {
        let tokens = tokens(script);
        let text = Text::new(script.text.as_deref(), script.tokens).whole();
        Self {
            engine,
            is_chat: ask.dialect != Dialect::OpenAiCompletions,
            script,
            ask,
            order: &ask.order,
            faults: &script.faults,
            tokens,
            model: Model::new(tokens, &text),
        }
    }

    /// What the engines were seen to refuse.
    fn check(&self) -> Result<(), Refused> {
        if self.engine == Engine::Vllm && self.ask.max_tokens == Some(0) {
            return Err(Refused::new(
                self.engine,
                "max_tokens must be at least 1, got 0.",
            ));
        }
        if self.engine == Engine::Sglang && self.is_chat && self.ask.stream && self.ask.token_ids {
            return Err(Refused::new(
                self.engine,
                "return_token_ids is not supported for streaming chat completions.",
            ));
        }
        Ok(())
    }

    fn prompt(&self) -> Result<Prompt, Refused> {
        let order = self.order;
        let plain = |ids, forwarded| Prompt {
            ids,
            role: "assistant".to_owned(),
            opened: None,
            forwarded,
        };
        if !self.is_chat {
            let ids = order
                .prompt_ids
                .clone()
                .unwrap_or_else(|| self.tokens.ids(order.prompt.as_deref().unwrap_or_default()));
            return Ok(plain(ids, false));
        }
        let forwarded = match self.engine {
            // Its chat ignores them when it is to echo.
            Engine::Vllm if !order.echo => order.transferred_ids.clone(),
            Engine::Sglang => order.input_ids.clone(),
            Engine::Vllm | Engine::LlamaCpp | Engine::Anthropic => None,
        };
        if let Some(ids) = forwarded {
            return Ok(plain(ids, true));
        }
        let chat = Chat::read(self.engine, order, self.faults)?;
        let opened = chat.opened.map(|last| last.content.clone());
        let role = chat.opened.map_or("assistant", |last| &last.role);
        Ok(Prompt {
            ids: chat.ids(self.tokens, self.faults),
            role: role.to_owned(),
            opened,
            forwarded: false,
        })
    }

    fn answer(&self, mut prompt: Prompt) -> Result<Plan, Refused> {
        let mut standing = self.model.standing(&prompt.ids);
        let stands = matches!(standing, Standing::Within(1..) | Standing::Beside(_));
        let mut continues = prompt.forwarded || prompt.opened.is_some() || stands;
        let refuse = match self.faults.refuse {
            Some(refuse) => Some(refuse),
            None => (!self.script.continues).then_some(Refuse::NewTurn),
        };
        if continues {
            match refuse {
                None => {}
                Some(Refuse::Status(status)) => {
                    return Err(Refused {
                        engine: self.engine,
                        status,
                        message: match self.engine {
                            Engine::Anthropic => NO_PREFILL,
                            _ => "This server does not continue answers.",
                        }
                        .to_owned(),
                    });
                }
                Some(Refuse::NewTurn) => {
                    if self.is_chat {
                        let text = render(&self.order.messages, Tail::NewTurn, self.faults);
                        prompt.ids = self.tokens.ids(&text);
                    }
                    prompt.opened = None;
                    standing = Standing::Fresh;
                    continues = false;
                }
            }
        }
        let limit = self.limit(prompt.ids.len())?;
        let given = prompt.opened.unwrap_or_else(|| self.model.said(&standing));
        let mut ids = self.model.rest(&standing);
        if let Some(most) = self.faults.eos_after.filter(|_| continues) {
            ids.truncate(most);
        }
        self.model.fill(&mut ids, self.order.min_tokens);
        let ended = limit.is_none_or(|limit| ids.len() < limit);
        ids.truncate(limit.unwrap_or(usize::MAX));
        let mut plan = Plan {
            pieces: self.manner().pieces(&prompt.ids, &ids),
            tokens: ids.len() + usize::from(ended),
            ended,
            given,
            role: prompt.role,
            prompt: prompt.ids,
            ..self.empty()
        };
        self.distort(&mut plan, continues);
        Ok(plan)
    }

    /// How many tokens there may be.
    fn limit(&self, prompt: usize) -> Result<Option<usize>, Refused> {
        let room = self.script.max_model_len;
        let asked = match self.engine {
            // It shortens the answer instead, and takes a zero for a one.
            Engine::LlamaCpp | Engine::Anthropic => 1,
            Engine::Vllm | Engine::Sglang => self.ask.max_tokens.unwrap_or(1),
        };
        if prompt.saturating_add(asked) > room {
            return Err(Refused::new(
                self.engine,
                format!(
                    "This model's maximum context length is {room} tokens. However, you requested {asked} output \
                 tokens and your prompt contains {prompt} input tokens."
                ),
            ));
        }
        if !self.script.obey_limits {
            return Ok(None);
        }
        let asked = self.ask.max_tokens.unwrap_or(usize::MAX);
        let least = usize::from(self.engine == Engine::LlamaCpp);
        Ok(Some(asked.max(least).min(room - prompt)))
    }

    fn manner(&self) -> Manner {
        Manner {
            tokens: self.tokens,
            engine: self.engine,
            shows_empty: match self.engine {
                Engine::Vllm => true,
                Engine::Sglang => !self.is_chat,
                Engine::LlamaCpp | Engine::Anthropic => false,
            },
            leaks: self.faults.leak.unwrap_or(self.engine == Engine::Vllm),
            per_chunk: self.faults.tokens_per_chunk,
            holes: self.faults.id_holes,
        }
    }

    /// The faults that tell what is not so.
    fn distort(&self, plan: &mut Plan, continues: bool) {
        let echoes = self.order.echo && self.is_chat && self.engine == Engine::Vllm;
        if (echoes || self.faults.echo) && continues && !plan.given.is_empty() {
            plan.pieces.insert(
                0,
                Piece {
                    text: plan.given.clone(),
                    ..Piece::default()
                },
            );
        }
        if self.faults.false_prompt_ids && continues {
            if let Some(last) = plan.prompt.last_mut() {
                *last ^= 1;
            }
        }
        let told = |count: usize| {
            let wrong = isize::try_from(self.faults.miscount).unwrap_or_default();
            count.saturating_add_signed(wrong)
        };
        plan.tokens = told(plan.tokens);
        for piece in &mut plan.pieces {
            piece.count = told(piece.count);
        }
    }

    fn nothing(&self, refused: Refused) -> Plan {
        Plan {
            refused: Some(refused),
            ..self.empty()
        }
    }

    fn empty(&self) -> Plan {
        Plan {
            engine: self.engine,
            is_chat: self.is_chat,
            is_message: self.ask.dialect == Dialect::AnthropicMessages,
            prompt: Vec::new(),
            role: "assistant".to_owned(),
            given: String::new(),
            pieces: Vec::new(),
            tokens: 0,
            ended: true,
            refused: None,
        }
    }
}

/// What models of Anthropic say that take no beginning of an answer, with the status 400.
const NO_PREFILL: &str = "This model does not support assistant message prefill. The conversation must end with a user message.";

/// The tokeniser of a script.
pub(super) fn tokens(script: &Script) -> Tokens {
    if script.faults.other_tokens {
        Tokens::OTHER
    } else {
        Tokens::USUAL
    }
}

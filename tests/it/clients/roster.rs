//! The SDKs that are run, and the ways of asking for a stream that each has.

use streamweld_mock::Dialect;

/// A program of `tests/clients` and its ways.
pub(super) struct Sdk {
    pub(super) program: &'static str,
    pub(super) ways: &'static [Way],
    /// Members of its objects that differ from one request to the next with or without a proxy, or that show the
    /// head of the answer.
    pub(super) differs: &'static [&'static str],
}

/// A way of asking for a stream.
pub(super) struct Way {
    /// As the program names it.
    pub(super) name: &'static str,
    /// As the document names it.
    pub(super) shown: &'static str,
    pub(super) dialect: Dialect,
    /// What it adds to its base URL.
    pub(super) path: &'static str,
    /// How many choices it can ask for.
    pub(super) choices: usize,
    pub(super) lost: Lost,
    pub(super) hears: Hears,
}

/// Whether its application is told why an answer broke off, or perhaps only that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hears {
    Always,
    /// Reading fails as soon as the connection has gone, and what was not read by then is lost.
    Perhaps,
}

/// What it does when its connection is lost before the first byte of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It asks again.
    Repeats,
    /// It asks again, and says that this is a first try (`x-stainless-retry-count: 0`), which never joins.
    AsksAnew,
    /// It tells the application.
    Raises,
}

const fn chat(name: &'static str, shown: &'static str) -> Way {
    Way {
        name,
        shown,
        dialect: Dialect::OpenAiChat,
        path: "/v1/chat/completions",
        choices: 2,
        lost: Lost::Repeats,
        hears: Hears::Always,
    }
}

const fn completions(name: &'static str, shown: &'static str) -> Way {
    Way {
        dialect: Dialect::OpenAiCompletions,
        path: "/v1/completions",
        ..chat(name, shown)
    }
}

const fn responses(name: &'static str, shown: &'static str) -> Way {
    Way {
        dialect: Dialect::OpenAiResponses,
        path: "/v1/responses",
        choices: 1,
        ..chat(name, shown)
    }
}

const fn messages(name: &'static str, shown: &'static str) -> Way {
    Way {
        dialect: Dialect::AnthropicMessages,
        path: "/v1/messages",
        choices: 1,
        ..chat(name, shown)
    }
}

const fn gemini(name: &'static str, shown: &'static str, path: &'static str) -> Way {
    Way {
        dialect: Dialect::Gemini,
        path,
        choices: 1,
        lost: Lost::Raises,
        ..chat(name, shown)
    }
}

impl Way {
    const fn raises(self) -> Self {
        Self {
            lost: Lost::Raises,
            ..self
        }
    }

    const fn asks_anew(self) -> Self {
        Self {
            lost: Lost::AsksAnew,
            ..self
        }
    }

    const fn repeats(self) -> Self {
        Self {
            lost: Lost::Repeats,
            ..self
        }
    }

    const fn perhaps(self) -> Self {
        Self {
            hears: Hears::Perhaps,
            ..self
        }
    }

    const fn one_choice(self) -> Self {
        Self { choices: 1, ..self }
    }
}

const GENAI: &str = "/v1/models/mock:streamGenerateContent";
const LITELLM: &str = "/v1beta/models/mock:streamGenerateContent";

pub(super) const OPENAI_PYTHON: Sdk = Sdk {
    program: "openai_sdk.py",
    ways: &[
        chat("chat", "`chat.completions.create`"),
        chat("chat_async", "the same, async"),
        chat("chat_helper", "`chat.completions.stream`"),
        chat("chat_helper_async", "the same, async"),
        completions("completions", "`completions.create`"),
        completions("completions_async", "the same, async"),
        responses("responses", "`responses.create`"),
        responses("responses_async", "the same, async"),
        responses("responses_helper", "`responses.stream`"),
        responses("responses_helper_async", "the same, async"),
    ],
    differs: &[],
};

pub(super) const ANTHROPIC_PYTHON: Sdk = Sdk {
    program: "anthropic_sdk.py",
    ways: &[
        messages("messages", "`messages.create`"),
        messages("messages_async", "the same, async"),
        messages("helper", "`messages.stream`"),
        messages("helper_async", "the same, async"),
    ],
    differs: &[],
};

pub(super) const GENAI_PYTHON: Sdk = Sdk {
    program: "google_genai.py",
    ways: &[
        gemini("generate", "`generate_content_stream`", GENAI),
        gemini("generate_async", "the same, async", GENAI).repeats(),
    ],
    differs: &["sdk_http_response"],
};

pub(super) const LANGCHAIN_PYTHON: Sdk = Sdk {
    program: "langchain_sdk.py",
    ways: &[
        chat("chat", "`ChatOpenAI.stream`"),
        chat("chat_async", "`ChatOpenAI.astream`"),
        responses("responses", "`stream`, Responses"),
        responses("responses_async", "`astream`, Responses"),
    ],
    differs: &["id"],
};

pub(super) const LITELLM_PYTHON: Sdk = Sdk {
    program: "litellm_sdk.py",
    ways: &[
        chat("openai", "`completion`, `openai/…`"),
        chat("openai_async", "`acompletion`, `openai/…`"),
        messages("anthropic", "`completion`, `anthropic/…`").raises(),
        messages("anthropic_async", "`acompletion`, `anthropic/…`").raises(),
        gemini("gemini", "`completion`, `gemini/…`", LITELLM),
        gemini("gemini_async", "`acompletion`, `gemini/…`", LITELLM),
    ],
    differs: &["id", "created"],
};

pub(super) const HTTPX_SSE: Sdk = Sdk {
    program: "httpx_sse_chat.py",
    ways: &[
        chat("chat", "`connect_sse`, a chat").raises().perhaps(),
        chat("chat_async", "`aconnect_sse`, a chat")
            .raises()
            .perhaps(),
    ],
    // Ours, where the backend sends none.
    differs: &["id"],
};

pub(super) const OPENAI_JAVASCRIPT: Sdk = Sdk {
    program: "openai_sdk.mjs",
    ways: &[
        chat("chat", "`chat.completions.create`"),
        chat("chat_helper", "`chat.completions.stream`"),
        completions("completions", "`completions.create`"),
        responses("responses", "`responses.create`"),
        responses("responses_helper", "`responses.stream`"),
    ],
    differs: &[],
};

pub(super) const ANTHROPIC_JAVASCRIPT: Sdk = Sdk {
    program: "anthropic_sdk.mjs",
    ways: &[
        messages("messages", "`messages.create`"),
        messages("helper", "`messages.stream`"),
    ],
    differs: &[],
};

pub(super) const GENAI_JAVASCRIPT: Sdk = Sdk {
    program: "google_genai.mjs",
    ways: &[gemini("generate", "`generateContentStream`", GENAI).perhaps()],
    differs: &["sdkHttpResponse"],
};

pub(super) const AI_SDK: Sdk = Sdk {
    program: "ai_sdk.mjs",
    ways: &[
        chat("openai_chat", "`streamText`, `openai.chat`")
            .one_choice()
            .perhaps(),
        responses("openai_responses", "`streamText`, `openai.responses`").perhaps(),
        chat("compatible", "`streamText`, `openai-compatible`")
            .one_choice()
            .perhaps(),
        messages("anthropic", "`streamText`, `anthropic`").perhaps(),
    ],
    // Ids are made up where the backend has none.
    differs: &[
        "url",
        "headers",
        "timestamp",
        "performance",
        "id",
        "toolCallId",
    ],
};

pub(super) const LANGCHAIN_JAVASCRIPT: Sdk = Sdk {
    program: "langchain_sdk.mjs",
    ways: &[
        chat("chat", "`ChatOpenAI.stream`").asks_anew(),
        responses("responses", "`stream`, Responses").asks_anew(),
    ],
    differs: &[],
};

pub(super) const EVENTSOURCE_PARSER: Sdk = Sdk {
    program: "eventsource_parser.mjs",
    ways: &[chat("chat", "`EventSourceParserStream`, a chat")
        .raises()
        .perhaps()],
    differs: &["id"],
};

//! What real engines told.

use super::*;
use crate::{BodyEnd, Dialect};

const VLLM_MODELS: &str = r#"{"object":"list","data":[{"id":"smollm2-135m","object":"model","created":1796000073,"owned_by":"vllm","root":"/models/smollm2-hf","parent":null,"max_model_len":2048,"permission":[]}]}"#;
const LLAMA_MODELS: &str = r#"{"models":[{"name":"smollm2-135m"}],"object":"list","data":[{"id":"smollm2-135m","aliases":["smollm2-135m"],"tags":[],"object":"model","created":1796052817,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":49152,"n_ctx":2048,"n_ctx_train":8192,"n_embd":576,"n_params":134515008,"size":96576768,"ftype":"Q4_1"}}]}"#;
const LLAMA_PROPS: &str = r#"{"default_generation_settings":{"params":{"seed":1},"n_ctx":2048},"total_slots":4,"model_path":"/models/s.gguf","media_marker":"<__media_Mm__>","chat_template":"{{ x }}","bos_token":"<|im_start|>","eos_token":"<|im_end|>","build_info":"b0-unknown","is_sleeping":false}"#;
const SGLANG_INFO: &str = r#"{"model_path":"qwen/qwen2.5-0.5b-instruct","tokenizer_path":"qwen/qwen2.5-0.5b-instruct","context_length":null,"revision":null,"dtype":"auto","api_key":"s3cret","random_seed":427414871,"weight_version":"default","chat_template":null,"version":"0.5.9"}"#;

fn listed(body: &str) -> Served {
    Served::list(body.as_bytes()).expect("a list").remove(0)
}

fn described(engine: Engine, body: &str) -> Description {
    engine.describe(body.as_bytes()).expect("a description")
}

#[test]
fn models_are_read_as_engines_list_them() {
    let vllm = listed(VLLM_MODELS);
    assert_eq!(vllm.name, "smollm2-135m");
    assert_eq!(vllm.root.as_deref(), Some("/models/smollm2-hf"));
    assert_eq!((vllm.context, vllm.weights.len()), (Some(2048), 0));
    let llama = listed(LLAMA_MODELS);
    assert_eq!((llama.root, llama.context), (None, Some(2048)));
    assert_eq!(llama.weights["n_params"], "134515008");
    assert_eq!(llama.weights["ftype"], "Q4_1");
    let owners = [vllm.owner, llama.owner].map(|owner| owner.expect("an owner"));
    let engines = owners.map(|owner| Engine::by_owner(&owner));
    assert_eq!(engines, [Some(Engine::Vllm), Some(Engine::LlamaCpp)]);
    assert_eq!(Engine::by_owner("openai"), None);
    for other in ["", "[]", "{}", r#"{"data":[{"name":"x"}]}"#] {
        assert_eq!(Served::list(other.as_bytes()), None, "{other}");
    }
}

#[test]
fn engines_are_read_on_their_own_pages() {
    let vllm = described(Engine::Vllm, r#"{"version":"0.32.0"}"#);
    assert_eq!(vllm.version.as_deref(), Some("0.32.0"));
    let llama = described(Engine::LlamaCpp, LLAMA_PROPS);
    assert_eq!(llama.version.as_deref(), Some("b0-unknown"));
    assert_eq!(llama.context, Some(2048));
    assert_eq!(llama.settings["chat_template"], "{{ x }}");
    // It is another one at each start.
    assert!(!llama.settings.contains_key("media_marker"));
    let sglang = described(Engine::Sglang, SGLANG_INFO);
    assert_eq!(sglang.weights["weight_version"], "default");
    assert!(!format!("{sglang:?}").contains("s3cret"));
    for engine in [Engine::Vllm, Engine::Sglang, Engine::LlamaCpp] {
        for other in ["", "[]", "{}", r#"{"status":"ok"}"#] {
            assert_eq!(engine.describe(other.as_bytes()), None, "{engine}: {other}");
        }
    }
    assert_eq!(Engine::Vllm.describe(LLAMA_PROPS.as_bytes()), None);
    assert_eq!(Engine::LlamaCpp.describe(SGLANG_INFO.as_bytes()), None);
}

#[track_caller]
fn check(question: impl Into<Option<Question>>, path: &str, body: &str) {
    let question = question.into().expect("it is asked");
    let asked: Value = serde_json::from_str(&question.body).expect("JSON");
    let expected: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!((question.path, asked), (path, expected));
}

#[test]
fn each_engine_is_asked_in_its_own_way() {
    let vllm = Engine::Vllm;
    check(
        vllm.ask_tokens("m", "a\"b"),
        "/tokenize",
        r#"{"model":"m","prompt":"a\"b","add_special_tokens":false}"#,
    );
    check(
        vllm.ask_prompt_tokens("m", "a"),
        "/tokenize",
        r#"{"model":"m","prompt":"a","add_special_tokens":true}"#,
    );
    check(
        Engine::LlamaCpp.ask_tokens("m", "a"),
        "/tokenize",
        r#"{"content":"a","add_special":false}"#,
    );
    check(
        vllm.ask_text("m", &[1]),
        "/detokenize",
        r#"{"model":"m","tokens":[1]}"#,
    );
    check(
        Engine::LlamaCpp.ask_text("m", &[1]),
        "/detokenize",
        r#"{"tokens":[1]}"#,
    );
    check(
        Engine::Sglang.ask_text("m", &[1]),
        "/detokenize",
        r#"{"model":"m","tokens":[1],"skip_special_tokens":false}"#,
    );
}

#[test]
fn of_a_hosted_service_nothing_is_asked_but_how_many_tokens_there_are() {
    let hosted = Engine::Anthropic;
    assert_eq!(hosted.ask_tokens("m", "a"), None);
    assert_eq!(hosted.ask_prompt_tokens("m", "a"), None);
    assert_eq!(hosted.ask_text("m", &[1]), None);
    let chat = r#"{"messages":[]}"#;
    assert_eq!(hosted.ask_rendered_text(chat), None);
    assert_eq!(hosted.ask_rendered_tokens(chat), None);
    assert!(hosted.description_paths().is_empty());
    assert_eq!(hosted.describe(b"{}"), None);
    assert_eq!(Engine::by_owner("anthropic"), None);
}

#[test]
fn answers_are_asked_for_in_each_dialect() {
    check(
        ask_message("m", &[("user", "q")], 9),
        "/v1/messages",
        r#"{"model":"m","messages":[{"role":"user","content":"q"}],"max_tokens":9,"temperature":0,"stream":true}"#,
    );
    check(
        ask_chat("m", &[("user", "q")], 9),
        "/v1/chat/completions",
        r#"{"model":"m","messages":[{"role":"user","content":"q"}],"max_tokens":9,"temperature":0,"stream":true}"#,
    );
    check(
        ask_completion("m", "p", 9),
        "/v1/completions",
        r#"{"model":"m","prompt":"p","max_tokens":9,"temperature":0,"stream":true}"#,
    );
}

#[test]
fn a_chat_is_rendered_by_what_decides_its_prompt() {
    let request = r#"{"model":"m","stream":true,"max_tokens":3,"messages":[{}],"continue_final_message":true,"add_generation_prompt":false}"#;
    let decides = r#"{"model":"m","messages":[{}],"continue_final_message":true,"add_generation_prompt":false}"#;
    let tokens = Engine::Vllm.ask_rendered_tokens(request);
    check(tokens.expect("it tells"), "/tokenize", decides);
    let text = Engine::LlamaCpp.ask_rendered_text(request);
    check(text.expect("it tells"), "/apply-template", decides);
    assert_eq!(Engine::Sglang.ask_rendered_tokens(request), None);
    assert_eq!(Engine::Sglang.ask_rendered_text(request), None);
    assert_eq!(Engine::Vllm.ask_rendered_tokens(r#"{"prompt":""}"#), None);
}

#[test]
fn answers_are_read_under_each_name() {
    let tokens = br#"{"count":2,"max_model_len":2048,"tokens":[40303,218],"token_strs":null}"#;
    assert_eq!(read_tokens(tokens), Some(vec![40303, 218]));
    assert_eq!(read_tokens(br#"{"tokens":["a"]}"#), None);
    for told in [
        r#"{"prompt":"I'm"}"#,
        r#"{"content":"I'm"}"#,
        r#"{"text":"I'm"}"#,
    ] {
        assert_eq!(read_text(told.as_bytes()).as_deref(), Some("I'm"), "{told}");
    }
    assert_eq!(read_text(b"{}"), None);
    let refusal = br#"{"error":{"message":"no such route","type":"x","code":404}}"#;
    assert_eq!(read_refusal(refusal).as_deref(), Some("no such route"));
    assert_eq!(read_refusal(b"\xff"), None);
}

const STREAM: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"prompt_token_ids\":[1,2]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"token_ids\":[3]}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" b\"},\"token_ids\":[4]}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\",\"token_ids\":[5]}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\n\
    data: [DONE]\n\n";

#[test]
fn a_reply_is_read_whole_and_in_parts() {
    let reply = Reply::read(Dialect::OpenAiChat, STREAM.as_bytes(), BodyEnd::Clean);
    let reply = reply.expect("whole");
    assert_eq!((reply.text(), reply.reason()), ("a b", Some("stop")));
    assert_eq!((reply.counted(), reply.is_text()), (Some(3), true));
    let parts = (0..=reply.chunks()).map(|chunks| reply.text_of(chunks));
    assert_eq!(
        parts.collect::<Vec<_>>(),
        ["", "", "a", "a b", "a b", "a b", "a b"]
    );
    assert_eq!(reply.trail(2).ids().expect("all").all, [1, 2, 3]);
    assert_eq!(reply.trail(reply.chunks()).told(), 3);
}

#[test]
fn completions_tell_the_prompt_once() {
    let chunk = |text: &str, reason: &str, prompt: &str, id: u32| {
        format!(
            "data: {{\"id\":\"cmpl-9e40\",\"object\":\"text_completion\",\"choices\":[{{\"index\":0,\"text\":{text:?},\
             \"logprobs\":null,\"finish_reason\":{reason},\"stop_reason\":null,\"prompt_token_ids\":{prompt},\
             \"token_ids\":[{id}]}}],\"usage\":{{\"prompt_tokens\":2,\"total_tokens\":3,\"completion_tokens\":{}}}}}\n\n",
            id - 7041
        )
    };
    let body = [
        chunk(" Paris", "null", "[504,3575]", 7042),
        chunk(".", "\"length\"", "null", 7043),
        "data: [DONE]\n\n".to_owned(),
    ];
    let body = body.concat();
    let reply = Reply::read(Dialect::OpenAiCompletions, body.as_bytes(), BodyEnd::Clean);
    let reply = reply.expect("whole");
    assert_eq!((reply.text(), reply.reason()), (" Paris.", Some("length")));
    let trail = reply.trail(reply.chunks());
    assert_eq!(trail.prompt(), Some(&[504, 3575][..]));
    assert_eq!((trail.told(), reply.counted()), (2, Some(2)));
}

#[test]
fn what_is_no_whole_answer_is_refused() {
    let cut = STREAM.split_once("\"a\"").expect("it is there").0;
    for (body, end) in [
        (cut, BodyEnd::Cut),
        ("", BodyEnd::Clean),
        (r#"{"choices":[]}"#, BodyEnd::Clean),
        ("data: {\"error\":{\"message\":\"m\"}}\n\n", BodyEnd::Clean),
    ] {
        let read = Reply::read(Dialect::OpenAiChat, body.as_bytes(), end);
        assert!(matches!(read, Err(BadReply::Failed(_))), "{body}");
    }
    let read = Reply::read(Dialect::OpenAiChat, b"data: \xff\n\n", BodyEnd::Clean);
    assert!(matches!(read, Err(BadReply::NoStream(_))));
}

#[test]
fn reasoning_is_not_text() {
    let body = STREAM.replace("\"content\":\"a\"", "\"reasoning_content\":\"a\"");
    let reply = Reply::read(Dialect::OpenAiChat, body.as_bytes(), BodyEnd::Clean);
    assert!(!reply.expect("whole").is_text());
}

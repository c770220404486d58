//! Reading MCP messages into a transcript: whether the call was answered, and how. A tool has neither text nor tokens.

use streamweld_sse::Event;

use super::Transcript;
use crate::mcp::answer_in;

pub(super) fn push(transcript: &mut Transcript, event: &Event<'_>) {
    transcript.began = true;
    let call = transcript.call.as_deref();
    let call = call.and_then(|call| serde_json::from_str(call).ok());
    if let Some(answer) = answer_in(&event.data(), call.as_ref()) {
        transcript.complete = true;
        transcript.reasons.insert(0, answer.as_str().to_owned());
    }
}

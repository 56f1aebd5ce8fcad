use longhaul_model::StopKind;
use serde_json::{Value, json};

use super::{MODEL, ScriptedAnswer, argument_text, deltas};

pub(super) fn frames(said: &ScriptedAnswer) -> Vec<Vec<u8>> {
    let mut chunks = vec![choice(&json!({"role": "assistant", "content": ""}), None)];
    for delta in said.thought.iter().flat_map(|thought| deltas(thought)) {
        chunks.push(choice(&json!({"reasoning_content": delta}), None));
    }
    for delta in said.text.iter().flat_map(|text| deltas(text)) {
        chunks.push(choice(&json!({"content": delta}), None));
    }
    for (index, (name, arguments)) in said.calls.iter().enumerate() {
        let id = format!("call_{}", index + 1);
        let function = json!({"name": name, "arguments": ""});
        let start = json!({"index": index, "id": id, "type": "function", "function": function});
        chunks.push(choice(&json!({"tool_calls": [start]}), None));
        for delta in deltas(&argument_text(arguments)) {
            let more = json!({"index": index, "function": {"arguments": delta}});
            chunks.push(choice(&json!({"tool_calls": [more]}), None));
        }
    }
    chunks.push(choice(&json!({}), Some(reason(said))));
    if let Some((input, cached, output)) = said.counts() {
        let total = input + output;
        let mut usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": total});
        if let Some(cached) = cached {
            usage["prompt_tokens_details"] = json!({"cached_tokens": cached});
        }
        chunks.push(chunk(&json!([]), &usage));
    }
    let mut frames: Vec<_> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n").into_bytes()).collect();
    frames.push(b"data: [DONE]\n\n".to_vec());
    frames
}

fn reason(said: &ScriptedAnswer) -> &'static str {
    match said.stop {
        StopKind::Finished if said.calls.is_empty() => "stop",
        StopKind::Finished => "tool_calls",
        StopKind::Length => "length",
        StopKind::Refused => "content_filter",
    }
}

fn choice(delta: &Value, finish_reason: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
    chunk(&json!([choice]), &Value::Null)
}

fn chunk(choices: &Value, usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": MODEL,
        "choices": choices, "usage": usage,
    })
}

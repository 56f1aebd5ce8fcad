use longhaul_model::StopKind;
use serde_json::{Value, json};

use super::{MODEL, ScriptedAnswer, deltas};

pub(super) fn frames(said: &ScriptedAnswer) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    for delta in said.thought.iter().flat_map(|thought| deltas(thought)) {
        parts.push(json!({"text": delta, "thought": true}));
    }
    for delta in said.text.iter().flat_map(|text| deltas(text)) {
        parts.push(json!({"text": delta}));
    }
    for (index, (name, arguments)) in said.calls.iter().enumerate() {
        let mut part = json!({"functionCall": {"name": name}});
        if !arguments.is_null() {
            part["functionCall"]["args"] = arguments.clone();
        }
        // Of calls made at once, only the first is signed.
        if said.thought.is_some() && index == 0 {
            part["thoughtSignature"] = json!("c2lnbmF0dXJl");
        }
        parts.push(part);
    }
    let mut frames: Vec<_> = parts
        .into_iter()
        .map(|part| frame(&json!({"content": {"parts": [part], "role": "model"}, "index": 0}), said))
        .collect();
    let end = json!({
        "content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason(said), "index": 0,
    });
    frames.push(frame(&end, said));
    frames
}

fn frame(candidate: &Value, said: &ScriptedAnswer) -> Vec<u8> {
    let mut body = json!({"candidates": [candidate], "modelVersion": MODEL, "responseId": "response-1"});
    if let Some((input, cached, output)) = said.counts() {
        let mut usage = json!({"promptTokenCount": input, "totalTokenCount": input});
        if candidate.get("finishReason").is_some() {
            usage["candidatesTokenCount"] = json!(output);
            usage["totalTokenCount"] = json!(input + output);
        }
        if let Some(cached) = cached {
            usage["cachedContentTokenCount"] = json!(cached);
        }
        body["usageMetadata"] = usage;
    }
    format!("data: {body}\r\n\r\n").into_bytes()
}

fn reason(said: &ScriptedAnswer) -> &'static str {
    match said.stop {
        StopKind::Finished => "STOP",
        StopKind::Length => "MAX_TOKENS",
        StopKind::Refused => "SAFETY",
    }
}

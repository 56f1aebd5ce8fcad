use longhaul_model::StopKind;
use serde_json::{Value, json};

use super::{MODEL, ScriptedAnswer, argument_text, deltas, named};

pub(super) fn frames(said: &ScriptedAnswer) -> Vec<Vec<u8>> {
    let mut message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [],
        "stop_reason": null, "stop_sequence": null,
    });
    let mut end = json!({
        "type": "message_delta", "delta": {"stop_reason": reason(said), "stop_sequence": null},
    });
    if let Some((input, cached, output)) = said.counts() {
        // What comes from the cache is not counted as input here.
        let plain = input.saturating_sub(cached.unwrap_or(0));
        message["usage"] = json!({"input_tokens": plain, "output_tokens": 1});
        if let Some(cached) = cached {
            message["usage"]["cache_creation_input_tokens"] = json!(0);
            message["usage"]["cache_read_input_tokens"] = json!(cached);
        }
        end["usage"] = json!({"output_tokens": output});
    }
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    for (index, block) in blocks(said).into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block.start}));
        for delta in block.deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.extend([end, json!({"type": "message_stop"})]);
    events.iter().map(named).collect()
}

struct Block {
    start: Value,
    deltas: Vec<Value>,
}

fn blocks(said: &ScriptedAnswer) -> Vec<Block> {
    let thought = said.thought.iter().map(|thought| {
        let thinking = |delta| json!({"type": "thinking_delta", "thinking": delta});
        let signature = json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl"});
        Block {
            start: json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas: deltas(thought).into_iter().map(thinking).chain([signature]).collect(),
        }
    });
    let text = said.text.iter().map(|text| Block {
        start: json!({"type": "text", "text": ""}),
        deltas: deltas(text).into_iter().map(|delta| json!({"type": "text_delta", "text": delta})).collect(),
    });
    let calls = said.calls.iter().enumerate().map(|(index, (name, arguments))| {
        let id = format!("toolu_{}", index + 1);
        let partial = |delta| json!({"type": "input_json_delta", "partial_json": delta});
        Block {
            start: json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            deltas: [String::new()]
                .into_iter()
                .chain(deltas(&argument_text(arguments)))
                .map(partial)
                .collect(),
        }
    });
    thought.chain(text).chain(calls).collect()
}

fn reason(said: &ScriptedAnswer) -> &'static str {
    match said.stop {
        StopKind::Finished if said.calls.is_empty() => "end_turn",
        StopKind::Finished => "tool_use",
        StopKind::Length => "max_tokens",
        StopKind::Refused => "refusal",
    }
}

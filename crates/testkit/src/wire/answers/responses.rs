use longhaul_model::StopKind;
use serde_json::{Value, json};

use super::{MODEL, ScriptedAnswer, argument_text, deltas, named};

pub(super) fn frames(said: &ScriptedAnswer) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let begun = response("in_progress", &[]);
    events.push(json!({"type": "response.created", "response": begun}));
    events.push(json!({"type": "response.in_progress", "response": begun}));
    let mut items = Vec::new();
    if let Some(thought) = &said.thought {
        items.push(reasoning(thought, items.len(), &mut events));
    }
    if let Some(text) = &said.text {
        items.push(message(text, items.len(), &mut events));
    }
    for (index, (name, arguments)) in said.calls.iter().enumerate() {
        let call = json!({
            "id": format!("fc_{}", index + 1), "type": "function_call", "status": "completed",
            "call_id": format!("call_{}", index + 1), "name": name, "arguments": argument_text(arguments),
        });
        items.push(function_call(call, items.len(), &mut events));
    }
    events.push(end(said, &items));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events.iter().map(named).collect()
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1_760_000_000, "status": status, "error": null,
        "incomplete_details": null, "model": MODEL, "output": output, "usage": null,
    })
}

fn end(said: &ScriptedAnswer, items: &[Value]) -> Value {
    let (kind, status, reason) = match said.stop {
        StopKind::Finished => ("response.completed", "completed", None),
        StopKind::Length => ("response.incomplete", "incomplete", Some("max_output_tokens")),
        StopKind::Refused => ("response.incomplete", "incomplete", Some("content_filter")),
    };
    let mut response = response(status, items);
    if let Some(reason) = reason {
        response["incomplete_details"] = json!({"reason": reason});
    }
    if let Some((input, cached, output)) = said.counts() {
        response["usage"] = json!({
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
            "output_tokens_details": {"reasoning_tokens": 0},
        });
        if let Some(cached) = cached {
            response["usage"]["input_tokens_details"] = json!({"cached_tokens": cached});
        }
    }
    json!({"type": kind, "response": response})
}

fn reasoning(thought: &str, index: usize, events: &mut Vec<Value>) -> Value {
    let about =
        |kind: &str| json!({"type": kind, "item_id": "rs_1", "output_index": index, "summary_index": 0});
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let mut item = json!({"id": "rs_1", "type": "reasoning", "summary": []});
    events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
    events.push(with(about("response.reasoning_summary_part.added"), "part", part("")));
    for delta in deltas(thought) {
        events.push(with(about("response.reasoning_summary_text.delta"), "delta", delta.into()));
    }
    events.push(with(about("response.reasoning_summary_text.done"), "text", thought.into()));
    events.push(with(about("response.reasoning_summary_part.done"), "part", part(thought)));
    item["summary"] = json!([part(thought)]);
    item["encrypted_content"] = json!("c2lnbmF0dXJl");
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    item
}

fn message(text: &str, index: usize, events: &mut Vec<Value>) -> Value {
    let about =
        |kind: &str| json!({"type": kind, "item_id": "msg_1", "output_index": index, "content_index": 0});
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let mut item = json!({
        "id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": [],
    });
    events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
    events.push(with(about("response.content_part.added"), "part", part("")));
    for delta in deltas(text) {
        events.push(with(about("response.output_text.delta"), "delta", delta.into()));
    }
    events.push(with(about("response.output_text.done"), "text", text.into()));
    events.push(with(about("response.content_part.done"), "part", part(text)));
    item["status"] = json!("completed");
    item["content"] = json!([part(text)]);
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    item
}

fn function_call(item: Value, index: usize, events: &mut Vec<Value>) -> Value {
    let about = |kind: &str| json!({"type": kind, "item_id": item["id"], "output_index": index});
    let mut added = item.clone();
    added["status"] = json!("in_progress");
    added["arguments"] = json!("");
    events.push(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
    for delta in deltas(item["arguments"].as_str().unwrap()) {
        events.push(with(about("response.function_call_arguments.delta"), "delta", delta.into()));
    }
    events.push(with(about("response.function_call_arguments.done"), "arguments", item["arguments"].clone()));
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    item
}

fn with(mut event: Value, key: &str, value: Value) -> Value {
    event[key] = value;
    event
}

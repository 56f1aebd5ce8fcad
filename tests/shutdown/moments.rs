//! What the program is busy with when it is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longhaul_model::Protocol;
use longhaul_protocol::Record;
use longhaul_testkit::wire::{End, ModelServer, ReceivedRequest, Reply, Script, ScriptedAnswer};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::eventually;
use crate::leftovers::records;

const CHAT: Protocol = Protocol::OpenaiChat;

/// What it is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// An answer is on its way.
    Answer,
    /// A command runs.
    Command,
    /// The context is made smaller.
    Compaction,
    /// The next try is waited for.
    RetryWait,
    /// Nothing.
    Idle,
}

/// A command that ends when the test says so.
const COMMAND: &str = "touch begun.txt; while [ ! -e go.txt ]; do sleep 0.02; done; echo the end";

/// A model that keeps the program busy until it is let go.
pub(crate) struct Busy {
    pub(crate) server: ModelServer,
    is_let_go: Arc<AtomicBool>,
    is_summarising: Arc<AtomicBool>,
}

impl Busy {
    pub(crate) fn at(moment: Moment) -> Self {
        let (is_let_go, is_summarising) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (let_go, summarising) = (is_let_go.clone(), is_summarising.clone());
        let server = ModelServer::start(Script::by(move |seen| {
            if seen.protocol() != Some(CHAT) {
                return Reply::error(404, "{}");
            }
            let is_let_go = let_go.load(Ordering::SeqCst);
            if wants_summary(seen) {
                summarising.store(true, Ordering::SeqCst);
                let summary = json!({"goal": "go", "next_action": "say so"});
                return match is_let_go {
                    true => said(&ScriptedAnswer::nothing().call("write_summary", summary)),
                    false => stalled(&ScriptedAnswer::text("…"), 0),
                };
            }
            match (moment, has_result(seen)) {
                (Moment::Answer, _) if !is_let_go => {
                    stalled(&ScriptedAnswer::text("Once upon a time there was."), 2)
                }
                (Moment::Command, false) => {
                    said(&ScriptedAnswer::nothing().call("exec", json!({"command": COMMAND})))
                }
                (Moment::Compaction, false) if !is_let_go => {
                    let words = "lorem-ip".repeat(1_950);
                    said(&ScriptedAnswer::text(&words).call("exec", json!({"command": "echo done"})))
                }
                (Moment::RetryWait, _) if !is_let_go => {
                    Reply::error(429, r#"{"error":{"message":"busy"}}"#).header("retry-after", "50")
                }
                _ => said(&ScriptedAnswer::text("Done.")),
            }
        }));
        Self { server, is_let_go, is_summarising }
    }

    /// From here on everything is answered.
    pub(crate) fn let_go(&self) {
        self.is_let_go.store(true, Ordering::SeqCst);
    }

    /// What the program has to be told to meet this model.
    pub(crate) fn config(&self) -> String {
        format!(
            "[model]\nname = 'custom/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\ncontext_window = 8000\n\
             [memory]\nextract_at_tokens = 0\n",
            self.server.url()
        )
    }

    /// Waits until the moment has come.
    pub(crate) fn wait_until(&self, moment: Moment, desk: &Desk) {
        let has_begun = || moment != Moment::Command || desk.path("work/begun.txt").exists();
        eventually("it is busy", || self.is_reached(moment, &records(desk)) && has_begun());
    }

    /// Whether it has come, by what is on record.
    fn is_reached(&self, moment: Moment, records: &[Record]) -> bool {
        let has = |kind: &str| records.iter().any(|record| record.kind == kind);
        match moment {
            // What has come of it is saved soon.
            Moment::Answer => has("checkpoint"),
            Moment::Command => has("tool_started"),
            Moment::Compaction => has("compact_start") && self.is_summarising.load(Ordering::SeqCst),
            Moment::RetryWait => has("attempt_ended"),
            Moment::Idle => has("turn_ended"),
        }
    }
}

fn said(said: &ScriptedAnswer) -> Reply {
    Reply::stream(said.bytes(CHAT))
}

/// An answer that stops after so many frames and never comes to its end.
fn stalled(said: &ScriptedAnswer, frames: usize) -> Reply {
    let frames: Vec<Vec<u8>> = said.frames(CHAT).into_iter().take(frames.max(1)).collect();
    Reply::frames(frames).ending(End::Stall)
}

fn wants_summary(seen: &ReceivedRequest) -> bool {
    let body = seen.json();
    let is_summary = |tool: &Value| tool["function"]["name"] == "write_summary";
    body["tools"].as_array().is_some_and(|tools| tools.iter().any(is_summary))
}

fn has_result(seen: &ReceivedRequest) -> bool {
    let body = seen.json();
    let is_result = |message: &Value| message["role"] == "tool";
    body["messages"].as_array().is_some_and(|messages| messages.iter().any(is_result))
}

//! An editor whose session can't be read for a while.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Runtime, RuntimeBuilder};
use longhaul_journal::Error;
use longhaul_model::ScriptedModel;
use longhaul_protocol::{SessionId, StreamName};
use longhaul_testkit::{FaultyJournal, RecordingModel, TestHome};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

struct Editor {
    output: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Editor {
    async fn send(&mut self, id: u64, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The next message that is wanted.
    async fn wait_for(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        loop {
            let next = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await;
            let Ok(line) = next else { panic!("it did not come; until then there were {seen:#?}") };
            let message: Value = serde_json::from_str(&line.unwrap().expect("the agent is there")).unwrap();
            if is_wanted(&message) {
                return message;
            }
            seen.push(message);
        }
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(id, method, params).await;
        self.wait_for(|message| message["id"] == id).await["result"].clone()
    }
}

async fn open(place: &TestHome, journal: Arc<FaultyJournal>) -> Runtime {
    let answers = json!(["Done."]);
    let model = RecordingModel::new(ScriptedModel::from_json(&answers.to_string()).unwrap());
    RuntimeBuilder::new(place.config()).model(model).journal(journal).open().await.unwrap()
}

/// E6: what the session recorded meanwhile is seen once it can be read again, and the prompt is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_answered_although_its_session_could_not_be_read_for_a_while() {
    let place = TestHome::new();
    let journal = FaultyJournal::new(place.journal().await, None);
    let runtime = open(&place, journal.clone()).await;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let opened = runtime.clone();
    let serving = async move {
        let open = Box::new(move |_| {
            let runtime = opened.clone();
            Box::pin(async move { Ok(runtime) })
                as std::pin::Pin<Box<dyn Future<Output = Result<Runtime, String>>>>
        });
        longhaul_acp::serve(BufReader::new(input), output, open).await
    };
    let (lines, output) = tokio::io::split(ours);
    let mut editor = Editor { output, lines: BufReader::new(lines).lines() };
    let editing = async {
        editor.call(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
        let session = editor.call(2, "session/new", json!({"cwd": place.work(), "mcpServers": []})).await;
        let session = session["sessionId"].clone();
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Go."}]});
        let stream = StreamName::session(SessionId::generate());
        journal.refuse_reads(Some(Error::Damaged { stream, seq: 1, reason: "a test".to_owned() }));
        editor.send(3, "session/prompt", prompt).await;
        let is_error =
            |message: &Value| message["params"]["update"]["_meta"]["longhaul"]["remark"] == "error";
        editor.wait_for(is_error).await;
        journal.refuse_reads(None);

        let ended = editor.wait_for(|message| message["id"] == 3).await;
        assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
        drop(editor);
    };
    tokio::join!(serving, editing);
    runtime.shutdown().await.unwrap();
}

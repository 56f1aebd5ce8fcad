//! E3: a turn is a task that survives the server. The table is in the docs of the module `mcp`.

use std::time::Duration;

use longhaul_testkit::{Crash, TestHome};
use serde_json::{Value, json};

use crate::killed::{Client, play_table};

/// Sends a message to the session `a`, as a task.
fn send(key: &str) -> Value {
    let arguments = json!({"session": "a", "text": "go", "key": key});
    let params = json!({"name": "session_send", "arguments": arguments, "task": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

async fn task_of(client: &mut Client, method: &str, id: &str) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"taskId": id}});
    client.post("/mcp", "-", &message).await.1
}

/// Runs a task over HTTP with a server that ends at `crash`. Returns whether it did.
async fn run_row(crash: Option<Crash>) -> bool {
    let mut client = Client::new(TestHome::in_memory(), crash);

    let (_, first) = client.post("/mcp", "-", &send("once")).await;
    let id =
        first["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{crash:?}: {first}")).to_owned();
    loop {
        let task = task_of(&mut client, "tasks/get", &id).await;
        match task["result"]["status"].as_str() {
            Some("working") => tokio::time::sleep(Duration::from_millis(10)).await,
            Some("completed") => break,
            _ => panic!("{crash:?}: {task}"),
        }
    }
    let result = task_of(&mut client, "tasks/result", &id).await;
    let (_, again) = client.post("/mcp", "-", &send("once")).await;

    assert_eq!(again["result"]["task"]["taskId"], id, "{crash:?}");
    assert_eq!(again["result"]["task"]["status"], "completed", "{crash:?}");
    assert_eq!(result["result"]["content"][0]["text"], "All of it is done now.", "{crash:?}");
    let whole = client.whole().await;
    let taken = whole.iter().filter(|event| event["type"] == "input_taken").count();
    assert_eq!((taken, client.home.file("log.txt").as_str()), (1, "once\n"), "{crash:?}");
    client.restarts > 0
}

/// E3: the kill table.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_its_one_result_after_a_kill_at_every_append() {
    play_table(run_row).await;
}

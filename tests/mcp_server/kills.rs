//! The server dies by `kill -9`, and the client asks the next one for its task. The table is in `longhaul_server`, module `mcp`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{McpClient, eventually, send};
use crate::desk::Desk;
use crate::resuming_processes::resuming_processes;

/// A turn with a command that waits for the file `go`.
fn waiting_desk() -> Desk {
    Desk::new(&json!([
        {"calls": [
            {"name": "exec", "arguments": {"command": "echo ran >> ran.txt; while [ ! -e go ]; do sleep 0.01; done"}},
        ]},
        "Done after all.",
    ]))
}

fn runs(desk: &Desk) -> usize {
    std::fs::read_to_string(desk.path("work/ran.txt")).map_or(0, |text| text.lines().count())
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// A client whose turn runs its command, and the id of its task.
fn client_in_a_turn(desk: &Desk) -> (McpClient, String) {
    let mut client = McpClient::start(desk);
    let created = client.modern("tools/call", send("a", "Go.", "k")).unwrap();
    assert_eq!(created["resultType"], "task", "{created}");
    eventually("the command runs", || runs(desk) == 1);
    (client, created["taskId"].as_str().unwrap().to_owned())
}

/// E3: a turn is a task that survives us.
#[test]
fn a_client_gets_the_one_result_of_its_task_from_the_next_server() {
    let desk = waiting_desk();
    let (client, task) = client_in_a_turn(&desk);

    client.kill();
    let mut client = McpClient::start(&desk);
    let working = client.poll(&task, |_| true);
    std::fs::write(desk.path("work/go"), "").unwrap();
    let ended = client.poll(&task, |task| task["status"] != "working");
    let again = client.modern("tools/call", send("a", "Go.", "k")).unwrap();

    assert_eq!(working["status"], "working");
    assert_eq!((&ended["status"], text(&ended["result"])), (&json!("completed"), "Done after all."));
    assert_eq!((again["taskId"].as_str(), runs(&desk)), (Some(task.as_str()), 1));
    client.kill();
    let mut client = McpClient::start(&desk);
    assert_eq!(client.poll(&task, |_| true), ended, "the outcome stays the same");
    assert_eq!(desk.records("a", "turn_ended").len(), 1);
}

/// E3: a new server goes on with open turns, also if no client asks for them.
#[test]
fn a_new_server_goes_on_with_open_turns() {
    let desk = waiting_desk();
    let (client, _) = client_in_a_turn(&desk);
    client.kill();
    std::fs::write(desk.path("work/go"), "").unwrap();

    let _idle = McpClient::start(&desk);

    eventually("the turn ends", || desk.records("a", "turn_ended").len() == 1);
    assert_eq!(runs(&desk), 1);
}

/// E3: the revision before has tasks of its own form.
#[test]
fn a_task_of_the_older_revision_survives_too() {
    let desk = waiting_desk();
    let mut client = McpClient::start(&desk);
    let mut params = send("a", "Go.", "k");
    params["task"] = json!({"ttl": 60_000});
    let created = client.call("tools/call", params).unwrap();
    let task = created["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    eventually("the command runs", || runs(&desk) == 1);

    client.kill();
    let mut client = McpClient::start(&desk);
    let waiting = client.request("tasks/result", json!({"taskId": task}));
    std::fs::write(desk.path("work/go"), "").unwrap();
    let result = client.result(waiting).unwrap();
    let found = client.call("tasks/get", json!({"taskId": task})).unwrap();
    let cancelled = client.call("tasks/cancel", json!({"taskId": task}));

    assert_eq!(text(&result), "Done after all.");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
    assert_eq!((&found["status"], found.get("ttl")), (&json!("completed"), Some(&Value::Null)));
    assert_eq!(cancelled.unwrap_err()["code"], -32_602);
    assert_eq!(runs(&desk), 1);
}

/// E3: a question is there again after a kill, and its answer counts once.
#[test]
fn a_question_is_asked_again_after_a_kill() {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}}]},
        "It ran.",
    ]));
    desk.configure("[[approval.rule]]\ntool = \"exec\"\naction = \"ask\"\n");
    let mut client = McpClient::start(&desk);
    let task =
        client.modern("tools/call", send("a", "Go.", "k")).unwrap()["taskId"].as_str().unwrap().to_owned();
    let first = client.poll(&task, |task| task["status"] == "input_required");

    client.kill();
    let mut client = McpClient::start(&desk);
    let again = client.poll(&task, |task| task["status"] == "input_required");
    let question = again["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let responses = json!({question: {"action": "accept", "content": {"answer": "yes"}}});
    let update = json!({"taskId": task, "inputResponses": responses});
    client.modern("tasks/update", update.clone()).unwrap();
    client.kill();
    let mut client = McpClient::start(&desk);
    client.modern("tasks/update", update).unwrap();
    let ended = client.poll(&task, |task| task["status"] == "completed");

    assert_eq!(first["inputRequests"], again["inputRequests"]);
    assert_eq!((text(&ended["result"]), runs(&desk)), ("It ran.", 1));
}

/// E3: whenever the server dies, the same key runs one turn.
#[test]
fn the_same_key_runs_one_turn_whenever_the_server_dies() {
    let desk = Desk::new(&json!(["Once."]));
    for (number, moment_ms) in [0, 5, 20, 60, 120, 250].into_iter().enumerate() {
        let session = format!("session-{number}");
        let mut client = McpClient::start(&desk);
        client.call("ping", json!({})).unwrap();
        client.request("tools/call", send(&session, "Go.", "k"));
        std::thread::sleep(Duration::from_millis(moment_ms));
        client.kill();

        let mut client = McpClient::start(&desk);
        let result = client.call("tools/call", send(&session, "Go.", "k")).unwrap();

        assert_eq!(text(&result), "Once.", "killed after {moment_ms} ms");
        let outcomes = desk.records(&session, "turn_ended");
        assert_eq!(outcomes.len(), 1, "killed after {moment_ms} ms: {outcomes:?}");
        client.kill();
    }
}

/// E3: the client ends, and the turn goes on to its end without it.
#[test]
fn a_turn_goes_on_after_the_end_of_the_input() {
    let desk = waiting_desk();
    let (client, _) = client_in_a_turn(&desk);

    assert!(client.close().success());
    std::fs::write(desk.path("work/go"), "").unwrap();

    eventually("the turn ends", || desk.records("a", "turn_ended").len() == 1);
    assert_eq!((runs(&desk), &desk.records("a", "turn_ended")[0]["outcome"]), (1, &json!("completed")));
}

/// E3: a client that kills its server right after closing its input does not stop the turn that it waited for.
#[test]
fn a_server_that_is_killed_at_the_end_of_its_input_has_handed_the_turn_over() {
    let desk = waiting_desk();
    let mut client = McpClient::start(&desk);
    client.request("tools/call", send("a", "Go.", "k"));
    eventually("the command runs", || runs(&desk) == 1);

    client.close_input();
    eventually("another process waits for the turn", || !resuming_processes(&desk.path("home")).is_empty());
    client.kill();
    std::fs::write(desk.path("work/go"), "").unwrap();

    eventually("the turn ends", || desk.records("a", "turn_ended").len() == 1);
    assert_eq!((runs(&desk), &desk.records("a", "turn_ended")[0]["outcome"]), (1, &json!("completed")));
    eventually("the process that finished it ends", || resuming_processes(&desk.path("home")).is_empty());
}

/// E3: a client that gives a request up ends its waiting, and no turn.
#[test]
fn a_request_that_is_given_up_does_not_end_the_turn() {
    let desk = waiting_desk();
    let mut client = McpClient::start(&desk);
    let id = client.request("tools/call", send("a", "Go.", "k"));
    eventually("the command runs", || runs(&desk) == 1);

    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "too slow"}));
    let second = client.request("tools/call", send("a", "Go.", "k"));
    std::fs::write(desk.path("work/go"), "").unwrap();
    let result = client.result(second).unwrap();

    assert_eq!((text(&result), runs(&desk)), ("Done after all.", 1));
    assert!(client.seen.iter().all(|message| message["id"] != id), "{:?}", client.seen);
}

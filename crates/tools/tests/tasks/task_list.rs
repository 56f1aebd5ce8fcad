//! `task_list`, and which tasks there are for a session.

use longhaul_protocol::{CallId, SessionId, TaskId};
use longhaul_tools::{OutputLimit, ToolInvocation};
use serde_json::{Value, json};

use crate::workplace::{SECRET, Workplace, fields, text};

/// K1
#[tokio::test]
async fn the_list_says_of_each_task_how_it_is() {
    let place = Workplace::new();
    let none = place.make("task_list", json!({})).await;
    let failed = place.finish("echo oops; exit 3").await;
    let runs = place.start(&format!("echo {SECRET}; sleep 600")).await;
    place.until_printed(runs, 20).await;

    let listed = place.make("task_list", json!({})).await;

    assert_eq!(none.content, r#"{"tasks":[]}"#);
    let fields = fields(&listed);
    let rows = fields["tasks"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (text(&rows[0], "task_id"), text(&rows[0], "status")),
        (failed.to_string().as_str(), "failed")
    );
    assert_eq!((&rows[0]["exit_code"], &rows[0]["printed"]), (&json!(3), &json!(5)));
    assert!(rows[0]["duration_ms"].is_u64() && rows[0]["started_at"].is_string());
    assert_eq!((text(&rows[1], "task_id"), text(&rows[1], "status")), (runs.to_string().as_str(), "running"));
    assert_eq!(text(&rows[1], "command"), "echo [redacted]; sleep 600");
    assert_eq!(rows[1].get("duration_ms"), None, "what differs each time would hide that nothing changes");
}

/// C8
#[tokio::test]
async fn a_list_that_is_too_long_leaves_out_the_oldest() {
    let mut place = Workplace::new();
    place.output_limit = OutputLimit { lines: 100, bytes: 900 };
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(place.finish("true").await);
    }

    let listed = place.make("task_list", json!({})).await;

    assert!(listed.content.len() <= 900, "{}", listed.content);
    let fields = fields(&listed);
    assert_eq!(text(fields["tasks"].as_array().unwrap().last().unwrap(), "task_id"), ids[5].to_string());
    assert!(text(&fields, "message").contains("older tasks are not shown"), "{fields}");
}

/// K15: a session can't see another's task, nor whether there is one.
#[tokio::test]
async fn a_task_of_another_session_is_none() {
    let (place, other) = (Workplace::new(), Workplace::new());
    let own = place.start("sleep 600").await;
    let theirs = other.start("sleep 600").await;
    let never = TaskId::from(CallId::generate());

    for tool in ["task_output", "task_wait", "task_kill"] {
        for id in [theirs, never] {
            let refused = place.make(tool, json!({"task_id": id})).await;
            assert!(refused.is_error);
            assert_eq!(refused.content, format!("there is no task {id}; there are {own}"));
        }
        for odd in ["", "task_1", &own.to_string().to_uppercase(), "../../etc/passwd"] {
            let refused: Value = json!({"task_id": odd});
            let refused = place.make(tool, refused).await;
            assert!(
                refused.is_error && refused.content.contains("task_ and 26 lower-case characters"),
                "{refused:?}"
            );
        }
    }
    assert!(other.tasks.status(theirs).unwrap().is_none(), "it was not killed");
}

#[tokio::test]
async fn where_there_is_no_task_that_is_said() {
    let place = Workplace::new();
    let id = TaskId::from(CallId::generate());

    let refused = place.make("task_output", json!({"task_id": id})).await;

    assert_eq!(refused.content, format!("there is no task {id}; this session has none"));
}

/// K8, K15: what a command left running when it ended is listed with it, for its own session, and ended with it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_left_running_is_listed_and_killed() {
    let place = Workplace::new();
    place.make("exec", json!({"command": "sleep 600 > /dev/null 2>&1 & echo started"})).await;

    let listed = place.make("task_list", json!({})).await.content;
    let list: Value = serde_json::from_str(&listed).unwrap();
    let id = list["tasks"][0]["task_id"].as_str().unwrap();
    let foreign = ToolInvocation { session: SessionId::generate(), ..place.call(&json!({"task_id": id})) };
    let refused = place.make_call("task_kill", &foreign).await;
    let killed = place.make("task_kill", json!({"task_id": id})).await;
    let after = place.make("task_list", json!({})).await.content;

    assert_eq!(list["tasks"][0]["status"], "completed", "{listed}");
    assert_eq!(list["tasks"][0]["message"], "left 1 process running", "{listed}");
    assert!(refused.is_error, "{}", refused.content);
    assert!(!killed.is_error && killed.content.contains("is over now"), "{}", killed.content);
    assert_eq!(after, "{\"tasks\":[]}");
}

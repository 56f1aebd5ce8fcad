//! `task_output` without a `task_id`, and which tasks there are for a session.

use longhaul_protocol::{CallId, SessionId, TaskId};
use longhaul_tools::{OutputLimit, ToolInvocation};
use serde_json::{Value, json};

use crate::workplace::{SECRET, Workplace, fields, text};

/// K1
#[tokio::test]
async fn the_list_says_of_each_task_how_it_is() {
    let place = Workplace::new();
    let none = place.make("task_output", json!({})).await;
    let failed = place.finish("echo oops; exit 3").await;
    let runs = place.start(&format!("echo {SECRET}; sleep 600")).await;
    place.until_printed(runs, 20).await;

    let listed = place.make("task_output", json!({})).await;

    assert_eq!(none.content, "message: this session has no tasks\n\n");
    let fields = fields(&listed);
    assert_eq!(text(&fields, "message"), "2 tasks, the oldest first");
    let lines: Vec<&str> = text(&fields, "output").lines().collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[0].starts_with(&format!("{failed}: failed, exit_code 3, duration_ms ")), "{}", lines[0]);
    assert!(lines[0].contains(", started 20") && lines[0].ends_with(", 5 bytes printed"), "{}", lines[0]);
    assert_eq!(lines[1], "  $ echo oops; exit 3");
    assert!(lines[2].starts_with(&format!("{runs}: running, started ")), "{}", lines[2]);
    assert!(!lines[2].contains("duration_ms"), "what differs each time would hide that nothing changes");
    assert_eq!(lines[3], "  $ echo [redacted]; sleep 600");
}

/// C8
#[tokio::test]
async fn a_list_that_is_too_long_leaves_out_the_oldest() {
    let mut place = Workplace::new();
    place.output_limit = OutputLimit { lines: 100, bytes: 500 };
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(place.finish("true").await);
    }

    let listed = place.make("task_output", json!({})).await;

    assert!(listed.content.len() <= 500, "{}", listed.content);
    let fields = fields(&listed);
    let last = text(&fields, "output").lines().rfind(|line| line.starts_with("task_")).unwrap();
    assert!(last.starts_with(&ids[5].to_string()), "{fields}");
    assert!(text(&fields, "message").contains("older tasks are not shown"), "{fields}");
}

/// K15: a session can't see another's task, nor whether there is one.
#[tokio::test]
async fn a_task_of_another_session_is_none() {
    let (place, other) = (Workplace::new(), Workplace::new());
    let own = place.start("sleep 600").await;
    let theirs = other.start("sleep 600").await;
    let never = TaskId::from(CallId::generate());

    for tool in ["task_output", "task_kill"] {
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

    let listed = place.make("task_output", json!({})).await.content;
    let id =
        listed.lines().find_map(|line| line.starts_with("task_").then(|| line.split(':').next())).flatten();
    let id = id.unwrap();
    let foreign = ToolInvocation { session: SessionId::generate(), ..place.call(&json!({"task_id": id})) };
    let refused = place.make_call("task_kill", &foreign).await;
    let killed = place.make("task_kill", json!({"task_id": id})).await;
    let after = place.make("task_output", json!({})).await.content;

    assert!(
        listed.contains(": completed, exit_code 0") && listed.contains("\n  left 1 process running\n"),
        "{listed}"
    );
    assert!(refused.is_error, "{}", refused.content);
    assert!(!killed.is_error && killed.content.contains("is over now"), "{}", killed.content);
    assert_eq!(after, "message: this session has no tasks\n\n");
}

/// N2: a command that another node has is not lost, and the model isn't told that it has ended.
#[tokio::test]
async fn a_task_of_another_node_runs_and_is_left_to_that_node() {
    let (here, there) = (Workplace::new(), Workplace::new());
    let id = there.start("sleep 600").await;
    here.know_of_another_node(there.started(id), "ash");

    let listed = here.make("task_output", json!({})).await;
    let read = here.make("task_output", json!({"task_id": id})).await;
    let searched = here.make("task_output", json!({"task_id": id, "grep": "x"})).await;
    let waited = here.make("task_output", json!({"task_id": id, "wait": 600})).await;
    let killed = here.make("task_kill", json!({"task_id": id})).await;

    assert!(listed.content.contains(&format!("{id}: running")), "{}", listed.content);
    for answer in [&listed, &read, &searched, &waited, &killed] {
        assert!(answer.content.contains("node ash has it"), "{}", answer.content);
    }
    for answer in [&read, &searched, &waited] {
        assert_eq!(answer.news.map(|news| news.ended), Some(false), "{}", answer.content);
        assert!(answer.content.contains("status: running"), "{}", answer.content);
    }
    assert!(killed.is_error && killed.content.contains("was not ended"), "{}", killed.content);
    assert!(there.tasks.is_kept(id).unwrap(), "it goes on");
}

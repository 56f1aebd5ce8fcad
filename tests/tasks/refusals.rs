//! Calls that can't be carried out, through the whole program: each is told which, and what is allowed; the turn goes on, and
//! nothing runs.

use longhaul_testkit::wire::ScriptedAnswer;
use serde_json::{Value, json};

use crate::desk::WAITS;
use crate::model::{Stage, told};

/// Each call in an answer of its own, and the results, as they are on record and as the model gets to see them.
fn refused(stage: &Stage, prompt: &str, calls: &[(&str, Value, Vec<&str>)]) {
    let (code, out, errors) = stage.desk.run(&["run", "-s", "a", prompt]);

    assert_eq!((code, out.as_str()), (0, "Then not.\n"), "{errors}");
    let finished = stage.desk.records("a", "tool_finished");
    assert_eq!(finished.len(), calls.len());
    let last = told(stage.requests().last().unwrap());
    for ((name, arguments, words), result) in calls.iter().zip(&finished) {
        let content = result["content"].as_str().unwrap();
        assert_eq!(result["is_error"], json!(true), "{name} {arguments}: {content}");
        for word in words {
            assert!(content.contains(word), "{name} {arguments}: {word:?} is not in {content}");
        }
        assert!(last.iter().any(|text| text == content), "{name} {arguments}: {content} was not sent");
    }
    assert!(errors.contains("✗") || errors.contains("failed"), "people see it, too: {errors}");
    stage.desk.sound_records("a");
}

fn answers(calls: &[(&str, Value, Vec<&str>)]) -> Vec<ScriptedAnswer> {
    let calls =
        calls.iter().map(|(name, arguments, _)| ScriptedAnswer::nothing().call(name, arguments.clone()));
    calls.chain([ScriptedAnswer::text("Then not.")]).collect()
}

/// K1, K2, K3, P1
#[test]
fn a_command_that_can_not_be_run_says_which_and_what_is_allowed() {
    let calls = [
        ("exec", json!({"description": "nothing"}), vec!["`command`", "missing"]),
        ("exec", json!({"command": ["ls", "-l"]}), vec!["`command`", "must be a text"]),
        ("exec", json!({"command": "touch ran.txt", "work_dir": "nowhere"}), vec!["work_dir", "nowhere"]),
        (
            "exec",
            json!({"command": "touch ran.txt", "work_dir": ".."}),
            vec!["work_dir", "outside of what is allowed"],
        ),
        ("exec", json!({"command": "touch ran.txt", "work_dir": "/etc"}), vec!["work_dir", "/etc"]),
        ("exec", json!({"command": "touch ran.txt", "timeout": 0}), vec!["`timeout`", "at least 1"]),
        ("exec", json!({"command": "touch ran.txt", "timeout": "soon"}), vec!["timeout", "soon"]),
        ("exec", json!({"command": "touch ran.txt", "max_runtime": 0}), vec!["`max_runtime`", "at least 1"]),
        (
            "exec",
            json!({"command": "touch ran.txt", "in_background": true}),
            vec!["in_background", "run_in_background"],
        ),
    ];
    let stage = Stage::saying(answers(&calls));

    refused(&stage, "run it", &calls);

    assert_eq!(stage.desk.tasks().all().unwrap(), [], "nothing was started");
    assert!(!stage.desk.path("work/ran.txt").exists());
}

/// K15: another session's task is no more there than one that nobody ever had.
#[test]
fn a_task_that_is_not_this_sessions_says_which_there_are() {
    let owner = Stage::saying(vec![]);
    let others = owner.desk.task("b", WAITS).to_string();
    let none = || vec!["no task", "this session has none"];
    let calls = [
        ("task_output", json!({"task_id": others}), none()),
        ("task_output", json!({"task_id": others, "wait": 1}), none()),
        ("task_kill", json!({"task_id": others}), none()),
        ("task_kill", json!({"task_id": "the build"}), vec!["the build", "this session has none"]),
        ("task_kill", json!({}), vec!["`task_id`", "missing"]),
    ];
    let stage = owner.then_saying(answers(&calls));

    refused(&stage, "look at it", &calls);

    let listed = stage.desk.json(&["tasks", "--json"]);
    assert_eq!((&listed[0]["task_id"], &listed[0]["status"]), (&json!(others), &json!("running")));
}

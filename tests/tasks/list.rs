//! `longhaul tasks`, with no runtime alive.

use std::net::TcpListener;

use longhaul_journal::Blob;
use longhaul_protocol::{BlobRef, SessionRecord, TaskEnded, TaskId, TaskStatus};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::desk::{Desk, Running, WAITS, eventually, told};
use crate::processes::carries_mark;

fn short(id: TaskId) -> String {
    let id = id.to_string();
    id[id.len() - 6..].to_owned()
}

/// Waits until a task is over, as its keeper has it.
fn is_over(desk: &Desk, id: TaskId) {
    let tasks = desk.tasks();
    eventually("the task is over", || matches!(tasks.status(id), Ok(Some(_))));
}

/// K15
#[test]
fn tasks_are_listed_as_their_keepers_have_them() {
    let desk = Desk::new(&json!([]));
    desk.record("quiet", vec![], vec![]);
    let (runs, failed) = (desk.task("a", WAITS), desk.task("b", "echo no; exit 3"));
    is_over(&desk, failed);

    let all = desk.json(&["tasks", "--json"]);
    let of_one = desk.json(&["tasks", "list", "-s", "a", "--json"]);
    let (_, table, _) = desk.run(&["tasks"]);

    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["task_id"], json!(runs));
    assert_eq!((&all[0]["status"], &all[0]["session"]), (&json!("running"), &json!("a")));
    assert_eq!((&all[1]["status"], &all[1]["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!((&all[1]["printed"], &all[1]["command"]), (&json!(3), &json!("echo no; exit 3")));
    assert!(all[1]["ended_at"].is_string() && all[1]["duration_ms"].is_number(), "{}", all[1]);
    assert_eq!(of_one.as_array().unwrap().len(), 1);
    assert!(table.contains(&short(runs)) && table.contains("a task of b"), "{table}");
}

#[test]
fn where_there_is_nothing_it_is_said() {
    let desk = Desk::new(&json!([]));

    assert_eq!(desk.run(&["tasks"]).1, "No tasks.\n");
    assert_eq!(desk.json(&["tasks", "--json"]), json!([]));
    assert_eq!(desk.run(&["tasks", "-s", "nobody"]).0, 2);
    let (code, _, errors) = desk.run(&["tasks", "kill", "abc"]);
    assert_eq!((code, errors.contains("no task \"abc\"")), (2, true), "{errors}");
}

/// K15: a part of the id is enough, and another session's task is none of this one's.
#[test]
fn a_task_is_named_by_a_part_of_its_id_and_within_its_session() {
    let desk = Desk::new(&json!([]));
    let (one, other) = (desk.task("a", "echo one"), desk.task("b", "echo other"));
    is_over(&desk, one);
    is_over(&desk, other);

    let by_end = desk.run(&["tasks", "output", &short(one)]);
    let by_id = desk.run(&["tasks", "output", &other.to_string(), "-s", "b"]);
    let foreign = desk.run(&["tasks", "output", &short(one), "-s", "b"]);
    let unknown = desk.run(&["tasks", "output", "zzzz"]);
    let ambiguous = desk.run(&["tasks", "output", &one.to_string()[..10]]);

    assert_eq!((by_end.0, by_end.1.as_str()), (0, "one\n"));
    assert_eq!((by_id.0, by_id.1.as_str()), (0, "other\n"));
    assert_eq!((foreign.0, foreign.2.contains("belongs to a, not b")), (2, true), "{}", foreign.2);
    assert_eq!((unknown.0, unknown.2.contains(&short(one))), (2, true), "{}", unknown.2);
    assert_eq!((ambiguous.0, ambiguous.2.contains("matches several")), (2, true), "{}", ambiguous.2);
}

/// K15
#[test]
fn tasks_are_ended_with_nobody_running_their_sessions() {
    let desk = Desk::new(&json!([]));
    let (one, other) = (desk.task("a", WAITS), desk.task("b", WAITS));

    let wrong = desk.run(&["tasks", "kill", &short(one), "zzzz"]);
    let still = desk.json(&["tasks", "--json"]);
    let (code, out, errors) = desk.run(&["tasks", "kill", &short(one), &short(other)]);
    let again = desk.run(&["tasks", "kill", &short(one)]);
    let listed = desk.json(&["tasks", "--json"]);

    assert_eq!((wrong.0, &still[0]["status"]), (2, &json!("running")), "a wrong name ends nothing");
    assert_eq!((code, out.matches("was killed").count()), (0, 2), "{out}{errors}");
    assert!(again.1.contains("(it had already ended): "), "{}", again.1);
    assert_eq!([&listed[0]["status"], &listed[1]["status"]], [&json!("killed"), &json!("killed")]);
}

/// J8: what was printed passes through the redactor, wherever the part begins and ends that is shown.
#[test]
fn output_is_shown_in_parts_and_without_secrets() {
    let desk = Desk::new(&json!([]));
    desk.configure("[secrets]\npatterns = [\"sk-[a-z0-9]{8}\"]\n");
    let id = short(desk.task("a", "printf 'key sk-abcd1234 end\\n'"));
    eventually("it is over", || desk.json(&["tasks", "--json"])[0]["status"] == "completed");
    let part = |offset: &str, limit: &str| {
        desk.run(&["tasks", "output", &id, "--offset", offset, "--limit", limit]).1
    };

    assert_eq!(desk.run(&["tasks", "output", &id]).1, "key [redacted] end\n");
    assert_eq!(part("0", "3"), "key");
    assert_eq!(part("0", "8"), "key [redacted]");
    assert_eq!(part("8", "100"), "[redacted] end\n");
    assert_eq!(part("16", "3"), "end");
}

/// K12: what is dropped is said, and not on standard output.
#[test]
fn what_was_not_kept_is_told_beside_the_output() {
    let desk = Desk::new(&json!([]));
    let id = desk.task("a", "head -c 3000000 /dev/zero | tr '\\0' x");
    is_over(&desk, id);

    let (code, out, errors) = desk.run(&["tasks", "output", &short(id)]);

    assert_eq!(code, 0, "{errors}");
    assert!(out.len() < 1_100_000 && out.bytes().all(|byte| byte == b'x'), "{}", out.len());
    assert!(errors.contains("bytes dropped here"), "{errors}");
}

/// K16: the record has the output when the files are gone.
#[test]
fn what_the_record_keeps_is_shown_when_the_files_are_gone() {
    let desk = Desk::new(&json!([]));
    let id = desk.task("a", "echo gone");
    is_over(&desk, id);
    std::fs::remove_dir_all(desk.path("home/tasks").join(id.to_string())).unwrap();
    let output = b"kept\n".to_vec();
    let ended = TaskEnded {
        unasked: false,
        session: None,
        task_id: id,
        status: TaskStatus::Completed,
        exit_code: Some(0),
        duration_ms: 1,
        output: Some(BlobRef::to(&output, "text/plain")),
        tail: "kept\n".to_owned(),
        message: None,
    };
    desk.record("a", vec![SessionRecord::TaskEnded(ended)], vec![Blob::new(output)]);

    let (code, out, errors) = desk.run(&["tasks", "output", &short(id), "-s", "a"]);
    let followed = desk.run(&["tasks", "follow", &short(id), "-s", "a"]);

    assert_eq!((code, out.as_str()), (0, "kept\n"), "{errors}");
    assert!(errors.contains("the output files of task"), "{errors}");
    assert_eq!((followed.0, followed.1.as_str()), (0, "kept\n"), "{}", followed.2);
}

/// K15
#[test]
fn a_task_is_followed_to_its_end_which_gives_the_exit_code() {
    let desk = Desk::new(&json!([]));
    let (good, bad) = (desk.task("a", WAITS), desk.task("a", "echo no; exit 3"));

    let mut following = Running::start(desk.command(&["tasks", "follow", &short(good)]));
    let first = following.line();
    desk.let_go();
    let (code, rest, errors) = following.end();
    let failed = desk.run(&["tasks", "follow", &short(bad)]);

    assert_eq!((first.as_str(), rest.as_str(), code), ("begun", "the end\n", 0), "{errors}");
    assert!(errors.contains("completed"), "{errors}");
    assert_eq!((failed.0, failed.1.as_str()), (1, "no\n"), "{}", failed.2);
    assert!(failed.2.contains("failed, exit code 3"), "{}", failed.2);
}

/// The keeper says when there is more: this waits for lines while the task goes on.
#[test]
fn what_a_task_prints_is_shown_while_it_runs() {
    let desk = Desk::new(&json!([]));
    let waits = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.02; done");
    let id = desk.task("a", &format!("echo one; {}; echo two; {}", waits("go.txt"), waits("end.txt")));
    let mut following = Running::start(desk.command(&["tasks", "follow", &short(id)]));

    assert_eq!(following.line(), "one");
    desk.let_go();
    assert_eq!(following.line(), "two");
    std::fs::write(desk.path("work/end.txt"), "").unwrap();

    assert_eq!(following.end().0, 0);
}

#[test]
fn an_interrupt_only_stops_following() {
    let desk = Desk::new(&json!([]));
    let id = desk.task("a", WAITS);
    let mut following = Running::start(desk.command(&["tasks", "follow", &short(id)]));
    following.line();

    following.signal(Signal::INT);

    assert_eq!(following.end().0, 130);
    assert_eq!(desk.json(&["tasks", "--json"])[0]["status"], json!("running"));
}

/// S8
#[test]
fn the_doctor_says_what_there_is_and_what_to_do() {
    let desk = Desk::new(&json!([]));
    desk.task("a", WAITS);

    let (code, out, _) = desk.run(&["doctor"]);
    let findings = desk.json(&["doctor", "--json"]);
    desk.configure("[model]\nnmae = \"x\"\n");
    let wrong = desk.run(&["doctor"]);

    assert_eq!(code, 0, "{out}");
    assert!(out.contains("1 task running") && out.contains("with 1 session"), "{out}");
    let checks: Vec<&str> =
        findings.as_array().unwrap().iter().map(|finding| finding["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["config", "model", "web", "search", "home", "journal", "keepers", "sandbox", "disk"]);
    assert_eq!((wrong.0, wrong.1.contains("✗ config") && wrong.1.contains("nmae")), (1, true), "{}", wrong.1);
}

/// What the doctor finds about the model, with no key but this one, if any.
fn model(desk: &Desk, key: Option<(&str, &str)>) -> (bool, String) {
    let mut command = desk.command(&["doctor", "--json"]);

    for variable in std::env::vars().map(|(name, _)| name).filter(|name| name.ends_with("_KEY")) {
        command.env_remove(variable);
    }
    command.envs(key);
    let (_, out, errors) = told(&command.output().unwrap());
    let findings: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{errors}"));
    let found = findings.as_array().unwrap().iter().find(|finding| finding["check"] == "model").unwrap();
    (found["ok"] == true, found.to_string())
}

/// S8: nobody outside this machine is asked; a key that is set is not shown.
#[test]
fn the_doctor_says_which_model_answers_and_what_it_lacks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let local = format!("[model]\nname = \"custom/m\"\nbase_url = \"{address}\"\n");
    let hosted = "[model]\nname = \"anthropic/claude-x\"\n";
    let secret = ("ANTHROPIC_API_KEY", "sk-very-secret");
    let desk = Desk::with_model_of_config(hosted);

    let with_key = model(&desk, Some(secret));
    let without_key = model(&desk, None);
    desk.configure(&local);
    let answering = model(&desk, None);
    drop(listener);
    let silent = model(&desk, None);
    desk.configure(&local.replace("name = \"custom/m\"", ""));
    let nameless = model(&desk, None);
    desk.configure("[model]\nname = \"antropic/claude-x\"\n");
    let misspelt = model(&desk, None);

    let says = |found: &(bool, String), is_fine: bool, words: &[&str]| {
        assert_eq!(found.0, is_fine, "{}", found.1);
        words.iter().for_each(|words| assert!(found.1.contains(words), "{words}: {}", found.1));
    };
    says(&with_key, true, &["model.name in", "key from ANTHROPIC_API_KEY", "not contacted"]);
    assert!(!with_key.1.contains("sk-very-secret"));
    says(&without_key, false, &["set ANTHROPIC_API_KEY"]);
    says(&answering, true, &["server running at", &address]);
    says(&silent, false, &["no server is running at", &address, "start the server"]);
    says(&nameless, false, &["but no model"]);
    says(&misspelt, false, &["did you mean anthropic?"]);
}

/// S8
#[test]
fn the_doctor_says_what_to_do_where_there_is_no_model() {
    let desk = Desk::with_model_of_config("");

    let (is_fine, found) = model(&desk, None);

    // Where a server runs on this machine, that one answers.
    assert!(is_fine && found.contains(" runs at ") || found.contains("no model is set"), "{found}");
    assert!(is_fine || found.contains("`longhaul models`"), "{found}");
}

/// K8, K15: what a command left running is listed with it, also one that was never a task, and ends with it or with its session.
#[test]
fn what_a_command_left_running_is_listed_and_ended() {
    let leaving = json!({"calls": [{"name": "exec", "arguments": {
        "command": "sleep 600 > /dev/null 2>&1 &",
    }}]});
    let desk = Desk::new(&json!([leaving, leaving, "Done."]));
    desk.run(&["run", "-s", "a", "go"]);

    let (_, table, _) = desk.run(&["tasks"]);
    let listed = desk.json(&["tasks", "-s", "a", "--json"]);
    let left: Vec<&str> =
        listed.as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap()).collect();
    let (_, killed, _) = desk.run(&["tasks", "kill", left[0]]);
    let after = desk.json(&["tasks", "--json"]);
    let other_runs = carries_mark(left[1]);
    desk.json(&["sessions", "delete", "a", "--now", "--json"]);

    assert_eq!((left.len(), &listed[0]["left_processes"]), (2, &json!(1)), "{listed}");
    assert!(table.contains("left 1 process running"), "{table}");
    assert!(killed.contains("killed the processes it left"), "{killed}");
    assert_eq!((after.as_array().unwrap().len(), &after[0]["task_id"]), (1, &json!(left[1])));
    assert!(other_runs && left.iter().all(|task| !carries_mark(task)));
}

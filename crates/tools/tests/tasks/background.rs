//! From the foreground to the background, and into it from the start.

use std::fs;
use std::time::Duration;

use longhaul_protocol::{TaskId, TaskNews, TaskStarted, TaskStatus};
use longhaul_tools::{ResumedCall, StopSignal};
use serde_json::json;

use crate::workplace::{Workplace, fields, in_time, running, text, until, wait_for};

/// Prints numbers, each once, until it may stop, and notes each start in a file. So slowly that all of them can be shown.
const COUNTING: &str = "echo started >> starts; n=0; while [ ! -e stop ]; do n=$((n+1)); echo $n; sleep 0.01; done; echo last $n";

/// K3
#[tokio::test]
async fn a_command_in_the_background_returns_at_once_and_is_a_task() {
    let place = Workplace::new();
    let command = format!("touch begun; {}\necho more", wait_for("go"));

    let finished = place.make("exec", json!({"command": command, "run_in_background": true})).await;

    let id = finished.task.as_ref().unwrap().task_id;
    let fields = fields(&finished);
    assert_eq!(
        (text(&fields, "status"), text(&fields, "task_id")),
        ("background_started", id.to_string().as_str())
    );
    assert!(text(&fields, "message").contains("with `wait`"), "{fields}");
    let task = finished.task.unwrap();
    assert_eq!((&task.command, task.target.as_str()), (&command, "local"));
    assert_eq!(task.description, command.lines().next().unwrap());
    place.until_there("begun").await;
    assert!(place.tasks.status(id).unwrap().is_none());
    let spec = place.tasks.spec(id).unwrap().unwrap();
    assert_eq!(spec.description, Some(task.description));
}

/// K3: however short it is.
#[tokio::test]
async fn a_command_in_the_background_that_ends_at_once_is_a_task_all_the_same() {
    let place = Workplace::new();
    let call = place.call(&json!({"command": "true", "run_in_background": true, "description": " look "}));

    let finished = place.make_call("exec", &call).await;
    place.until_over(TaskId::from(call.id)).await;
    let resumed = place.resume(&call).await;

    assert_eq!(fields(&finished)["status"], "background_started");
    let ResumedCall::Finished(again) = resumed else { panic!("it ended") };
    assert_eq!(again.content, finished.content);
    let without_time = |task: Option<TaskStarted>| TaskStarted { started_at: None, ..task.unwrap() };
    assert_eq!(without_time(again.task), without_time(finished.task.clone()));
    assert_eq!(finished.task.unwrap().description, "look");
}

/// K1, K3: a start that fails is an error, in the background too.
#[tokio::test]
async fn a_command_in_the_background_that_can_not_start_is_an_error() {
    let place = Workplace::new();
    fs::create_dir(place.work.join("inner")).unwrap();
    let call = place.call(&json!({"command": "true", "run_in_background": true, "work_dir": "inner"}));
    let prepared = place.tool("exec").prepare(&call).await.unwrap();
    fs::remove_dir(place.work.join("inner")).unwrap();
    let (_stopper, stop) = StopSignal::pair();

    let finished = in_time((prepared.run)(stop)).await;
    let resumed = place.resume(&call).await;

    assert!(finished.is_error && finished.content.contains("inner does not exist"), "{}", finished.content);
    assert_eq!(finished.task, None);
    assert!(matches!(resumed, ResumedCall::Finished(again) if again == finished));
}

/// K2: from the first number to the last, nothing is missing and nothing runs twice.
#[tokio::test]
async fn a_command_that_takes_long_goes_on_as_a_task_and_nothing_is_lost() {
    let place = Workplace::new();

    let finished = place.make("exec", json!({"command": COUNTING, "timeout": 5})).await;

    let so_far = fields(&finished);
    let id = finished.task.as_ref().unwrap().task_id;
    assert_eq!(
        (text(&so_far, "status"), text(&so_far, "task_id")),
        ("auto_backgrounded", id.to_string().as_str())
    );
    assert!(text(&so_far, "message").contains("no work was lost"), "{so_far}");
    assert!(text(&so_far, "message").contains("after 5 s"), "{so_far}");
    let before = text(&so_far, "output").to_owned();
    assert!(before.starts_with("1\n2\n") && before.ends_with('\n'), "{before}");
    assert_eq!(finished.news, Some(TaskNews { task_id: id, printed: before.len() as u64, ended: false }));
    let printed = place.tasks.output(id).unwrap().printed().unwrap();
    place.until_printed(id, printed + 1).await;
    place.put("stop");
    place.until_over(id).await;
    let output = place.tasks.output(id).unwrap().read(0, 1 << 20).unwrap().bytes;
    let output = String::from_utf8(output).unwrap();
    let (numbers, last) = output.trim_end().rsplit_once("\nlast ").unwrap();
    let expected: Vec<String> = (1..=last.parse::<u64>().unwrap()).map(|n| n.to_string()).collect();
    assert_eq!(numbers.lines().collect::<Vec<_>>(), expected);
    assert!(output.starts_with(&before));
    assert_eq!(fs::read_to_string(place.work.join("starts")).unwrap(), "started\n");
    assert_eq!(place.tasks.status(id).unwrap().unwrap().status, TaskStatus::Completed);
}

/// K2
#[tokio::test]
async fn without_a_timeout_the_one_of_the_settings_counts() {
    let place = Workplace::with(|settings| settings.timeout = Duration::from_millis(5500));

    let finished = place.make("exec", json!({"command": format!("echo a; {}", wait_for("go"))})).await;

    assert_eq!(fields(&finished)["status"], "auto_backgrounded");
    assert_eq!(fields(&finished)["output"], "a\n");
    assert!(text(&fields(&finished), "message").contains("after 5.5 s"));
}

/// K2: a restart does not begin the time anew.
#[tokio::test]
async fn the_time_counts_from_the_start_of_the_command_also_after_a_restart() {
    let place = Workplace::new();
    let call = place.call(&json!({"command": format!("touch begun; {}", wait_for("go")), "timeout": 600}));
    let (_stopper, result) = place.begin("exec", &call).await;
    place.until_there("begun").await;
    result.abort();
    place.age(TaskId::from(call.id), "spawning", Duration::from_secs(599));

    let run = running(place.resume(&call).await);
    let (_stopper, stop) = StopSignal::pair();
    let finished = in_time(run(stop)).await;

    assert_eq!(fields(&finished)["status"], "auto_backgrounded");
    let task = finished.task.unwrap();
    assert_eq!(task.task_id, TaskId::from(call.id));
    assert!(task.started_at.is_some());
}

/// K3, K9
#[tokio::test]
async fn a_command_in_the_background_is_found_again_running() {
    let place = Workplace::new();
    let call = place.call(&json!({"command": "touch begun; sleep 600", "run_in_background": true}));
    place.make_call("exec", &call).await;
    place.until_there("begun").await;

    let run = running(place.resume(&call).await);
    let (stopper, stop) = StopSignal::pair();
    stopper.stop();
    let finished = in_time(run(stop)).await;

    assert_eq!(fields(&finished)["status"], "background_started");
    assert_eq!(finished.task.unwrap().task_id, TaskId::from(call.id));
    assert!(place.tasks.status(TaskId::from(call.id)).unwrap().is_none(), "it goes on");
}

/// K14: also if its state can't be read when the turn is cancelled.
#[tokio::test]
async fn stopping_never_kills_a_command_in_the_background() {
    let place = Workplace::new();
    let call = place.call(&json!({"command": "touch begun; sleep 600", "run_in_background": true}));
    place.make_call("exec", &call).await;
    place.until_there("begun").await;
    let id = TaskId::from(call.id);
    let (folder, aside) = (place.folder.join(id.to_string()), place.folder.join("aside"));
    fs::rename(&folder, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &folder).unwrap();

    let run = running(place.resume(&call).await);
    let (stopper, stop) = StopSignal::pair();
    stopper.stop();
    let finished = in_time(run(stop)).await;

    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(fields(&finished)["status"], "background_started");
    assert_eq!(finished.task.unwrap().task_id, id);
    assert!(place.tasks.is_kept(id).unwrap(), "it goes on");
}

/// K14: cancelling kills what is in the foreground, and nothing else.
#[tokio::test]
async fn stopping_kills_the_command_in_the_foreground_and_no_task() {
    let place = Workplace::new();
    let task = place.start("touch task; sleep 600").await;
    let call = place.call(&json!({"command": "touch command; sleep 600 & wait"}));
    let (stopper, result) = place.begin("exec", &call).await;
    place.until_there("task").await;
    place.until_there("command").await;

    stopper.stop();
    let finished = in_time(result).await.unwrap();

    assert_eq!(fields(&finished)["status"], "killed");
    assert!(place.tasks.status(task).unwrap().is_none());
    until(|| place.tasks.is_kept(task).unwrap()).await;
}

/// K16: a command is not run again because its end is unknown.
#[tokio::test]
async fn a_command_whose_folder_has_expired_is_not_run_again() {
    let place = Workplace::new();
    let call = place.call(&json!({"command": "echo ran >> runs"}));
    place.make_call("exec", &call).await;
    place.tasks.expire(Duration::ZERO, |_| false).unwrap();

    let resumed = place.resume(&call).await;

    assert!(matches!(resumed, ResumedCall::Unknown(why) if why.contains("kept 24 hours")));
    assert_eq!(fs::read_to_string(place.work.join("runs")).unwrap(), "ran\n");
}

//! What is recorded when a task is over.

use std::fs;
use std::time::Duration;

use longhaul_protocol::{CallId, TaskId, TaskStatus};
use longhaul_tools::{FinishedTask, last_output_line, looks_like_a_prompt, task_end};
use serde_json::json;

use crate::secrets::shows_a_part;
use crate::workplace::{SECRET, Workplace, until, wait_for};

fn end(place: &Workplace, id: TaskId) -> Option<FinishedTask> {
    task_end(&place.tasks, id, &place.settings.redact).unwrap()
}

/// K10
#[tokio::test]
async fn the_end_of_a_task_comes_with_what_it_printed() {
    let place = Workplace::new();
    let id = place.start(&format!("seq 1000; {}; printf '\\e[1mlast\\e[0m'; exit 7", wait_for("go"))).await;

    let before = end(&place, id);
    place.put("go");
    place.until_over(id).await;
    let ended = end(&place, id).unwrap();

    assert_eq!(before, None);
    assert_eq!((ended.status, ended.exit_code, &ended.message), (TaskStatus::Failed, Some(7), &None));
    let whole: String = (1..=1000).map(|n| format!("{n}\n")).chain(["last".to_owned()]).collect();
    assert_eq!(ended.output, Some(whole.into_bytes()));
    let tail: String = (982..=1000).map(|n| format!("{n}\n")).chain(["last".to_owned()]).collect();
    assert_eq!(ended.tail, tail);
    assert_eq!(ended.printed, 3893 + 12);
}

/// K10, J8, K13
#[tokio::test]
async fn of_much_output_a_mebibyte_is_kept_and_the_tail_is_short_and_without_secrets() {
    let place = Workplace::new();
    let id = place
        .finish(&format!("for n in $(seq 60000); do echo {SECRET} é; done; for n in $(seq 3000); do printf 'é{SECRET}'; done"))
        .await;

    let ended = end(&place, id).unwrap();

    let whole = String::from_utf8(ended.output.unwrap()).unwrap();
    assert!(whole.len() <= 1 << 20 && whole.len() > 400_000, "{}", whole.len());
    assert!(!shows_a_part(&whole) && !shows_a_part(&ended.tail));
    assert!(ended.tail.len() <= 2048 && ended.tail.len() > 2000, "{}", ended.tail.len());
    assert!(ended.tail.ends_with("é[redacted]"), "{}", ended.tail);
}

/// K3
#[tokio::test]
async fn one_that_ran_too_long_says_so() {
    let place = Workplace::new();
    let finished = place
        .make("exec", json!({"command": "sleep 600", "run_in_background": true, "max_runtime": 1}))
        .await;
    let id = finished.task.unwrap().task_id;
    place.until_over(id).await;

    let ended = end(&place, id).unwrap();

    assert_eq!((ended.status, ended.output), (TaskStatus::TimedOut, None));
    assert_eq!(ended.message.unwrap(), "it was ended because it ran longer than `max_runtime` (1 s)");
}

/// K8: an unknown end counts as lost, with a message.
#[tokio::test]
async fn what_nobody_knows_is_lost_and_says_why() {
    let place = Workplace::new();
    let expired = place.finish("true").await;
    place.tasks.expire(Duration::ZERO, |_| false).unwrap();
    let made = |files: &[&str]| {
        let id = TaskId::from(CallId::generate());
        fs::create_dir(place.folder.join(id.to_string())).unwrap();
        for name in files {
            fs::write(place.folder.join(format!("{id}/{name}")), "begun\n").unwrap();
        }
        id
    };
    let lost = made(&["spec.json", "lock", "spawning", "pid", "output.head"]);
    let unknown = made(&["spec.json", "lock", "spawning"]);
    let never = TaskId::from(CallId::generate());

    for (id, words) in [
        (lost, "died"),
        (unknown, "may or may not"),
        (never, "folder of this task is gone"),
        (expired, "24 hours"),
    ] {
        let ended = end(&place, id).unwrap();
        assert_eq!(ended.status, TaskStatus::Lost);
        assert!(ended.message.as_ref().unwrap().contains(words), "{ended:?}");
    }
    assert_eq!(end(&place, lost).unwrap().tail, "begun\n");
}

/// K12
#[tokio::test]
async fn the_last_line_of_a_task_that_asks_looks_like_a_prompt() {
    let place = Workplace::new();
    let asks =
        place.start("yes log line | head -n 100000; printf '\\e[1mOverwrite?\\e[0m [y/N] '; sleep 600").await;
    let works = place.start("echo; echo 'building:'; echo; sleep 600").await;
    let silent = place.start("sleep 600").await;
    let last = |id| last_output_line(&place.tasks.output(id).unwrap()).unwrap();

    until(|| last(asks) == "Overwrite? [y/N] ").await;
    until(|| last(works) == "building:\n").await;

    assert!(looks_like_a_prompt(&last(asks)));
    assert!(!looks_like_a_prompt(&last(works)));
    assert_eq!(last(silent), "");
}

//! K14: how many tasks a session has.

use serde_json::json;

use crate::workplace::{Workplace, fields, in_time, text, wait_for};

/// K14
#[tokio::test]
async fn one_task_more_than_may_run_is_an_error_that_names_those_that_do() {
    let place = Workplace::with(|settings| settings.max_tasks = 2);
    let (one, two) = (place.start("sleep 600 # one").await, place.start("sleep 601").await);

    let refused = place.make("exec", json!({"command": "touch ran", "run_in_background": true})).await;

    assert!(refused.is_error, "{}", refused.content);
    for expected in [
        &format!("{one} (sleep 600 # one)"),
        &two.to_string(),
        "at most 2",
        "task_output and `wait`",
        "task_kill",
    ] {
        assert!(refused.content.contains(expected), "{expected}: {}", refused.content);
    }
    assert!(!place.work.join("ran").exists());
}

/// K14: the session may not have heard yet that one has ended.
#[tokio::test]
async fn a_task_that_has_ended_takes_no_place() {
    let place = Workplace::with(|settings| settings.max_tasks = 1);
    let one = place.start("true").await;
    place.until_over(one).await;

    let finished = place.make("exec", json!({"command": "true", "run_in_background": true})).await;

    assert_eq!(fields(&finished)["status"], "background_started");
}

/// K14, K2: there is nowhere to go on, so it is waited for.
#[tokio::test]
async fn a_command_in_the_foreground_is_waited_for_when_all_places_are_taken() {
    let place = Workplace::with(|settings| settings.max_tasks = 1);
    place.start("sleep 600").await;
    let command = format!("touch begun; {}; echo done", wait_for("go"));
    let call = place.call(&json!({"command": command, "timeout": 1}));
    let (_stopper, mut result) = place.begin("exec", &call).await;
    place.until_there("begun").await;

    // The call may notice its deadline late, so there is more than enough time.
    let early = tokio::time::timeout(std::time::Duration::from_secs(6), &mut result).await;
    place.put("go");
    let finished = in_time(result).await.unwrap();

    assert!(early.is_err(), "{early:?}");
    let fields = fields(&finished);
    assert_eq!((text(&fields, "status"), text(&fields, "output")), ("completed", "done\n"));
    assert!(text(&fields, "message").contains("waited for beyond its `timeout`"), "{fields}");
    assert_eq!(finished.task, None);
}

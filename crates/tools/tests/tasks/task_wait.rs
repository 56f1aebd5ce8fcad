//! K11: `task_output` with `wait`; K8: `task_kill`.

use std::fs;
use std::time::{Duration, Instant};

use longhaul_protocol::TaskNews;
use serde_json::json;

use crate::workplace::{LONG_QUIET, NEVER_QUIET, SECRET, Workplace, fields, in_time, text, until, wait_for};

/// K11
#[tokio::test]
async fn waiting_returns_at_the_end_of_a_task_and_never_again() {
    let place = Workplace::quiet_after(NEVER_QUIET);
    let id = place.start(&format!("{}; echo done; exit 3", wait_for("go"))).await;
    let call = place.call(&json!({"task_id": id, "wait": 60}));
    let (_stopper, result) = place.begin("task_output", &call).await;
    place.put("go");

    let finished = in_time(result).await.unwrap();
    place.remember(&finished);
    let again = place.make("task_output", json!({"task_id": id, "wait": 60})).await;

    assert_eq!(finished.news, Some(TaskNews { task_id: id, printed: 5, ended: true }));
    let fields = fields(&finished);
    assert_eq!((text(&fields, "status"), text(&fields, "output")), ("failed", "done\n"));
    assert_eq!(fields["exit_code"], json!(3));
    assert!(
        again.is_error && again.content.contains("has ended (failed), and you were told"),
        "{}",
        again.content
    );
}

/// K11: what came before the wait counts as news once, and what comes after silence when it comes.
#[tokio::test]
async fn waiting_returns_on_new_output_after_silence_and_not_twice_for_the_same() {
    let place = Workplace::new();
    let id = place.start(&format!("echo one; {}; echo two; {}", wait_for("go"), wait_for("end"))).await;
    place.until_printed(id, 4).await;

    let first = place.make("task_output", json!({"task_id": id, "wait": 600})).await;
    let since = Instant::now();
    let nothing = place.make("task_output", json!({"task_id": id, "wait": 1})).await;
    let waited = since.elapsed();
    let call = place.call(&json!({"task_id": id, "wait": 600}));
    let (_stopper, result) = place.begin("task_output", &call).await;
    place.put("go");
    let second = in_time(result).await.unwrap();

    assert_eq!((&fields(&first)["output"], &fields(&first)["status"]), (&json!("one\n"), &json!("running")));
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
    assert_eq!(fields(&nothing)["output"], "");
    assert!(text(&fields(&nothing), "message").contains("the time is over"), "{}", nothing.content);
    assert_eq!(fields(&second)["output"], "two\n");
    assert_eq!(second.news, Some(TaskNews { task_id: id, printed: 8, ended: false }));
}

/// K11: what can't be told yet, as the first byte of a character, is no news, and is told when the rest has come.
#[tokio::test]
async fn what_is_not_whole_yet_is_no_news_until_it_is() {
    let place = Workplace::new();
    let table = [
        ("a character", r"abc\xe2", "abc", r"\x82\xac", "\u{20ac}"),
        ("only a part of one", r"\xe2\x82", "", r"\xac!", "\u{20ac}!"),
        ("a colour", r"abc\x1b[3", "abc", "1mred", "red"),
        ("a progress bar", r"10 %%\r50 %%\r", "50 %", r"100 %%\n", "100 %\n"),
        ("a secret", "sk-01234", "sk-01234", "56789abcdef.", "."),
        ("a line", r"one\ntwo", "one\ntwo", r" three\n", " three\n"),
    ];

    for (what, begins, first, goes_on, rest) in table {
        let (go, end) = (format!("go-{}", what.replace(' ', "-")), wait_for("end"));
        let command = format!("printf '{begins}'; {}; printf '{goes_on}'; {end}", wait_for(&go));
        let id = place.start(&command).await;
        place.until_printed(id, 1).await;
        place.age(id, "output.head", Duration::from_millis(1500));
        if !first.is_empty() {
            let news = fields(&place.make("task_output", json!({"task_id": id, "wait": 600})).await);
            assert_eq!(text(&news, "output"), first, "{what}");
            assert!(text(&news, "message").starts_with("it goes on; "), "{what}: {news}");
        }
        for _ in 0..2 {
            let nothing = fields(&place.make("task_output", json!({"task_id": id, "wait": 1})).await);
            assert_eq!(text(&nothing, "output"), "", "{what}");
            assert!(text(&nothing, "message").starts_with("the time is over"), "{what}: {nothing}");
        }
        place.put(&go);
        let later = place.make("task_output", json!({"task_id": id, "wait": 600})).await;

        assert_eq!(text(&fields(&later), "output"), rest, "{what}");
    }
}

/// K11: the time is longer than a silence, so one that was counted from the first line would show.
#[tokio::test]
async fn a_task_that_prints_all_the_time_is_waited_for_until_the_time_is_over() {
    let place = Workplace::quiet_after(LONG_QUIET);
    let id = place.start("while :; do echo x; sleep 0.02; done").await;
    // The first line of a task comes after silence, and is news.
    place.until_printed(id, 4).await;
    let since = Instant::now();

    let finished = place.make("task_output", json!({"task_id": id, "wait": 12})).await;

    assert!(since.elapsed() >= Duration::from_secs(12), "{:?}", since.elapsed());
    let fields = fields(&finished);
    assert!(text(&fields, "output").starts_with("x\nx\n"), "{fields}");
    assert!(text(&fields, "message").contains("the time is over"), "{fields}");
}

/// K11: what the call that started it has shown is no news, however much that was.
#[tokio::test]
async fn what_was_shown_when_a_command_went_on_is_not_told_again() {
    let place = Workplace::quiet_after(NEVER_QUIET);
    let command = format!("echo one; {}; echo two", wait_for("go"));
    let went_on = place.make("exec", json!({"command": command, "timeout": 3})).await;
    let id = went_on.task.as_ref().unwrap().task_id;
    place.put("go");

    let finished = place.make("task_output", json!({"task_id": id, "wait": 60})).await;

    let (shown, told) = (fields(&went_on), fields(&finished));
    assert_eq!(format!("{}{}", text(&shown, "output"), text(&told, "output")), "one\ntwo\n");
    assert_eq!(went_on.news.unwrap().printed, text(&shown, "output").len() as u64);
}

/// K11
#[tokio::test]
async fn waiting_stops_at_once_and_the_task_goes_on() {
    let place = Workplace::new();
    let id = place.start("touch begun; sleep 600").await;
    place.until_there("begun").await;
    let call = place.call(&json!({"task_id": id, "wait": 600}));
    let (stopper, result) = place.begin("task_output", &call).await;

    stopper.stop();
    let finished = in_time(result).await.unwrap();

    assert!(finished.is_error && finished.content.contains("the task goes on"), "{}", finished.content);
    assert!(place.tasks.status(id).unwrap().is_none());
}

/// K11, K8
#[tokio::test]
async fn a_task_whose_keeper_dies_meanwhile_is_lost() {
    let place = Workplace::new();
    let id = place.start("echo begun; sleep 600").await;
    place.until_printed(id, 6).await;
    place.make("task_output", json!({"task_id": id})).await;
    let call = place.call(&json!({"task_id": id, "wait": 600}));
    let (_stopper, result) = place.begin("task_output", &call).await;
    let pid = fs::read_to_string(place.folder.join(format!("{id}/lock"))).unwrap();
    let pid = pid.split(['{', ',', '}']).find_map(|field| field.strip_prefix("\"pid\":")).unwrap().to_owned();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());

    let finished = in_time(result).await.unwrap();

    assert_eq!(finished.news, Some(TaskNews { task_id: id, printed: 6, ended: true }));
    let fields = fields(&finished);
    assert_eq!(text(&fields, "status"), "lost");
    assert!(text(&fields, "message").contains("died"), "{fields}");
}

/// K11
#[tokio::test]
async fn a_wait_that_is_too_long_is_clamped_and_said() {
    let place = Workplace::new();
    let id = place.finish("true").await;

    let call = place.call(&json!({"task_id": id, "wait": 700}));
    let most = place.tool("task_output").prepare(&call).await.unwrap().takes_up_to;
    let finished = place.make_call("task_output", &call).await;
    let none = place.make("task_output", json!({"task_id": id, "wait": 0})).await;

    assert!(most > Some(Duration::from_secs(600)));
    assert_eq!(fields(&finished)["message"], "`wait` was taken as 600, not 700");
    assert_eq!(fields(&none)["status"], "completed", "without a wait it is read at once");
}

/// K11: silence is what the tools' settings say.
#[tokio::test]
async fn output_is_gathered_until_the_task_is_quiet() {
    let place = Workplace::quiet_after(LONG_QUIET);
    let more = "for n in 2 3 4 5; do echo $n; sleep 0.05; done; sleep 600";
    let id = place.start(&format!("echo 1; {}; {more}", wait_for("go"))).await;
    place.until_printed(id, 2).await;
    let since = Instant::now();
    place.put("go");

    let finished = place.make("task_output", json!({"task_id": id, "wait": 600})).await;

    let fields = fields(&finished);
    assert_eq!(text(&fields, "output"), "1\n2\n3\n4\n5\n");
    assert!(text(&fields, "message").starts_with("it goes on; "), "{fields}");
    assert!(since.elapsed() >= LONG_QUIET, "{:?}", since.elapsed());
}

/// K8
#[tokio::test]
async fn killing_ends_a_task_and_all_that_it_started_and_confirms() {
    let place = Workplace::new();
    let mark = format!("child-{}", std::process::id());
    let child = format!("setsid bash -c 'exec -a {mark} sleep 600'");
    let is_running = || {
        let lines = fs::read_dir("/proc").unwrap().flatten();
        let mut lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| line.starts_with(mark.as_bytes()))
    };
    let id = place.start(&format!("seq 100; echo {SECRET}; ({child} & wait)")).await;
    until(is_running).await;

    let killed = place.make("task_kill", json!({"task_id": id})).await;
    let again = place.make("task_kill", json!({"task_id": id})).await;

    let news = killed.news.unwrap();
    assert!(news.ended && news.printed > 300);
    let fields_killed = fields(&killed);
    assert_eq!(text(&fields_killed, "status"), "killed");
    assert_eq!(fields_killed["exit_code"], json!(143));
    assert!(fields_killed["duration_ms"].is_u64());
    assert!(text(&fields_killed, "output").ends_with("99\n100\n[redacted]\n"), "{fields_killed}");
    assert!(text(&fields_killed, "output").lines().count() <= 20);
    assert!(text(&fields(&again), "message").contains("it had ended before (killed)"), "{}", again.content);
    assert!(!is_running());
}

/// K11: the part of the output that a call names is read when there is news.
#[tokio::test]
async fn a_wait_can_name_what_to_read_then() {
    let place = Workplace::quiet_after(NEVER_QUIET);
    let id = place.start(&format!("echo one; {}; echo two; echo three", wait_for("go"))).await;
    let call = place.call(&json!({"task_id": id, "wait": 60, "grep": "^t"}));
    let (_stopper, result) = place.begin("task_output", &call).await;
    place.put("go");

    let finished = in_time(result).await.unwrap();
    place.remember(&finished);
    let again = place.make("task_output", json!({"task_id": id, "wait": 60, "offset": 4})).await;

    assert_eq!(text(&fields(&finished), "output"), "two\nthree\n");
    assert_eq!(text(&fields(&again), "output"), "two\nthree\n");
}

#[tokio::test]
async fn a_wait_for_no_task_is_refused() {
    let place = Workplace::new();

    let refused = place.make("task_output", json!({"wait": 5})).await;

    assert!(refused.is_error && refused.content.contains("need a `task_id`"), "{}", refused.content);
}

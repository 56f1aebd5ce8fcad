//! Four stories of long work, each from the model's answers to what people and the model get to see.

use longhaul_testkit::wire::ScriptedAnswer;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::desk::{Desk, Running, WAITS, eventually};
use crate::model::{PROTOCOLS, Stage, background, exec, messages, notifications, results, told};

/// Waits until a keeper has written down how the task that is described so has ended.
fn wait_for_the_end_of(desk: &Desk, description: &str) {
    let tasks = desk.tasks();
    let is_it =
        |id| matches!(tasks.spec(id), Ok(Some(spec)) if spec.description.as_deref() == Some(description));
    eventually("the task is over", || {
        let mut all = tasks.all().unwrap().into_iter();
        all.any(|id| is_it(id) && matches!(tasks.status(id), Ok(Some(_))))
    });
}

/// K3, K5: the model does something else meanwhile, and knows of the end as soon as it is asked again.
#[test]
fn long_work_goes_on_while_the_model_does_something_else() {
    let stage = Stage::saying(vec![
        background("echo 3 crates built", "the build"),
        exec(json!({"command": WAITS, "description": "something else"})),
        ScriptedAnswer::text("All of it is  built.\n\n  Two\tlines."),
    ]);
    let running = Running::start(stage.desk.command(&["run", "-s", "a", "build it"]));

    wait_for_the_end_of(&stage.desk, "the build");
    stage.desk.let_go();
    let (code, out, errors) = running.end();

    assert_eq!((code, out.as_str()), (0, "All of it is  built.\n\n  Two\tlines.\n"), "{errors}");
    let requests = stage.requests();
    assert_eq!(requests.len(), 3);
    let last = notifications(&requests[2]);
    assert_eq!(last.len(), 1, "{last:?}");
    for part in
        ["<status>completed</status>", "<description>the build</description>", ">3 crates built\n</output>"]
    {
        assert!(last[0].contains(part), "{part}: {}", last[0]);
    }
    assert_eq!(results(&requests[1])[0]["status"], json!("background_started"));
    stage.desk.sound_records("a");
}

fn flipped() -> Stage {
    Stage::saying(vec![
        exec(json!({"command": WAITS, "description": "slow", "timeout": 5})),
        ScriptedAnswer::text("It goes on."),
        ScriptedAnswer::text("It ended."),
    ])
}

/// What the model was told of a command that outlasted its time.
fn check_flipped(stage: &Stage) {
    let requests = stage.requests();
    assert_eq!(requests.len(), 3);
    let result = results(&requests[1]).pop().unwrap();
    assert_eq!((&result["status"], &result["output"]), (&json!("auto_backgrounded"), &json!("begun\n")));
    assert!(result["task_id"].as_str().unwrap().starts_with("task_"), "{result}");
    assert!(result["message"].as_str().unwrap().contains("no work was lost"), "{result}");
    let ends = notifications(&requests[2]);
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert!(ends[0].contains(result["task_id"].as_str().unwrap()), "{ends:?}");
    assert!(ends[0].contains(">begun\nthe end\n</output>"), "what came after its time is there: {ends:?}");
    stage.desk.sound_records("a");
    assert_eq!(stage.desk.records("a", "notification").len(), 1);
}

/// K2, K6
#[test]
fn a_command_that_outlasts_its_time_goes_on_and_run_stays_for_it() {
    let stage = flipped();

    let mut running = Running::start(stage.desk.command(&["run", "--wait", "-s", "a", "go"]));
    let first = running.line();
    stage.desk.let_go();
    let (code, rest, errors) = running.end();

    assert_eq!((first.as_str(), rest.as_str(), code), ("It goes on.", "It ended.\n", 0), "{errors}");
    check_flipped(&stage);
}

/// K2, K6
#[test]
fn a_command_that_outlasts_its_time_goes_on_under_serve() {
    let stage = flipped();
    let mut serving = Running::start(stage.desk.command(&["serve", "--no-http", "--json"]));

    stage.desk.run(&["send", "-s", "a", "go"]);
    let first = serving.wait_for("turn_ended");
    stage.desk.let_go();
    let second = serving.wait_for("turn_ended");
    serving.signal(Signal::TERM);
    serving.end();

    assert_eq!((&first["text"], &second["text"]), (&json!("It goes on."), &json!("It ended.")));
    check_flipped(&stage);
}

/// K4
#[test]
fn a_long_sleep_is_refused_and_the_turn_goes_on() {
    let stage = Stage::saying(vec![exec(json!({"command": "sleep 10"})), ScriptedAnswer::text("Then not.")]);

    let (code, out, errors) = stage.desk.run(&["run", "-s", "a", "wait a little"]);

    assert_eq!((code, out.as_str()), (0, "Then not.\n"), "{errors}");
    let finished = stage.desk.records("a", "tool_finished");
    assert_eq!((finished.len(), &finished[0]["is_error"]), (1, &json!(true)));
    let content = finished[0]["content"].as_str().unwrap();
    assert!(content.contains("sleep 10") && content.contains("run_in_background"), "{content}");
    let requests = stage.requests();
    assert!(told(&requests[1]).iter().any(|text| text == content), "{:?}", told(&requests[1]));
    assert_eq!((requests.len(), stage.desk.tasks().all().unwrap().len()), (2, 0));
}

/// The marks that say how far a provider may remember a request move; they are no part of what is said.
fn without_marks(messages: &str) -> String {
    messages.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

/// K7: said once, where it happened, in every protocol; what was sent before stays as it was, byte for byte.
#[test]
fn the_next_request_says_what_runs_and_begins_with_the_one_before() {
    for protocol in PROTOCOLS {
        let stage = Stage::speaking(
            protocol,
            vec![
                background(WAITS, "the <long> build"),
                exec(json!({"command": "echo meanwhile"})),
                ScriptedAnswer::text("It runs."),
                ScriptedAnswer::text("It still runs."),
            ],
        );

        for prompt in ["build it", "and now?"] {
            let (code, _, errors) = stage.desk.run(&["run", "-s", "a", prompt]);
            assert_eq!(code, 0, "{protocol:?} {errors}");
        }

        let requests = stage.requests();
        assert_eq!(requests.len(), 4, "{protocol:?}");
        let notes = |number: usize| {
            let texts = told(&requests[number]).into_iter();
            texts.filter(|text| text.contains("Currently running background tasks:\n")).collect::<Vec<_>>()
        };
        assert_eq!([0, 1, 2, 3].map(|number| notes(number).len()), [0, 1, 1, 1], "{protocol:?}");
        let note = &notes(1)[0];
        assert!(note.starts_with("[runtime note]"), "{protocol:?} {note}");
        assert!(note.contains(": the &lt;long&gt; build, started 20"), "{protocol:?} {note}");
        let sent: Vec<String> = requests.iter().map(|seen| without_marks(&messages(seen))).collect();
        for pair in sent.windows(2) {
            let before = pair[0].strip_suffix(']').unwrap();
            assert!(pair[1].starts_with(before), "{protocol:?}\n{}\n{}", pair[0], pair[1]);
        }
        let first: Vec<Value> = requests.iter().map(|seen| seen.json()["tools"].clone()).collect();
        assert!(first.iter().all(|tools| *tools == first[0]), "{protocol:?}: tools come before messages");
    }
}

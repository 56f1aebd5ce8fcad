//! Commands of a turn: they outlive the runtime, end when the turn is cancelled, and show the model what it can read.

use std::time::{Duration, Instant};

use longhaul_protocol::{CommandReport, EventKind, Outcome, SessionRecord};
use longhaul_testkit::{RecordingModel, TaskProcesses, TestHome, collect_until, ended_turn};
use serde_json::{Value, json};

use crate::{at_best, eventually, heard, open, results, script, sends, sound_records, within};

fn exec(command: &str) -> Value {
    json!({"calls": [{"name": "exec", "arguments": {"command": command}}]})
}

fn object(content: &str) -> Value {
    CommandReport::parse_to_json(content).unwrap_or_else(|| panic!("{content}"))
}

/// Waits until a file of the work folder holds something.
async fn wait_for_file(place: &TestHome, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while place.file(name).is_empty() {
        assert!(Instant::now() < deadline, "{name} was never written");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the keeper has written everything that it writes at the start: nobody puts a file into a folder then that is being
/// removed.
async fn wait_for_keeper(place: &TestHome) {
    eventually("the keeper has written down which process the command is", || async {
        let mut folders = std::fs::read_dir(place.home().join("tasks")).unwrap().flatten();
        folders.any(|folder| folder.path().join("pid").metadata().is_ok_and(|file| file.len() > 0))
    })
    .await;
}

/// K1: one JSON object; an exit code is a result, not an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_is_a_result_with_its_output_and_exit_code() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([exec("echo out; echo err >&2; exit 3"), "Done."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let (_, is_error, content) = results(&sound_records(&place, &session).await).remove(0);
    let result = object(&content);
    assert!(!is_error);
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!(result["output"], json!("out\nerr\n"));
    assert!(result["duration_ms"].is_u64());
}

/// T10, K8, K14: the command is killed, and the turn ends when that is confirmed.
#[tokio::test(flavor = "multi_thread")]
async fn cancel_kills_the_foreground_command_and_everything_it_started() {
    let place = TestHome::new();
    let command = "(sleep 300; echo late > late.txt) & echo so far; echo > begun.txt; wait";
    let model = RecordingModel::new(script(&json!([exec(command), "Never."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    wait_for_file(&place, "begun.txt").await;
    let command = TaskProcesses::of_first(&place.home()).command;

    let ended = session.cancel().await.unwrap().unwrap();

    assert_eq!(
        (ended.outcome, sending.await.unwrap().unwrap().outcome),
        (Outcome::Cancelled, Outcome::Cancelled)
    );
    assert!(!std::path::Path::new(&format!("/proc/{command}")).exists(), "it is still running");
    runtime.shutdown().await.unwrap();
    let (_, _, content) = results(&sound_records(&place, &session).await).remove(0);
    let result = object(&content);
    assert_eq!((&result["status"], &result["output"]), (&json!("killed"), &json!("so far\n")));
}

/// K9, T12, DESIGN §6: a runtime that ends on purpose leaves the turn and its command open; the next one attaches to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_goes_on_while_no_runtime_lives_and_the_next_one_waits_for_it() {
    let place = TestHome::new();
    let command = "echo once >> log.txt; while [ ! -e go.txt ]; do sleep 0.02; done; echo the end";
    let answers = json!([exec(command), "It ended."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    let session = first.session("a").await.unwrap();
    let sending = sends(&session, "go");
    wait_for_file(&place, "log.txt").await;

    first.shutdown().await.unwrap();
    let told = sending.await.unwrap();
    let left_open = {
        let journal = place.journal().await;
        let state = longhaul_agent::session::load(&*journal, "a", session.id().unwrap()).await.unwrap();
        state.turn.unwrap().calls[0].is_open()
    };
    let second = open(&place, RecordingModel::new(script(&answers))).await;
    let session = second.session("a").await.unwrap();
    let mut watcher = session.watch();
    second.start().await.unwrap();
    std::fs::write(place.work().join("go.txt"), "").unwrap();
    collect_until(&mut watcher, ended_turn).await;

    assert!(matches!(told, Err(longhaul_agent::Error::Suspended)), "{told:?}");
    assert!(left_open);
    assert_eq!(place.file("log.txt"), "once\n");
    second.shutdown().await.unwrap();
    let (_, is_error, content) = results(&sound_records(&place, &session).await).remove(0);
    assert_eq!((is_error, &object(&content)["output"]), (false, &json!("the end\n")));
}

/// T3, T12: orders work without anybody alive to take them.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_waits_in_the_inbox_ends_what_a_runtime_left_open() {
    let place = TestHome::new();
    let answers = json!([exec("echo x > started.txt; sleep 300 & wait"), "Never."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    let session = first.session("a").await.unwrap();
    let sending = sends(&session, "go");
    wait_for_file(&place, "started.txt").await;
    first.shutdown().await.unwrap();
    let _ = sending.await.unwrap();
    let journal = place.journal().await;
    let order = longhaul_protocol::Order {
        id: longhaul_protocol::OrderId::generate(),
        kind: longhaul_protocol::OrderKind::Cancel,
    };
    let order = longhaul_protocol::InboxRecord::Order(order).encode();
    longhaul_journal::put(&*journal, session.id().unwrap(), order).await.unwrap();

    let second = open(&place, RecordingModel::new(script(&answers))).await;
    let session = second.session("a").await.unwrap();
    let mut watcher = session.watch();
    second.start().await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    second.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let last = SessionRecord::decode(records.last().unwrap()).unwrap();
    assert!(matches!(last, SessionRecord::TurnEnded(ended) if ended.outcome == Outcome::Cancelled));
    assert_eq!(object(&results(&records)[0].2)["status"], json!("killed"));
}

/// C8, K10: the model gets head and tail, and can read the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_cut_and_the_whole_can_be_read() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([exec("seq 1 9000"), "Done."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let (_, _, content) = results(&records).remove(0);
    let output = object(&content)["output"].as_str().unwrap().to_owned();
    assert!(content.len() <= 34 << 10, "{}", content.len());
    assert!(output.starts_with("1\n2\n") && output.ends_with("8999\n9000\n"), "{output}");
    let path = output
        .split(|c: char| c.is_whitespace() || "`\"'.,;)]".contains(c))
        .find(|word| word.starts_with("output:"));

    let answers = json!([
        exec("seq 1 9000"), "Done.",
        {"calls": [{"name": "read_file", "arguments": {"path": path.expect("it says how to read the whole"), "offset": 4500, "limit": 2}}]},
        "Read.",
    ]);
    let model = RecordingModel::new(script(&answers));
    let again = open(&place, model.clone()).await;
    again.session("a").await.unwrap().send("read it").await.unwrap();
    again.shutdown().await.unwrap();

    let heard = heard(&model.requests().pop().unwrap().items);
    assert!(heard.last().unwrap().starts_with("4500\n4501\n"), "{heard:?}");
}

/// K13: no colours, no control codes, whole characters, no input.
#[tokio::test(flavor = "multi_thread")]
async fn the_model_reads_plain_text_and_commands_read_nothing() {
    let place = TestHome::new();
    let command = r"printf '\033[31mred\033[0m \377 caf\303\251\n'; cat; echo end";
    let model = RecordingModel::new(script(&json!([exec(command), "Done."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let (_, _, content) = results(&sound_records(&place, &session).await).remove(0);
    assert_eq!(object(&content)["output"], json!("red \u{fffd} café\nend\n"));
}

/// K17. The variable is set for the commands of this test's process alone: nextest gives each test its own.
#[tokio::test(flavor = "multi_thread")]
async fn commands_do_not_inherit_keys() {
    let place = TestHome::new();
    let mut config = place.config();
    config.settings.model.api_key_env = Some("CARGO_PKG_NAME".to_owned());
    let model = RecordingModel::new(script(&json!([exec("echo \"[$CARGO_PKG_NAME][$HOME]\""), "Done."])));
    let runtime = longhaul_agent::Runtime::with_model(config, model).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    assert!(std::env::var("CARGO_PKG_NAME").is_ok(), "cargo sets it for tests");

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let (_, _, content) = results(&sound_records(&place, &session).await).remove(0);
    let home = std::env::var("HOME").unwrap_or_default();
    assert_eq!(object(&content)["output"], json!(format!("[][{home}]\n")));
}

/// S1's part: an idle runtime is gone at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_runtime_ends_at_once() {
    at_best(
        within(Duration::from_millis(100)).min(Duration::from_secs(2)),
        "the end of an idle runtime",
        || async {
            let place = TestHome::new();
            let runtime = open(&place, RecordingModel::new(script(&json!(["Hello."])))).await;
            runtime.start().await.unwrap();
            runtime.session("a").await.unwrap().send("hello").await.unwrap();

            let began = Instant::now();
            runtime.shutdown().await.unwrap();
            began.elapsed()
        },
    )
    .await;
}

/// K9, T13: a command that is not found again, because its folder was removed or the session is in another home, is told as
/// unknown and never started a second time.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_folder_is_gone_is_not_started_again() {
    let place = TestHome::new();
    let command = "echo once >> log.txt; while [ ! -e go.txt ]; do sleep 0.02; done; echo x > over.txt";
    let answers = json!([exec(command), "Told."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    let sending = sends(&first.session("a").await.unwrap(), "go");
    wait_for_file(&place, "log.txt").await;
    wait_for_keeper(&place).await;
    first.shutdown().await.unwrap();
    let _ = sending.await.unwrap();
    std::fs::remove_dir_all(place.home().join("tasks")).unwrap();

    let second = open(&place, RecordingModel::new(script(&answers))).await;
    let session = second.session("a").await.unwrap();
    let mut watcher = session.watch();
    second.start().await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    second.shutdown().await.unwrap();
    std::fs::write(place.work().join("go.txt"), "").unwrap();
    wait_for_file(&place, "over.txt").await;
    let (_, is_error, content) = results(&sound_records(&place, &session).await).remove(0);
    assert!(is_error && content.starts_with("unknown: "), "{content}");
    assert_eq!(place.file("log.txt"), "once\n");
}

/// K8: a command that runs when its folder is removed is lost, and not said to have never begun.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_folder_is_removed_while_it_runs_is_lost() {
    let place = TestHome::new();
    let command = "echo once >> log.txt; while [ ! -e go.txt ]; do sleep 0.02; done";
    let runtime = open(&place, RecordingModel::new(script(&json!([exec(command), "Told."])))).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    wait_for_file(&place, "log.txt").await;
    wait_for_keeper(&place).await;

    std::fs::remove_dir_all(place.home().join("tasks")).unwrap();
    std::fs::write(place.work().join("go.txt"), "").unwrap();
    sending.await.unwrap().unwrap();

    runtime.shutdown().await.unwrap();
    let (_, _, content) = results(&sound_records(&place, &session).await).remove(0);
    assert!(content.contains("lost"), "{content}");
}

/// P3: the call that started the command has returned long before, and no other call follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_background_task_made_is_reported_with_the_end_of_a_later_turn() {
    let place = TestHome::new();
    let command = "while [ ! -e go ]; do sleep 0.02; done; git init -q made";
    let started = json!({"calls": [{"name": "exec", "arguments": {
        "command": command, "description": "waits", "run_in_background": true,
    }}]});
    let answers: Vec<_> = std::iter::once(started).chain((0..1_000).map(|_| json!("Done."))).collect();
    let runtime = open(&place, RecordingModel::new(script(&json!(answers)))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    eventually("the repository", || async { place.work().join("made/.git/config").exists() }).await;

    eventually("the report", || async {
        session.send("and now?").await.unwrap();
        let records = sound_records(&place, &session).await;
        records.iter().any(|record| match SessionRecord::decode(record) {
            Ok(SessionRecord::Warning(warning)) => warning.text.contains("made/.git is a new repository"),
            _ => false,
        })
    })
    .await;
    runtime.shutdown().await.unwrap();
}

/// P3: whatever git would run in a repository that a command has made, the user reads of it before they use it; and once.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_command_made_is_reported_with_the_end_of_its_turn() {
    let place = TestHome::new();
    let made = "git init -q sub && git -C sub config core.fsmonitor ./evil && mkdir -p bare/objects bare/refs && touch bare/HEAD";
    let model = RecordingModel::new(script(&json!([exec(made), "Done.", exec("true"), "Done."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();
    session.send("again").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let told =
        |record: &SessionRecord| matches!(record, SessionRecord::Warning(_) | SessionRecord::TurnEnded(_));
    let records = records.iter().map(|record| SessionRecord::decode(record).unwrap());
    let told: Vec<SessionRecord> = records.filter(told).collect();
    let [SessionRecord::Warning(warning), SessionRecord::TurnEnded(_), SessionRecord::TurnEnded(_)] =
        &told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!(warning.code, "new_repository");
    assert!(
        warning.text.contains("sub/.git is a new repository: git runs programs by its config core.fsmonitor"),
        "{}",
        warning.text
    );
    assert!(warning.text.contains("bare is new and looks like a bare repository"), "{}", warning.text);
}

/// K1: programs get as JSON what the model reads as lines.
#[tokio::test(flavor = "multi_thread")]
async fn the_record_has_the_fields_of_a_result() {
    let place = TestHome::new();
    let runtime =
        open(&place, RecordingModel::new(script(&json!([exec("echo hello; exit 3"), "So."])))).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    session.send("go").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    runtime.shutdown().await.unwrap();
    let event = events.iter().find(|event| matches!(event.kind, EventKind::ToolFinished { .. })).unwrap();
    let json = serde_json::to_value(event).unwrap();
    let content = json["content"].as_str().unwrap();
    let duration = json["duration_ms"].as_u64().unwrap();
    assert_eq!(content, format!("status: failed\nexit_code: 3\nduration_ms: {duration}\n\nhello\n"));
    assert_eq!((&json["status"], &json["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!((json.get("task_id"), json.get("message")), (None, None));
    let records = sound_records(&place, &session).await;
    let finished = records.iter().find_map(|record| match SessionRecord::decode(record).unwrap() {
        SessionRecord::ToolFinished(finished) => Some(finished),
        _ => None,
    });
    assert_eq!(CommandReport::parse(content).unwrap().0, finished.unwrap().report);
}

/// A model may repeat a name that it reads in its context, and a call may be open while the program is upgraded.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_the_former_name_of_a_tool_still_runs() {
    let place = TestHome::new();
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let answers = json!([
        call("task_list", json!({})),
        call("history_search", json!({"query": "osprey"})),
        call("history_read", json!({"from": 1, "to": 9})),
        "So.",
    ]);
    let runtime = open(&place, RecordingModel::new(script(&answers))).await;
    let session = runtime.session("a").await.unwrap();

    session.send("The osprey is back.").await.unwrap();

    runtime.shutdown().await.unwrap();
    let results = results(&sound_records(&place, &session).await);
    let names: Vec<&str> = results.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["task_list", "history_search", "history_read"], "records keep what the model called");
    assert!(results.iter().all(|(_, is_error, _)| !is_error), "{results:?}");
    assert!(results[0].2.contains("this session has no tasks"), "{results:?}");
    assert!(results[1].2.contains("user: The osprey is back."), "{results:?}");
    assert!(results[2].2.contains("  The osprey is back."), "{results:?}");
}

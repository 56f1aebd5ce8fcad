//! Commands in the background, as a session lives with them: what the model is told, what wakes, what survives.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::config::Wake;
use longhaul_agent::{Config, Runtime, Session};
use longhaul_model::Model;
use longhaul_protocol::{
    CommandReport, Event, EventKind, Item, Outcome, Role, SessionRecord, TaskId, TaskStatus,
};
use longhaul_testkit::{RecordingModel, TaskProcesses, TestHome, collect_until, ended_turn};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{eventually, heard, open, results, script, sends, sound_records};

/// A call that starts a command in the background.
fn background(command: &str, description: &str) -> Value {
    exec(&json!({"command": command, "description": description, "run_in_background": true}))
}

fn exec(arguments: &Value) -> Value {
    json!({"calls": [{"name": "exec", "arguments": arguments}]})
}

/// Runs until the file is there.
fn until(file: &str) -> String {
    format!("while [ ! -e {file} ]; do sleep 0.02; done")
}

async fn open_with(place: &TestHome, model: Arc<dyn Model>, change: impl FnOnce(&mut Config)) -> Runtime {
    let mut config = place.config();
    change(&mut config);
    Runtime::with_model(config, model).await.unwrap()
}

/// The tasks that the records have.
async fn tasks_of(session: &Session) -> Vec<(TaskId, Option<TaskStatus>)> {
    let state = session.state().await.unwrap();
    state.tasks.all().iter().map(|task| (task.id(), task.ended.as_ref().map(|end| end.status))).collect()
}

async fn all_ended(session: &Session) -> bool {
    tasks_of(session).await.iter().all(|(_, status)| status.is_some())
}

/// The notes and notifications of a request, in their order.
fn told(items: &[Arc<Item>]) -> Vec<String> {
    let text = |item: &Arc<Item>| match &**item {
        Item::Note { text } => Some(text.clone()),
        Item::Text { text, .. } if text.starts_with("<task-notification>") => Some(text.clone()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

fn is_task_end(event: &Event) -> bool {
    matches!(event.kind, EventKind::TaskEnded { .. })
}

/// K3, K5, K7: it is started and goes on, the next request says so, and a later one has its end, once.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_task_is_in_the_next_request_of_the_turn() {
    let place = TestHome::new();
    let wait = exec(&json!({"command": format!("touch go; {}", until("gone"))}));
    let command = format!("{}; echo built; touch gone", until("go"));
    let model = RecordingModel::new(script(&json!([
        background(&command, "the build"),
        wait,
        "All done.",
        "It is built."
    ])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("build it").await.unwrap();
    session.settle().await.unwrap();

    assert_eq!(ended.text, "All done.");
    let requests = model.requests();
    let started = CommandReport::parse_to_json(&heard(&requests[1].items)[1]).unwrap();
    assert_eq!(started["status"], "background_started");
    let id = started["task_id"].as_str().unwrap();
    assert!(told(&requests[1].items)[0].starts_with("Currently running background tasks:\n- task_"));
    assert!(told(&requests[1].items)[0].contains("the build"));
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let told = facts(&records).into_iter().filter_map(|fact| match fact {
        SessionRecord::Notification(told) => Some(told.text),
        _ => None,
    });
    let told: Vec<String> = told.collect();
    // It may have ended too late for the third request, and then it has its own turn.
    assert_eq!(told.len(), 1);
    assert!(told.iter().all(|text| text.contains(id) && text.contains(">built\n</output>")));
}

/// K5: the exact block, in the voice of the user, at the next step boundary; everything that a program or the model wrote is escaped.
#[tokio::test(flavor = "multi_thread")]
async fn a_notification_in_a_request_is_the_block_that_the_format_says() {
    let place = TestHome::new();
    let command = format!("{}; echo '</output> <b> & c'; exit 3", until("go"));
    let model =
        RecordingModel::new(script(&json!([background(&command, "a <b> & c"), "It runs.", "It failed."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("build it").await.unwrap();
    let mut watcher = session.watch();

    std::fs::write(place.work().join("go"), "").unwrap();
    collect_until(&mut watcher, ended_turn).await;

    let request = model.requests().pop().unwrap();
    let blocks = request.items.iter().filter_map(|item| match &**item {
        Item::Text { role, text } if text.starts_with("<task-notification>") => Some((*role, text.clone())),
        _ => None,
    });
    let blocks: Vec<_> = blocks.collect();
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let ended = facts(&records).into_iter().find_map(|fact| match fact {
        SessionRecord::TaskEnded(ended) => Some(ended),
        _ => None,
    });
    let ended = ended.unwrap();
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let expected = format!(
        "<task-notification>\n<task-id>{}</task-id>\n<status>failed</status>\n<command>{}</command>\n\
         <description>a &lt;b&gt; &amp; c</description>\n<exit-code>3</exit-code>\n<duration-ms>{}</duration-ms>\n\
         <output untrusted=\"true\">&lt;/output&gt; &lt;b&gt; &amp; c\n</output>\n</task-notification>",
        ended.task_id,
        escaped(&command),
        ended.duration_ms
    );
    assert_eq!(blocks, [(Role::User, expected)]);
}

/// K6: with nobody talking, the end of a task begins a turn, and the agent answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_ends_while_idle_wakes_the_session() {
    let place = TestHome::new();
    let command = format!("{}; echo built; exit 3", until("go"));
    let model =
        RecordingModel::new(script(&json!([background(&command, "the build"), "It runs.", "It failed."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("build it").await.unwrap();
    let mut watcher = session.watch();

    std::fs::write(place.work().join("go"), "").unwrap();
    let events = collect_until(&mut watcher, ended_turn).await;

    let EventKind::TurnEnded { outcome, text, .. } = &events.last().unwrap().kind else { unreachable!() };
    assert_eq!((*outcome, text.as_str()), (Outcome::Completed, "It failed."));
    let request = model.requests().pop().unwrap();
    let last = told(&request.items).pop().unwrap();
    assert!(last.contains("<status>failed</status>") && last.contains("<exit-code>3</exit-code>"), "{last}");
    assert!(last.contains("<output untrusted=\"true\">built\n</output>"), "{last}");
    assert_eq!(model.requests().len(), 3);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K6: ends that come close together make one turn.
#[tokio::test(flavor = "multi_thread")]
async fn ends_that_come_together_make_one_turn() {
    let place = TestHome::new();
    let start = |number: u8| {
        let command = format!("{}; echo {number}", until("go"));
        json!({"name": "exec", "arguments": {"command": command, "run_in_background": true}})
    };
    let starts = json!({"calls": [start(1), start(2), start(3)]});
    let model = RecordingModel::new(script(&json!([starts, "They run.", "All three ended.", "Never."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    let mut watcher = session.watch();

    std::fs::write(place.work().join("go"), "").unwrap();
    let events = collect_until(&mut watcher, ended_turn).await;
    session.settle().await.unwrap();

    let notified = events.iter().filter(|event| matches!(event.kind, EventKind::Notification { .. })).count();
    assert_eq!((notified, model.requests().len()), (3, 3));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K6: whether it wakes is a matter of policy; what did not wake is told with the next turn, and programs can read it before.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_does_not_wake_is_told_with_the_next_turn() {
    for (wake, code) in [(Wake::Never, 1), (Wake::OnFailure, 0)] {
        let place = TestHome::new();
        let command = format!("{}; exit {code}", until("go"));
        let model =
            RecordingModel::new(script(&json!([background(&command, "quick"), "It runs.", "I see."])));
        let runtime = open_with(&place, model.clone(), |config| config.settings.exec.wake = wake).await;
        let session = runtime.session("a").await.unwrap();
        session.send("go").await.unwrap();
        std::fs::write(place.work().join("go"), "").unwrap();
        eventually("the task has ended", || all_ended(&session)).await;

        let waiting = session.notifications().await.unwrap();
        session.send("what of it?").await.unwrap();

        assert_eq!(waiting.len(), 1);
        let requests = model.requests();
        let notified =
            |number: usize| told(&requests[number].items).iter().filter(|text| text.starts_with('<')).count();
        assert_eq!((requests.len(), notified(2)), (3, 1), "{wake:?}");
        assert_eq!(heard(&requests[2].items).last().unwrap(), "what of it?");
        assert_eq!(session.notifications().await.unwrap(), []);
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
}

/// Whether a keeper has written the exit status of a command here. The last thing that the command does comes a moment before that.
fn has_exit_status(place: &TestHome) -> bool {
    let folders = std::fs::read_dir(place.home().join("tasks")).unwrap();
    folders.flatten().any(|folder| folder.path().join("status.json").exists())
}

/// K9, K6: the command outlives the runtime; the next one finds it, and an end that came meanwhile is told once.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_came_while_nobody_was_there_is_in_the_first_request_of_the_next_turn() {
    let place = TestHome::new();
    let command = format!("echo once >> log.txt; {}; echo built", until("go"));
    let answers = json!([background(&command, "the build"), "It runs.", "It is built."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    first.session("a").await.unwrap().send("build it").await.unwrap();
    first.shutdown().await.unwrap();

    std::fs::write(place.work().join("go"), "").unwrap();
    eventually("its end is on disk", || async { has_exit_status(&place) }).await;
    let model = RecordingModel::new(script(&answers));
    let second = open(&place, model.clone()).await;
    let session = second.session("a").await.unwrap();
    session.send("well?").await.unwrap();
    session.settle().await.unwrap();

    let request = &model.requests()[0];
    assert_eq!(told(&request.items).iter().filter(|text| text.contains("<status>completed<")).count(), 1);
    assert_eq!((model.requests().len(), place.file("log.txt").as_str()), (1, "once\n"));
    second.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K6: a runtime that starts treats ends that it finds like ends that it saw.
#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_starts_wakes_for_an_end_that_it_finds() {
    let place = TestHome::new();
    let command = format!("{}; echo built", until("go"));
    let answers = json!([background(&command, "the build"), "It runs.", "It is built."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    first.session("a").await.unwrap().send("build it").await.unwrap();
    first.shutdown().await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    eventually("its end is on disk", || async { has_exit_status(&place) }).await;

    let second = open(&place, RecordingModel::new(script(&answers))).await;
    let mut watcher = second.watch();
    second.start().await.unwrap();
    let events = collect_until(&mut watcher, ended_turn).await;

    let EventKind::TurnEnded { text, .. } = &events.last().unwrap().kind else { unreachable!() };
    assert_eq!(text, "It is built.");
    let session = second.session("a").await.unwrap();
    second.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K9: a runtime that only looks after sessions watches tasks that another process has started.
#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_looks_after_sessions_sees_the_end_of_a_task_that_ran_before_it() {
    let place = TestHome::new();
    let command = format!("{}; echo built", until("go"));
    let answers = json!([background(&command, "the build"), "It runs.", "It is built."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    first.session("a").await.unwrap().send("build it").await.unwrap();
    first.shutdown().await.unwrap();

    let second = open(&place, RecordingModel::new(script(&answers))).await;
    let mut watcher = second.watch();
    second.start().await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    let events = collect_until(&mut watcher, ended_turn).await;

    assert!(events.iter().any(is_task_end));
    let session = second.session("a").await.unwrap();
    second.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K9: the keeper was killed. The task is lost, with what output there is, and that is said once.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_keeper_was_killed_is_lost_and_said_to_be() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([
        background("echo so far; echo > begun; sleep 300", "x"),
        "Go.",
        "Lost."
    ])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    eventually("the command runs", || async { place.file("begun").ends_with('\n') }).await;
    let keeper = TaskProcesses::of_first(&place.home()).keeper;
    let (task, _) = tasks_of(&session).await[0];
    let output = place.home().join("tasks").join(task.to_string()).join("output.head");
    eventually("its output is kept", || async {
        std::fs::read_to_string(&output).is_ok_and(|output| output == "so far\n")
    })
    .await;
    let mut watcher = session.watch();

    std::process::Command::new("kill").args(["-9", &keeper.to_string()]).status().unwrap();
    collect_until(&mut watcher, ended_turn).await;

    let request = model.requests().pop().unwrap();
    let last = told(&request.items).pop().unwrap();
    assert!(last.contains("<status>lost</status>") && last.contains("so far"), "{last}");
    assert_eq!(tasks_of(&session).await[0].1, Some(TaskStatus::Lost));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K2: the time passes, nothing moves, and the end is told with what was printed after the flip.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_too_long_goes_on_as_a_task() {
    let place = TestHome::new();
    let command = format!("echo before; {}; echo after", until("go"));
    let model = RecordingModel::new(script(&json!([
        exec(&json!({"command": command, "timeout": 5})),
        "It runs.",
        "It ended."
    ])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();
    let mut watcher = session.watch();
    std::fs::write(place.work().join("go"), "").unwrap();
    collect_until(&mut watcher, ended_turn).await;

    let requests = model.requests();
    let flipped = CommandReport::parse_to_json(heard(&requests[1].items).last().unwrap()).unwrap();
    assert_eq!((&flipped["status"], &flipped["output"]), (&json!("auto_backgrounded"), &json!("before\n")));
    assert!(flipped["message"].as_str().unwrap().contains("no work was lost"), "{flipped}");
    let last = told(&requests[2].items).pop().unwrap();
    assert!(last.contains("before\nafter\n"), "{last}");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K14: a turn that is cancelled takes its command with it, and not its tasks.
#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_turn_leaves_its_tasks_alone() {
    let place = TestHome::new();
    let foreground = exec(&json!({"command": "touch there; sleep 0.1; while true; do sleep 1; done"}));
    let model = RecordingModel::new(script(&json!([
        background("while true; do sleep 1; done", "server"),
        foreground,
        "Never."
    ])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    eventually("the command runs", || async { place.work().join("there").exists() }).await;

    session.cancel().await.unwrap();

    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    let (task, status) = tasks_of(&session).await[0];
    assert_eq!(status, None);
    session.kill_task(task).await.unwrap();
    eventually("the end is on record", || all_ended(&session)).await;
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K8, K7: what somebody ends is not told as if it had ended by itself; a note says that none is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_somebody_ended_makes_no_notification_and_wakes_nobody() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([
        background("while true; do sleep 1; done", "server"),
        "Go.",
        "I see."
    ])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    let (task, _) = tasks_of(&session).await[0];

    session.kill_task(task).await.unwrap();
    eventually("the end is on record", || all_ended(&session)).await;
    session.settle().await.unwrap();
    session.send("what of it?").await.unwrap();

    let requests = model.requests();
    assert_eq!(requests.len(), 3, "nothing woke");
    assert_eq!(told(&requests[2].items).pop().unwrap(), "Currently running background tasks: none");
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    assert!(!facts(&records).iter().any(|fact| matches!(fact, SessionRecord::Notification(_))));
}

/// T3: an order from any process, which also survives a crash before it is carried out.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_to_end_a_task_is_carried_out() {
    use longhaul_protocol::{InboxRecord, Order, OrderId, OrderKind};
    let place = TestHome::new();
    let answers = json!([background("while true; do sleep 1; done", "server"), "Go."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    let session = first.session("a").await.unwrap();
    session.send("go").await.unwrap();
    let (task, _) = tasks_of(&session).await[0];
    first.shutdown().await.unwrap();
    let journal = place.journal().await;
    let order = InboxRecord::Order(Order { id: OrderId::generate(), kind: OrderKind::Kill { task } });
    longhaul_journal::put(&*journal, session.id().unwrap(), order.encode()).await.unwrap();
    longhaul_journal::Journal::close(&*journal).await;

    let second = open(&place, RecordingModel::new(script(&answers))).await;
    second.start().await.unwrap();
    let session = second.session("a").await.unwrap();
    eventually("the end is on record", || all_ended(&session)).await;

    assert_eq!(tasks_of(&session).await, [(task, Some(TaskStatus::Killed))]);
    second.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K12: silence after what looks like a question is said once.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_seems_to_wait_for_input_is_reported_once() {
    let place = TestHome::new();
    let command = format!("printf 'Continue? [y/N] '; {}; echo no", until("go"));
    let model =
        RecordingModel::new(script(&json!([background(&command, "asks"), "Go.", "I see.", "It ended."])));
    let runtime =
        open_with(&place, model.clone(), |config| config.stall_time = Duration::from_millis(100)).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.send("go").await.unwrap();
    let waits = |kind: &EventKind| matches!(kind, EventKind::Warning { code, .. } if code == "task_waiting");
    collect_until(&mut watcher, waits).await;

    session.send("what of it?").await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    eventually("the task has ended", || all_ended(&session)).await;
    session.settle().await.unwrap();

    let requests = model.requests();
    let notes =
        |number: usize| told(&requests[number].items).iter().filter(|text| text.contains("[y/N]")).count();
    assert_eq!((notes(2), notes(3)), (1, 2), "once as a note, and in the output at its end");
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let warnings = facts(&records).iter().filter(|fact| matches!(fact, SessionRecord::Warning(_))).count();
    assert_eq!(warnings, 1);
}

/// K10, J8: what a task printed is kept when its raw files are gone, without secrets.
#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_task_is_kept_and_has_no_secrets() {
    let place = TestHome::new();
    let command = "printf 'key is s3cret-%s\\n' 12345; seq 5";
    let model = RecordingModel::new(script(&json!([background(command, "prints"), "Go.", "Fine."])));
    let runtime = open_with(&place, model.clone(), |config| {
        config.settings.secrets.patterns = vec!["s3cret-[0-9]+".to_owned()];
    })
    .await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    eventually("the task has ended", || all_ended(&session)).await;
    session.settle().await.unwrap();

    let state = session.state().await.unwrap();
    let end = state.tasks.all()[0].ended.clone().unwrap();
    let output = runtime.journal().blob(end.output.unwrap().hash).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output), "key is [redacted]\n1\n2\n3\n4\n5\n");
    let request = model.requests().pop().unwrap();
    assert!(told(&request.items).pop().unwrap().contains("key is [redacted]"));
    runtime.shutdown().await.unwrap();
    assert!(results(&sound_records(&place, &session).await)[0].2.contains("background_started"));
}

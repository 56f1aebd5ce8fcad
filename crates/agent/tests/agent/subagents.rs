//! A1, A3: subagents: their results, the background, questions, stopping.

use std::sync::Arc;

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::{Config, Runtime, Session, Settled};
use longhaul_journal::{Journal, SqliteJournal};
use longhaul_model::ScriptedModel;
use longhaul_protocol::{
    Cause, ChildSession, EventKind, Outcome, Record, Sender, SessionId, SessionRecord, StreamName,
    TaskStatus, TurnEnded,
};
use longhaul_testkit::{RecordingModel, RoutedModel, TestHome, broken_rules, collect_until, records_of};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{eventually, results, script, sound_records};

/// One script for the session that is told to "go", one for each other prompt.
pub(crate) fn scripts(
    routes: impl IntoIterator<Item = (&'static str, Value)>,
) -> Arc<RecordingModel<RoutedModel<ScriptedModel>>> {
    let routes = routes.into_iter().map(|(words, answers)| (words, script(&answers)));
    RecordingModel::new(RoutedModel::new(routes))
}

pub(crate) fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

pub(crate) fn agent(arguments: &Value) -> Value {
    call("agent", arguments)
}

/// The session of each subagent that a session started, in the order of their starts.
pub(crate) fn children(records: &[Record]) -> Vec<SessionId> {
    let started = facts(records).into_iter().filter_map(|fact| match fact {
        SessionRecord::ToolStarted(started) => Some(started.child?.session),
        _ => None,
    });
    started.collect()
}

pub(crate) async fn child_records(journal: &SqliteJournal, id: SessionId) -> Vec<Record> {
    let records = records_of(journal, id).await;
    assert_eq!(broken_rules(&records), Vec::<String>::new());
    records
}

pub(crate) fn turn_ends(records: &[Record]) -> Vec<TurnEnded> {
    let ended = facts(records).into_iter().filter_map(|fact| match fact {
        SessionRecord::TurnEnded(ended) => Some(ended),
        _ => None,
    });
    ended.collect()
}

fn count(records: &[Record], is: fn(&SessionRecord) -> bool) -> usize {
    facts(records).iter().filter(|fact| is(fact)).count()
}

async fn open(place: &TestHome, config: Config, routes: Vec<(&'static str, Value)>) -> (Runtime, Session) {
    let _ = place;
    let runtime = Runtime::with_model(config, scripts(routes)).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    (runtime, session)
}

/// A1, A3, P8: the result is what the subagent said last. Its session names its parent, its prompt is no person's word, and what it
/// spends has its own cause.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_works_in_a_session_of_its_own_and_its_last_words_are_the_result() {
    let place = TestHome::new();
    let child = json!([call("exec", &json!({"command": "echo one > counted.txt"})), "There is 1 file."]);
    let parent = json!([agent(&json!({"prompt": "Count the files."})), "It says 1."]);
    let (runtime, session) = open(&place, place.config(), vec![("Count", child), ("go", parent)]).await;
    let mut watcher = session.watch();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.text, "It says 1.");
    let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::TurnEnded { .. })).await;
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let (name, is_error, content) = results(&records).remove(0);
    assert_eq!((name.as_str(), is_error), ("agent", false), "{content}");
    assert!(content.starts_with("status: completed\n"), "{content}");
    assert!(content.ends_with("\n\nThere is 1 file."), "{content}");
    let id = children(&records)[0];
    let journal = place.journal().await;
    let of_child = child_records(&journal, id).await;
    let SessionRecord::SessionCreated(created) = facts(&of_child).remove(0) else {
        panic!("no first record")
    };
    let link = created.parent.unwrap();
    assert_eq!(Some(link.session), session.id());
    assert_eq!(created.key, ChildSession::key_of(link.call));
    let sender = facts(&of_child).into_iter().find_map(|fact| match fact {
        SessionRecord::InputTaken(taken) => Some(taken.sender),
        _ => None,
    });
    assert_eq!(sender, Some(Sender::Parent { session: link.session, call: link.call }));
    let is_own_cause = |fact: &SessionRecord| matches!(fact, SessionRecord::Usage(usage) if usage.cause != Some(Cause::Subagent));
    assert!(!facts(&of_child).iter().any(is_own_cause));
    let key = created.key.clone();
    let is_started =
        |event: &EventKind| matches!(event, EventKind::ChildStarted { child, .. } if *child == key);
    let is_ended = |event: &EventKind| matches!(event, EventKind::ChildEnded { child, status: TaskStatus::Completed, .. } if *child == key);
    assert_eq!(events.iter().filter(|event| is_started(&event.kind)).count(), 1);
    assert_eq!(events.iter().filter(|event| is_ended(&event.kind)).count(), 1);
    assert_eq!(count(&records, |fact| matches!(fact, SessionRecord::Notification(_))), 0);
    assert_eq!(place.file("counted.txt"), "one\n");
    journal.close().await;
}

/// A1: calls of one answer run side by side: each of these waits for the other.
#[tokio::test(flavor = "multi_thread")]
async fn subagents_of_one_answer_run_at_the_same_time() {
    let place = TestHome::new();
    let meet = |own: &str, other: &str| {
        let command = format!("touch {own}; while [ ! -e {other} ]; do sleep 0.02; done");
        json!([call("exec", &json!({"command": command})), format!("{own} is here.")])
    };
    let calls = json!({"calls": [
        {"name": "agent", "arguments": {"prompt": "Be left."}},
        {"name": "agent", "arguments": {"prompt": "Be right."}},
    ]});
    let routes = vec![
        ("left", meet("left", "right")),
        ("right", meet("right", "left")),
        ("go", json!([calls, "Both are here."])),
    ];
    let (runtime, session) = open(&place, place.config(), routes).await;

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.text, "Both are here.");
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let mut said: Vec<String> =
        results(&records).iter().map(|(_, _, content)| content.lines().last().unwrap().to_owned()).collect();
    said.sort();
    assert_eq!(said, ["left is here.", "right is here."]);
}

/// A1, K3, K5, K6: in the background, the call returns at once, and the end is announced once and wakes the idle parent.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_in_the_background_is_announced_once_at_its_end() {
    let place = TestHome::new();
    let wait = "while [ ! -e go ]; do sleep 0.02; done";
    let child = json!([call("exec", &json!({"command": wait})), "The result is 42."]);
    let parent =
        json!([agent(&json!({"prompt": "Compute it.", "background": true})), "It computes.", "It is 42.",]);
    let (runtime, session) = open(&place, place.config(), vec![("Compute", child), ("go", parent)]).await;

    let first = session.send("go").await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    let settled = session.settle().await.unwrap();

    assert_eq!((first.text.as_str(), settled), ("It computes.", Settled::Idle));
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    assert!(results(&records)[0].2.starts_with("status: background_started\ntask_id: task_"));
    let notifications: Vec<String> = facts(&records)
        .into_iter()
        .filter_map(|fact| match fact {
            SessionRecord::Notification(notification) => Some(notification.text),
            _ => None,
        })
        .collect();
    assert_eq!(notifications.len(), 1);
    assert!(notifications[0].contains("The result is 42."), "{}", notifications[0]);
    let ends = turn_ends(&records);
    assert_eq!(ends.iter().map(|end| end.text.as_str()).collect::<Vec<_>>(), ["It computes.", "It is 42."]);
}

/// A1, K2: one that takes longer than `exec.timeout_s` goes on in the background, with nothing lost. `task_output` waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_that_takes_long_goes_on_in_the_background() {
    let place = TestHome::new();
    let mut config = place.config();
    config.settings.exec.timeout_s = 1;
    let wait = "while [ ! -e go ]; do sleep 0.02; done";
    let child = json!([call("exec", &json!({"command": wait, "timeout": 600})), "Done at last."]);
    let parent = json!([
        agent(&json!({"prompt": "Compute it."})),
        call("exec", &json!({"command": "touch go"})),
        "It goes on.",
        "Heard.",
    ]);
    let (runtime, session) = open(&place, config, vec![("Compute", child), ("go", parent)]).await;

    session.send("go").await.unwrap();
    session.settle().await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let results = results(&records);
    assert!(results[0].2.starts_with("status: auto_backgrounded\n"), "{}", results[0].2);
    let told = |fact: &SessionRecord| matches!(fact, SessionRecord::Notification(told) if told.text.contains("Done at last."));
    assert_eq!(facts(&records).iter().filter(|fact| told(fact)).count(), 1);
}

/// A2, K14: cancelling the parent's turn ends the subagent that it waits for, with the commands that it runs, also in the background.
#[tokio::test(flavor = "multi_thread")]
async fn cancelling_the_parent_ends_the_subagent_and_all_that_it_runs() {
    let place = TestHome::new();
    let endless = "touch begun; while :; do date +%N > beat; sleep 0.02; done";
    let child = json!([
        call("exec", &json!({"command": endless, "run_in_background": true})),
        call("exec", &json!({"command": "while :; do sleep 0.02; done", "timeout": 600})),
        "never",
    ]);
    let parent = json!([agent(&json!({"prompt": "Beat."})), "never"]);
    let (runtime, session) = open(&place, place.config(), vec![("Beat", child), ("go", parent)]).await;
    let sending = crate::sends(&session, "go");
    let work = place.work();
    eventually("the command", || async { work.join("begun").exists() }).await;

    session.cancel().await.unwrap();

    let ended = sending.await.unwrap().unwrap();
    assert_eq!(ended.outcome, Outcome::Cancelled);
    let last = place.file("beat");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(place.file("beat"), last, "it still runs");
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let journal = place.journal().await;
    let of_child = child_records(&journal, children(&records)[0]).await;
    assert_eq!(turn_ends(&of_child).iter().map(|end| end.outcome).collect::<Vec<_>>(), [Outcome::Cancelled]);
    assert!(results(&records)[0].2.starts_with("status: killed\n"), "{:?}", results(&records));
    journal.close().await;
}

/// A2, K8: killing the task stops the subagent, and the end is not announced.
#[tokio::test(flavor = "multi_thread")]
async fn task_kill_stops_a_subagent_and_its_end_is_not_announced() {
    let place = TestHome::new();
    let child =
        json!([call("exec", &json!({"command": "touch begun; while :; do sleep 0.02; done"})), "never"]);
    let kill = "while [ ! -e begun ]; do sleep 0.02; done";
    let parent = |task: &str| {
        json!([
            agent(&json!({"prompt": "Beat.", "background": true})),
            call("exec", &json!({"command": kill})),
            call("task_output", &json!({})),
            call("task_kill", &json!({"task_id": task})),
            "It is over.",
            "never",
        ])
    };
    // The script has to know the id, which the first run tells.
    let model = scripts([("Beat", child), ("go", parent("task_00000000000000000000000000"))]);
    let runtime = Runtime::with_model(place.config(), model).await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();
    let listed = runtime.task_registry().of_session("a", session.id().unwrap()).await.unwrap();
    let now = runtime.task_registry().kill(&listed[0]).await.unwrap();
    session.settle().await.unwrap();

    assert_eq!(now.status, TaskStatus::Killed);
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let shown = &results(&records)[2].2;
    assert!(shown.contains("running") && shown.contains("agent agent"), "{shown}");
    assert_eq!(count(&records, |fact| matches!(fact, SessionRecord::Notification(_))), 0);
    assert_eq!(turn_ends(&records).len(), 1);
}

/// A2, T10: while what a subagent left running comes to its end, its parent works on. The command takes no SIGTERM, so that takes a
/// moment; on a busy machine the parent may take longer, then it is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_works_on_while_a_subagents_tasks_are_ended() {
    let mut was_running = false;
    for _ in 0..5 {
        let place = TestHome::new();
        let stubborn = "trap '' TERM; while :; do sleep 0.1; done";
        let start = call("exec", &json!({"command": stubborn, "run_in_background": true}));
        let child = json!([start, "Left."]);
        let parent = json!([
            agent(&json!({"prompt": "Leave it.", "background": true})),
            "Fine.",
            "Hello.",
            "Heard.",
            "Heard."
        ]);
        let (runtime, session) = open(&place, place.config(), vec![("Leave", child), ("go", parent)]).await;
        let journal = place.journal().await;
        session.send("go").await.unwrap();
        let id = session.state().await.unwrap().tasks.all()[0].started.session.unwrap();
        eventually("the order to end its task", || async {
            journal.head(&StreamName::inbox(id)).await.unwrap().seq > 1
        })
        .await;

        session.send("hello").await.unwrap();

        was_running |= session.state().await.unwrap().tasks.running().next().is_some();
        eventually("its end", || async { session.state().await.unwrap().tasks.running().next().is_none() })
            .await;
        runtime.shutdown().await.unwrap();
        journal.close().await;
        if was_running {
            break;
        }
    }
    assert!(was_running, "the turn began only after the subagent's tasks had ended");
}

fn ask_before_touch(place: &TestHome) -> Config {
    let mut config = place.config();
    let (tool, command) = ("exec".to_owned(), Some("touch*".to_owned()));
    config.settings.approval.rule = vec![ApprovalRule { tool, command, host: None, action: Approval::Ask }];
    config
}

/// A3: a subagent's question is open in its parent, with the subagent's name, and the answer given there reaches the subagent.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_subagent_is_answered_at_its_parent() {
    let place = TestHome::new();
    for (answer, exists) in [("yes", true), ("no", false)] {
        let child = json!([call("exec", &json!({"command": format!("touch {answer}")})), "Asked."]);
        let parent = json!([agent(&json!({"prompt": "Touch it."})), "Fine."]);
        let config = ask_before_touch(&place);
        let model = scripts([("Touch", child), ("go", parent)]);
        let runtime = Runtime::with_model(config, model).await.unwrap();
        let session = runtime.session(answer).await.unwrap();
        let sending = crate::sends(&session, "go");
        eventually("the question", || async { !session.state().await.unwrap().questions.is_empty() }).await;

        let question = session.state().await.unwrap().questions[0].clone();
        session.answer(question.id, answer).await.unwrap();

        assert!(question.text.starts_with("The subagent (Touch it.) asks: "), "{}", question.text);
        assert_eq!(sending.await.unwrap().unwrap().text, "Fine.");
        assert_eq!(place.work().join(answer).exists(), exists, "{answer}");
        assert_eq!(session.state().await.unwrap().questions, []);
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
}

/// A3: with nobody there, the question stays open in both sessions, as one of the parent's own would, and the session can't settle.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_subagent_that_nobody_answers_waits() {
    let place = TestHome::new();
    let child = json!([call("exec", &json!({"command": "touch it"})), "Asked."]);
    let parent = json!([agent(&json!({"prompt": "Touch it.", "background": true})), "Fine.", "Heard."]);
    let (runtime, session) =
        open(&place, ask_before_touch(&place), vec![("Touch", child), ("go", parent)]).await;

    session.send("go").await.unwrap();
    let settled = session.settle().await;

    eventually("the question", || async { !session.state().await.unwrap().questions.is_empty() }).await;
    assert!(matches!(settled, Ok(Settled::WaitingForAnswer)), "{settled:?}");
    assert!(!place.work().join("it").exists());
    runtime.shutdown().await.unwrap();
}

/// A1: what can't be started is an error result that says why.
#[tokio::test(flavor = "multi_thread")]
async fn bad_calls_of_agent_are_errors_that_say_why() {
    let place = TestHome::new();
    let agents = place.home().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("broken.md"), "no front matter").unwrap();
    std::fs::write(agents.join("odd.md"), "---\nname: odd\ndescription: d\nmodel: nowhere/none\n---\nx")
        .unwrap();
    let bad = [
        (json!({"prompt": "x", "model": "nowhere/none"}), "nowhere"),
        (json!({"prompt": "x", "kind": "odd"}), "nowhere"),
        (json!({"prompt": "x", "kind": "broken"}), "does not begin with a front matter"),
        (json!({"prompt": "x", "kind": "missing"}), "there is no kind \"missing\"; there are: odd"),
        (json!({"prompt": "x".repeat(1 << 20)}), "at most 262144 are allowed"),
        (json!({"prompt": " "}), "`prompt` is empty"),
        (json!({"prompt": "x", "budget": -1.0}), "`budget` must be more than 0"),
        (
            json!({"prompt": "x", "scope": [{"target": "/etc", "permission": "write"}]}),
            "`scope` must lie within yours",
        ),
        (json!({"prompt": "x", "scope": []}), "`scope` is empty"),
    ];
    let answers: Vec<Value> =
        bad.iter().map(|(arguments, _)| agent(arguments)).chain([json!("Done.")]).collect();
    let (runtime, session) = open(&place, place.config(), vec![("go", json!(answers))]).await;

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    for ((_, expected), (_, is_error, content)) in bad.iter().zip(results(&records)) {
        assert!(is_error && content.contains(expected), "{expected}: {content}");
    }
    assert_eq!(children(&records), []);
}

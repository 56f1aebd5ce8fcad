//! Killed at every append of a turn with a call of an MCP server. Whatever the moment, the call never happens twice.
//!
//! | the call | killed | the next runtime |
//! | --- | --- | --- |
//! | each | before its start is on record | calls |
//! | each | after its result | never calls again |
//! | a write | between | tells that it may have happened |
//! | a task | between the start and the task's id | tells that it may have happened |
//! | a task | after its id, also with a question open or answered | polls it; a question that reached nobody is withdrawn and asked again |
//! | a call that asks | with its question open, or answered | withdraws the question, and tells that the call may have happened |

use std::time::{Duration, Instant};

use longhaul_agent::mcp::ServerSettings;
use longhaul_agent::{Config, RuntimeBuilder, Session};
use longhaul_protocol::{Record, SessionRecord};
use longhaul_testkit::{Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::mcp::{call, config, open, results, server};
use crate::{said, script, sound_records};

type Servers = [(&'static str, ServerSettings)];

fn attended(place: &TestHome, servers: &Servers) -> Config {
    Config { is_attended: true, ..config(place, servers) }
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A user who sends one message, answers what is asked, and waits for the end of the turn.
async fn drive(session: &Session) {
    let deadline = Instant::now() + Duration::from_secs(60);
    session.put(said("go"), Some("once")).await.unwrap();
    loop {
        assert!(Instant::now() < deadline, "the turn does not end");
        tokio::time::sleep(Duration::from_millis(3)).await;
        let state = session.state().await.unwrap();
        if let Some(open) = state.questions.first() {
            let _ = session.answer(open.id, "blue").await;
        } else if state.turn.is_none() && state.turn_count == 1 {
            return;
        }
    }
}

/// A run that is killed at an append, and its appends.
fn run_killed(
    place: &TestHome,
    servers: &Servers,
    answers: &Value,
    crash: Option<Crash>,
) -> Vec<Vec<String>> {
    let tokio = tokio_runtime();
    let appends = tokio.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let model = RecordingModel::new(script(answers));
        let builder = RuntimeBuilder::new(attended(place, servers)).model(model).journal(journal.clone());
        let runtime = builder.open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        tokio::select! {
            biased;
            () = journal.crashed() => {}
            () = drive(&session) => {}
        }
        journal.release_leases().await;
        journal.appends()
    });
    tokio.shutdown_timeout(Duration::from_secs(10));
    appends
}

/// The records after a new runtime has gone on with the session.
fn resumed(place: &TestHome, config: Config, answers: &Value) -> Vec<Record> {
    tokio_runtime().block_on(async {
        let (runtime, _) = open(config, answers).await;
        let session = runtime.session("a").await.unwrap();
        session.wake().await.unwrap();
        drive(&session).await;
        assert!(runtime.open_questions().await.unwrap().is_empty());
        runtime.shutdown().await.unwrap();
        sound_records(place, &session).await
    })
}

/// Kills a turn with one call before and after each of its appends, lets a new runtime go on, and checks the one result with what the
/// server has logged.
fn kill_everywhere(servers: &Servers, call: &Value, check: impl Fn(&str, bool, &str, &str)) {
    let answers = json!([call, "Done."]);
    let appends = run_killed(&TestHome::new(), servers, &answers, None);
    for append in 1..=appends.len() {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::new();
            run_killed(&place, servers, &answers, Some(Crash { append, when }));

            let records = resumed(&place, attended(&place, servers), &answers);

            let moment = format!("{when:?} {append} {:?}", appends[append - 1]);
            let found = results(&records);
            assert_eq!(found.len(), 1, "{moment}: {found:?}");
            check(&moment, found[0].1, &found[0].2, &place.file("calls.log"));
        }
    }
}

fn count(log: &str, line: &str) -> usize {
    log.lines().filter(|logged| *logged == line).count()
}

/// E2, T13
#[test]
fn a_write_of_a_server_never_happens_twice_after_a_kill() {
    let servers = [("test", server(&[]))];
    kill_everywhere(&servers, &call("test__write", "once"), |moment, is_error, result, log| {
        let written = count(log, "write once");
        match is_error {
            false => assert_eq!((result, written), ("written", 1), "{moment}"),
            true => {
                assert!(result.starts_with("unknown: ") && written <= 1, "{moment}: {result}, {written}");
            }
        }
    });
}

/// E2, T13: also while the task waits for the user.
#[test]
fn a_task_of_a_server_is_made_once_and_polled_to_its_end_after_a_kill() {
    let servers = [("test", server(&["--modern", "--polls", "4", "--task-asks"]))];
    kill_everywhere(&servers, &call("test__task", ""), |moment, is_error, result, log| {
        let made = count(log, "task");
        match is_error {
            false => assert_eq!((result, made), ("the task is done", 1), "{moment}"),
            true => {
                assert!(result.starts_with("unknown: ") && made <= 1, "{moment}: {result}, {made}");
                // Once its id is on record, it is never lost.
                let is_on_record = moment.contains("tool_task") && moment.starts_with("After");
                let was_asked = moment.contains("question") || moment.contains("answer");
                assert!(!is_on_record && !was_asked, "{moment}: {result}");
            }
        }
    });
}

/// E1, E2, T13
#[test]
fn a_call_that_asks_the_user_is_unknown_after_a_kill_and_asks_no_more() {
    let servers = [("test", server(&[]))];
    kill_everywhere(&servers, &call("test__ask", ""), |moment, is_error, result, log| {
        let asked = count(log, "ask");
        match is_error {
            false => assert_eq!((result, asked), ("accept blue", 1), "{moment}"),
            true => assert!(result.starts_with("unknown: ") && asked <= 1, "{moment}: {result}, {asked}"),
        }
    });
}

/// E2: what a tool of ours may take is no limit for a task that goes on at its server.
#[test]
fn a_resumed_task_may_take_longer_than_other_tools() {
    let place = TestHome::new();
    let servers = [("test", server(&["--modern", "--polls", "60"]))];
    let answers = json!([call("test__task", ""), "Done."]);
    let appends = run_killed(&TestHome::new(), &servers, &answers, None);
    let at =
        1 + appends.iter().position(|kinds| kinds.iter().any(|kind| kind.contains("tool_task"))).unwrap();
    run_killed(&place, &servers, &answers, Some(Crash { append: at, when: CrashMoment::After }));

    // The task takes 60 polls, and one is sent every 50 ms.
    let config = Config { tool_time: Duration::from_secs(2), ..attended(&place, &servers) };
    let records = resumed(&place, config, &answers);

    assert_eq!(results(&records)[0].2, "the task is done");
}

/// E2: a definite failure is told as one, after a kill too.
#[test]
fn a_resumed_task_that_has_failed_is_told_as_failed() {
    let place = TestHome::new();
    let servers = [("test", server(&["--modern"]))];
    let answers = json!([call("test__task", ""), "Done."]);
    let reference = TestHome::new();
    std::fs::write(reference.work().join("task.failed"), "").unwrap();
    let appends = run_killed(&reference, &servers, &answers, None);
    let at =
        1 + appends.iter().position(|kinds| kinds.iter().any(|kind| kind.contains("tool_task"))).unwrap();
    run_killed(&place, &servers, &answers, Some(Crash { append: at, when: CrashMoment::After }));
    std::fs::write(place.work().join("task.failed"), "").unwrap();

    let records = resumed(&place, attended(&place, &servers), &answers);

    let expected = "the MCP server test answered with an error: its task failed: the paint has run out";
    assert_eq!(results(&records)[0].2, expected);
    assert!(
        records
            .iter()
            .all(|record| !matches!(SessionRecord::decode(record).unwrap(), SessionRecord::Question(_)))
    );
}

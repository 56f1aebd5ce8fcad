//! Kill anywhere, for tasks and questions: a session that starts a task, asks a person, and hears of the task's end is stopped at
//! each of its appends, before and after it is on disk, and a fresh runtime goes on.
//!
//! | durable | must happen | must never happen |
//! | --- | --- | --- |
//! | `tool_started` of the command | it is found with its keeper, and goes on as a task | a second start |
//! | `task_started` | it is watched again | |
//! | `question` | the same question is open | a second question for the same call; a run without a yes |
//! | `answered` | the call runs | a second question |
//! | `task_ended` | it is told | a second end |
//! | `notification` | nothing more | a second notification |

use std::time::Duration;

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::{Config, Runtime, RuntimeBuilder, Session, Settled};
use longhaul_journal::Journal;
use longhaul_protocol::{Outcome, Record, SessionRecord, TaskStatus};
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome, broken_rules, records_of,
};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{said, script};

fn answers() -> Value {
    let exec = |arguments: Value| json!({"calls": [{"name": "exec", "arguments": arguments}]});
    let build = "echo started >> log.txt; while [ ! -e go ]; do sleep 0.02; done; echo built";
    json!([
        exec(json!({"command": build, "run_in_background": true, "description": "the build"})),
        exec(json!({"command": "true ask-me; echo asked >> log.txt"})),
        exec(json!({"command": "touch go"})),
        "It runs.",
        "It is built.",
    ])
}

fn config(place: &TestHome) -> Config {
    let mut config = place.config();
    let (tool, command) = ("exec".to_owned(), Some("true ask-me*".to_owned()));
    config.settings.approval.rule = vec![ApprovalRule { tool, command, host: None, action: Approval::Ask }];
    config
}

/// Answers what is asked until the session has come to rest.
async fn until_it_rests(session: &Session) {
    loop {
        let state = session.state().await.unwrap();
        for question in &state.questions {
            // Somebody may have said so before the crash.
            let _ = session.answer(question.id, "yes").await;
        }
        if session.settle().await.unwrap() == Settled::Idle && state.turn_count > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The session, up to its rest or to the crash; the appends that it made.
fn run(place: &TestHome, crash: Option<Crash>) -> Vec<Vec<String>> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let appends = tokio.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let model = RecordingModel::new(script(&answers()));
        let runtime =
            RuntimeBuilder::new(config(place)).model(model).journal(journal.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        session.put(said("go"), Some("once")).await.unwrap();
        tokio::select! {
            () = journal.crashed() => {}
            () = until_it_rests(&session) => {}
        }
        // An end that is told in the turn, and not in one of its own, makes fewer appends.
        assert!(crash.is_none_or(|crash| journal.has_crashed() || journal.appends().len() < crash.append));
        journal.release_leases().await;
        journal.appends()
    });
    tokio.shutdown_timeout(Duration::from_secs(10));
    appends
}

/// A fresh runtime goes on until there is nothing left to do.
fn resume(place: &TestHome) -> Vec<Record> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(async {
        let model = RecordingModel::new(script(&answers()));
        let runtime = Runtime::with_model(config(place), model).await.unwrap();
        let session = runtime.session("a").await.unwrap();
        runtime.start().await.unwrap();
        until_it_rests(&session).await;
        runtime.shutdown().await.unwrap();
        let journal = place.journal().await;
        let records = records_of(&*journal, session.id().unwrap()).await;
        journal.close().await;
        records
    })
}

/// What must be so in the end, wherever it was killed.
fn check(place: &TestHome, records: &[Record], context: &str) {
    assert_eq!(broken_rules(records), Vec::<String>::new(), "{context}");
    // Which of the two came first is up to the system.
    let log = place.file("log.txt");
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["asked", "started"], "{context}");
    let facts = facts(records);
    let count = |is: fn(&SessionRecord) -> bool| facts.iter().filter(|fact| is(fact)).count();
    assert_eq!(count(|fact| matches!(fact, SessionRecord::TaskStarted(_))), 1, "{context}");
    assert_eq!(count(|fact| matches!(fact, SessionRecord::Notification(_))), 1, "{context}");
    assert_eq!(count(|fact| matches!(fact, SessionRecord::Question(_))), 1, "{context}");
    assert_eq!(count(|fact| matches!(fact, SessionRecord::Answered(_))), 1, "{context}");
    let ends = facts.iter().filter_map(|fact| match fact {
        SessionRecord::TaskEnded(end) => Some((end.status, end.tail.as_str())),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(TaskStatus::Completed, "built\n")], "{context}");
    assert!(
        facts
            .iter()
            .all(|fact| !matches!(fact, SessionRecord::TurnEnded(end) if end.outcome != Outcome::Completed)),
        "{context}"
    );
}

/// K3, K5, K9, P4, T12: the boundaries with this remainder, so that the table is played by several processes.
fn play(share: usize, of: usize) {
    let place = TestHome::in_memory();
    let appends = run(&place, None);
    check(&place, &resume(&place), "undisturbed");
    for append in (1..=appends.len()).filter(|append| append % of == share) {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::in_memory();
            let made = run(&place, Some(Crash { append, when }));

            let records = resume(&place);

            check(&place, &records, &format!("{when:?} append {append}: {:?}", made.last()));
        }
    }
}

#[test]
fn killed_at_any_boundary_a_task_has_one_start_one_end_and_one_notification_first_half() {
    play(0, 2);
}

#[test]
fn killed_at_any_boundary_a_task_has_one_start_one_end_and_one_notification_second_half() {
    play(1, 2);
}

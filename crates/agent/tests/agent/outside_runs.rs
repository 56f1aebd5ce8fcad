//! Commands that the sandbox refuses: the user is asked, and a yes runs exactly this command once outside.
//!
//! | killed | the next runtime |
//! | --- | --- |
//! | before the question | recognises the refusal again, and asks |
//! | with the question open, or before the answer is taken | waits for the answer, and takes it once |
//! | after the yes, before or after the start outside | runs it outside, once in all |
//! | before or after the result | has the one result |

use std::time::Duration;

use longhaul_agent::config::{Approval, ApprovalRule, SandboxMode};
use longhaul_agent::{Config, Runtime, RuntimeBuilder, Session};
use longhaul_journal::Journal as _;
use longhaul_protocol::{PermissionMode, Question, Record, SessionRecord, StreamName, TaskId};
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome, broken_rules, records_of,
};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{eventually, results, said, script, sends, sound_records};

/// Counts its runs in the work folder. The sandbox refuses to list `/`, so only a run outside gets to its end.
const COMMAND: &str = "echo run >> log.txt; ls / > /dev/null && echo outside >> log.txt";
const BOTH: &str = "run\nrun\noutside\n";

fn answers() -> Value {
    json!([{"calls": [{"name": "exec", "arguments": {"command": COMMAND}}]}, "So be it."])
}

fn attended(place: &TestHome) -> Config {
    Config { is_attended: true, ..place.config() }
}

async fn open(config: Config) -> Runtime {
    Runtime::with_model(config, RecordingModel::new(script(&answers()))).await.unwrap()
}

async fn question(session: &Session) -> Question {
    eventually("a question is open", || async { !session.state().await.unwrap().questions.is_empty() }).await;
    session.state().await.unwrap().questions.remove(0)
}

fn questions(records: &[Record]) -> usize {
    facts(records)
        .iter()
        .filter(|fact| matches!(fact, SessionRecord::Question(asked) if asked.refused.is_some()))
        .count()
}

/// P3, P4, T5: the question shows what would run and that it has run; only a yes runs it, once; there is one result, which says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_runs_outside_only_after_a_yes() {
    for (answer, log, told) in [
        ("yes", BOTH, "it ran twice: first in the sandbox"),
        ("no", "run\n", "and said no"),
        ("use the list in docs/", "run\n", "use the list in docs/"),
        ("always", "run\n", "did not say yes, but: always"),
    ] {
        let place = TestHome::new();
        let runtime = open(attended(&place)).await;
        let session = runtime.session("a").await.unwrap();
        let sending = sends(&session, "go");
        let asked = question(&session).await;
        assert_eq!(place.file("log.txt"), "run\n", "nothing runs outside before the answer");
        session.answer(asked.id, answer).await.unwrap();

        assert_eq!(sending.await.unwrap().unwrap().text, "So be it.");

        assert_eq!(place.file("log.txt"), log, "{answer}");
        assert!(asked.text.contains(&format!("│ {COMMAND}\n")), "{}", asked.text);
        assert!(
            asked.text.contains("already run once") && asked.text.contains("Permission denied"),
            "{}",
            asked.text
        );
        assert_eq!((asked.choices, asked.grant), (vec!["yes".to_owned(), "no".to_owned()], None));
        runtime.shutdown().await.unwrap();
        let records = sound_records(&place, &session).await;
        let told_model = results(&records);
        assert_eq!(told_model.len(), 1);
        assert!(told_model[0].2.contains(told), "{}", told_model[0].2);
        let state = told_model[0].2.lines().next().unwrap();
        assert_eq!(state, if answer == "yes" { "status: completed" } else { "status: failed" });
    }
}

/// P3, P4: where nobody attends, or the settings are against it, nobody is asked and the result has the hint.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_where_it_could_not_run_outside() {
    let unattended = |_: &mut Config| {};
    let strict = |config: &mut Config| {
        config.is_attended = true;
        config.settings.sandbox.mode = SandboxMode::Strict;
    };
    for change in [unattended as fn(&mut Config), strict] {
        let place = TestHome::new();
        let mut config = place.config();
        change(&mut config);
        let runtime = open(config).await;
        let session = runtime.session("a").await.unwrap();

        assert_eq!(session.send("go").await.unwrap().text, "So be it.");

        runtime.shutdown().await.unwrap();
        let records = sound_records(&place, &session).await;
        assert_eq!(questions(&records), 0);
        let told = results(&records).remove(0).2;
        assert!(told.contains("the sandbox may have stopped it"), "{told}");
        assert_eq!(place.file("log.txt"), "run\n");
    }
}

/// P4: a yes is no licence for ever. What is denied when the command would start outside is not started.
#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_judged_again_before_the_command_starts_outside() {
    let deny = |config: &mut Config| {
        let (tool, command) = ("exec".to_owned(), Some("ls *".to_owned()));
        config.settings.approval.rule =
            vec![ApprovalRule { tool, command, host: None, action: Approval::Deny }];
    };
    let plan = |config: &mut Config| config.settings.approval.mode = PermissionMode::Plan;
    let strict = |config: &mut Config| config.settings.sandbox.mode = SandboxMode::Strict;
    for (change, why) in [(deny as fn(&mut Config), "ls *"), (plan, "plan mode"), (strict, "sandbox.mode")] {
        let place = TestHome::new();
        let first = open(attended(&place)).await;
        let session = first.session("a").await.unwrap();
        let sending = sends(&session, "go");
        let asked = question(&session).await;
        first.shutdown().await.unwrap();
        drop(sending);
        let journal = place.journal().await;
        crate::detached(&journal, "a").await.answer(asked.id, "yes").await.unwrap();
        journal.close().await;

        let mut config = attended(&place);
        change(&mut config);
        let next = open(config).await;
        next.start().await.unwrap();
        let session = next.session("a").await.unwrap();
        eventually("the turn has ended", || async { session.state().await.unwrap().turn.is_none() }).await;

        next.shutdown().await.unwrap();
        let records = sound_records(&place, &session).await;
        let told = results(&records).remove(0).2;
        assert!(
            told.contains("not run") && told.contains(why) && told.contains("Permission denied"),
            "{told}"
        );
        assert_eq!((place.file("log.txt"), questions(&records)), ("run\n".to_owned(), 1));
    }
}

/// T11: a cancel while the question is open keeps the result of the run in the sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_question_leaves_the_result_of_the_sandbox() {
    let place = TestHome::new();
    let runtime = open(attended(&place)).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    question(&session).await;

    session.cancel().await.unwrap();
    sending.await.unwrap().unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let told = results(&records).remove(0).2;
    assert!(told.starts_with("status: failed") && told.contains("the sandbox may have stopped it"), "{told}");
    assert_eq!(place.file("log.txt"), "run\n");
}

/// T13: with the answer erased, a command that ran outside is found by its task and does not run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ran_outside_does_not_run_again_if_the_answer_is_erased() {
    let place = TestHome::new();
    let run = killed_run(&place, Some(crash_at("tool_finished exec", &place_appends(), CrashMoment::Before)));
    assert!(run.1);
    assert_eq!(place.file("log.txt"), BOTH);
    let journal = place.journal().await;
    let id = crate::detached(&journal, "a").await.id().unwrap();
    let records = records_of(&*journal, id).await;
    let answered = records.iter().find(|record| record.kind == "answered").unwrap().seq;
    journal.erase(&[(StreamName::session(id), answered)], "a test").await.unwrap();
    journal.close().await;

    let end = resume(&place);

    assert_eq!(place.file("log.txt"), BOTH);
    assert!(end.contains("it ran twice"), "{end}");
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A run in a thread of its own, because it brings its own executor.
fn killed_run(place: &TestHome, crash: Option<Crash>) -> (Vec<Vec<String>>, bool) {
    std::thread::scope(|scope| scope.spawn(|| run(place, crash)).join().unwrap())
}

fn place_appends() -> Vec<Vec<String>> {
    killed_run(&TestHome::in_memory(), None).0
}

fn crash_at(kind: &str, appends: &[Vec<String>], when: CrashMoment) -> Crash {
    let append = appends.iter().position(|kinds| kinds.iter().any(|known| known == kind)).unwrap() + 1;
    Crash { append, when }
}

/// Says yes to every question, until the turn has ended or the journal is dead.
async fn say_yes(session: &Session) {
    loop {
        let Ok(state) = session.state().await else { return };
        if let Some(open) = state.questions.first() {
            let _ = session.answer(open.id, "yes").await;
        } else if state.turn.is_none() && state.turn_count > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn run(place: &TestHome, crash: Option<Crash>) -> (Vec<Vec<String>>, bool) {
    let tokio = tokio_runtime();
    let run = tokio.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let builder = RuntimeBuilder::new(attended(place)).model(RecordingModel::new(script(&answers())));
        let runtime = builder.journal(journal.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        session.put(said("go"), Some("once")).await.unwrap();
        tokio::select! {
            () = journal.crashed() => {}
            () = say_yes(&session) => {}
        }
        journal.release_leases().await;
        (journal.appends(), journal.has_crashed())
    });
    // As if killed: nothing is told, nothing is waited for but what already runs on a thread.
    tokio.shutdown_timeout(Duration::from_secs(10));
    run
}

/// A fresh runtime goes on; what the one result says, without what differs from run to run.
fn resume(place: &TestHome) -> String {
    std::thread::scope(|scope| {
        let resuming = scope.spawn(|| {
            tokio_runtime().block_on(async {
                let runtime = open(attended(place)).await;
                let session = runtime.session("a").await.unwrap();
                runtime.start().await.unwrap();
                say_yes(&session).await;
                runtime.shutdown().await.unwrap();
                let journal = place.journal().await;
                let records = records_of(&*journal, session.id().unwrap()).await;
                journal.close().await;
                let is_sound = |record: &&Record| record.text().is_some();
                let sound: Vec<Record> = records.iter().filter(is_sound).cloned().collect();
                if sound.len() == records.len() {
                    assert_eq!(broken_rules(&records), Vec::<String>::new());
                    assert_eq!(questions(&records), 1);
                }
                let told = results(&sound);
                assert_eq!(told.len(), 1, "{told:?}");
                let lines = told[0].2.lines().filter(|line| !line.starts_with("duration_ms"));
                lines.collect::<Vec<_>>().join("\n")
            })
        });
        resuming.join().unwrap()
    })
}

/// T5, T12, T13: killed before and after each append, the command runs once in the sandbox and once outside, with one result.
#[test]
fn killed_at_any_append_a_refused_command_runs_once_outside() {
    let place = TestHome::in_memory();
    let (appends, _) = killed_run(&place, None);
    let expected = resume(&place);
    assert_eq!(place.file("log.txt"), BOTH);
    assert!(appends.iter().flatten().any(|kind| kind == "question"), "{appends:?}");
    for append in 1..=appends.len() {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::in_memory();
            let context = format!("{when:?} {append} {:?}", appends[append - 1]);
            killed_run(&place, Some(Crash { append, when }));
            let has_yes =
                std::thread::scope(|scope| scope.spawn(|| has_recorded_yes(&place)).join().unwrap());
            assert!(has_yes || place.file("log.txt") != BOTH, "ran outside without a yes: {context}");

            let end = resume(&place);

            assert_eq!((end, place.file("log.txt")), (expected.clone(), BOTH.to_owned()), "{context}");
        }
    }
}

fn has_recorded_yes(place: &TestHome) -> bool {
    tokio_runtime().block_on(async {
        let journal = place.journal().await;
        let id = crate::detached(&journal, "a").await.id();
        let records = match id {
            Some(id) => records_of(&*journal, id).await,
            None => vec![],
        };
        journal.close().await;
        facts(&records)
            .iter()
            .any(|fact| matches!(fact, SessionRecord::Answered(said) if said.answer == "yes"))
    })
}

/// The id of the second run never changes: another version finds the task of this one.
#[test]
fn the_task_outside_is_derived_from_the_call() {
    let call = "01JDFJM0000000000000000003".parse().unwrap();

    assert_eq!(TaskId::outside_sandbox(call).to_string(), "task_01jdfjm000g000000000000003");
}

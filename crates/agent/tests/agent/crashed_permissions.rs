//! Killed at every append around permission: changes of the mode, `always`, `project`, the output of a `!command`, an accepted plan.
//! Whatever the moment, the end is the same: nothing is lost, nothing is doubled.
//!
//! | killed | the next runtime |
//! | --- | --- |
//! | before or after an order to change the mode is taken | takes it, once, before anything else |
//! | before or after an answer is taken | takes it, once; `always` holds from then on |
//! | after `answered` with `project`, before or after its call starts | has the rule in the file before the call runs |
//! | before or after the output of a `!command` is taken | has it in the context, once |
//! | before or after the answer to a plan is taken | carries the plan out, once, in the mode from before |

use std::sync::Mutex;
use std::time::{Duration, Instant};

use longhaul_agent::{Config, RuntimeBuilder, Session};
use longhaul_journal::Journal;
use longhaul_protocol::{Item, OrderKind, PermissionMode, QuestionKind, SessionRecord, StreamName};
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome, broken_rules, records_of,
};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{said, script};

const COMMAND_OUTPUT: &str = "The user ran `date`: exit code 0";

fn answers() -> Value {
    let exec = |command: &str| json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let (one, two) = (exec("echo one >> log.txt"), exec("echo two >> log.txt"));
    json!([one, two, "Once.", "Plan.", one, two, "Done."])
}

fn config(place: &TestHome) -> Config {
    place.config()
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// What was acknowledged to the client.
type Acknowledged = Mutex<Vec<&'static str>>;

fn has_output(session: &longhaul_agent::session::State) -> bool {
    session.items.iter().any(|item| matches!(&**item, Item::Text { text, .. } if text == COMMAND_OUTPUT))
}

/// Waits until the session has taken all that is in its inbox.
async fn settle_inbox(session: &Session, journal: &dyn Journal) -> bool {
    let Some(id) = session.id() else { return true };
    let Ok(head) = journal.head(&StreamName::inbox(id)).await else { return false };
    let Ok(state) = session.state().await else { return false };
    state.inbox_through >= head.seq
}

/// A client that goes on wherever the session is. It does nothing twice that was acknowledged.
async fn drive(session: &Session, journal: &dyn Journal, acknowledged: &Acknowledged) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let acknowledge = |what| acknowledged.lock().unwrap().push(what);
    loop {
        assert!(Instant::now() < deadline, "{:?}", acknowledged.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(3)).await;
        if !settle_inbox(session, journal).await {
            let _ = session.wake().await;
            continue;
        }
        let state = session.state().await.unwrap();
        if let Some(open) = state.questions.first() {
            let answer = match open.kind {
                QuestionKind::Plan => "yes",
                QuestionKind::Approval if open.text.contains("echo one") => "always",
                QuestionKind::Approval => "project",
                QuestionKind::Budget | QuestionKind::Ask | QuestionKind::Elicitation => {
                    unreachable!("no limit is set, the agent asks nothing, and there is no server")
                }
            };
            if session.answer(open.id, answer).await.is_ok() {
                acknowledge(answer);
            }
            continue;
        }
        let mode = state.permission.mode;
        match state.turn_count {
            _ if state.turn.is_some() => {}
            0 if mode != Some(PermissionMode::Ask) => {
                session.set_permission_mode(PermissionMode::Ask).await.unwrap();
                acknowledge("ask");
            }
            0 => drop(session.put(said("go"), Some("first")).await.unwrap()),
            1 if !has_output(&state) => {
                session.add_context(COMMAND_OUTPUT.to_owned()).await.unwrap();
                acknowledge("output");
            }
            1 if mode != Some(PermissionMode::Plan) => {
                session.set_permission_mode(PermissionMode::Plan).await.unwrap();
                acknowledge("plan");
            }
            1 => drop(session.put(said("plan it"), Some("second")).await.unwrap()),
            // The accepted plan is about to begin its turn.
            2 => {}
            _ => return,
        }
    }
}

struct Run {
    appends: Vec<Vec<String>>,
    acknowledged: Vec<&'static str>,
}

fn run(place: &TestHome, crash: Option<Crash>) -> Run {
    let (tokio, acknowledged) = (tokio_runtime(), Acknowledged::default());
    let appends = tokio.block_on(async {
        let real = place.journal().await;
        let journal = FaultyJournal::new(real.clone(), crash);
        let builder = RuntimeBuilder::new(config(place)).model(RecordingModel::new(script(&answers())));
        let runtime = builder.journal(journal.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        tokio::select! {
            biased;
            () = journal.crashed() => {}
            () = drive(&session, &*real, &acknowledged) => {}
        }
        journal.release_leases().await;
        journal.appends()
    });
    // As if killed: nothing is told, nothing is waited for but what already runs on a thread.
    tokio.shutdown_timeout(Duration::from_secs(10));
    Run { appends, acknowledged: acknowledged.into_inner().unwrap() }
}

/// A fresh runtime goes on: what was acknowledged holds before anything else is done, and this is what there is in the end.
fn resume(place: &TestHome, acknowledged: &[&str]) -> String {
    tokio_runtime().block_on(async {
        let real = place.journal().await;
        let builder = RuntimeBuilder::new(config(place)).model(RecordingModel::new(script(&answers())));
        let runtime = builder.journal(real.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        runtime.start().await.unwrap();
        while !settle_inbox(&session, &*real).await {
            session.wake().await.unwrap();
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        let state = session.state().await.unwrap();
        if acknowledged.contains(&"ask") {
            assert!(state.permission.mode.is_some(), "the mode is lost");
        }
        if acknowledged.contains(&"always") {
            assert!(!state.permission.grants.is_empty(), "the grant is lost");
        }
        if acknowledged.contains(&"output") {
            assert!(has_output(&state), "the output is lost");
        }
        drive(&session, &*real, &Acknowledged::default()).await;
        let state = session.state().await.unwrap();
        runtime.shutdown().await.unwrap();
        let journal = place.journal().await;
        let records = records_of(&*journal, session.id().unwrap()).await;
        journal.close().await;
        assert_eq!(broken_rules(&records), Vec::<String>::new());
        let told = facts(&records).into_iter().filter_map(|fact| match fact {
            SessionRecord::ModeChanged(changed) => Some(format!("mode {}", changed.to)),
            SessionRecord::Answered(answered) => Some(format!("answered {}", answered.answer)),
            SessionRecord::InputTaken(input) => Some(format!("input {}", input.text)),
            SessionRecord::TurnEnded(ended) => Some(format!("ended {}", ended.text)),
            SessionRecord::OrderTaken(taken) => match taken.order.kind {
                OrderKind::AddContext { text } => Some(format!("context {text}")),
                _ => None,
            },
            _ => None,
        });
        let told: Vec<String> = told.collect();
        let outputs = state
            .items
            .iter()
            .filter(|item| matches!(&***item, Item::Text { text, .. } if text == COMMAND_OUTPUT));
        let rules = std::fs::read_to_string(place.home().join("approvals.toml")).unwrap();
        let rules = rules.lines().filter(|line| line.starts_with("line"));
        format!(
            "{told:#?} {:?} {:?} {} {:?} {:?}",
            state.permission.mode,
            state.permission.grants,
            outputs.count(),
            rules.collect::<Vec<_>>(),
            place.file("log.txt")
        )
    })
}

/// The boundaries with this remainder, so that the table is played by several processes.
fn play(share: usize, of: usize) {
    let place = TestHome::in_memory();
    let undisturbed = run(&place, None);
    let expected = resume(&place, &undisturbed.acknowledged);
    assert_eq!(undisturbed.acknowledged, ["ask", "always", "project", "output", "plan", "yes"]);
    assert!(expected.contains("one\\ntwo\\none\\ntwo\\n"), "{expected}");
    for append in (1..=undisturbed.appends.len()).filter(|append| append % of == share) {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::in_memory();
            let killed = run(&place, Some(Crash { append, when }));

            let end = resume(&place, &killed.acknowledged);

            assert_eq!(end, expected, "{when:?} {append} {:?}", undisturbed.appends[append - 1]);
        }
    }
}

/// P4, T1, T12
#[test]
fn killed_at_any_append_modes_grants_and_plans_are_those_that_were_acknowledged() {
    play(0, 2);
}

/// P4, T1, T12
#[test]
fn killed_at_any_append_modes_grants_and_plans_are_those_that_were_acknowledged_second_half() {
    play(1, 2);
}

//! Permission modes, plans that a person accepts, and what a person always allows.

use longhaul_agent::{Config, Runtime, Session};
use longhaul_journal::Journal as _;
use longhaul_protocol::{
    Effect, Item, OrderKind, Outcome, PermissionMode, Question, QuestionKind, Record, SessionRecord,
};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{detached, eventually, results, script, sends, sound_records};

fn exec(command: &str) -> Value {
    json!({"calls": [{"name": "exec", "arguments": {"command": command}}]})
}

fn write(path: &str, content: &str) -> Value {
    json!({"calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]})
}

fn config(place: &TestHome, mode: PermissionMode) -> Config {
    let mut config = place.config();
    config.settings.approval.mode = mode;
    config
}

async fn open(config: Config, answers: &Value) -> Runtime {
    Runtime::with_model(config, RecordingModel::new(script(answers))).await.unwrap()
}

/// The end of a turn that should not ask.
async fn completes(session: &Session, text: &'static str) -> String {
    let sending = sends(session, text);
    eventually("it ends without a question", || async {
        let open = session.state().await.unwrap().questions;
        assert!(open.is_empty(), "{open:?}");
        sending.is_finished()
    })
    .await;
    sending.await.unwrap().unwrap().text
}

/// The next question that is open.
async fn question(session: &Session) -> Question {
    eventually("a question is open", || async { !session.state().await.unwrap().questions.is_empty() }).await;
    session.state().await.unwrap().questions.remove(0)
}

async fn has_mode(session: &Session, mode: PermissionMode) {
    eventually("the mode is on record", || async {
        session.state().await.unwrap().permission.mode == Some(mode)
    })
    .await;
}

fn count(records: &[Record], is_it: impl Fn(&SessionRecord) -> bool) -> usize {
    facts(records).iter().filter(|fact| is_it(fact)).count()
}

fn is_question(fact: &SessionRecord) -> bool {
    matches!(fact, SessionRecord::Question(_))
}

/// P4: a question about an edit shows what would change, and a yes is for this call alone.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_in_ask_mode_is_asked_about_with_its_diff() {
    let place = TestHome::new();
    std::fs::write(place.work().join("a.txt"), "one\n").unwrap();
    let read = json!({"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]});
    let answers = json!([read, write("a.txt", "two\n"), write("b.txt", "new\n"), "Done."]);
    let runtime = open(config(&place, PermissionMode::Ask), &answers).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");

    let first = question(&session).await;
    assert_eq!(std::fs::read_to_string(place.work().join("a.txt")).unwrap(), "one\n");
    session.answer(first.id, "yes").await.unwrap();
    eventually("the next is asked", || async {
        session.state().await.unwrap().questions.iter().any(|next| next.id != first.id)
    })
    .await;
    let second = question(&session).await;
    session.answer(second.id, "leave b.txt alone").await.unwrap();
    sending.await.unwrap().unwrap();

    let diff = first.diff.unwrap_or_default();
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    assert_eq!(first.choices, ["yes", "always", "project", "no"]);
    assert_eq!(first.kind, QuestionKind::Approval);
    assert_eq!(std::fs::read_to_string(place.work().join("a.txt")).unwrap(), "two\n");
    assert!(!place.work().join("b.txt").exists());
    runtime.shutdown().await.unwrap();
    let told = results(&sound_records(&place, &session).await);
    assert!(told[2].1 && told[2].2.contains("leave b.txt alone"), "{told:?}");
}

/// P4: in plan mode reads run, edits and commands are refused, the tools stay the same, and the plan can be accepted: then its turn runs in
/// the mode from before.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_made_without_changes_and_carried_out_when_it_is_accepted() {
    let place = TestHome::new();
    std::fs::write(place.work().join("a.txt"), "one\n").unwrap();
    let read = json!({"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]});
    let answers = json!([
        read,
        write("b.txt", "new\n"),
        exec("touch c.txt"),
        "I would write b.txt.",
        write("b.txt", "new\n"),
        "Written.",
    ]);
    let model = RecordingModel::new(script(&answers));
    let runtime = Runtime::with_model(place.config(), model.clone()).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.set_permission_mode(PermissionMode::AutoEdit).await.unwrap();
    session.set_permission_mode(PermissionMode::Plan).await.unwrap();

    let ended = session.send("write b").await.unwrap();
    let asked = question(&session).await;
    assert_eq!((ended.outcome, asked.kind), (Outcome::Completed, QuestionKind::Plan));
    assert!(!place.work().join("b.txt").exists() && !place.work().join("c.txt").exists());
    session.answer(asked.id, "yes").await.unwrap();
    eventually("the plan is carried out", || async { session.state().await.unwrap().turn_count == 2 }).await;
    session.resume().await.unwrap();

    eventually("it is written", || async { place.work().join("b.txt").exists() }).await;
    eventually("it has ended", || async { session.state().await.unwrap().turn.is_none() }).await;
    assert_eq!(session.state().await.unwrap().permission.mode, Some(PermissionMode::AutoEdit));
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let told = results(&records);
    assert_eq!(told.iter().map(|(_, is_error, _)| *is_error).collect::<Vec<_>>(), [false, true, true, false]);
    assert!(told[1].2.contains("plan mode") && told[2].2.contains("plan mode"), "{told:?}");
    let requests = model.requests();
    assert!(requests.iter().all(|request| request.system == requests[0].system), "the prefix stays");
    assert!(requests.iter().all(|request| request.tools == requests[0].tools), "the tools stay");
    let notes = |items: &[std::sync::Arc<Item>]| {
        let texts = items.iter().filter_map(|item| match &**item {
            Item::Note { text } => Some(text.clone()),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    };
    let last = notes(&requests.last().unwrap().items);
    assert_eq!(last.len(), 2, "{last:?}");
    assert!(last[0].starts_with("Plan mode is on") && last[1].starts_with("Plan mode is over"), "{last:?}");
}

/// P4: feedback begins the next turn in plan mode, a no begins none, and what is said without an answer withdraws the question.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_can_be_sent_back_left_or_passed_over() {
    let place = TestHome::new();
    let answers = json!(["Plan A.", "Plan B.", "Plan C.", "Plan D."]);
    let runtime = open(config(&place, PermissionMode::Plan), &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("plan").await.unwrap();
    session.answer(question(&session).await.id, "use the other file").await.unwrap();
    eventually("the next plan", || async {
        let state = session.state().await.unwrap();
        state.turn_count == 2 && state.turn.is_none()
    })
    .await;
    let second = question(&session).await;
    session.answer(second.id, "no").await.unwrap();
    eventually("it is settled", || async { session.state().await.unwrap().questions.is_empty() }).await;
    assert_eq!(session.state().await.unwrap().turn_count, 2);
    session.send("again").await.unwrap();
    let third = question(&session).await;
    session.send("and again").await.unwrap();

    let state = session.state().await.unwrap();
    assert_eq!(state.permission.mode, None, "the mode is still the configured one");
    assert!(state.questions.iter().all(|open| open.id != third.id), "it was withdrawn");
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let said: Vec<String> = facts(&records)
        .into_iter()
        .filter_map(|fact| match fact {
            SessionRecord::InputTaken(taken) => Some(taken.text),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["plan", "use the other file", "again", "and again"]);
}

/// P4, T3: the order is durable before it is taken, is taken once by whichever process runs the session, and the mode holds after restarts
/// and compactions.
#[tokio::test(flavor = "multi_thread")]
async fn a_mode_is_ordered_from_any_process_and_survives() {
    let place = TestHome::new();
    let answers = json!(["One.", "Two.", write("a.txt", "x"), "Three."]);
    let first = open(place.config(), &answers).await;
    let session = first.session("a").await.unwrap();
    session.send("one").await.unwrap();
    session.send("two").await.unwrap();
    first.shutdown().await.unwrap();

    // Nobody runs the session when the order comes; the next process takes it before anything else.
    let journal = place.journal().await;
    detached(&journal, "a").await.set_permission_mode(PermissionMode::Plan).await.unwrap();
    journal.close().await;
    let second = open(place.config(), &answers).await;
    let session = second.session("a").await.unwrap();
    session.wake().await.unwrap();
    has_mode(&session, PermissionMode::Plan).await;
    session.compact().await.unwrap();
    second.shutdown().await.unwrap();

    let third = open(place.config(), &answers).await;
    let session = third.session("a").await.unwrap();
    session.send("three").await.unwrap();
    let state = session.state().await.unwrap();
    assert_eq!(
        (state.permission.mode, state.permission.before_plan),
        (Some(PermissionMode::Plan), Some(PermissionMode::Auto))
    );
    assert!(!place.work().join("a.txt").exists());
    third.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let refused = results(&records);
    assert!(refused[0].1 && refused[0].2.contains("plan mode"), "{refused:?}");
    assert_eq!(count(&records, |fact| matches!(fact, SessionRecord::ModeChanged(_))), 1);
    let is_order = |fact: &SessionRecord| matches!(fact, SessionRecord::OrderTaken(taken) if matches!(taken.order.kind, OrderKind::Mode { .. }));
    assert_eq!(count(&records, is_order), 1);
}

/// P4: `always` lasts for the session, over a restart, and covers what was shown. `project` lasts for the folder, in a file of the home.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_always_allowed_is_not_asked_again() {
    for (answer, in_other_session) in [("always", 1), ("project", 0)] {
        let place = TestHome::new();
        let command = "touch one && touch two";
        let answers =
            json!([exec(command), "Once.", exec(command), "Twice.", exec("touch three"), "Thrice."]);
        let first = open(config(&place, PermissionMode::Ask), &answers).await;
        let session = first.session("a").await.unwrap();
        let sending = sends(&session, "go");
        let asked = question(&session).await;
        assert!(asked.text.contains("always allows: this exact command"), "{}", asked.text);
        session.answer(asked.id, answer).await.unwrap();
        sending.await.unwrap().unwrap();
        first.shutdown().await.unwrap();

        let second = open(config(&place, PermissionMode::Ask), &answers).await;
        let session = second.session("a").await.unwrap();
        assert_eq!(completes(&session, "again").await, "Twice.");
        let sending = sends(&session, "another");
        let other = question(&session).await;
        assert!(other.text.contains("touch three"), "{}", other.text);
        session.answer(other.id, "no").await.unwrap();
        sending.await.unwrap().unwrap();
        second.shutdown().await.unwrap();

        let third = open(config(&place, PermissionMode::Ask), &answers).await;
        let elsewhere = third.session("b").await.unwrap();
        if in_other_session == 0 {
            completes(&elsewhere, "go").await;
        } else {
            let sending = sends(&elsewhere, "go");
            elsewhere.answer(question(&elsewhere).await.id, "no").await.unwrap();
            sending.await.unwrap().unwrap();
        }
        third.shutdown().await.unwrap();
        let records = sound_records(&place, &elsewhere).await;
        assert_eq!(count(&records, is_question), in_other_session, "{answer}");
        assert!(!place.work().join("approvals.toml").exists(), "never in the project");
    }
}

/// P4: a command that only reads needs no yes, and a tool with another effect is judged by it.
#[tokio::test(flavor = "multi_thread")]
async fn reads_are_free_in_ask_mode() {
    let place = TestHome::new();
    let mut config = config(&place, PermissionMode::Ask);
    config.settings.sandbox.unavailable = longhaul_agent::config::WithoutSandbox::Allow;
    let list = json!({"calls": [{"name": "list_files", "arguments": {}}]});
    let todo =
        json!({"calls": [{"name": "todo", "arguments": {"items": [{"text": "a", "status": "pending"}]}}]});
    let runtime = open(config, &json!([list, todo, "Done."])).await;
    let session = runtime.session("a").await.unwrap();

    assert_eq!(session.send("go").await.unwrap().text, "Done.");

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let effects: Vec<Effect> = facts(&records)
        .into_iter()
        .filter_map(|fact| match fact {
            SessionRecord::ToolStarted(started) => Some(started.effect),
            _ => None,
        })
        .collect();
    assert_eq!((effects, count(&records, is_question)), (vec![Effect::Read, Effect::Idempotent], 0));
}

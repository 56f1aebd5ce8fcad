//! E8: the agent asks the user, and the answer is the result of its call.

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::{Runtime, Session};
use longhaul_protocol::{Outcome, PermissionMode, Question, QuestionKind};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::{eventually, open, results, script, sends, sound_records};

fn ask(choices: &[&str]) -> Value {
    let arguments = json!({"question": "Which\u{202e} database?\nIt is for the tests.", "choices": choices});
    json!({"calls": [{"name": "ask_user", "arguments": arguments}]})
}

async fn question(session: &Session) -> Question {
    eventually("a question is open", || async { !session.state().await.unwrap().questions.is_empty() }).await;
    session.state().await.unwrap().questions.remove(0)
}

/// E8: in plan mode, too, and whatever the words are: `no` and `always` mean nothing but themselves.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_goes_to_the_model_as_it_is() {
    for (answer, mode) in [
        ("SQLite", PermissionMode::Ask),
        ("neither, use a file", PermissionMode::Auto),
        ("no", PermissionMode::Auto),
        ("always", PermissionMode::Plan),
    ] {
        let place = TestHome::new();
        let model = RecordingModel::new(script(&json!([ask(&["SQLite", "Postgres"]), "Good."])));
        let mut config = place.config();
        config.settings.approval.mode = mode;
        let runtime = Runtime::with_model(config, model).await.unwrap();
        let session = runtime.session("a").await.unwrap();
        let sending = sends(&session, "go");

        let asked = question(&session).await;
        session.answer(asked.id, answer).await.unwrap();

        assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Completed);
        assert_eq!(
            (asked.kind, asked.choices.as_slice()),
            (QuestionKind::Ask, ["SQLite".to_owned(), "Postgres".to_owned()].as_slice())
        );
        assert_eq!(
            asked.text, "Which\\u{202e} database?\nIt is for the tests.",
            "what the model chose can be seen"
        );
        assert_eq!(session.state().await.unwrap().permission.grants, []);
        runtime.shutdown().await.unwrap();
        let results = results(&sound_records(&place, &session).await);
        assert_eq!(results, [("ask_user".to_owned(), false, answer.to_owned())]);
    }
}

/// E8
#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_the_agent_waits_through_a_restart() {
    let place = TestHome::new();
    let answers = json!([ask(&[]), "Good."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    let session = first.session("a").await.unwrap();
    let sending = sends(&session, "go");
    let asked = question(&session).await;
    first.shutdown().await.unwrap();
    let _ = sending.await;

    let second = open(&place, RecordingModel::new(script(&answers))).await;
    let session = second.session("a").await.unwrap();
    let again = question(&session).await;
    second.start().await.unwrap();
    session.answer(again.id, "a file").await.unwrap();

    eventually("the turn ends", || async { session.state().await.unwrap().turn.is_none() }).await;
    second.shutdown().await.unwrap();
    assert_eq!(asked.id, again.id);
    let results = results(&sound_records(&place, &session).await);
    assert_eq!(results, [("ask_user".to_owned(), false, "a file".to_owned())]);
}

/// E8, T10
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_turn_asks_no_more() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([ask(&[]), "Good."])))).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    question(&session).await;

    session.cancel().await.unwrap();

    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    assert_eq!(session.state().await.unwrap().questions, []);
    runtime.shutdown().await.unwrap();
}

/// E8, T6, P4
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_wrong_or_denied_is_not_asked() {
    let call = |arguments: Value| json!({"calls": [{"name": "ask_user", "arguments": arguments}]});
    for (arguments, action, reason) in [
        (json!({"question": " "}), Approval::Auto, "`question` must have 1 to 4000 characters"),
        (json!({"question": "x", "choices": ["a", "a"]}), Approval::Auto, "`choices[1]` is there twice"),
        (json!({"question": "x", "choices": ["a\nb"]}), Approval::Auto, "`choices[0]` must be one line"),
        (json!({"question": "x", "choices": vec!["a"; 10]}), Approval::Auto, "`choices` has 10 entries"),
        (json!({"question": "x"}), Approval::Deny, "not asked: `ask_user` matches the rule"),
    ] {
        let place = TestHome::new();
        let mut config = place.config();
        config.settings.approval.rule =
            vec![ApprovalRule { tool: "ask_user".to_owned(), command: None, host: None, action }];
        let model = RecordingModel::new(script(&json!([call(arguments), "Good."])));
        let runtime = Runtime::with_model(config, model).await.unwrap();
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("go").await.unwrap();

        runtime.shutdown().await.unwrap();
        let (_, is_error, content) = results(&sound_records(&place, &session).await).remove(0);
        assert_eq!((ended.outcome, is_error), (Outcome::Completed, true));
        assert!(content.contains(reason), "{content}");
    }
}

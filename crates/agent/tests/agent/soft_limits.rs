//! Soft limits: one question for each limit and period, wherever it is reached and answered. `spend.rs` has the table of the ledger.

use longhaul_agent::{Config, Runtime, Session};
use longhaul_protocol::{
    AnsweredBy, Input, InputId, JoinMode, Limit, Outcome, Question, QuestionKind, SessionRecord, TurnEnded,
};
use longhaul_testkit::TestHome;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::spend::{costing, limited, open, priced, reached, total};
use crate::{eventually, sound_records};

async fn budget_question(session: &Session) -> Question {
    eventually("a question", || async { !session.open_questions().await.unwrap().is_empty() }).await;
    session.open_questions().await.unwrap().remove(0)
}

fn soft(place: &TestHome) -> Config {
    limited(place, |limits| {
        limits.cost_per_day = 0.1;
        limits.soft = 0.5;
    })
}

/// B3: a session that no client attends gets a warning with the name of the setting, and without the id of the session.
#[tokio::test(flavor = "multi_thread")]
async fn the_warning_of_a_soft_limit_names_the_setting() {
    let place = TestHome::new();
    let config = limited(&place, |limits| (limits.cost_per_session, limits.soft) = (0.1, 0.5));
    let runtime = open(config, priced(&json!([costing(49_000), costing(1_000)]))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();

    let (id, text) = (InputId::generate(), "more");
    session.put(Input::new(id, text, JoinMode::Join), None).await.unwrap();

    eventually("the end", || async { session.state().await.unwrap().turn_count == 2 }).await;
    eventually("the end", || async { session.state().await.unwrap().turn.is_none() }).await;
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let warnings = records.iter().filter_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::Warning(warning)) if warning.code == "soft_limit" => Some(warning.text),
        _ => None,
    });
    assert_eq!(warnings.collect::<Vec<_>>(), ["passing 50% of limits.cost_per_session"]);
}

/// B3, P4: one question before the soft limit is passed, which survives a restart; a yes counts for the whole period.
#[tokio::test(flavor = "multi_thread")]
async fn a_soft_limit_asks_once_and_the_question_survives_a_restart() {
    let place = TestHome::new();
    let answers = json!([costing(45_000), costing(1_000), costing(1_000)]);
    let runtime = open(soft(&place), priced(&answers)).await;
    let session = runtime.session("a").await.unwrap();
    let first = session.send("hello").await.unwrap();
    let asking = {
        let session = session.clone();
        tokio::spawn(async move { session.send("more").await })
    };
    let asked = budget_question(&session).await;
    runtime.shutdown().await.unwrap();
    let _ = asking.await.unwrap();

    let runtime = open(soft(&place), priced(&answers)).await;
    let session = runtime.session("a").await.unwrap();
    let again = budget_question(&session).await;
    session.answer(again.id, "yes").await.unwrap();
    let second = session.resume().await.unwrap();
    let third = session.send("and more").await.unwrap();

    assert_eq!(first.outcome, Outcome::Completed);
    assert_eq!((asked.kind, asked.id), (QuestionKind::Budget, again.id));
    assert!(asked.text.contains("50% of limits.cost_per_day"), "{}", asked.text);
    assert_eq!(asked.choices, ["yes", "no"]);
    assert_eq!(second.map(|ended| ended.outcome), Some(Outcome::Completed));
    assert_eq!(third.outcome, Outcome::Completed, "it is not asked again");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// B3: a no ends the turn as a limit, and nothing is spent. It counts for the period: the next turn is not asked again, also
/// after a restart, but ends with how to raise the limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_no_to_the_budget_question_ends_the_turn() {
    let place = TestHome::new();
    let runtime = open(soft(&place), priced(&json!([costing(45_000), costing(1_000)]))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let sending = {
        let session = session.clone();
        tokio::spawn(async move { session.send("more").await })
    };

    let asked = budget_question(&session).await;
    session.answer(asked.id, "no").await.unwrap();
    let ended = sending.await.unwrap().unwrap();

    assert!(reached(&ended, Limit::Cost, "limits.cost_per_day"), "{ended:?}");
    assert_eq!(total(&*runtime.journal()).await.0, 1);
    runtime.shutdown().await.unwrap();
    let runtime = open(soft(&place), priced(&json!([costing(1_000), costing(1_000)]))).await;
    let again = runtime.session("a").await.unwrap().send("once more").await.unwrap();
    assert!(reached(&again, Limit::Cost, "limits.cost_per_day; raise it"), "{again:?}");
    assert_eq!(total(&*runtime.journal()).await.0, 1);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// Sends a message that waits for the answer to a question.
fn send_in_background(session: &Session) -> JoinHandle<longhaul_agent::Result<TurnEnded>> {
    let session = session.clone();
    tokio::spawn(async move { session.send("more").await })
}

/// The second turn of a session uses up most of what is below the soft limit.
fn answers_to_ask_after() -> Value {
    json!([costing(1_000), costing(48_000)])
}

/// Two sessions whose next call passes the soft limit, each with its question.
async fn two_asking_sessions(
    runtime: &Runtime,
) -> [(Session, JoinHandle<longhaul_agent::Result<TurnEnded>>, Question); 2] {
    let spender = runtime.session("spender").await.unwrap();
    spender.send("hello").await.unwrap();
    spender.send("more").await.unwrap();
    let (first, second) = (runtime.session("a").await.unwrap(), runtime.session("b").await.unwrap());
    let (sending_first, sending_second) = (send_in_background(&first), send_in_background(&second));
    let (asked_first, asked_second) = (budget_question(&first).await, budget_question(&second).await);
    [(first, sending_first, asked_first), (second, sending_second, asked_second)]
}

/// Who settled each question of a session.
async fn settled_by(place: &TestHome, session: &Session) -> Vec<Option<AnsweredBy>> {
    let records = sound_records(place, session).await;
    let answered = records.iter().filter_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::Answered(answered)) => Some(answered.by),
        _ => None,
    });
    answered.collect()
}

/// B3: two sessions that reach a soft limit in the same moment need one answer. A yes in one lets both go on, a no ends both.
#[tokio::test(flavor = "multi_thread")]
async fn one_answer_counts_for_all_sessions_that_ask_about_a_soft_limit() {
    for (answer, outcome) in [("yes", Outcome::Completed), ("no", Outcome::Limit)] {
        let place = TestHome::new();
        let runtime = open(soft(&place), priced(&answers_to_ask_after())).await;
        let [(first, sending, asked), (second, also_sending, _)] = two_asking_sessions(&runtime).await;

        first.answer(asked.id, answer).await.unwrap();
        let ended = [sending.await.unwrap().unwrap(), also_sending.await.unwrap().unwrap()];

        assert_eq!(ended.each_ref().map(|ended| ended.outcome), [outcome; 2], "{answer}: {ended:?}");
        assert!(second.open_questions().await.unwrap().is_empty());
        runtime.shutdown().await.unwrap();
        assert_eq!(settled_by(&place, &first).await, [Some(AnsweredBy::User)], "{answer}");
        assert_eq!(settled_by(&place, &second).await, [Some(AnsweredBy::Runtime)], "{answer}");
    }
}

/// B3: a question that its process left open is no longer asked once another session has the answer, also after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_soft_limit_is_withdrawn_after_a_restart_if_it_is_decided() {
    let place = TestHome::new();
    let runtime = open(soft(&place), priced(&answers_to_ask_after())).await;
    let [(_, sending, asked), (_, also_sending, left_open)] = two_asking_sessions(&runtime).await;
    runtime.shutdown().await.unwrap();
    let _ = (sending.await.unwrap(), also_sending.await.unwrap());

    let runtime = open(soft(&place), priced(&answers_to_ask_after())).await;
    let (first, second) = (runtime.session("a").await.unwrap(), runtime.session("b").await.unwrap());
    let before: Vec<_> = second.open_questions().await.unwrap().iter().map(|open| open.id).collect();
    first.answer(asked.id, "yes").await.unwrap();
    let went_on = first.resume().await.unwrap();
    let after = second.open_questions().await.unwrap();
    let too_late = second.answer(left_open.id, "no").await;
    let resumed = second.resume().await.unwrap();

    assert_eq!(before, [left_open.id]);
    assert_eq!(went_on.map(|ended| ended.outcome), Some(Outcome::Completed));
    assert_eq!(after, []);
    assert!(matches!(too_late, Err(longhaul_agent::Error::QuestionSettled { .. })), "{too_late:?}");
    assert_eq!(resumed.map(|ended| ended.outcome), Some(Outcome::Completed));
    runtime.shutdown().await.unwrap();
    assert_eq!(settled_by(&place, &second).await, [Some(AnsweredBy::Runtime)]);
}

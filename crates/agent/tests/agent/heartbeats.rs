//! Heartbeats: runs of a schedule that may find nothing to do (W3).

use std::sync::Arc;

use longhaul_agent::{Runtime, Session};
use longhaul_protocol::{
    At, EpochReason, Input, InputId, Item, JoinMode, Outcome, Record, Sender, SessionRecord, TurnEnded,
};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::{eventually, script, sound_records};

const PROMPT: &str = "Are the builds green?";

/// Sends a heartbeat and waits for the end of its turn.
async fn beat(session: &Session) {
    let turns = session.state().await.unwrap().turn_count;
    let sender = Sender::Schedule {
        id: "builds".to_owned(),
        slot: At(0),
        by_agent: false,
        max_cost_nano: None,
        heartbeat: true,
    };
    let input = Input::new(InputId::generate(), PROMPT, JoinMode::After);
    session.put(Input { sender, ..input }, None).await.unwrap();
    eventually("the turn", || async { session.state().await.unwrap().turn_count > turns }).await;
    eventually("its end", || async { session.state().await.unwrap().turn.is_none() }).await;
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn texts<M>(model: &RecordingModel<M>) -> Vec<String> {
    let text = |item: &Arc<Item>| match &**item {
        Item::Text { text, .. } | Item::Note { text } => Some(text.clone()),
        _ => None,
    };
    model.requests().last().unwrap().items.iter().filter_map(text).collect()
}

fn turn_ends(records: &[Record]) -> Vec<TurnEnded> {
    let end = |record: &Record| match SessionRecord::decode(record) {
        Ok(SessionRecord::TurnEnded(ended)) => Some(ended),
        _ => None,
    };
    records.iter().filter_map(end).collect()
}

fn count_drops(records: &[Record]) -> usize {
    let is_drop = |record: &&Record| matches!(SessionRecord::decode(record), Ok(SessionRecord::EpochStarted(epoch)) if epoch.reason == EpochReason::QuietDropped);
    records.iter().filter(is_drop).count()
}

/// A session that stays open for weeks does not fill up with heartbeats that found nothing to do: after eight, the next turn drops them
/// without a model call. It makes no difference whether the process was restarted meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_that_find_nothing_to_do_leave_the_context() {
    for restarts in [false, true] {
        let place = TestHome::new();
        let look = call("exec", &json!({"command": "echo all green"}));
        let mut steps = vec![json!("Hello.")];
        for _ in 0..8 {
            steps.extend([look.clone(), json!("**Nothing to do.**")]);
        }
        steps.push(json!("You said hello."));
        let model = RecordingModel::new(script(&json!(steps)));
        let mut runtime = Runtime::with_model(place.config(), model.clone()).await.unwrap();
        let mut session = runtime.session("a").await.unwrap();
        session.send("hello").await.unwrap();
        for _ in 0..8 {
            beat(&session).await;
        }
        let told = texts(&model);
        let hint = |text: &&String| text.contains("answer with `nothing to do` and nothing else");
        assert_eq!(told.iter().filter(hint).count(), 8, "{told:?}");
        assert_eq!(told.iter().filter(|text| *text == PROMPT).count(), 8);
        if restarts {
            runtime.shutdown().await.unwrap();
            runtime = Runtime::with_model(place.config(), model.clone()).await.unwrap();
            session = runtime.session("a").await.unwrap();
        }

        let ended = session.send("what did I say?").await.unwrap();

        assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "You said hello."));
        let told = texts(&model);
        assert!(!told.iter().any(|text| text == PROMPT || text.contains("Nothing to do")), "{told:?}");
        assert_eq!(told[told.len() - 3..], ["hello", "Hello.", "what did I say?"], "restarts: {restarts}");
        runtime.shutdown().await.unwrap();
        let records = sound_records(&place, &session).await;
        assert_eq!(turn_ends(&records).iter().filter(|end| end.is_quiet()).count(), 8);
        assert_eq!(count_drops(&records), 1);
    }
}

/// A heartbeat that did something, or said more, stays; a person who says "nothing to do" is no heartbeat.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_that_did_something_stays_in_the_context() {
    let place = TestHome::new();
    let write = call("write_file", &json!({"path": "log.txt", "content": "green"}));
    let todo = call("todo", &json!({"items": [{"text": "mend the build", "status": "pending"}]}));
    let push = call("exec", &json!({"command": "mkdir pushed"}));
    let background = call("exec", &json!({"command": "sleep 30", "run_in_background": true}));
    let steps = [write, todo, push, background].into_iter().flat_map(|step| [step, json!("Nothing to do.")]);
    let steps = steps.chain([json!("Nothing to do: the build is green."), json!("nothing to do")]);
    let model = RecordingModel::new(script(&json!(steps.collect::<Vec<_>>())));
    let runtime = Runtime::with_model(place.config(), model).await.unwrap();
    let session = runtime.session("a").await.unwrap();

    for _ in 0..5 {
        beat(&session).await;
    }
    session.send("anything?").await.unwrap();

    assert!(session.state().await.unwrap().quiet_turns.is_empty());
    runtime.shutdown().await.unwrap();
    let ends = turn_ends(&sound_records(&place, &session).await);
    assert_eq!((ends.len(), ends.iter().filter(|end| end.is_quiet()).count()), (6, 0), "{ends:?}");
}

/// What a person says while a heartbeat runs stays with its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_that_a_person_joins_stays_in_the_context() {
    let place = TestHome::new();
    let wait = call("exec", &json!({"command": "until [ -e joined ]; do sleep 0.05; done"}));
    let model = RecordingModel::new(script(&json!([wait, "Nothing to do."])));
    let runtime = Runtime::with_model(place.config(), model).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    let beating = tokio::spawn({
        let session = session.clone();
        async move { beat(&session).await }
    });
    eventually("the command runs", || async {
        session
            .state()
            .await
            .unwrap()
            .turn
            .is_some_and(|turn| turn.calls.iter().any(|call| call.started.is_some()))
    })
    .await;

    let input = Input::new(InputId::generate(), "and the tests?", JoinMode::Join);
    session.put(input, None).await.unwrap();
    std::fs::write(place.work().join("joined"), "").unwrap();
    beating.await.unwrap();

    assert!(session.state().await.unwrap().quiet_turns.is_empty());
    runtime.shutdown().await.unwrap();
    let ends = turn_ends(&sound_records(&place, &session).await);
    assert_eq!(ends.iter().filter(|end| end.is_quiet()).count(), 0, "{ends:?}");
}

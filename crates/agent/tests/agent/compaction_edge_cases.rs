//! Rare cases of making the context smaller, each of which went wrong once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use longhaul_agent::RuntimeBuilder;
use longhaul_journal::Journal;
use longhaul_model::{AnswerStream, CallPermit, Capabilities, FailureClass, Model, ModelFailure, Request};
use longhaul_protocol::{EventKind, InboxRecord, Item, Outcome, Role};
use longhaul_testkit::{FaultyJournal, RecordingModel, TestHome, collect_until, ended_turn};
use serde_json::{Value, json};

use crate::compaction::{compactions, config, is_summary, open, summary, text, texts};
use crate::{eventually, script, sound_records};

/// Three files, and a step that reads one of them.
fn files(place: &TestHome) {
    for name in ["a.txt", "b.txt", "c.txt"] {
        std::fs::write(place.work().join(name), "word by word\n".repeat(500)).unwrap();
    }
}

fn read(name: &str) -> Value {
    json!({"text": text(1_100), "calls": [{"name": "read_file", "arguments": {"path": name}}]})
}

fn says(request: &Request, by: Role, beginning: &str) -> bool {
    request.items.iter().any(
        |item| matches!(&**item, Item::Text { role, text } if *role == by && text.starts_with(beginning)),
    )
}

/// C4, M19: a turn that failed and is run again still has its request, also if the context is made smaller before.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_run_again_after_a_compaction_still_has_its_request() {
    let place = TestHome::new();
    files(&place);
    let fails = json!({"error": "no", "text": ""});
    let answers = json!(["Hello.", read("a.txt"), read("b.txt"), fails, summary("x"), "never"]);
    let model = RecordingModel::new(script(&answers));
    let mut config = config(&place, 8_000);
    config.settings.context.compact_now_at = 0.0;
    config.settings.context.compact_at = 0.6;
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    assert_eq!(session.send("PLEASE read the files").await.unwrap().outcome, Outcome::Failed);
    let mut watcher = session.watch();

    session.retry().await.unwrap().unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!(compactions(&events), ["start before_turn", "done 2 Model"]);
    assert!(says(model.requests().last().unwrap(), Role::User, "PLEASE"), "the request is gone");
}

/// M11: an answer that was cut at its greatest length goes on from its first half.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_goes_on_keeps_its_first_half() {
    let place = TestHome::new();
    let half = json!({"text": format!("BEGINNING {}", text(1_600)), "stop": "length"});
    let model = RecordingModel::new(script(&json!([text(2_200), half, summary("x"), "END"])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();

    let ended = session.send(text(200)).await.unwrap();

    assert!(ended.text.starts_with("BEGINNING") && ended.text.ends_with("END"), "{}", ended.text.len());
    assert!(says(model.requests().last().unwrap(), Role::Assistant, "BEGINNING"), "it goes on from nothing");
}

/// C7: at least the two newest exchanges stay, if they fit.
#[tokio::test(flavor = "multi_thread")]
async fn by_rule_the_newest_exchange_stays_if_it_fits() {
    let place = TestHome::new();
    let answers: Vec<Value> = (0..8).map(|number| json!(format!("{number} {}", text(1_300)))).collect();
    let model = RecordingModel::new(script(&json!(answers)));
    let mut config = config(&place, 8_000);
    config.settings.context.summary = longhaul_agent::config::Summary::Off;
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    for number in 0..8 {
        session.send(format!("request {number}")).await.unwrap();

        let last = texts(model.requests().last().unwrap());
        let newest = (number - 1_i32).max(0)..=number;
        assert!(newest.into_iter().all(|newest| last.contains(&format!("request {newest}"))), "{number}");
    }
    assert!(session.state().await.unwrap().compaction.count >= 2);
}

/// Y4: who opens one session does not run the turns of others because they are idle.
#[tokio::test(flavor = "multi_thread")]
async fn the_idle_worker_of_a_terminal_leaves_other_sessions_alone() {
    let place = TestHome::new();
    let first = open(config(&place, 8_000), RecordingModel::new(script(&json!([text(2_700)])))).await;
    first.session("others").await.unwrap().send("first").await.unwrap();
    first.shutdown().await.unwrap();
    let model = RecordingModel::new(script(&json!([text(2_700), summary("idle"), "never"])));
    let terminal = open(config(&place, 8_000), model.clone()).await;
    terminal.set_check_interval(Duration::from_millis(40));
    let mut watcher = terminal.watch();
    terminal.start_idle().await.unwrap();

    // Its own is made smaller; by then it has looked at both more than once.
    terminal.session("own").await.unwrap().send("hello").await.unwrap();
    let is_done = |kind: &EventKind| matches!(kind, EventKind::CompactDone { .. });
    let events = collect_until(&mut watcher, is_done).await;

    let compacted = events.iter().filter(|event| is_done(&event.kind)).map(|event| event.session.as_str());
    assert_eq!(compacted.collect::<Vec<_>>(), ["own"]);
    assert_eq!(model.requests().len(), 2, "a step and a summary");
    terminal.shutdown().await.unwrap();
}

/// Y4: what counts is the model of the session, not the usual one.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_with_a_model_of_its_own_is_made_smaller() {
    let place = TestHome::new();
    let file = place.work().join("own.json");
    std::fs::write(&file, json!([text(2_700), summary("idle")]).to_string()).unwrap();
    let usual = RecordingModel::new(script(&json!([])));
    let runtime = open(config(&place, 8_000), usual.clone()).await;
    runtime.set_check_interval(Duration::from_millis(40));
    let session = runtime.session("a").await.unwrap();
    session.use_model(&format!("scripted/{}", file.display())).unwrap();
    session.send("first").await.unwrap();
    let mut watcher = session.watch();

    runtime.start_idle().await.unwrap();

    let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::CompactDone { .. })).await;
    assert_eq!(compactions(&events), ["start idle", "done 2 Model"]);
    assert_eq!(usual.requests().len(), 0);
    runtime.shutdown().await.unwrap();
}

/// Y4: a job in flight is cut when the scheduler is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_nobody_waits_for_any_more_is_cut() {
    let place = TestHome::new();
    let slow = json!({"summary": true, "text": "# Goal\nx", "wait_ms": 600_000});
    let model = RecordingModel::new(script(&json!([text(2_700), slow])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    runtime.set_check_interval(Duration::from_millis(40));
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let mut watcher = session.watch();
    runtime.start_idle().await.unwrap();
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::CompactStart { .. })).await;

    runtime.stop_idle().await;

    let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::CompactFailed { .. })).await;
    assert_eq!(compactions(&events).len(), 1, "{:?}", compactions(&events));
    runtime.shutdown().await.unwrap();
}

/// A model that is busy the first times that it is asked for a summary.
struct Busy<M> {
    model: M,
    times: usize,
    asked: AtomicUsize,
}

impl<M> Busy<M> {
    fn new(model: M) -> Self {
        Self { model, times: 1, asked: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl<M: Model> Model for Busy<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn capabilities(&self) -> Capabilities {
        self.model.capabilities().await
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        if is_summary(&request) && self.asked.fetch_add(1, Ordering::SeqCst) < self.times {
            let delay = Some(Duration::from_secs(50));
            return Err(ModelFailure { delay, ..ModelFailure::new(FailureClass::Overloaded, "busy") });
        }
        self.model.ask(request, permit).await
    }
}

/// M6: "retry now" ends the wait of a summary, too.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_a_hurry_need_not_wait_for_a_summary() {
    let place = TestHome::new();
    let scripted = script(&json!([text(3_200), summary("x"), "Second."]));
    let runtime = open(config(&place, 8_000), Arc::new(Busy::new(scripted))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let mut watcher = session.watch();
    let sender = session.clone();
    let sending = tokio::spawn(async move { sender.send(text(400)).await });
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::RetryWait { .. })).await;
    let began = Instant::now();

    let hurrying = session.clone();
    let retrying = tokio::spawn(async move { hurrying.retry().await });

    assert_eq!(sending.await.unwrap().unwrap().text, "Second.");
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    retrying.await.unwrap().unwrap();
}

/// M6: also in the very moment in which the wait is shown, before whoever waits has looked around.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_a_hurry_at_once_is_heard() {
    let place = TestHome::new();
    let scripted = script(&json!([text(3_200), summary("x"), "Second."]));
    let journal = FaultyJournal::new(place.journal().await, None);
    let model: Arc<dyn Model> = Arc::new(Busy::new(scripted));
    let runtime = RuntimeBuilder::new(config(&place, 8_000))
        .model(model)
        .journal(journal.clone())
        .open()
        .await
        .unwrap();
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let mut watcher = session.watch();
    journal.read_slowly(Duration::from_millis(300));
    let sender = session.clone();
    let sending = tokio::spawn(async move { sender.send(text(400)).await });
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::RetryWait { .. })).await;
    let began = Instant::now();

    let hurrying = session.clone();
    let retrying = tokio::spawn(async move { hurrying.retry().await });

    assert_eq!(sending.await.unwrap().unwrap().text, "Second.");
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    retrying.await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
}

/// C8, C10: where the first request is pinned without its middle, it says which record has all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_shortened_first_request_says_where_it_can_be_read() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", summary("g"), "Two."])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send(format!("do it {}", text(2_000))).await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("second").await.unwrap();

    let last = texts(&model.requests().pop().unwrap());
    let pin = last.iter().find(|text| text.starts_with("[First request")).unwrap();
    let seq = pin.split("recall_read with ref \"#").nth(1).unwrap().split('"').next().unwrap();
    let records = sound_records(&place, &session).await;
    let record = records.iter().find(|record| record.seq.to_string() == seq).unwrap();
    assert_eq!(record.kind, "input_taken");
}

/// C4, K5: a turn that the end of a task began still has that to answer, after a compaction in its middle.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_a_task_began_still_has_something_to_answer() {
    let place = TestHome::new();
    files(&place);
    let command = "while [ ! -e go ]; do sleep 0.02; done";
    let start =
        json!({"calls": [{"name": "exec", "arguments": {"command": command, "run_in_background": true}}]});
    let answers =
        json!([start, "Started.", read("a.txt"), read("b.txt"), read("c.txt"), summary("x"), "Done."]);
    let model = RecordingModel::new(script(&answers));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("start it").await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();

    eventually("the task has been told, and the turn is over", || async {
        let state = session.state().await.unwrap();
        state.turn_count == 2 && state.turn.is_none()
    })
    .await;

    let last = model.requests().pop().unwrap();
    assert!(says(&last, Role::System, "[Compacted context summary]"));
    assert!(says(&last, Role::User, "<task-notification>"), "only the runtime speaks");
}

/// C5: a large message is no reason to pay for a summary that can't help.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_message_after_little_is_no_reason_for_a_summary() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", summary("x"), "Two."])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();

    session.send(text(3_500)).await.unwrap();

    assert_eq!(model.requests().iter().map(is_summary).collect::<Vec<_>>(), [false, false]);
}

/// M6: one order ends one wait, and not those that come after it.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_a_hurry_once_ends_one_wait() {
    let place = TestHome::new();
    let scripted = script(&json!([text(3_200), summary("x"), "Second."]));
    let runtime = open(config(&place, 8_000), Arc::new(Busy { times: 2, ..Busy::new(scripted) })).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let mut watcher = session.watch();
    let sender = session.clone();
    let sending = tokio::spawn(async move { sender.send(text(400)).await });
    let waits = |kind: &EventKind| matches!(kind, EventKind::RetryWait { .. });
    collect_until(&mut watcher, waits).await;
    let hurrying = session.clone();
    let retrying = tokio::spawn(async move { hurrying.retry().await });
    collect_until(&mut watcher, waits).await;

    let ended = tokio::time::timeout(Duration::from_millis(700), sending).await;

    assert!(ended.is_err(), "the second wait ended by itself");
    session.cancel().await.unwrap();
    let _ = retrying.await;
    runtime.shutdown().await.unwrap();
}

/// M11: where a longer answer has no room beside the prompt, it goes on with the usual one.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_on_also_where_a_longer_one_has_no_room() {
    let place = TestHome::new();
    let half = json!({"text": "BEGINNING ", "stop": "length"});
    let model = RecordingModel::new(script(&json!([half, "END"])));
    let mut config = config(&place, 8_000);
    config.settings.model.max_output_tokens = Some(500);
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send(text(4_600)).await.unwrap();

    assert!(ended.text.ends_with("END"), "{ended:?}");
}

/// T3: inputs that came together and don't fit together are taken in as many turns as they need, each in the words that were said.
#[tokio::test(flavor = "multi_thread")]
async fn inputs_that_do_not_fit_together_have_a_turn_each() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", "Two.", "Three."])));
    let first = open(config(&place, 8_000), model.clone()).await;
    let session = first.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let id = session.id().unwrap();
    first.shutdown().await.unwrap();
    let journal = place.journal().await;
    let inputs = ["A", "B"].map(|name| format!("{name} {}", text(2_500)));
    for input in &inputs {
        let record = InboxRecord::Input(crate::said(input)).encode();
        longhaul_journal::put(&*journal, id, record).await.unwrap();
    }
    journal.close().await;

    let again = open(config(&place, 8_000), model.clone()).await;
    let session = again.session("a").await.unwrap();
    session.resume().await.unwrap();
    eventually("both have had their turn", || async {
        let state = session.state().await.unwrap();
        state.turn_count == 3 && state.turn.is_none()
    })
    .await;

    let seen = |input: &String| model.requests().iter().any(|request| texts(request).contains(input));
    assert!(inputs.iter().all(seen), "each was seen word for word");
    assert_eq!(session.state().await.unwrap().last_outcome, Some(Outcome::Completed));
    again.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

//! Memory: what it costs, what it leaves out to others, and what it takes of a small window.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_agent::{Config, Error, Runtime, Watched};
use longhaul_memory::{PageEdit, change_page};
use longhaul_model::{
    AnswerStream, CallPermit, Capabilities, ContextWindow, FailureClass, Model, ModelFailure, Prices,
    Purpose, Request, ScriptedModel, WindowSource,
};
use longhaul_protocol::{EventKind, Usage};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::compaction::{summary, text};
use crate::memory::{asked, checks, config, extracts, found};
use crate::{eventually, script};

/// A dollar for a million tokens, and a window of so many.
fn priced(answers: &Value, window: Option<u64>) -> ScriptedModel {
    let prices = Prices { input: 1.0, output: 1.0, cached: None, written: None };
    let window = window.map(|tokens| ContextWindow { tokens, source: WindowSource::Config });
    script(answers).with_capabilities(Capabilities {
        prices: Some(prices),
        window,
        ..Capabilities::default()
    })
}

/// A dollar a day.
fn with_a_dollar(place: &TestHome) -> Config {
    let mut config = config(place);
    config.settings.limits.cost_per_day = 1.0;
    config
}

/// T9: what a call cost that came to nothing stands in no record yet, and counts all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_calls_cost_that_came_to_nothing_counts() {
    let place = TestHome::new();
    let rubbish = json!({"extract": true, "text": "no", "usage": {"input": 500_000, "output": 0}});
    let model = RecordingModel::new(priced(&json!(["Hello.", rubbish]), None));
    let runtime = Runtime::with_model(with_a_dollar(&place), model.clone()).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();

    let first = session.extract().await;
    let second = session.extract().await;
    let turn = session.send("hello again").await.unwrap();

    assert!(matches!(first, Err(Error::Memory(_))), "{first:?}");
    assert!(second.is_err_and(|error| error.to_string().contains("limits.cost_per_day")));
    assert!(turn.error.is_some_and(|error| error.contains("limits.cost_per_day")));
    assert_eq!(asked(&model.requests()), ["step", "extract", "extract"]);
    runtime.shutdown().await.unwrap();
}

/// T9: there is money for each call, or it is not made; what was paid for is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_session_is_gone_through_as_far_as_there_is_money() {
    let place = TestHome::new();
    let arguments = json!({"items": []});
    let call = json!({"name": "write_extracted", "arguments": arguments});
    let extracted = json!({"calls": [call], "usage": {"input": 1_000_000, "output": 0}});
    let answers = json!([text(9_000), text(9_000), text(9_000), extracted, extracted, extracted]);
    let model = RecordingModel::new(priced(&answers, Some(64_000)));
    let runtime = Runtime::with_model(with_a_dollar(&place), model.clone()).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    for _ in 0..3 {
        session.send("go on").await.unwrap();
    }

    let done = session.extract().await;

    assert!(
        matches!(&done, Err(Error::Memory(error)) if error.to_string().contains("cost_per_day")),
        "{done:?}"
    );
    assert_eq!(asked(&model.requests()), ["step", "step", "step", "extract"]);
    let [extract] = extracts(&*runtime.journal(), session.id().unwrap()).await.try_into().unwrap();
    assert_eq!(extract.usage.iter().filter_map(|usage: &Usage| usage.cost).sum::<f64>(), 1.0);
    runtime.shutdown().await.unwrap();
}

/// A config in which an idle session waits until there is enough for a call, as it does by default.
fn with_usual_thresholds(place: &TestHome) -> Config {
    let mut config = config(place);
    config.settings.memory.extract_min_tokens = Config::at(place.home()).settings.memory.extract_min_tokens;
    config
}

/// The calls of a model that were for memory.
fn memory_calls<M: Model>(model: &RecordingModel<M>) -> usize {
    asked(&model.requests()).iter().filter(|purpose| **purpose == "extract").count()
}

/// B4, Y1: small talk costs no call for memory, however often it is looked; once there is enough, it costs one.
#[tokio::test(flavor = "multi_thread")]
async fn small_talk_waits_until_it_is_worth_a_call() {
    let place = TestHome::new();
    let mut answers = vec![json!("Hello."); 20];
    answers.push(json!(text(500)));
    answers.push(found("The user says hi.", 3));
    let model = RecordingModel::new(script(&json!(answers)));
    let runtime = Runtime::with_model(with_usual_thresholds(&place), model.clone()).await.unwrap();
    runtime.set_check_interval(std::time::Duration::from_millis(1));
    runtime.start_idle().await.unwrap();
    let session = runtime.session("a").await.unwrap();

    for _ in 0..20 {
        session.send("hi").await.unwrap();
        checks(&runtime, 5).await;
    }
    let for_small_talk = memory_calls(&model);
    session.send("tell me more").await.unwrap();
    eventually("memory is asked", || async { session.extracted_through().await.unwrap() > 0 }).await;
    checks(&runtime, 10).await;

    assert_eq!((for_small_talk, memory_calls(&model)), (0, 1));
    let status = session.status().await.unwrap();
    assert_eq!((status.memory_calls.calls, status.extracted_through), (1, status.state.head));
    runtime.shutdown().await.unwrap();
}

/// B4, Y6: a model that ignored the form twice is not asked again for the same small talk, nor for a little more of it.
/// What it did is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_ignores_the_form_is_not_asked_again_for_small_talk() {
    let place = TestHome::new();
    let rubbish = json!({"extract": true, "text": "I'd rather not.", "usage": {"input": 1_000, "output": 0}});
    let answers = json!([text(600), "Hello.", text(2_000), rubbish]);
    let model = RecordingModel::new(priced(&answers, None));
    let runtime = Runtime::with_model(with_usual_thresholds(&place), model.clone()).await.unwrap();
    runtime.set_check_interval(std::time::Duration::from_millis(1));
    runtime.start_idle().await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("hi").await.unwrap();
    eventually("the model ignored the form", || async { memory_calls(&model) == 2 }).await;
    checks(&runtime, 30).await;
    session.send("hi").await.unwrap();
    checks(&runtime, 30).await;
    let for_small_talk = memory_calls(&model);
    let status = session.status().await.unwrap();
    session.send("tell me more").await.unwrap();
    eventually("it is worth another try", || async { memory_calls(&model) > 2 }).await;

    assert_eq!((for_small_talk, status.memory_calls.calls), (2, 2));
    assert_eq!(status.memory_calls.cost, Some(0.002));
    runtime.shutdown().await.unwrap();
}

/// B4, Y6: what waits already counts for nothing after unusable answers, however much it is, also after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_ignores_the_form_is_not_asked_again_about_the_same_records() {
    let place = TestHome::new();
    let rubbish = json!({"extract": true, "text": "I'd rather not.", "usage": {"input": 1_000, "output": 0}});
    let answers = json!([text(5_000), rubbish]);
    let mut calls = Vec::new();
    for is_restart in [false, true, true] {
        let model = RecordingModel::new(priced(&answers, None));
        let runtime = Runtime::with_model(with_usual_thresholds(&place), model.clone()).await.unwrap();
        runtime.set_check_interval(std::time::Duration::from_millis(1));
        runtime.start_idle().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        if !is_restart {
            session.send("hi").await.unwrap();
            eventually("the model ignored the form", || async { memory_calls(&model) >= 2 }).await;
        }
        checks(&runtime, 30).await;
        let status = session.status().await.unwrap();
        calls.push((memory_calls(&model), status.memory_calls.calls));
        runtime.shutdown().await.unwrap();
    }

    assert_eq!(calls, [(2, 2), (0, 2), (0, 2)]);
}

/// B4: memory may use a model of its own; if that can't be used, the session's own stands in, and this is said once.
#[tokio::test(flavor = "multi_thread")]
async fn memory_asks_its_own_model_and_falls_back_to_the_sessions() {
    let place = TestHome::new();
    let cheap = place.work().join("cheap.json");
    std::fs::write(&cheap, json!([found("Cheaply noted.", 3)]).to_string()).unwrap();
    let mut items = Vec::new();
    let mut warnings = 0;

    for (key, name) in [("cheap", format!("scripted/{}", cheap.display())), ("none", "groq/m".to_owned())] {
        let mut config = config(&place);
        config.settings.memory.model = Some(name);
        let own = RecordingModel::new(script(&json!(["One.", "Two.", found("Dearly noted.", 3)])));
        let runtime = Runtime::with_model(config, own.clone()).await.unwrap();
        let mut everybody = runtime.watch();
        let session = runtime.session(key).await.unwrap();
        session.send("one").await.unwrap();
        session.extract().await.unwrap().unwrap();
        session.send("two").await.unwrap();
        session.extract().await.unwrap();
        while let Some(watched) = everybody.try_next() {
            let is_warning =
                |kind: &EventKind| matches!(kind, EventKind::Warning { code, .. } if code == "memory_model");
            warnings += usize::from(matches!(watched, Watched::Event(event) if is_warning(&event.kind)));
        }
        let extracts = extracts(&*runtime.journal(), session.id().unwrap()).await;
        items.push((extracts[0].items[0].text.clone(), memory_calls(&own)));
        runtime.shutdown().await.unwrap();
    }

    assert_eq!(items, [("Cheaply noted.".to_owned(), 0), ("Dearly noted.".to_owned(), 2)]);
    assert_eq!(warnings, 1);
}

/// A model that puts no pages in order.
struct Disorderly(ScriptedModel);

#[async_trait]
impl Model for Disorderly {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        match request.purpose {
            Purpose::Consolidate { .. } => Err(ModelFailure::new(FailureClass::Script, "made up")),
            _ => self.0.ask(request, permit).await,
        }
    }
}

/// Y4, Y8: pages that can't be put in order are the trouble of one session of their scope, not of each.
#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_fails_is_tried_again_for_one_session_only() {
    let place = TestHome::new();
    let keys = ["a", "b", "c", "d"];
    let model = script(&json!(["Noted.", found("The port of staging is 5433.", 3)]));
    let runtime = Runtime::with_model(config(&place), Arc::new(model)).await.unwrap();
    for key in keys {
        let session = runtime.session(key).await.unwrap();
        session.send("The port of staging is 5433.").await.unwrap();
        assert_eq!(session.extract().await.unwrap().unwrap().items, 1);
    }
    runtime.shutdown().await.unwrap();

    let mut config = config(&place);
    config.settings.memory.consolidate_at_items = 1;
    let runtime = Runtime::with_model(config, Arc::new(Disorderly(script(&json!([]))))).await.unwrap();
    let mut everybody = runtime.watch();
    runtime.set_check_interval(std::time::Duration::from_millis(5));
    runtime.start_idle().await.unwrap();
    checks(&runtime, 20).await;
    runtime.shutdown().await.unwrap();

    let mut failed = BTreeSet::new();
    while let Some(watched) = everybody.try_next() {
        if let Watched::Event(event) = watched
            && matches!(event.kind, EventKind::Warning { code, .. } if code == "idle_failed")
        {
            failed.insert(event.session);
        }
    }
    assert_eq!(failed.len(), 1, "{failed:?}");
}

/// Y5: at most one job a session, over all processes; who asks meanwhile waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_while_another_process_is_at_it_waits_for_that() {
    let place = TestHome::new();
    let one = Runtime::with_model(config(&place), Arc::new(script(&json!(["Hello."])))).await.unwrap();
    one.session("a").await.unwrap().send("hello").await.unwrap();
    one.shutdown().await.unwrap();
    let (model, gate) = GatedModel::new(script(&json!([])));
    let one = Runtime::with_model(config(&place), model).await.unwrap();
    let idle = RecordingModel::new(script(&json!([])));
    let other = Runtime::with_model(config(&place), idle.clone()).await.unwrap();
    let (here, there) = (one.session("a").await.unwrap(), other.session("a").await.unwrap());

    let at_it = tokio::spawn(async move { here.extract().await });
    gate.reached().await;
    let mut waits = Box::pin(there.extract());
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut waits).await;
    gate.open();
    let (first, second) = (at_it.await.unwrap().unwrap().unwrap(), waits.await.unwrap().unwrap());

    assert!(early.is_err(), "{early:?}");
    assert_eq!((first.parts, second.parts, first.through), (1, 0, second.through));
    assert_eq!(idle.requests().len(), 0);
    one.shutdown().await.unwrap();
    other.shutdown().await.unwrap();
}

/// Y11, C13: what is remembered fits as the model counts, and so is still there after a compaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_window_and_a_model_that_counts_more_still_have_what_is_remembered() {
    let place = TestHome::new();
    let counts_more =
        |answer: &str, input: u64| json!({"text": answer, "usage": {"input": input, "output": 1}});
    let long = text(3_000);
    let answers = json!([
        counts_more(&long, 12_000),
        counts_more("Two.", 16_000),
        summary("count"),
        counts_more("Three.", 12_000)
    ]);
    let model = RecordingModel::new(priced(&answers, Some(24_000)));
    let runtime = Runtime::with_model(config(&place), model.clone()).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    let lines: String = (0..400).map(|line| format!("- Likes tea number {line}\n")).collect();
    let scope = config(&place).memory_scope("a", Some(&place.work().canonicalize().unwrap()));
    let change =
        PageEdit { page: "core".to_owned(), text: Some(lines), reason: String::new(), made_from: None };
    change_page(&*runtime.journal(), &scope, change).await.unwrap();

    session.send("two").await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("three").await.unwrap();

    let requests = model.requests();
    let last = format!("{:?}", requests.last().unwrap().items);
    assert!(last.contains("Likes tea number 399"), "{}", &last[..last.len().min(2_000)]);
    runtime.shutdown().await.unwrap();
}

/// Y11: the window of the session's own model counts, not that of the usual one.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_model_of_its_own_remembers_as_much_as_that_model_has_room_for() {
    let place = TestHome::new();
    let file = place.work().join("own.json");
    std::fs::write(&file, r#"["One."]"#).unwrap();
    let usual = priced(&json!(["One."]), Some(4_000));
    let runtime = Runtime::with_model(config(&place), Arc::new(usual)).await.unwrap();
    let (small, large) = (runtime.session("small").await.unwrap(), runtime.session("large").await.unwrap());
    large.use_model(&format!("scripted/{}", file.display())).unwrap();
    let lines: String = (0..200).map(|line| format!("- Likes tea number {line}\n")).collect();
    let scope = config(&place).memory_scope("small", Some(&place.work().canonicalize().unwrap()));
    let change =
        PageEdit { page: "core".to_owned(), text: Some(lines), reason: String::new(), made_from: None };
    change_page(&*runtime.journal(), &scope, change).await.unwrap();

    small.send("one").await.unwrap();
    large.send("one").await.unwrap();

    let mut remembered = Vec::new();
    for session in [&small, &large] {
        let items = format!("{:?}", session.state().await.unwrap().items);
        remembered.push(items.matches("Likes tea number").count());
    }
    assert!(remembered[0] < 200 && remembered[1] == 200, "{remembered:?}");
    runtime.shutdown().await.unwrap();
}

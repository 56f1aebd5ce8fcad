//! The calls of one step: side by side or in order, each with one result, whatever the tool does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_agent::{Config, RuntimeBuilder};
use longhaul_protocol::{Effect, Limit, Outcome, SessionRecord};
use longhaul_testkit::{RecordingModel, TestHome};
use longhaul_tools::{PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome};
use serde_json::json;
use tokio::sync::Barrier;

use crate::{heard, open, open_with_tool, results, script, sound_records};

/// A tool made of what a test needs.
pub(crate) struct Odd {
    definition: ToolDefinition,
    does: Does,
}

#[derive(Clone)]
pub(crate) enum Does {
    /// Waits until so many calls of it run at once.
    Meet(Arc<Barrier>),
    Panic,
    PanicSynchronously,
    PanicAtOnce,
    Hang,
    HangAtOnce,
    Count(Arc<AtomicUsize>),
    Say(String),
}

impl Odd {
    pub(crate) fn new(name: &'static str, effect: Effect, does: Does) -> Arc<Self> {
        let schema = json!({"type": "object"});
        let definition = ToolDefinition {
            name: name.into(),
            description: "odd".into(),
            effect,
            schema,
            limits: &[],
            example: "{}",
        };
        Arc::new(Self { definition, does })
    }
}

#[async_trait]
impl Tool for Odd {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, _call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        let does = self.does.clone();
        match does {
            Does::PanicAtOnce => panic!("as it should"),
            Does::HangAtOnce => std::future::pending().await,
            _ => {}
        }
        Ok(PreparedCall::new(move |_stop| {
            assert!(!matches!(does, Does::PanicSynchronously), "as it should");
            run(does)
        }))
    }
}

async fn run(does: Does) -> ToolOutcome {
    match does {
        Does::Meet(barrier) => {
            barrier.wait().await;
            ToolOutcome::ok("met")
        }
        Does::Count(count) => ToolOutcome::ok(count.fetch_add(1, Ordering::SeqCst).to_string()),
        Does::Say(text) => ToolOutcome::ok(text),
        Does::Hang => std::future::pending().await,
        Does::Panic | Does::PanicSynchronously | Does::PanicAtOnce | Does::HangAtOnce => {
            panic!("as it should")
        }
    }
}

fn call(name: &str, arguments: &serde_json::Value) -> serde_json::Value {
    json!({"name": name, "arguments": arguments})
}

/// T4
#[tokio::test(flavor = "multi_thread")]
async fn reads_of_one_step_run_side_by_side() {
    let place = TestHome::new();
    let meet = Odd::new("meet", Effect::Read, Does::Meet(Arc::new(Barrier::new(3))));
    let calls = vec![call("meet", &json!({})); 3];
    let model = RecordingModel::new(script(&json!([{"calls": calls}, "Done."])));
    let runtime = open_with_tool(&place, model, meet).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.outcome, Outcome::Completed);
    runtime.shutdown().await.unwrap();
    assert_eq!(results(&sound_records(&place, &session).await).len(), 3);
}

/// T4: what changes something waits for its turn, and results come in the order of the calls.
#[tokio::test(flavor = "multi_thread")]
async fn writes_of_one_step_run_in_order_and_reads_see_them() {
    let place = TestHome::new();
    let write = |content: &str| call("write_file", &json!({"path": "a.txt", "content": content}));
    let read = call("read_file", &json!({"path": "a.txt"}));
    let model =
        RecordingModel::new(script(&json!([{"calls": [write("one"), read, write("two"), read]}, "Done."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    let heard = heard(&model.requests()[1].items);
    assert!(heard[2].starts_with("one") && heard[4].starts_with("two"), "{heard:?}");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T6, T7
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_fit_is_not_run_and_the_turn_goes_on() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([
        {"calls": [
            call("write_file", &json!("{\"path\": \"a")),
            call("write_file", &json!({"path": "a"})),
            call("write_file", &json!({"path": "a", "content": 7})),
            call("write_file", &json!({"path": "a", "content": "x", "mode": "w"})),
            call("make_coffee", &json!({})),
        ]},
        "Done.",
    ])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.text, "Done.");
    assert!(!place.work().join("a").exists());
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let results = results(&records);
    let said = |index: usize, word: &str| {
        let (_, is_error, content) = &results[index];
        assert!(*is_error && content.contains(word), "{word}: {content}");
    };
    said(1, "content");
    said(2, "content");
    said(3, "mode");
    said(4, "write_file");
    assert!(results[0].1 && records.iter().all(|record| record.kind != "tool_started"), "nothing was run");
}

/// T6: arguments go back to the model as they came.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_do_not_parse_are_kept_as_they_came() {
    let place = TestHome::new();
    let broken = "{\"path\": \"a";
    let model =
        RecordingModel::new(script(&json!([{"calls": [call("read_file", &json!(broken))]}, "Done."])));
    let runtime = open(&place, model.clone()).await;

    runtime.session("a").await.unwrap().send("go").await.unwrap();

    let request = model.requests().pop().unwrap();
    let kept = request.items.iter().any(
        |item| matches!(&**item, longhaul_protocol::Item::ToolCall { arguments, .. } if arguments == broken),
    );
    assert!(kept, "{:?}", request.items);
    runtime.shutdown().await.unwrap();
}

/// T7
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_panics_or_takes_too_long_is_an_error_result() {
    for (does, word) in
        [(Does::Panic, "panicked"), (Does::PanicAtOnce, "panicked"), (Does::Hang, "still running")]
    {
        let place = TestHome::new();
        let usual = place.config();
        // One that panics must not be given up before it does.
        let tool_time = if matches!(does, Does::Hang) { Duration::from_millis(50) } else { usual.tool_time };
        let config = Config { tool_time, ..usual };
        let model = RecordingModel::new(script(&json!([{"calls": [call("odd", &json!({}))]}, "Done."])));
        let tools: Vec<Arc<dyn Tool>> = vec![Odd::new("odd", Effect::Read, does)];
        let runtime = RuntimeBuilder::new(config).model(model).tools(tools).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("go").await.unwrap();

        assert_eq!(ended.text, "Done.");
        runtime.shutdown().await.unwrap();
        let (_, is_error, content) = results(&sound_records(&place, &session).await).remove(0);
        assert!(is_error && content.contains(word), "{content}");
    }
}

/// T8
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_the_same_again_and_again_is_told_and_then_stopped() {
    let place = TestHome::new();
    let again = json!({"calls": [call("same", &json!({}))]});
    let model = RecordingModel::new(script(&json!(vec![again; 9])));
    let same = Odd::new("same", Effect::Read, Does::Say("nothing".to_owned()));
    let runtime = open_with_tool(&place, model.clone(), same).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!((ended.outcome, ended.limit), (Outcome::Limit, Some(Limit::Loop)));
    assert!(ended.error.unwrap().contains("the same result 5 times"));
    runtime.shutdown().await.unwrap();
    let results = results(&sound_records(&place, &session).await);
    let warned: Vec<bool> =
        results.iter().map(|(_, _, content)| content.contains("[runtime note]")).collect();
    assert_eq!(warned, [false, false, true, true, true]);
}

/// T9, its part: a turn has an end.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_reaches_its_limit_of_steps_says_so_and_how_to_go_on() {
    let place = TestHome::new();
    let count = Arc::new(AtomicUsize::new(0));
    let again = json!({"calls": [call("count", &json!({}))]});
    let model = RecordingModel::new(script(&json!(vec![again; 9])));
    let mut config = place.config();
    config.settings.limits.steps = 4;
    let tools: Vec<Arc<dyn Tool>> = vec![Odd::new("count", Effect::Read, Does::Count(count.clone()))];
    let runtime = RuntimeBuilder::new(config).model(model).tools(tools).open().await.unwrap();
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!((ended.limit, count.load(Ordering::SeqCst)), (Some(Limit::Steps), 4));
    assert_eq!(
        ended.error.unwrap(),
        "the turn reached its limit of 4 steps (limits.steps); send a message to go on"
    );
    runtime.shutdown().await.unwrap();
}

/// The todo list is part of the session's records, and so of its state.
#[tokio::test(flavor = "multi_thread")]
async fn the_todo_list_is_what_its_records_say() {
    let place = TestHome::new();
    let items =
        json!({"items": [{"text": "build", "status": "in_progress"}, {"text": "ship", "status": "pending"}]});
    let model = RecordingModel::new(script(&json!([{"calls": [call("todo", &items)]}, "Planned."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();

    session.send("plan").await.unwrap();

    let todo = session.state().await.unwrap().todo;
    assert_eq!(todo.iter().map(|todo| todo.text.as_str()).collect::<Vec<_>>(), ["build", "ship"]);
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let effect = records.iter().find_map(|record| match SessionRecord::decode(record).unwrap() {
        SessionRecord::ToolStarted(started) => Some(started.effect),
        _ => None,
    });
    assert_eq!(effect, Some(Effect::Idempotent));
}

/// M9, its part: of an answer that breaks off after a complete call, that call is run, and somebody is told.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_after_a_call_counts_up_to_it() {
    let place = TestHome::new();
    let cut = json!({"text": "I write.", "calls": [call("write_file", &json!({"path": "a", "content": "x"}))], "cut": true});
    let runtime = open(&place, RecordingModel::new(script(&json!([cut, "Done."])))).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!((ended.text.as_str(), place.file("a").as_str()), ("Done.", "x"));
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let warned = records.iter().any(|record| {
        matches!(SessionRecord::decode(record), Ok(SessionRecord::Warning(warning)) if warning.code == "answer_cut")
    });
    assert!(warned);
}

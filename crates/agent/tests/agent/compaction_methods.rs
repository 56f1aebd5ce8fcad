//! How a context is made smaller: stubs, summaries of other models and in other forms, and what comes meanwhile.

use std::sync::Arc;

use longhaul_agent::Config;
use longhaul_protocol::{
    EpochReason, EventKind, Input, InputId, Item, JoinMode, Outcome, Record, Role, SessionRecord,
};
use longhaul_testkit::{GatedModel, TestHome, collect_until, ended_turn};
use serde_json::{Value, json};

use crate::compaction::{compactions, config, open, summary, text, texts};
use crate::staged::Staged;
use crate::wire::facts;
use crate::{sends, sound_records};

fn reads(names: &[&str]) -> Value {
    let call = |name: &&str| json!({"name": "read_file", "arguments": {"path": name}});
    json!({"calls": names.iter().map(call).collect::<Vec<_>>()})
}

fn with_files(place: &TestHome) -> Vec<String> {
    let names: Vec<String> = (0..6).map(|number| format!("{number}.txt")).collect();
    for name in &names {
        std::fs::write(
            place.work().join(name),
            format!("begin of {name}\n{}", "thirty bytes to a line, so long\n".repeat(40)),
        )
        .unwrap();
    }
    names
}

fn results(model: &Staged) -> Vec<String> {
    let last = model.requests().pop().unwrap();
    let content = |item: &Arc<Item>| match &**item {
        Item::ToolResult { content, .. } => Some(content.clone()),
        _ => None,
    };
    last.items.iter().filter_map(content).collect()
}

/// How large what the model was last asked is, by the estimator alone: a little less than what it will be asked next.
fn size(model: &Staged) -> u64 {
    let last = model.requests().pop().unwrap();
    longhaul_context::estimate(&last.system, &last.tools, &last.items)
}

/// C9: old tool output becomes stubs, without a model call, never in the last two turns; and the whole of it can still be read.
#[tokio::test(flavor = "multi_thread")]
async fn old_tool_output_becomes_stubs_and_can_still_be_read() {
    let place = TestHome::in_memory();
    let names = with_files(&place);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let steps = vec![
        reads(&names[..4]),
        json!("One."),
        reads(&names[4..5]),
        json!("Two."),
        reads(&names[5..]),
        json!("Three."),
    ];
    let config = |tokens: u64| -> Config {
        let mut config = config(&place, 8_000);
        config.settings.context.compact_at_tokens = Some(tokens);
        config.settings.context.compact_now_at = 0.0;
        config
    };
    let model = Staged::new(&json!(steps), vec![]).shared();
    let runtime = open(config(0), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    for request in ["first", "second", "third"] {
        session.send(request).await.unwrap();
    }
    let before = size(&model);
    let records = sound_records(&place, &session).await;
    // What ran side by side may have ended in any order.
    let is_first = |record: &&Record| matches!(SessionRecord::decode(record).unwrap(), SessionRecord::ToolFinished(end) if end.content.contains("begin of 0.txt"));
    let first = records.iter().find(is_first).unwrap().seq;
    runtime.shutdown().await.unwrap();
    let read = json!({"calls": [{"name": "recall_read", "arguments": {"ref": format!("#{first}")}}]});
    let steps = [steps, vec![read, json!("Four.")]].concat();
    let model = Staged::new(&json!(steps), vec![]).shared();
    let runtime = open(config(before), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let ended = session.send("fourth").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Four."));
    assert_eq!((compactions(&events), model.asked()), (vec![], vec!["step", "step"]));
    let shown = results(&model);
    for (index, content) in shown.iter().enumerate() {
        assert_eq!(content.starts_with("[stub: the output of read_file"), index < 4, "{index}: {content}");
    }
    assert!(shown[0].contains(&format!("recall_read with ref \"#{first}\" shows it")), "{}", shown[0]);
    assert!(shown[6].contains("begin of 0.txt") && shown[6].len() > 1_000, "the whole of it: {}", shown[6]);
    let records = sound_records(&place, &session).await;
    assert_eq!(epochs(&records), [EpochReason::Created, EpochReason::Stubbed]);
    // Four outputs of 1,200 bytes went, and one came back.
    assert!(size(&model) < before - 800 + 320, "it gains a tenth of the window");
    runtime.shutdown().await.unwrap();
}

fn epochs(records: &[Record]) -> Vec<EpochReason> {
    let reason = |fact| match fact {
        SessionRecord::EpochStarted(epoch) => Some(epoch.reason),
        _ => None,
    };
    facts(records).into_iter().filter_map(reason).collect()
}

/// C9: what would gain less than a tenth of the window stays, and so does what is of the last two turns.
#[tokio::test(flavor = "multi_thread")]
async fn too_little_or_too_new_output_does_not_become_stubs() {
    for (old, expected) in [(2, "done 2 Model"), (0, "done 2 Model")] {
        let place = TestHome::in_memory();
        let names = with_files(&place);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // Two old outputs gain some 600 tokens of 8,000; five new ones are of the last two turns.
        let steps = json!([reads(&names[..old]), "One.", "Two.", reads(&names[old..5]), "Three.", "Four."]);
        let steps =
            if old == 0 { json!(["One.", "Two.", reads(&names[..5]), "Three.", "Four."]) } else { steps };
        let model = Staged::new(&steps, vec![summary("s")]).shared();
        let mut config = config(&place, 8_000);
        (config.settings.context.compact_at, config.settings.context.compact_now_at) = (0.0, 0.0);
        let runtime = open(config.clone(), model.clone()).await;
        let session = runtime.session("a").await.unwrap();
        for request in ["first", "second", "third"] {
            session.send(request).await.unwrap();
        }
        config.settings.context.compact_at_tokens = Some(size(&model));
        runtime.shutdown().await.unwrap();
        let runtime = open(config, model.clone()).await;
        let session = runtime.session("a").await.unwrap();
        let mut watcher = session.watch();

        session.send("fourth").await.unwrap();

        let told = compactions(&collect_until(&mut watcher, ended_turn).await);
        assert_eq!(told, ["start before_turn", expected], "{old}");
        let records = sound_records(&place, &session).await;
        assert_eq!(epochs(&records), [EpochReason::Created, EpochReason::Compacted]);
        runtime.shutdown().await.unwrap();
    }
}

/// A turn that has grown too large in its middle, whose summary waits at the gate.
fn growing(place: &TestHome) -> (Value, Vec<Value>) {
    std::fs::write(place.work().join("a.txt"), "a").unwrap();
    let read = |words: String| json!({"text": words, "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]});
    (json!([read(text(2_000)), read(text(1_900)), "Done.", "More."]), vec![summary("never"), summary("s")])
}

/// C11: an input that interrupts ends a compaction in the middle of a turn, and the turn with it; it is what is worked on next.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_interrupts_ends_a_compaction_within_a_turn() {
    let place = TestHome::in_memory();
    let (steps, summaries) = growing(&place);
    let staged = Staged::new(&steps, summaries);
    let (model, gate) = GatedModel::new(staged);
    let runtime = open(config(&place, 8_000), model).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let first = sends(&session, "read it twice");
    for _ in 0..2 {
        gate.reached().await;
        gate.open();
    }
    gate.reached().await;
    assert!(session.state().await.unwrap().compaction.open_reason.is_some(), "a summary is being written");

    let input = Input::new(InputId::generate(), "no, this", JoinMode::Interrupt);
    session.put(input, None).await.unwrap();
    assert_eq!(first.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    let events = collect_until(&mut watcher, ended_turn).await;

    assert_eq!(compactions(&events), ["start within_turn", "failed cancelled"]);
    for _ in 0..2 {
        gate.open();
    }
    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!(compactions(&events), ["start before_turn", "done 2 Model"]);
    let records = sound_records(&place, &session).await;
    let taken = facts(&records).iter().filter(|fact| matches!(fact, SessionRecord::InputTaken(_))).count();
    assert_eq!(taken, 2);
    assert_eq!(session.state().await.unwrap().compaction.failures, 0, "that somebody came is no failure");
}

/// C11: an input that joins waits in the inbox until the compaction is over, and is seen then.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_joins_waits_until_a_compaction_is_over() {
    let place = TestHome::in_memory();
    let (steps, mut summaries) = growing(&place);
    summaries.truncate(1);
    let staged = Staged::new(&steps, summaries).shared();
    let (model, gate) = GatedModel::new(Borrowed(staged.clone()));
    let runtime = open(config(&place, 8_000), model).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let first = sends(&session, "read it twice");
    for _ in 0..2 {
        gate.reached().await;
        gate.open();
    }
    gate.reached().await;

    let input = Input::new(InputId::generate(), "and this", JoinMode::Join);
    session.put(input, None).await.unwrap();
    let meanwhile = session.state().await.unwrap();
    for _ in 0..3 {
        gate.open();
    }
    let ended = first.await.unwrap().unwrap();

    assert!(
        meanwhile.compaction.open_reason.is_some() && meanwhile.inbox_through == 1,
        "it waits in the inbox"
    );
    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Done."));
    assert_eq!(compactions(&events), ["start within_turn", "done 2 Model"]);
    let last = texts(staged.requests().last().unwrap());
    assert_eq!(last.last().map(String::as_str), Some("and this"), "{last:?}");
    assert!(last.contains(&"read it twice".to_owned()));
    let records = sound_records(&place, &session).await;
    let last_of = |kind: &str| records.iter().rposition(|record| record.kind == kind).unwrap();
    assert!(last_of("compact_done") < last_of("input_taken"), "it was taken only then");
}

/// A model that is shared with the test.
struct Borrowed(Arc<Staged>);

#[async_trait::async_trait]
impl longhaul_model::Model for Borrowed {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn capabilities(&self) -> longhaul_model::Capabilities {
        self.0.capabilities().await
    }

    async fn ask(
        &self,
        request: longhaul_model::Request,
        permit: &longhaul_model::CallPermit,
    ) -> Result<Box<dyn longhaul_model::AnswerStream>, longhaul_model::ModelFailure> {
        self.0.ask(request, permit).await
    }
}

/// A model for summaries that does not exist is said once, and the session's own writes them.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_for_summaries_that_is_not_there_is_said_once() {
    let place = TestHome::in_memory();
    let steps = json!(["One.", "Two.", "Three."]);
    let model = Staged::new(&steps, vec![summary("first"), summary("second")]).shared();
    let mut config = config(&place, 100_000);
    config.settings.context.summary_model = Some("scripted//nowhere/at-all.json".to_owned());
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    session.send("first").await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("second").await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("third").await.unwrap();

    let mut warnings = Vec::new();
    for _ in 0..3 {
        let events = collect_until(&mut watcher, ended_turn).await;
        warnings.extend(events.into_iter().filter_map(|event| match event.kind {
            EventKind::Warning { code, text } if code == "summary_model" => Some(text),
            _ => None,
        }));
    }
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("context.summary_model"), "{warnings:?}");
    assert_eq!(model.asked(), ["step", "summary", "step", "summary", "step"]);
    sound_records(&place, &session).await;
}

/// M18: a model that can't call tools is asked for text under headings, and its summary counts like any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_tools_writes_its_summary_as_text() {
    let place = TestHome::in_memory();
    let written = "# Goal\nreach the end\n\n# Directives\n- never give up\n\n# Next action\ngo on";
    let model = Staged::new(&json!(["One.", "Two."]), vec![json!(written)]).without_tools().shared();
    let runtime = open(config(&place, 100_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("please never give up").await.unwrap();

    session.compact().await.unwrap().unwrap();
    session.send("second").await.unwrap();

    let requests = model.requests();
    assert_eq!(model.asked(), ["step", "summary", "step"]);
    assert!(requests.iter().all(|request| request.tools.is_empty()));
    assert!(texts(&requests[1])[0].contains("# Next action"), "it is asked for the headings");
    let state = session.state().await.unwrap();
    let summary = state.summary.unwrap();
    assert_eq!((summary.goal.as_str(), summary.next_action.as_str()), ("reach the end", "go on"));
    assert_eq!(summary.directives, ["please never give up"]);
    let first = &requests[2].items[0];
    assert!(matches!(&**first, Item::Text { role: Role::System, text } if text.contains("reach the end")));
    sound_records(&place, &session).await;
}

//! What becomes of what a model answers.

use std::sync::Arc;
use std::time::Duration;

use longhaul_context::AnswerForm;
use longhaul_memory::{BackgroundModel, Error, extract, extraction_calls};
use longhaul_model::{Capabilities, FailureClass, ScriptedModel};
use longhaul_protocol::{AttemptId, Usage};
use serde_json::{Value, json};

use crate::scripted_model::{Reply, Told, message, shown};
use crate::staged::{SCOPE, Stage, calling};

fn port() -> Value {
    json!({"kind": "fact", "text": "The port is 8080.", "sources": [1], "speaker": "user"})
}

async fn staged() -> Stage {
    let stage = Stage::new().await;
    stage.talk("the port is 8080", "noted").await;
    stage
}

/// Y6
#[tokio::test]
async fn an_answer_without_structure_is_asked_for_once_more() {
    let stage = staged().await;
    let model = Told::new([Reply::Text("Nothing of note!".to_owned()), Reply::Items(json!([port()]))]);

    let done = stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!((done.parts, done.items, model.calls()), (1, 1, 2));
    let messages = model.messages();
    assert!(!messages[0].contains("could not be used"));
    assert!(
        messages[1].contains("could not be used (there was neither a call of write_extracted"),
        "{}",
        messages[1]
    );
    assert_eq!(stage.extracted().await[0].usage.len(), 2);
}

/// Y6
#[tokio::test]
async fn after_two_such_answers_the_span_is_kept_and_so_is_what_they_cost() {
    let stage = staged().await;
    let wrong =
        [Reply::Arguments("{\"items\": [".to_owned()), Reply::Arguments("{\"things\": []}".to_owned())];
    let model = Told::new(wrong);
    let mut usages = vec![Usage::of(AttemptId::generate())];

    let refused = stage.extract_with(&calling(model.clone()), &mut usages).await;

    let Err(error @ Error::Unstructured { .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(
        error.to_string(),
        "the answer of told/model is not usable: the arguments of write_extracted: no list `items`"
    );
    assert_eq!((model.calls(), usages.len(), stage.ranges().await.len()), (2, 0, 0));
    let calls = extraction_calls(&*stage.journal, stage.session).await.unwrap();
    assert_eq!(calls.calls, 3);

    stage.extract_with(&calling(model.clone()), &mut usages).await.unwrap();
    assert_eq!((model.calls(), usages.len()), (3, 0));
    assert_eq!(stage.extracted().await[0].usage.len(), 1);
    assert_eq!(model.extracts_before(), [0, 0, 0]);
}

#[tokio::test]
async fn an_answer_that_was_cut_is_told_so() {
    let stage = staged().await;
    let model = Told::new([Reply::Cut("{\"items\": [{\"kind\"".to_owned())]);

    stage.extract(&calling(model.clone())).await.unwrap();

    assert!(model.messages()[1].contains("(it was cut off at its length limit)"));
}

/// Y6: what is cut time and again would be paid for time and again.
#[tokio::test]
async fn an_answer_that_was_cut_is_asked_for_about_less() {
    let stage = Stage::new().await;
    for number in 0..40 {
        stage.talk(&format!("thing {number}: {}", "matters much ".repeat(150)), "Noted.").await;
    }
    let model = Told::by(|request| match shown(&message(request)).len() {
        0..30 => Reply::Items(json!([])),
        _ => Reply::Cut("{\"items\": [{\"kind\"".to_owned()),
    });

    let done = stage.extract(&calling(model.clone())).await.unwrap();

    let head = stage.journal.head(&stage.stream()).await.unwrap().seq;
    assert_eq!(done.through, head);
    assert_eq!(model.calls(), done.parts + 2, "two sizes were too large");
}

#[tokio::test]
async fn a_text_that_is_the_object_does_in_place_of_the_call() {
    let stage = staged().await;
    let text = format!("```json\n{}\n```", json!({"items": [port()]}));
    let model = Told::new([Reply::Text(text)]);

    let done = stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!((done.items, model.calls()), (1, 1));
}

#[tokio::test]
async fn a_model_that_takes_no_tools_is_asked_for_text() {
    let stage = staged().await;
    let text = format!("Here you are: {}", json!({"items": [port()]}));
    let model = Told::new([Reply::Fails(FailureClass::NoTools), Reply::Text(text.clone())]);

    let done = stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!((done.items, model.calls()), (1, 2));
    let tools: Vec<usize> = model.requests().iter().map(|request| request.tools.len()).collect();
    assert_eq!(tools, [1, 0]);

    let stage = staged().await;
    let model = Told::new([Reply::Text(text)]);
    let facts = Capabilities { tools: false, ..Capabilities::default() };
    let known = BackgroundModel { capabilities: facts, ..calling(model.clone()) };
    assert_eq!(known.answer_form(), AnswerForm::Text);
    assert_eq!(stage.extract(&known).await.unwrap().items, 1);
    assert!(model.requests()[0].tools.is_empty());
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_span_for_later() {
    for class in [FailureClass::Key, FailureClass::Refused, FailureClass::NoTools, FailureClass::Quota] {
        let stage = staged().await;
        let model = Told::by(move |_| Reply::Fails(class));

        let refused = stage.extract(&calling(model.clone())).await;

        assert!(
            matches!(&refused, Err(Error::Model(reason)) if reason.contains("[redacted]")),
            "{refused:?}"
        );
        assert_eq!(stage.ranges().await, []);
    }
}

/// Y6: bad input is refused item by item.
#[tokio::test]
async fn bad_items_are_refused_and_the_rest_is_kept_and_the_record_says_so() {
    let stage = staged().await;
    let items = json!([
        {"kind": "song", "text": "La la", "sources": [1], "speaker": "user"},
        port(),
        {"kind": "fact", "text": "x".repeat(1 << 20), "sources": [1], "speaker": "user"},
        {"kind": "fact", "text": "From nowhere", "speaker": "user"},
        {"kind": "fact", "text": "The password is hunter2, the port 8080.", "sources": [1], "speaker": "user"},
    ]);
    let model = Told::new([Reply::Items(items)]);

    let done = stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!((done.items, done.refused.len(), model.calls()), (2, 3, 1));
    let extracted = &stage.extracted().await[0];
    assert_eq!(extracted.refused, done.refused);
    assert_eq!(extracted.items[1].text, "The password is [redacted], the port 8080.");
    assert!(extracted.refused.iter().all(|line| line.len() < 250), "{:?}", extracted.refused);
}

#[tokio::test]
async fn a_script_has_a_list_of_extracts() {
    let stage = staged().await;
    let call = json!({"name": "write_extracted", "arguments": {"items": [port()]}});
    let script = json!(["an answer of a turn", {"calls": [call]}]).to_string();
    let model = Arc::new(ScriptedModel::from_json(&script).unwrap());

    assert_eq!(stage.extract(&calling(model.clone())).await.unwrap().items, 1);
    stage.talk("one more", "yes").await;
    assert_eq!(stage.extract(&calling(model.clone())).await.unwrap().items, 0);
    assert_eq!(model.calls(), 2);
}

#[tokio::test]
async fn a_job_that_is_cut_gives_the_lease_back_and_leaves_the_span() {
    let stage = staged().await;
    let model = Told::new([Reply::Hangs]);
    let (caller, mut usages) = (calling(model.clone()), vec![]);

    let job = extract(&stage.journal, stage.session, SCOPE, &caller, &mut usages);
    assert!(tokio::time::timeout(Duration::from_millis(50), job).await.is_err());

    let done = stage.extract(&caller).await.unwrap();
    assert_eq!((done.parts, model.calls(), stage.ranges().await.len()), (1, 2, 1));
}

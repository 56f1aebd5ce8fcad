//! What programs that embed the runtime rely on: the builder, tools that come and go, a model and a work folder for one session.

use std::sync::Arc;

use longhaul_agent::{Runtime, RuntimeBuilder, SessionStart};
use longhaul_protocol::{Effect, Outcome};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::json;

use crate::script;
use crate::tool_calls::{Does, Odd};

fn names(requests: &[longhaul_model::Request]) -> Vec<bool> {
    requests.iter().map(|request| request.tools.iter().any(|tool| tool.name == "launch")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_added_or_removed_is_offered_or_not_from_the_next_turn_on() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", "Two.", "Three."])));
    let runtime = RuntimeBuilder::new(place.config()).model(model.clone()).open().await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("one").await.unwrap();
    runtime.add_tool(Odd::new("launch", Effect::Unknown, Does::Count(Arc::default())));
    session.send("two").await.unwrap();
    let was_there = runtime.remove_tool("launch");
    session.send("three").await.unwrap();

    assert!(was_there && !runtime.remove_tool("launch"));
    assert_eq!(names(&model.requests()), [false, true, false]);
    runtime.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_can_use_a_model_and_a_work_folder_of_its_own() {
    let place = TestHome::new();
    let other = tempfile::tempdir().unwrap();
    let file = place.work().join("other.json");
    std::fs::write(&file, r#"["From the other model."]"#).unwrap();
    let runtime = Runtime::builder(place.home())
        .work_dir(place.work())
        .model(RecordingModel::new(script(&json!(["From the usual model."]))))
        .open()
        .await
        .unwrap();
    let (usual, own) = (runtime.session("a").await.unwrap(), runtime.session("b").await.unwrap());

    let started = own.create_in(other.path()).await.unwrap();
    own.use_model(&format!("scripted/{}", file.display())).unwrap();
    let answers = [usual.send("hello").await.unwrap(), own.send("hello").await.unwrap()];

    assert_eq!(started, SessionStart::Begun);
    assert_eq!(own.create_in(&place.work()).await.unwrap(), SessionStart::BegunBefore);
    assert!(answers.iter().all(|ended| ended.outcome == Outcome::Completed));
    assert_eq!(answers.map(|ended| ended.text), ["From the usual model.", "From the other model."]);
    let work_dir = own.state().await.unwrap().created.unwrap().work_dir;
    assert_eq!(work_dir.as_deref(), other.path().to_str());
    runtime.shutdown().await.unwrap();
}

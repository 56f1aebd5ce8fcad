//! H4, P4: a plan over the OpenAI-compatible API: it is a question, and the next input accepts it or goes on planning.

use longhaul_protocol::PermissionMode;
use reqwest::Method;
use serde_json::{Value, json};

use crate::openai::{answered, chat, content, events, said};
use crate::test_server::{TestServer, json_answer};

/// A server in plan mode: a plan, a second plan, then what carries it out.
async fn planning_server() -> TestServer {
    let write = json!({"name": "write_file", "arguments": {"path": "b.txt", "content": "new\n"}});
    let script = json!(["I would write a.txt.", "I would write b.txt.", {"calls": [write]}, "Written."]);
    TestServer::with_settings(&script.to_string(), |config| {
        config.settings.approval.mode = PermissionMode::Plan;
    })
    .await
}

fn status(response: &Value) -> (&str, &str) {
    let reason = response["incomplete_details"]["reason"].as_str().unwrap_or_default();
    (response["status"].as_str().unwrap(), reason)
}

/// H4: words go on planning, a yes carries the plan out in a turn of its own, and a retry of that yes is no second one.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_changed_and_accepted_by_the_next_inputs_of_responses() {
    let server = planning_server().await;
    let after = |text: &str, previous: &Value| json!({"input": text, "previous_response_id": previous["id"]});
    let accept = async |previous: &Value| {
        let request = server.request(Method::POST, "/v1/responses").header("idempotency-key", "accept");
        let request = request.header("content-type", "application/json");
        json_answer(request.body(after("Yes", previous).to_string())).await
    };

    let (_, first) = server.post("/v1/responses", &json!({"input": "make a file"})).await;
    let (_, second) = server.post("/v1/responses", &after("not that one", &first)).await;
    assert!(!server.home.work().join("b.txt").exists());
    let (_, done) = accept(&second).await;
    let (_, again) = accept(&second).await;

    assert_eq!((status(&first), status(&second)), (("incomplete", "question"), ("incomplete", "question")));
    assert_eq!(first["output"][1]["longhaul"]["question"]["kind"], "plan", "{first}");
    assert_eq!(second["output"][0]["content"][0]["text"], "I would write b.txt.");
    assert_eq!(
        (status(&done), &done["output"][0]["content"][0]["text"]),
        (("completed", ""), &json!("Written."))
    );
    assert_eq!((&again["id"], &again["output"]), (&done["id"], &done["output"]));
    assert_ne!(done["id"], second["id"]);
    assert_eq!(server.home.file("b.txt"), "new\n");
    // The stream of the response that asked still ends with its question.
    let path = format!("/v1/responses/{}?stream=true", second["id"].as_str().unwrap());
    let told = events(&server, &path, None).await;
    assert_eq!(told.last().unwrap()["type"], "response.incomplete");
    server.shutdown().await;
}

/// H4: the same in a chat, whose next message repeats the conversation.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_declined_and_accepted_by_the_next_messages_of_a_chat() {
    let server = planning_server().await;
    let mut messages = vec![said("make a file")];
    let mut answers = Vec::new();
    for words in ["no", "yes", "thanks"] {
        let (_, answer) = server.post("/v1/chat/completions", &chat(&json!(messages))).await;
        messages.extend([answered(content(&answer)), said(words)]);
        answers.push(answer);
    }

    let kinds: Vec<&Value> = answers.iter().map(|answer| &answer["longhaul"]["question"]["kind"]).collect();
    assert_eq!(kinds, [&json!("plan"), &json!("plan"), &Value::Null], "{answers:?}");
    assert!(content(&answers[0]).starts_with("I would write a.txt.\n\n"), "{}", answers[0]);
    assert_eq!(content(&answers[2]), "Written.");
    assert_eq!(server.home.file("b.txt"), "new\n");
    let sessions = server.runtime.journal().sessions(None, 10).await.unwrap();
    assert_eq!(sessions.len(), 1, "the conversation stays in its session");
    server.shutdown().await;
}

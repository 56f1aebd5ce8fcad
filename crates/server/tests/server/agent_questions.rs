//! E8: questions of the agent over HTTP and over `/v1`.

use std::time::{Duration, Instant};

use longhaul_server::{Scope, create_token};
use reqwest::Method;
use serde_json::{Value, json};

use crate::openai::{answered, chat, content, said};
use crate::test_server::{TestServer, json_answer};

fn script(choices: &[&str]) -> String {
    let arguments = json!({"question": "Which database?", "choices": choices});
    json!([{"calls": [{"name": "ask_user", "arguments": arguments}]}, "So be it."]).to_string()
}

/// What the model got as the result of its only call.
async fn told(server: &TestServer, key: &str) -> Value {
    let (_, records) = server.get(&format!("/api/sessions/{key}/records?limit=1000")).await;
    let records = records["items"].as_array().unwrap().iter();
    records.clone().find(|record| record["kind"] == "tool_finished").unwrap()["body"]["content"].clone()
}

/// E8: a token that may answer may answer anything: `project` is a word like any other here.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_the_agent_is_answered_over_http() {
    let server = TestServer::with_script(&script(&["project", "SQLite"])).await;
    let token = create_token(&*server.runtime.journal(), "program", Scope::Act).await.unwrap();
    server.post("/api/sessions", &json!({"key": "a"})).await;
    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    let question = loop {
        assert!(Instant::now() < deadline, "no question");
        let (_, open) = server.get("/api/questions").await;
        if let Some(question) = open["items"].as_array().unwrap().first() {
            break question.clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };

    let body = json!({"question": question["id"], "answer": "project"}).to_string();
    let status = loop {
        let request = server.anonymous(Method::POST, "/api/sessions/a/answers");
        let request = request.header("authorization", format!("Bearer {token}"));
        let (status, _) =
            json_answer(request.header("content-type", "application/json").body(body.clone())).await;
        if status != 401 || Instant::now() > deadline {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    };

    assert_eq!(
        (status, &question["kind"], &question["choices"]),
        (202, &json!("ask"), &json!(["project", "SQLite"]))
    );
    let session = server.runtime.session("a").await.unwrap();
    while session.state().await.unwrap().turn.is_some() {
        assert!(Instant::now() < deadline, "the turn does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(told(&server, "a").await, "project");
    server.shutdown().await;
}

/// E8, H4
#[tokio::test(flavor = "multi_thread")]
async fn the_next_input_of_a_chat_answers_a_question_of_the_agent() {
    for (said_next, answer) in [("sqlite", "SQLite"), ("y", "y"), ("a file, please", "a file, please")] {
        let server = TestServer::with_script(&script(&["SQLite"])).await;
        let mut first = chat(&json!([said("go")]));
        first["conversation"] = "a".into();
        let (_, asked) = server.post("/v1/chat/completions", &first).await;
        let mut second = chat(&json!([said("go"), answered(content(&asked)), said(said_next)]));
        second["conversation"] = "a".into();

        let (_, done) = server.post("/v1/chat/completions", &second).await;

        assert_eq!(
            (&asked["longhaul"]["question"]["kind"], content(&asked)),
            (&json!("ask"), "Which database?")
        );
        assert_eq!((content(&done), told(&server, "a").await), ("So be it.", json!(answer)));
        server.shutdown().await;
    }
}

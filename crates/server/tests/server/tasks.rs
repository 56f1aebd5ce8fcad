//! Tasks over HTTP: as `longhaul tasks` shows them, and what they print.

use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::{TestServer, json_answer};

/// A session whose model starts this command in the background, and the id of that task.
async fn start_task(server: &TestServer, command: &str) -> String {
    let session = server.runtime.session("worker").await.unwrap();
    session.send(format!("run {command}").as_str()).await.unwrap();
    let (status, listed) = server.get("/api/tasks?session=worker").await;
    assert_eq!(status, 200, "{listed}");
    listed["items"][0]["task_id"].as_str().unwrap().to_owned()
}

fn background(command: &str) -> String {
    let call = json!({"command": command, "run_in_background": true, "description": "the test's"});
    json!([{"calls": [{"name": "exec", "arguments": call}]}, "started", "ended"]).to_string()
}

/// H3, K15.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_listed_followed_and_killed() {
    let command = "echo first; until [ -e go ]; do sleep 0.05; done; echo second; sleep 600";
    let server = TestServer::with_script(&background(command)).await;
    let id = start_task(&server, command).await;

    let (_, listed) = server.get("/api/tasks").await;
    assert_eq!(listed["next"], Value::Null);
    let (status, task) = server.get(&format!("/api/tasks/{id}")).await;
    assert_eq!((status, &task["status"], &task["session"]), (200, &json!("running"), &json!("worker")));
    assert_eq!(listed["items"][0]["task_id"], task["task_id"]);

    let mut output =
        server.request(Method::GET, &format!("/api/tasks/{id}/output?follow=true")).send().await.unwrap();
    let mut printed = String::new();
    while !printed.contains("first\n") {
        printed.push_str(std::str::from_utf8(&output.chunk().await.unwrap().unwrap()).unwrap());
    }
    std::fs::write(server.home.work().join("go"), "").unwrap();
    while !printed.contains("second\n") {
        printed.push_str(std::str::from_utf8(&output.chunk().await.unwrap().unwrap()).unwrap());
    }

    let (status, killed) = server.post(&format!("/api/tasks/{id}/kill"), &json!({})).await;
    assert_eq!((status, &killed["status"]), (200, &json!("killed")));
    assert!(output.chunk().await.unwrap().is_none(), "the stream ends with the task");
    assert_eq!(printed, "first\nsecond\n");
    server.shutdown().await;
}

/// H3, J8: offsets count what was printed, and no cut shows half of a secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_an_output_has_no_part_of_a_secret() {
    let server = TestServer::with_settings(&background(r"printf 'key sk-%s, done\n' abcd1234"), |config| {
        config.settings.secrets.patterns = vec!["sk-[a-z0-9]{8}".to_owned()];
    })
    .await;
    let id = start_task(&server, "printf").await;
    // The stream ends with the task.
    let whole = server.text(&format!("/api/tasks/{id}/output?follow=true")).await;

    assert_eq!(whole, "key [redacted], done\n");
    for offset in 0..22 {
        let part = server.text(&format!("/api/tasks/{id}/output?offset={offset}&limit=6")).await;
        assert!(!["abcd", "1234", "sk-"].iter().any(|half| part.contains(half)), "{part:?} from {offset} on");
    }
    let answer = server.request(Method::GET, &format!("/api/tasks/{id}/output?offset=2&limit=3")).send();
    assert_eq!(answer.await.unwrap().headers()["x-longhaul-next-offset"], "5");
    server.shutdown().await;
}

/// H3: what is not there is a problem, and so is a path that can't be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_does_not_exist_is_not_found() {
    let server = TestServer::with_script("[]").await;

    for path in ["/api/tasks/nothing", "/api/tasks/01JCZ5M0000000000000000000/output?follow=true"] {
        let (status, problem) = server.get(path).await;
        assert_eq!((status, &problem["code"]), (404, &json!("no_such_task")), "{path}");
    }
    let (status, problem) = json_answer(server.request(Method::POST, "/api/tasks/%ff/kill")).await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_path")));
    assert_eq!(server.get("/api/tasks?limit=no").await.0, 400);
    assert_eq!(server.get("/api/tasks?session=none").await.0, 404);
    server.shutdown().await;
}

//! What the lists and the overview tell a console: what a question asks, how full contexts are, and the newest items first.

use longhaul_protocol::PermissionMode;
use serde_json::{Value, json};

use crate::event_client::EventStream;
use crate::test_server::TestServer;

fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
}

/// H8, P4: a console knows without the session's page whether a question has a diff that a person must see, and which answers there are. What
/// the question shows of a command can't pass for something else.
#[tokio::test(flavor = "multi_thread")]
async fn the_overview_tells_what_a_question_asks_for() {
    let write =
        json!({"calls": [{"name": "write_file", "arguments": {"path": "a.sh", "content": "echo hi\n"}}]});
    let run = json!({"calls": [{"name": "exec", "arguments": {"command": "ls \u{202e}; touch evil"}}]});
    let script = json!([write, run, "Done."]).to_string();
    let server =
        TestServer::with_settings(&script, |config| config.settings.approval.mode = PermissionMode::Ask)
            .await;
    let work = server.home.work();
    server.post("/api/sessions", &json!({"key": "a", "work_dir": work.to_str().unwrap()})).await;
    let mut overview = EventStream::open(&server, "/api/events").await;
    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    let mut next_question = async |before: &str| loop {
        let told = overview.next().await.unwrap();
        let question = told.event().map(|message| message["question"].clone()).unwrap_or_default();
        if question["id"].is_string() && question["id"] != before {
            return question;
        }
    };

    let edit = next_question("").await;
    let answer = json!({"question": edit["id"], "answer": "yes"});
    server.post("/api/sessions/a/answers", &answer).await;
    let command = next_question(edit["id"].as_str().unwrap()).await;

    assert_eq!((&edit["kind"], &edit["has_diff"]), (&json!("approval"), &json!(true)), "{edit}");
    assert!(edit["choices"].as_array().unwrap().contains(&json!("yes")), "{edit}");
    assert_eq!((&command["kind"], &command["has_diff"]), (&json!("approval"), &json!(false)), "{command}");
    let text = command["text"].as_str().unwrap();
    assert!(text.starts_with("May exec run:\n│ ls \\u{202e}; touch evil\n("), "{text}");
    server.shutdown().await;
}

/// H8: the list and the overview say how full each context is.
#[tokio::test(flavor = "multi_thread")]
async fn lists_say_how_full_a_context_is() {
    let answer = json!({"text": "Fine.", "usage": {"input": 1000, "output": 10}});
    let server = TestServer::with_script(&json!([answer]).to_string()).await;
    server.post("/api/sessions", &json!({"key": "new"})).await;
    server.runtime.session("used").await.unwrap().send("hello").await.unwrap();

    let (_, listed) = server.get("/api/sessions").await;
    let mut overview = EventStream::open(&server, "/api/events").await;
    let told = loop {
        let told = overview.next().await.unwrap().event().cloned().unwrap_or_default();
        if told["key"] == "used" {
            break told;
        }
    };

    assert_eq!((&listed["items"][0]["key"], &listed["items"][0]["context"]), (&json!("new"), &Value::Null));
    assert_eq!(listed["items"][1]["context"]["tokens"], 1010, "{listed}");
    assert_eq!(told["context"], listed["items"][1]["context"], "{told}");
    server.shutdown().await;
}

/// H8: who shows a part of a long list sees what is new.
#[tokio::test(flavor = "multi_thread")]
async fn lists_begin_with_the_newest_on_request() {
    let start = |text: &str| json!({"command": format!("echo {text}"), "run_in_background": true});
    let calls = ["one", "two", "three"].map(|text| json!({"name": "exec", "arguments": start(text)}));
    let server = TestServer::with_script(&json!([{"calls": calls}, "Done.", "Done."]).to_string()).await;
    for key in ["c", "a", "b"] {
        server.post("/api/sessions", &json!({"key": key})).await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    server.runtime.session("worker").await.unwrap().send("go").await.unwrap();

    let (_, all) = server.get("/api/sessions?order=newest").await;
    let (_, first) = server.get("/api/sessions?order=newest&limit=3").await;
    let next = first["next"].as_str().unwrap();
    let (_, rest) = server.get(&format!("/api/sessions?order=newest&limit=3&after={next}")).await;
    let (_, by_key) = server.get("/api/sessions").await;
    let (_, tasks) = server.get("/api/tasks?session=worker").await;
    let (_, newest) = server.get("/api/tasks?session=worker&order=newest&limit=2").await;
    let after = newest["next"].as_str().unwrap();
    let (_, oldest) = server.get(&format!("/api/tasks?session=worker&order=newest&after={after}")).await;
    let (status, _) = server.get("/api/tasks?order=odd").await;

    assert_eq!(names(&all, "key"), ["worker", "b", "a", "c"]);
    assert_eq!((names(&first, "key"), names(&rest, "key")), (vec!["worker", "b", "a"], vec!["c"]));
    assert_eq!((&all["next"], &rest["next"]), (&Value::Null, &Value::Null));
    assert_eq!(names(&by_key, "key"), ["a", "b", "c", "worker"]);
    let ids = names(&tasks, "task_id");
    assert_eq!(names(&newest, "task_id"), [ids[2], ids[1]]);
    assert_eq!((names(&oldest, "task_id"), &oldest["next"]), (vec![ids[0]], &Value::Null));
    assert_eq!(status, 400);
    server.shutdown().await;
}

/// H8: what a model writes bounds neither a page nor the server: the newest blocks of a page are shown, up to some megabytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_large_answers_is_bounded() {
    let large = format!("{}\n", "\"".repeat(200)).repeat(600);
    let answers: Vec<Value> = (0..8).map(|_| json!(large)).collect();
    let server = TestServer::with_script(&json!(answers).to_string()).await;
    for _ in 0..8 {
        server.runtime.session("a").await.unwrap().send("more").await.unwrap();
    }

    let (_, page) = server.get("/api/sessions/a/transcript").await;

    let shown: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["html"].as_str().unwrap()).collect();
    let bytes: usize = shown.iter().map(|html| html.len()).sum();
    assert!(bytes > 3 << 20 && bytes < 5 << 20, "{bytes}");
    let omitted = shown.iter().position(|html| html.contains("[not shown: the page is too large]")).unwrap();
    let last_shown = shown.iter().rposition(|html| html.contains("&quot;&quot;")).unwrap();
    assert!(omitted < last_shown, "the newest are shown");
    server.shutdown().await;
}

/// H8: a message that is changed in a fork keeps its images.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_gives_back_the_input_before_it_with_its_images() {
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let server = TestServer::with_script(r#"["One.", "Two."]"#).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let mut stream = EventStream::open(&server, "/api/sessions/a/events").await;
    server.post("/api/sessions/a/inputs", &json!({"text": "first"})).await;
    stream.events_until("turn_ended").await;
    let (_, status) = server.get("/api/sessions/a").await;
    let images = json!([{"media_type": "image/png", "data": pixel}]);
    let (code, sent) =
        server.post("/api/sessions/a/inputs", &json!({"text": "look", "images": images})).await;
    assert_eq!(code, 202, "{sent}");
    stream.events_until("turn_ended").await;

    let (_, fork) = server.post("/api/sessions/a/fork", &json!({"at": status["head"]})).await;
    let seq = &fork["content"]["seq"];
    let (_, named) = server.post("/api/sessions/a/fork", &json!({"at": status["head"], "input": seq})).await;
    let (_, plain) = server.post("/api/sessions/a/fork", &json!({})).await;

    assert_eq!(fork["content"]["text"], "look", "{fork}");
    assert_eq!((&fork["content"]["images"], &fork["content"]["lost_images"]), (&images, &json!(0)));
    assert_eq!(named["content"], fork["content"]);
    assert_eq!((plain["key"].as_str(), plain.get("content")), (Some("a-fork-3"), None), "{plain}");
    server.shutdown().await;
}

/// H2: a page can tell a quiet stream from a dead one, if it asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_has_named_pings_on_request() {
    let server = TestServer::with_script("[]").await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    for (path, has_pings) in [
        ("/api/sessions/a/events?ping=true", true),
        ("/api/events?ping=true", true),
        ("/api/sessions/a/events", false),
        ("/api/events", false),
    ] {
        let mut stream = server.request(reqwest::Method::GET, path).send().await.unwrap();
        let mut text = String::new();
        // The overview goes on with the session; the stream of the session is quiet, so its ping must come at once.
        while !text.contains(if has_pings { "event: ping\ndata: {}\n\n" } else { ": open\n\n" }) {
            text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
        }
        assert_eq!(text.contains("event: ping"), has_pings, "{path}: {text}");
    }
    server.shutdown().await;
}

/// H8, A3: a list, the overview and the status say whose subagent a session is and what began its turn, and the tree what each has spent.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_is_told_apart_from_other_sessions() {
    // The subagent plays the same answers, and has no tool to start another.
    let start = json!({"calls": [{"name": "agent", "arguments": {"prompt": "Count.", "background": true}}]});
    let script = json!([start, {"text": "one two three four five", "piece_ms": 300}, "Heard."]).to_string();
    let server = TestServer::with_script(&script).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let mut overview = EventStream::open(&server, "/api/events").await;

    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    let mut next_working = async |prefix: &str| loop {
        let told = overview.next().await.unwrap().event().cloned().unwrap_or_default();
        if told["key"].as_str().is_some_and(|key| key.starts_with(prefix)) && told["cause"].is_string() {
            return told;
        }
    };
    let child = next_working("agent:").await;
    let (_, listed) = server.get("/api/sessions").await;
    let (_, status) = server.get("/api/sessions/a").await;
    let (_, tree) = server.get("/api/agents?session=a").await;

    let parent = json!({"key": "a", "id": status["id"]});
    assert_eq!((&child["parent"], &child["cause"]), (&parent, &json!("subagent")), "{child}");
    let items = listed["items"].as_array().unwrap();
    let parents: Vec<_> = items.iter().map(|item| item["parent"].clone()).collect();
    assert_eq!(parents, [json!(null), parent], "{listed}");
    assert_eq!(status["cause"], "turn");
    assert_eq!(status["tasks"][0]["session"], child["key"], "{status}");
    assert_eq!((&tree["items"][0]["id"], &tree["items"][0]["cost"]), (&child["id"], &json!(null)), "{tree}");
    server.shutdown().await;
}

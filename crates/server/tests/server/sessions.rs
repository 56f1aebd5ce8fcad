//! Sessions over HTTP: create, list, change, delete.

use longhaul_server::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::event_client::EventStream;
use crate::test_server::{TestServer, json_answer};

async fn change(server: &TestServer, key: &str, body: &Value) -> (u16, Value) {
    let request = server.request(Method::PATCH, &format!("/api/sessions/{key}"));
    json_answer(request.header("content-type", "application/json").body(body.to_string())).await
}

/// H3, S2: created is listed, empty or not; a taken key is a conflict.
#[tokio::test(flavor = "multi_thread")]
async fn a_created_session_is_listed_at_once_and_its_key_is_taken() {
    let server = TestServer::with_script("[]").await;

    let (status, made) = server.post("/api/sessions", &json!({"key": "a"})).await;
    let (again, problem) = server.post("/api/sessions", &json!({"key": "a"})).await;
    let (_, unnamed) = server.post("/api/sessions", &json!({})).await;

    assert_eq!(
        (status, &made["key"], &made["state"], &made["work_dir"]),
        (201, &json!("a"), &json!("idle"), &Value::Null)
    );
    assert_eq!((again, &problem["code"]), (409, &json!("session_exists")));
    let (_, listed) = server.get("/api/sessions").await;
    let keys: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["key"]).collect();
    assert_eq!(keys, [&json!("a"), &unnamed["key"]]);
    let (_, found) = server.get(&format!("/api/sessions/{}", made["id"].as_str().unwrap())).await;
    assert_eq!(found["key"], "a", "an id leads to the session, too");
    assert_eq!((found["children"].clone(), found["questions"].clone()), (json!([]), json!([])));
    server.shutdown().await;
}

/// A session without a work folder has nothing to reach files or commands with.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_folder_has_no_file_tools_and_no_commands() {
    let script = json!([{"calls": [{"name": "exec", "arguments": {"command": "echo x > made.txt"}}]}, "No."]);
    let server = TestServer::with_script(&script.to_string()).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;

    let (_, sent) = server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    let mut stream =
        EventStream::open(&server, &format!("/api/sessions/a/events?after={}", sent["after"])).await;
    let events = stream.events_until("turn_ended").await;

    let result = events.iter().find(|event| event["type"] == "tool_finished").unwrap();
    assert_eq!(result["is_error"], true, "{result}");
    let tools = result["content"].as_str().unwrap();
    assert!(tools.contains("recall") && !tools.contains("read_file"), "{tools}");
    assert_eq!(server.home.file("made.txt"), "");
    server.shutdown().await;
}

/// H5: a folder that no session has yet needs an admin token.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_folder_needs_an_admin_token_and_a_known_one_does_not() {
    let server = TestServer::with_tokens("[]", &[("act", Scope::Act)]).await;
    let folder = json!({"key": "a", "work_dir": server.home.work()});
    let by_act = |body: &Value| {
        let request = server.anonymous(Method::POST, "/api/sessions").header("authorization", "Bearer act");
        json_answer(request.header("content-type", "application/json").body(body.to_string()))
    };

    let (refused, problem) = by_act(&folder).await;
    let (made, _) = server.post("/api/sessions", &folder).await;
    let (allowed, second) = by_act(&json!({"key": "b", "work_dir": server.home.work()})).await;
    let (model, _) = by_act(&json!({"model": "scripted/x.json"})).await;

    assert_eq!((refused, &problem["code"]), (403, &json!("scope")));
    assert_eq!((made, allowed, model), (201, 201, 403));
    assert_eq!(second["work_dir"], json!(server.home.work().canonicalize().unwrap()));
    let (status, problem) = server.post("/api/sessions", &json!({"work_dir": "here"})).await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_work_dir")));
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_paged_and_filtered() {
    let server = TestServer::with_script(r#"["Pears."]"#).await;
    for key in ["a", "b", "c"] {
        server.post("/api/sessions", &json!({"key": key})).await;
    }
    server.runtime.session("b").await.unwrap().send("what about apples").await.unwrap();

    let (_, first) = server.get("/api/sessions?limit=2").await;
    let (_, rest) =
        server.get(&format!("/api/sessions?limit=2&after={}", first["next"].as_str().unwrap())).await;
    let (_, found) = server.get("/api/sessions?query=apples").await;
    let (_, none) = server.get("/api/sessions?state=working").await;

    assert_eq!(found["unindexed"], 0, "all of it was searched");
    let keys = |list: &Value| {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (keys(&first), keys(&rest), &rest["next"]),
        (vec!["a".into(), "b".into()], vec!["c".into()], &Value::Null)
    );
    assert_eq!((keys(&found), keys(&none)), (vec!["b".to_owned()], vec![]));
    assert_eq!(found["items"][0]["title"], "what about apples");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_renamed_pinned_and_gets_another_mode() {
    let server = TestServer::with_script("[]").await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    server.post("/api/sessions", &json!({"key": "taken"})).await;

    let (status, changed) =
        change(&server, "a", &json!({"key": "b/c", "pinned": true, "mode": "plan"})).await;
    let (taken, _) = change(&server, "b%2Fc", &json!({"key": "taken"})).await;

    assert_eq!((status, &changed["key"], &changed["pinned"]), (200, &json!("b/c"), &json!(true)));
    assert_eq!((taken, server.get("/api/sessions/a").await.0), (409, 404));
    let mut stream = EventStream::open(&server, "/api/sessions/b%2Fc/events?from=start").await;
    stream.events_until("mode_changed").await;
    assert_eq!(server.get("/api/sessions/b%2Fc").await.1["mode"], "plan");
    server.shutdown().await;
}

/// DELETE works while the server runs a turn of the session.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_works_ends_its_turn_and_goes_to_the_trash_and_back() {
    let server = TestServer::with_script(
        &json!([{"text": "word ".repeat(500), "piece_ms": 100}, "Again."]).to_string(),
    )
    .await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let mut stream = EventStream::open(&server, "/api/sessions/a/events").await;
    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    stream.events_until("text_delta").await;

    let (status, trashed) = json_answer(server.request(Method::DELETE, "/api/sessions/a")).await;

    assert_eq!((status, &trashed["state"]), (200, &json!("trashed")));
    let ended = stream.events_until("turn_ended").await;
    assert_eq!(ended.last().unwrap()["outcome"], "cancelled");
    let (refused, problem) = server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    assert_eq!((refused, &problem["code"]), (409, &json!("session_in_trash")));
    assert_eq!(server.get("/api/sessions").await.1["items"], json!([]));
    assert_eq!(server.get("/api/sessions?state=trashed").await.1["items"][0]["key"], "a");
    let (restored, _) = json_answer(server.request(Method::POST, "/api/sessions/a/restore")).await;
    assert_eq!((restored, server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await.0), (200, 202));
    stream.events_until("turn_ended").await;
    server.shutdown().await;
}

/// H3: a limit that a list can't keep is refused in one sentence, not changed silently.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_out_of_range_is_refused_with_the_range() {
    let server = TestServer::with_script("[]").await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let (_, scopes) = server.get("/api/memory").await;
    let memory = format!("/api/memory/{}", scopes["items"][0]["scope"].as_str().unwrap());
    let lists = [
        ("/api/sessions?", 1_000),
        ("/api/tasks?", 1_000),
        ("/api/questions?", 1_000),
        ("/api/models?", 1_000),
        ("/api/config?", 1_000),
        ("/api/statement?", 1_000),
        ("/api/memory?", 1_000),
        ("/api/sessions/a/records?", 1_000),
        ("/api/sessions/a/transcript?", 500),
        (&format!("{memory}/pages?"), 1_000),
        (&format!("{memory}/log?"), 1_000),
        (&format!("{memory}/search?query=x&"), 100),
    ];

    for (path, max) in lists {
        for limit in [0, max + 1] {
            let (status, problem) = server.get(&format!("{path}limit={limit}")).await;
            assert_eq!((status, &problem["code"]), (400, &json!("invalid_query")), "{path}limit={limit}");
            let detail = format!("limit: {limit} is out of range; send a number from 1 to {max}");
            assert_eq!(problem["detail"], json!(detail), "{path}");
        }
        for limit in [1, max] {
            assert_eq!(server.get(&format!("{path}limit={limit}")).await.0, 200, "{path}limit={limit}");
        }
    }
    server.shutdown().await;
}

/// H3: a change is made as a whole or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_refused_changes_nothing() {
    let server = TestServer::with_script("[]").await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    server.post("/api/sessions", &json!({"key": "taken"})).await;
    let file = server.home.work().join("other.json");
    std::fs::write(&file, "[]").unwrap();
    let other = format!("scripted/{}", file.display());
    let (_, before) = server.get("/api/sessions/a").await;

    let taken = change(&server, "a", &json!({"key": "taken", "model": other, "mode": "plan"})).await;
    let unknown = change(&server, "a", &json!({"key": "b", "model": "nobody/nothing", "pinned": true})).await;
    let (_, after) = server.get("/api/sessions/a").await;
    let (status, _) = change(&server, "a", &json!({"key": "b", "model": other})).await;

    assert_eq!((taken.0, unknown.0), (409, 400), "{taken:?} {unknown:?}");
    let facts = |session: &Value| ["key", "model", "mode", "pinned"].map(|field| session[field].clone());
    assert_eq!(facts(&after), facts(&before));
    assert_eq!((status, &server.get("/api/sessions/b").await.1["model"]), (200, &json!(other)));
    server.shutdown().await;
}

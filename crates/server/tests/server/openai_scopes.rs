//! H4, H5: what a client of `/v1` may use: folders, sessions in the trash, conversations of other tokens, images.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_journal::session_place;
use longhaul_server::{Scope, create_token, revoke_token};
use reqwest::Method;
use serde_json::{Value, json};

use crate::openai::{answered, chat, content, said, sessions};
use crate::test_server::{TestServer, json_answer};

/// Asks with a token of the journal, as soon as the server knows it.
async fn ask(server: &TestServer, token: &str, body: &Value) -> (u16, Value) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let request = server.anonymous(Method::POST, "/v1/chat/completions");
        let request = request.header("authorization", format!("Bearer {token}"));
        let answer =
            json_answer(request.header("content-type", "application/json").body(body.to_string())).await;
        if answer.0 != 401 || Instant::now() > deadline {
            return answer;
        }
        // Few tries: wrong tokens are counted.
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// The folders of all sessions, in the order of their keys.
async fn folders(server: &TestServer) -> Vec<Option<String>> {
    let journal = server.runtime.journal();
    let mut found = Vec::new();
    for entry in journal.sessions(None, 100).await.unwrap() {
        found.push(session_place(&*journal, entry.id).await.unwrap().unwrap().work_dir);
    }
    found
}

/// P1, H5: a program gets no folder over `/v1` that it would not get over `/api`.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_has_the_folder_of_the_server_only_if_its_token_may_begin_one_there() {
    let server = TestServer::with_script(r#"["One.", "Two.", "Three."]"#).await;
    let token = create_token(&*server.runtime.journal(), "program", Scope::Act).await.unwrap();
    let work = server.home.work().canonicalize().unwrap().display().to_string();
    let named = |key: &str| {
        let mut body = chat(&json!([said("Hi")]));
        body["conversation"] = key.into();
        body
    };

    assert_eq!(ask(&server, &token, &named("a")).await.0, 200);
    assert_eq!(folders(&server).await, [None]);
    assert_eq!(server.post("/v1/chat/completions", &named("b")).await.0, 200);
    assert_eq!(folders(&server).await, [None, Some(work.clone())], "an admin may begin one anywhere");
    assert_eq!(ask(&server, &token, &named("c")).await.0, 200);
    assert_eq!(folders(&server).await, [None, Some(work.clone()), Some(work)], "a session has the folder");
    server.shutdown().await;
}

/// H4: a session in the trash answers nobody, however a client names it, and is not copied out of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_the_trash_takes_nothing() {
    let server = TestServer::with_script(r#"["One.", "Two.", "Three."]"#).await;
    let keyed = async |text: &str| {
        let request = server.request(Method::POST, "/v1/responses").header("idempotency-key", "k1");
        let body = json!({"input": text, "conversation": "s"});
        json_answer(request.header("content-type", "application/json").body(body.to_string())).await
    };
    let (_, first) = keyed("a").await;
    let (_, second) = server.post("/v1/responses", &json!({"input": "b", "conversation": "s"})).await;
    let id = server.runtime.journal().session("s").await.unwrap().unwrap().id;
    let deleted = json_answer(server.request(Method::DELETE, "/api/sessions/s")).await;
    assert_eq!(deleted.0, 200, "{deleted:?}");

    let by_key = server.post("/v1/responses", &json!({"input": "c", "conversation": "s"})).await;
    let by_id =
        server.post("/v1/responses", &json!({"input": "c", "conversation": format!("conv_{id}")})).await;
    let after = async |previous: &Value| {
        server.post("/v1/responses", &json!({"input": "c", "previous_response_id": previous["id"]})).await
    };
    let (forked, went_on) = (after(&first).await, after(&second).await);
    let again = keyed("a").await;
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    let retrieved = server.get(&path).await;
    let cancelled = server.post(&format!("{path}/cancel"), &json!({})).await;

    for (status, error) in [by_key, by_id, forked, went_on, again, retrieved, cancelled] {
        assert_eq!((status, &error["error"]["code"]), (409, &json!("session_in_trash")), "{error}");
    }
    assert_eq!(sessions(&server).await, [("s".to_owned(), 2)]);
    server.shutdown().await;
}

/// H4, H5: the next holder of a token's name does not get the conversations of the one before.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_belongs_to_its_token_and_not_to_the_tokens_name() {
    let server = TestServer::with_script(r#"["One.", "Two.", "Three."]"#).await;
    let journal = server.runtime.journal();
    let first = create_token(&*journal, "program", Scope::Act).await.unwrap();
    assert_eq!(content(&ask(&server, &first, &chat(&json!([said("Hi")]))).await.1), "One.");
    revoke_token(&*journal, "program").await.unwrap();
    let second = create_token(&*journal, "program", Scope::Act).await.unwrap();

    let goes_on = chat(&json!([said("Hi"), answered("One."), said("What did I say?")]));
    let (status, _) = ask(&server, &second, &goes_on).await;
    let (same, _) = ask(&server, &second, &chat(&json!([said("Hi")]))).await;

    assert_eq!((status, same), (200, 200));
    let turns: Vec<u64> = sessions(&server).await.iter().map(|(_, turns)| *turns).collect();
    assert_eq!(turns, [1, 1, 1], "each is a session of its own");
    server.shutdown().await;
}

/// H5, P4: what outlives the session is allowed by an admin, as over `/api`.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_token_allows_a_call_for_a_whole_project() {
    let call = json!({"name": "exec", "arguments": {"command": "echo hi >> ran.txt"}});
    let script = json!([{"text": "I run it.", "calls": [call]}, "Done."]).to_string();
    let server = TestServer::with_settings(&script, |config| {
        config.settings.approval.rule =
            vec![ApprovalRule { tool: "exec".to_owned(), command: None, host: None, action: Approval::Ask }];
    })
    .await;
    let token = create_token(&*server.runtime.journal(), "program", Scope::Act).await.unwrap();
    let in_session = |text: &str| {
        let mut body = chat(&json!([said(text)]));
        body["conversation"] = "s".into();
        body
    };

    // The admin's session has the folder of the server, and so its commands.
    let (_, asked) = server.post("/v1/chat/completions", &in_session("run it")).await;
    let (status, refused) = ask(&server, &token, &in_session("project")).await;
    let (_, done) = ask(&server, &token, &in_session("yes")).await;

    let choices = asked["longhaul"]["question"]["choices"].to_string();
    assert!(choices.contains("project"), "{asked}");
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("scope")), "{refused}");
    assert_eq!(content(&done), "Done.", "the question is still open");
    assert!(!server.runtime.config().home.join("approvals.toml").exists());
    server.shutdown().await;
}

/// H4: a picture that no provider would take is refused before it is in the session for good.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_checked_before_it_is_put_into_a_session() {
    let server = TestServer::with_script(r#"["A dot."]"#).await;
    let png = STANDARD.decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    );
    let png = STANDARD.encode(png.unwrap());
    let shown = |urls: Vec<String>| {
        let parts: Vec<Value> =
            urls.iter().map(|url| json!({"type": "image_url", "image_url": {"url": url}})).collect();
        chat(&json!([{"role": "user", "content": parts}]))
    };
    let send = async |urls| server.post("/v1/chat/completions", &shown(urls)).await;
    let data = |media_type: &str, data: &str| format!("data:{media_type};base64,{data}");

    for urls in [
        vec![data("image/png", "aGVsbG8=")],
        vec![data("image/x-evil%0d%0a", "aGVsbG8=")],
        vec![data("image/gif", &png)],
        vec![data("image/png", &png); 21],
    ] {
        let (status, error) = send(urls).await;
        assert_eq!((status, &error["error"]["code"]), (400, &json!("invalid_image")), "{error}");
    }
    assert!(sessions(&server).await.is_empty());
    assert_eq!(content(&send(vec![data("image/png", &png)]).await.1), "A dot.");
    server.shutdown().await;
}

/// H5: a program does not begin the session that a person's terminal opens next.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_token_begins_a_session_with_a_key_of_the_terminal() {
    let server = TestServer::with_script(r#"["One."]"#).await;
    let token = create_token(&*server.runtime.journal(), "program", Scope::Act).await.unwrap();
    let mut body = chat(&json!([said("Hi")]));
    body["conversation"] = "cli:project-1f0c8a2e".into();

    let (status, answer) = ask(&server, &token, &body).await;
    assert_eq!((status, &answer["error"]["code"]), (403, &json!("scope")), "{answer}");
    assert!(folders(&server).await.is_empty());
    assert_eq!(server.post("/v1/chat/completions", &body).await.0, 200);
    server.shutdown().await;
}

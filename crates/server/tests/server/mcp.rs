//! E3: sessions for other agents over `/mcp`. H3: bad input is refused in one sentence.

use std::time::Duration;

use longhaul_server::{Scope, ServerOptions};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::test_server::{ADMIN_TOKEN, TestServer, json_answer, test_options};

pub(crate) const VERSION: &str = "2026-07-28";

/// A client of the stateless revision.
pub(crate) struct Agent<'a> {
    pub(crate) server: &'a TestServer,
    pub(crate) token: &'a str,
    pub(crate) capabilities: Value,
}

impl<'a> Agent<'a> {
    /// An agent that knows tasks and forms.
    pub(crate) fn new(server: &'a TestServer, token: &'a str) -> Self {
        let capabilities = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        Self { server, token, capabilities }
    }

    /// An agent that knows nothing but tools.
    pub(crate) fn plain(server: &'a TestServer, token: &'a str) -> Self {
        Self { server, token, capabilities: json!({}) }
    }

    fn request(&self, method: &str, params: &Value) -> RequestBuilder {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap_or_default().to_owned();
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        post(self.server, self.token, body.to_string())
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", method)
            .header("mcp-name", name)
    }

    /// The status and the message of the answer.
    pub(crate) async fn call(&self, method: &str, params: Value) -> (u16, Value) {
        json_answer(self.request(method, &params)).await
    }

    /// The result of a tool, which must have one.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Value {
        let (status, answer) = self.call("tools/call", json!({"name": name, "arguments": arguments})).await;
        assert_eq!((status, &answer["id"]), (200, &json!(7)), "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    pub(crate) async fn send(&self, session: &str, text: &str, key: Option<&str>) -> Value {
        let mut arguments = json!({"session": session, "text": text});
        if let Some(key) = key {
            arguments["key"] = json!(key);
        }
        self.tool("session_send", arguments).await
    }

    /// Asks for a task until it is as wanted.
    pub(crate) async fn poll(&self, task: &Value, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let polling = async {
            loop {
                let (_, answer) = self.call("tasks/get", json!({"taskId": task["taskId"]})).await;
                assert!(answer["result"].is_object(), "{answer}");
                if is_wanted(&answer["result"]) {
                    return answer["result"].clone();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), polling).await.expect("the task as it is wanted")
    }
}

fn post(server: &TestServer, token: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
    let request = server.anonymous(Method::POST, "/mcp").header("authorization", format!("Bearer {token}"));
    request.header("content-type", "application/json").header("accept", "application/json").body(body)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// E3: what the tools do, without tasks.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_tasks_waits_for_the_answer() {
    let server = TestServer::with_script(r#"["Hello, agent."]"#).await;
    let agent = Agent::plain(&server, ADMIN_TOKEN);

    let sent = agent.send("work:1", "Hello.", None).await;
    let read = agent.tool("session_read", json!({"session": "work:1"})).await;
    let list = agent.tool("session_list", json!({})).await;

    assert_eq!((text(&sent), &sent["isError"]), ("Hello, agent.", &json!(false)));
    assert_eq!(sent["structuredContent"], json!({"session": "work:1", "outcome": "completed", "turn": 1}));
    assert!(text(&read).contains("> Hello.") && text(&read).contains("Hello, agent."), "{read}");
    assert_eq!(list["structuredContent"]["sessions"][0]["key"], "work:1", "{list}");
    server.shutdown().await;
}

/// E3: a call that waits is a stream, which tells how it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_is_answered_by_the_last_event_of_a_stream() {
    let server = TestServer::with_script(r#"[{"text": "Slowly done.", "wait_ms": 200}]"#).await;
    let params = json!({
        "name": "session_send",
        "arguments": {"session": "a", "text": "Go."},
        "_meta": {"progressToken": "p"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();

    let answer = server.request(Method::POST, "/mcp").header("content-type", "application/json");
    let answer =
        answer.header("accept", "application/json, text/event-stream").body(body).send().await.unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let events = answer.text().await.unwrap();

    assert_eq!(kind, "text/event-stream");
    let events = events.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events.map(|event| serde_json::from_str(event).unwrap()).collect();
    let (last, before) = events.split_last().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Slowly done.");
    assert!(!before.is_empty());
    assert!(before.iter().all(|event| event["params"]["progressToken"] == "p"), "{before:?}");
    server.shutdown().await;
}

/// E3, T1: the same key never runs a second turn, over restarts too.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_is_one_task_also_after_a_restart() {
    let server = TestServer::with_script(r#"["One.", "Two."]"#).await;
    let agent = Agent::new(&server, ADMIN_TOKEN);
    let first = agent.send("a", "Go.", Some("k")).await;
    agent.poll(&first, |task| task["status"] == "completed").await;

    let server = server.restart().await;
    let agent = Agent::new(&server, ADMIN_TOKEN);
    let second = agent.send("a", "Go.", Some("k")).await;
    let ended = agent.poll(&first, |_| true).await;
    let other = agent.send("a", "Something else.", Some("k")).await;

    assert_eq!((&first["resultType"], &first["taskId"]), (&json!("task"), &second["taskId"]));
    assert_eq!(text(&ended["result"]), "One.");
    assert_eq!(other["isError"], true);
    assert!(text(&other).contains("another text"), "{other}");
    let (_, session) = server.get("/api/sessions/a").await;
    assert_eq!(session["turns"], 1);
    server.shutdown().await;
}

/// P8: what another agent sends is on record as that.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_of_another_agent_is_never_a_persons_word() {
    let server = TestServer::with_tokens(r#"["Yes."]"#, &[("builder", Scope::Act)]).await;

    Agent::plain(&server, "builder").send("a", "Remember that the user likes tabs.", None).await;

    let (_, page) = server.get("/api/sessions/a/records?from=1").await;
    let records = page["items"].as_array().unwrap();
    let taken = records.iter().find(|record| record["kind"] == "input_taken").unwrap();
    assert_eq!(taken["body"]["sender"], json!({"kind": "agent", "name": "builder"}), "{taken}");
    server.shutdown().await;
}

/// E3: a client ends a turn that it has begun, and takes back a message that waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_be_cancelled_before_and_in_its_turn() {
    let script = json!([{"text": "word ".repeat(5_000), "piece_ms": 50}, "Next."]).to_string();
    let server = TestServer::with_script(&script).await;
    let agent = Agent::new(&server, ADMIN_TOKEN);
    let running = agent.send("a", "Go on and on.", None).await;
    server.poll("/api/sessions/a", |session| session["turn"]["number"] == 1).await;
    let waiting = agent.send("a", "And then?", None).await;

    let taken_back = agent.call("tasks/cancel", json!({"taskId": waiting["taskId"]})).await;
    let taken_back_task = agent.poll(&waiting, |task| task["status"] != "working").await;
    agent.call("tasks/cancel", json!({"taskId": running["taskId"]})).await;
    let cancelled = agent.poll(&running, |task| task["status"] != "working").await;
    let again = agent.call("tasks/cancel", json!({"taskId": running["taskId"]})).await;

    assert_eq!((taken_back.0, &taken_back.1["result"]["resultType"]), (200, &json!("complete")));
    assert_eq!(taken_back_task["status"], "cancelled");
    assert_eq!((&cancelled["status"], again.0), (&json!("cancelled"), 200));
    let (_, session) = server.get("/api/sessions/a").await;
    assert_eq!(session["turns"], 1, "the message that was taken back has no turn");
    server.shutdown().await;
}

/// E3: a client that goes away ends its waiting, and no turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_does_not_end_the_turn() {
    let server = TestServer::with_script(r#"[{"text": "Done without you.", "wait_ms": 300}]"#).await;
    let agent = Agent::plain(&server, ADMIN_TOKEN);
    let params = json!({"name": "session_send", "arguments": {"session": "a", "text": "Go."}});
    let request = agent.request("tools/call", &params).timeout(Duration::from_millis(100));

    assert!(request.send().await.is_err(), "the client gives up");

    let session = server.poll("/api/sessions/a", |session| session["last_outcome"] == "completed").await;
    assert_eq!(session["turns"], 1);
    server.shutdown().await;
}

/// H4: `/mcp` needs a token that may act.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_not_act_gets_nothing() {
    let server = TestServer::with_tokens("[]", &[("reader", Scope::Read)]).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();

    let refused = [
        json_answer(server.anonymous(Method::POST, "/mcp").body(list.clone())).await,
        json_answer(post(&server, "wrong", list.clone())).await,
        json_answer(post(&server, "reader", list)).await,
    ];

    let codes = refused.map(|(status, problem)| (status, problem["code"].as_str().unwrap().to_owned()));
    let wanted = [(401, "unauthorized"), (401, "unauthorized"), (403, "scope")];
    assert_eq!(codes, wanted.map(|(status, code)| (status, code.to_owned())));
    server.shutdown().await;
}

/// H3: each bad message has its answer, and nobody else suffers.
#[tokio::test(flavor = "multi_thread")]
async fn bad_messages_are_refused_while_others_are_served() {
    let script = r#"[{"text": "Undisturbed.", "wait_ms": 500}]"#;
    let server =
        TestServer::with_options(script, ServerOptions { max_body_bytes: 4_096, ..test_options() }).await;
    let agent = Agent::plain(&server, ADMIN_TOKEN);
    let raw = async |body: String| json_answer(post(&server, ADMIN_TOKEN, body)).await;
    let code =
        |(status, answer): (u16, Value)| (status, answer["error"]["code"].as_i64().unwrap_or_default());
    let bad = async {
        assert_eq!(code(raw("hello".to_owned()).await), (400, -32_700));
        assert_eq!(code(raw("[]".to_owned()).await), (400, -32_600));
        assert_eq!(code(raw(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#.to_owned()).await), (200, -32_601));
        assert_eq!(code(agent.call("no/method", json!({})).await), (404, -32_601));
        assert_eq!(
            code(agent.call("tools/call", json!({"name": "rm", "arguments": {}})).await),
            (200, -32_602)
        );
        assert_eq!(code(agent.call("tasks/get", json!({"taskId": "1-2"})).await), (400, -32_021));
        let tasks = Agent::new(&server, ADMIN_TOKEN);
        assert_eq!(code(tasks.call("tasks/get", json!({"taskId": "1-2"})).await), (200, -32_602));
        assert_eq!(raw("x".repeat(5_000)).await.0, 413);
        let (status, _) = raw(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()).await;
        assert_eq!(status, 202);
        for (tool, arguments, reason) in [
            ("session_read", json!({"session": "nobody"}), "no session has the key or id \"nobody\""),
            ("session_send", json!({"session": "a"}), "missing field `text`"),
            ("session_send", json!({"session": "a", "text": " "}), "text is empty"),
            ("session_send", json!({"session": "b\n", "text": "x"}), "key"),
            (
                "session_answer",
                json!({"session": "a", "question": "q", "answer": "yes"}),
                "no question \"q\"",
            ),
            ("session_list", json!({"all": true}), "unknown field `all`"),
        ] {
            let result = agent.tool(tool, arguments).await;
            assert_eq!(result["isError"], true, "{result}");
            assert!(text(&result).contains(reason), "{reason}: {result}");
        }
    };

    let (sent, ()) = tokio::join!(agent.send("a", "Go.", None), bad);

    assert_eq!(text(&sent), "Undisturbed.");
    server.shutdown().await;
}

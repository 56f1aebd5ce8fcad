//! What was spent, over HTTP.

use serde_json::json;

use crate::test_server::TestServer;

fn script() -> String {
    let answer = json!({"text": "Fine.", "usage": {"input": 100, "output": 10, "cached": 40}});
    json!([answer, answer, answer]).to_string()
}

/// B2, H3: a turn is in the statement as soon as it has ended, in the form of the interface. A price that is not known is
/// null, and not 0.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_adds_up_what_the_turns_used() {
    let server = TestServer::with_script(&script()).await;
    assert_eq!(
        server.get("/api/statement").await.1,
        json!({"items": [], "total": {"name": "total", "calls": 0, "input": 0, "output": 0, "cached": 0,
            "cost": 0.0, "unpriced": 0, "at_upper_bound": 0}, "next": null})
    );
    for (key, text) in [("a", "one"), ("b", "two"), ("b", "three")] {
        server.runtime.session(key).await.unwrap().send(text).await.unwrap();
    }

    let (status, by_cause) = server.get("/api/statement").await;
    let (_, by_session) = server.get("/api/statement?by=session&limit=1").await;
    let (_, rest) = server.get("/api/statement?by=session&limit=1&after=b").await;
    let (_, future) = server.get("/api/statement?since=2999-01-01").await;

    let item = |name: &str, calls: u64| {
        json!({"name": name, "calls": calls, "input": 100 * calls, "output": 10 * calls, "cached": 40 * calls,
            "cost": null, "unpriced": calls, "at_upper_bound": 0})
    };
    assert_eq!(status, 200);
    assert_eq!(by_cause, json!({"items": [item("turn", 3)], "total": item("total", 3), "next": null}));
    assert_eq!(by_session, json!({"items": [item("b", 2)], "total": item("total", 3), "next": "b"}));
    assert_eq!(rest, json!({"items": [item("a", 1)], "total": item("total", 3), "next": null}));
    assert_eq!(future["total"]["calls"], 0);
    for (path, code) in [
        ("since=soon", "invalid_since"),
        ("since=12h", "invalid_since"),
        ("by=mood", "invalid_query"),
        ("bye=day", "invalid_query"),
    ] {
        let (status, problem) = server.get(&format!("/api/statement?{path}")).await;
        assert_eq!((status, &problem["code"]), (400, &json!(code)), "{path}: {problem}");
    }
    server.shutdown().await;
}

/// B3, H3: what is left of each limit is in the status of the process, and of a session.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_shows_what_is_left_of_the_limits() {
    let server = TestServer::with_settings(&script(), |config| {
        config.settings.limits.tokens_per_day = 1_000_000;
        config.settings.limits.cost_per_session = 2.0;
    })
    .await;
    server.runtime.session("a").await.unwrap().send("one").await.unwrap();

    let (_, process) = server.get("/api/status").await;
    let (_, session) = server.get("/api/sessions/a").await;

    let of_day = json!({"name": "tokens_per_day", "unit": "tokens", "limit": 1e6, "used": 110.0, "reserved": 0.0,
        "left": 999_890.0});
    let of_session = json!({"name": "cost_per_session", "unit": "cost", "limit": 2.0, "used": 0.0, "reserved": 0.0,
        "left": 2.0});
    assert_eq!(process["limits_left"], json!([of_day]));
    assert_eq!(session["limits"], json!([of_session, of_day]));
    server.shutdown().await;
}

/// B2: a session's cost is what the statement says of it. What a fork copied was not spent by it.
#[tokio::test(flavor = "multi_thread")]
async fn the_cost_of_a_session_is_that_of_the_statement() {
    let server = TestServer::with_script(&script()).await;
    server.runtime.session("a").await.unwrap().send("one").await.unwrap();
    assert_eq!(server.post("/api/sessions/a/fork", &json!({"key": "b"})).await.0, 201);

    let (_, session) = server.get("/api/sessions/a").await;
    let (_, fork) = server.get("/api/sessions/b").await;
    let (_, statement) = server.get("/api/statement?by=session").await;

    let spent = json!({"input": 100, "output": 10, "cached": 40, "cost": null, "unpriced": 1});
    assert_eq!(session["cost"], spent);
    assert_eq!((&fork["cost"]["input"], &fork["cost"]["unpriced"]), (&json!(0), &json!(0)), "{fork}");
    assert_eq!(statement["items"].as_array().unwrap().len(), 1, "{statement}");
    server.shutdown().await;
}

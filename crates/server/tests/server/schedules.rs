//! Schedules over HTTP.

use reqwest::Method;
use serde_json::json;

use crate::test_server::{TestServer, json_answer};

/// W3, H3: made, shown, changed, paused, run and deleted; mistakes are problems with a code.
#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_made_changed_and_deleted_over_http() {
    let server = TestServer::with_script("[]").await;
    let new =
        json!({"name": "morning", "cron": "0 7 * * 1-5", "zone": "Europe/Berlin", "prompt": "What is new?"});

    let (created, made) = server.post("/api/schedules", &new).await;
    let (again, taken) = server.post("/api/schedules", &new).await;
    let never = json!({"name": "never", "cron": "0 0 30 2 *", "prompt": "x"});
    let (refused, problem) = server.post("/api/schedules", &never).await;
    let unknown = json!({"name": "other", "every": "1h", "prompt": "x", "evry": "1h"});
    let (strict, _) = server.post("/api/schedules", &unknown).await;
    let body = json!({"every": "2h", "prompt": "What is new?"}).to_string();
    let put =
        server.request(Method::PUT, "/api/schedules/morning").header("content-type", "application/json");
    let (changed, other) = json_answer(put.body(body)).await;
    let (paused, report) = server.post("/api/schedules/morning/pause", &json!({})).await;
    let (requested, _) = server.post("/api/schedules/morning/run", &json!({})).await;
    let (_, list) = server.get("/api/schedules").await;
    let (deleted, _) = json_answer(server.request(Method::DELETE, "/api/schedules/morning")).await;
    let (gone, missing) = server.get("/api/schedules/morning").await;

    assert_eq!(
        (created, &made["status"], &made["source"]),
        (201, &json!("waiting"), &json!("person")),
        "{made}"
    );
    assert_eq!((again, &taken["code"]), (409, &json!("schedule_exists")));
    assert_eq!((refused, &problem["code"]), (400, &json!("invalid_schedule")));
    assert_eq!(problem["detail"], "schedule never: cron \"0 0 30 2 *\" never fires");
    assert_eq!(strict, 400, "an unknown field is refused");
    assert_eq!((changed, &other["every"], &other["cron"]), (200, &json!("2h"), &json!(null)), "{other}");
    assert_eq!((paused, &report["status"]), (200, &json!("paused")));
    assert_eq!(requested, 202);
    assert_eq!(list["items"][0]["name"], "morning");
    assert_eq!(deleted, 204);
    assert_eq!((gone, &missing["code"]), (404, &json!("no_such_schedule")));
    server.shutdown().await;
}
